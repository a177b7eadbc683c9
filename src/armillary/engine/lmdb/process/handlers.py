"""Handlers and codecs by import path: what another process can be told to import."""

from __future__ import annotations

import importlib
from typing import Any


def load_handlers(path: str) -> Any:
    """`package.module:attribute`"""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
