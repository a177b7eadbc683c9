"""Damage: a valid text, JSON value or byte string in, one that is nearly valid out.

All chance comes from the `Random` given, so a seed repeats everything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

TEXTS = (
    "",
    " ",
    "\x00",
    "a" * 300,
    "é",
    "\ud800",
    "😀",
    "../..",
    "%",
    "'",
    '"',
    "\\",
    "null",
    "true",
    "-1",
    "1e999",
    "$",
    "__proto__",
    "_rid",
    "id",
    "/",
    "/pk/?",
    "/*",
    "[]",
    "{}",
    "[{}]",
    "NaN",
    "9" * 30,
    "d",
    "c",
    "FF",
    "*",
    "\r\nX: y",
)
NUMBERS: tuple[int | float, ...] = (
    0,
    -1,
    1,
    2,
    -0.0,
    1.5,
    400,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64 - 1,
    2**64,
    10**40,
    1e308,
    1e-320,
)
#: As they stand in a body: some are JSON that a parser must refuse.
RAW: tuple[bytes, ...] = (
    *(b"", b"null", b"[]", b"{}", b'"', b"NaN", b"-", b"\x81", b"\xff\xfe", b"\xef\xbb\xbf{}"),
    *(b"[" * 900, b'{"a":' * 600 + b"1" + b"}" * 600, b"[" * 60_000, b'{"a":1,"a":2}', b"1e999"),
)
PRINTABLE = "".join(map(chr, range(32, 127)))


def text(random: Random, longest: int = 12) -> str:
    if random.random() < 0.5:
        return random.choice(TEXTS)
    return "".join(random.choice(PRINTABLE) for _ in range(random.randint(0, longest)))


def value(random: Random, depth: int = 2) -> Any:
    """Any JSON value."""
    match random.randrange(8 if depth else 5):
        case 0:
            return random.choice(NUMBERS)
        case 1:
            return random.choice((None, True, False))
        case 2 | 3 | 4:
            return text(random)
        case 5 | 6:
            return [value(random, depth - 1) for _ in range(random.randrange(4))]
        case _:
            return {text(random): value(random, depth - 1) for _ in range(random.randrange(4))}


def cut(random: Random, data: bytes, times: int = 3) -> bytes:
    """Bytes changed, cut, repeated, put in."""
    for _ in range(random.randint(1, times)):
        at = random.randint(0, len(data))
        match random.randrange(6):
            case 0 if data:
                at = random.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:at]
            case 2:
                data = data[:at] + random.randbytes(random.randint(1, 9)) + data[at:]
            case 3:
                end = random.randint(at, len(data))
                data = data[:at] + data[end:]
            case 4:
                end = random.randint(at, min(len(data), at + 50))
                data = data[:end] + data[at:end] * random.randint(1, 20) + data[end:]
            case _:
                data = data[:at] + text(random).encode("utf-8", "surrogatepass") + data[at:]
    return data


def cut_text(random: Random, whole: str, times: int = 3) -> str:
    """The same for a text of Latin-1, as header values are."""
    return cut(random, whole.encode("latin-1", "replace"), times).decode("latin-1")


def changed(random: Random, whole: Any) -> Any:
    """A JSON value with one place in it changed."""
    if isinstance(whole, dict) and whole and random.random() < 0.9:
        name = random.choice(list(whole))
        match random.randrange(6):
            case 0:
                return {key: one for key, one in whole.items() if key != name}
            case 1:
                return whole | {text(random): value(random)}
            case 2:
                return {text(random) if key == name else key: one for key, one in whole.items()}
            case _:
                return whole | {name: changed(random, whole[name])}
    if isinstance(whole, list) and whole and random.random() < 0.9:
        at = random.randrange(len(whole))
        match random.randrange(5):
            case 0:
                return whole[:at] + whole[at + 1 :]
            case 1:
                return whole[:at] + [whole[at]] * random.choice((2, 3, 120)) + whole[at:]
            case _:
                return [*whole[:at], changed(random, whole[at]), *whole[at + 1 :]]
    if isinstance(whole, str) and random.random() < 0.5:
        return cut_text(random, whole)
    return value(random)


def body(random: Random, whole: Any) -> bytes:
    """The bytes of a body that began as this value."""
    if random.random() < 0.05:
        return random.choice(RAW)
    for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
        whole = changed(random, whole)
    data = json.dumps(whole).encode()
    return cut(random, data) if random.random() < 0.15 else data


def pick_some(random: Random, names: Sequence[str], most: int) -> list[str]:
    return random.sample(list(names), random.randint(0, min(most, len(names))))
