"""Decoders of records with named fields: catalog rows, tokens, counters.

msgspec works out how to fill a class when it first meets it, and shows the half-made plan to other
threads meanwhile (so that a class may contain itself). A thread that decodes the same class at that
moment follows a null pointer: the process ends with signal 11. So the plan of a class is made here,
when the module that defines the class is imported; threads only ever find finished ones.

    decode_lease = decoder(Lease)          # at the top level of a module, once
    lease = decode_lease(row)              # anywhere

Classes made while a query runs (query/expr/decoding.py) are not known to other threads yet, and
need none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def decoder(form: type[T]) -> Callable[[bytes], T]:
    """From JSON."""
    return msgspec.json.Decoder(form).decode


def converter(form: type[T]) -> Callable[[Any], T]:
    """From what a JSON decoder gives: dicts, lists, strings, numbers."""
    msgspec.json.Decoder(form)  # which makes the plan
    return lambda value: msgspec.convert(value, type=form)
