"""Decoders of records with named fields: catalog rows, tokens, counters.

msgspec works out how to fill a class when it first meets it, and shows the half-made plan to other
threads meanwhile (so that a class may contain itself). A thread that decodes the same class at that
moment follows a null pointer: the process ends with signal 11. So plans are made here, by one
thread at a time, and used when they are finished. Not before the first record of a class comes:
making them takes time, and most starts meet few of them.

    decode_lease = decoder(Lease)          # at the top level of a module, once
    lease = decode_lease(row)              # anywhere

Classes made while a query runs (query/expr/decoding.py) are not known to other threads yet, and
need none of this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_making = threading.Lock()


def decoder(form: type[T]) -> Callable[[bytes], T]:
    """From JSON."""
    made: Callable[[bytes], T] | None = None

    def decode(row: bytes) -> T:
        nonlocal made
        if made is None:
            made = _made(form)
        return made(row)

    return decode


def converter(form: type[T]) -> Callable[[Any], T]:
    """From what a JSON decoder gives: dicts, lists, strings, numbers."""
    is_made = False

    def convert(value: Any) -> T:
        nonlocal is_made
        if not is_made:
            _made(form)
            is_made = True
        return msgspec.convert(value, type=form)

    return convert


def _made(form: type[T]) -> Callable[[bytes], T]:
    with _making:
        return msgspec.json.Decoder(form).decode
