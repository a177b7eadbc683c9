"""The help of commands, from their docstrings: prose flows to the width of the terminal, examples
stay a line each, indented."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

EXAMPLES: Final = ("Example:", "Examples:")


def help_of(command: Callable[..., Any]) -> str:
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(one if _is_verbatim(one) else _flowing(one) for one in paragraphs)


def _is_verbatim(paragraph: str) -> bool:
    return paragraph.startswith(EXAMPLES)


def _flowing(paragraph: str) -> str:
    return " ".join(paragraph.split())
