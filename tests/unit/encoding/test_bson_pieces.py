"""A document that is read in pieces is the one that is read at once; damage is told, not raised as
something else."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from bson import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from armillary.encoding.bson import pieces
from armillary.encoding.bson.pieces import decode_in_pieces
from armillary.encoding.bson.values import decode, encode
from armillary.errors import BadInput

LEAVES: list[Any] = [
    1, -1, Int64(5), 1 << 40, 1.5, "", "text", "é" * 30, True, None, b"bytes", Binary(b"x", 128),
    ObjectId(b"0" * 12), DatetimeMS(5), Decimal128("1.5"), MinKey(), MaxKey(), Timestamp(1, 2),
    Regex("a.b", 2), Code("f()"), Code("f()", {"x": 1}), {"$ref": "c", "$id": 1}, [], {},
]  # fmt: skip


def some(random: Random, depth: int = 0) -> Any:
    count = random.randrange(8)
    match random.randrange(5) if depth < 5 else 2:
        case 0:
            return {f"n{number}": some(random, depth + 1) for number in range(count)}
        case 1:
            return [some(random, depth + 1) for _ in range(count)]
        case _:
            return random.choice(LEAVES)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 40)


def raw_of(seed: int) -> bytes:
    random = Random(seed)
    return encode({f"f{number}": some(random) for number in range(12)})


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_pieces_are_the_whole(seed: int) -> None:
    raw = raw_of(seed)
    found = decode_in_pieces(raw, lambda: None)
    assert encode(found) == encode(decode(raw))


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 1 << 30), cuts=st.lists(st.tuples(st.integers(0), st.integers(0, 255))))
def test_damage_is_told(seed: int, cuts: list[tuple[int, int]]) -> None:
    damaged = bytearray(raw_of(seed))
    for at, byte in cuts:
        damaged[at % len(damaged)] = byte
    raw = bytes(damaged)
    try:
        whole: Any = decode(raw)
    except BadInput:
        whole = None
    try:
        decode_in_pieces(raw, lambda: None)
    except BadInput:
        return  # what is damaged may be refused here though one call would have taken it
    assert whole is not None


def test_names_of_elements_mean_nothing_and_the_last_of_two_fields_counts() -> None:
    twice = encode({"a": 1, "b": "x" * 60})[4:-1] + encode({"a": 2, "c": "y" * 60})[4:-1]
    raw = (len(twice) + 5).to_bytes(4, "little") + twice + b"\x00"
    found = decode_in_pieces(raw, lambda: None)
    assert list(found.items()) == list(decode(raw).items())
    array = encode({"a": {"0": 1, "x": "z" * 60, "0 ": 3}})
    listed = array.replace(b"\x03a\x00", b"\x04a\x00")
    assert decode_in_pieces(listed, lambda: None) == {"a": [1, "z" * 60, 3]}


def test_it_looks_between_pieces() -> None:
    looks: list[int] = []
    raw = encode({"a": list(range(1000))})
    decode_in_pieces(raw, lambda: looks.append(1))
    assert len(looks) > len(raw) // 100


def test_a_deep_one_is_told() -> None:
    inner = b""
    for _ in range(3000):
        body = b"\x04a\x00" + (inner or b"\x05\x00\x00\x00\x00")
        inner = (len(body) + 5).to_bytes(4, "little") + body + b"\x00"
    with pytest.raises(BadInput):
        decode_in_pieces(inner, lambda: None)
