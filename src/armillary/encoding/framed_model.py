"""The base of value models other than JSON: a code and bytes for each value, the rest follows.

    term    code(1)  payload with 00 written as 00 FF  end
                                                       00 01                    this value only
                                                       00 02 + 8-byte BLAKE2b   cut; digest of all
                                                       00 03                    several values

A subclass gives `name`, `scalar`, and what it needs of `is_scalar`, `inner_names`, `order_key`,
`key`, `check_body`. Codes run from 2 to 254 in the order of types; UNDEFINED has code 1 unless the
model says otherwise (a model in which a missing value equals null gives it the code of null).
Values of one code are comparable by `<`, others are not.

    class Dates(FramedModel):
        name = "dates"
        inner_names = frozenset({"$date"})

        def is_scalar(self, value):
            return type(value) is not dict or "$date" in value

        def scalar(self, value): …
            return Scalar(9, milliseconds_bytes(value["$date"]))
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from armillary.encoding.models import Range, Whole
from armillary.encoding.partition_key import Component
from armillary.encoding.terms import CUT_END, DIGEST_BYTES, WHOLE_END, Partial
from armillary.limits import TERM_CUT_BYTES
from armillary.values import JSON, UNDEFINED

UNDEFINED_CODE: Final = 1
SHARED_END: Final = b"\x00\x03"
ESCAPED: Final = b"\x00\xff"


class Scalar(NamedTuple):
    """Type code, and bytes whose order is the order of values of that code.

    Not exact: other values have the same code and payload (a bare array, a decimal beyond the
    digits kept). That must hold for all of them, or their terms would differ.
    """

    code: int
    payload: bytes = b""
    exact: bool = True


class FramedModel:
    """See the module. Stateless; one instance per model."""

    name: str
    inner_names: frozenset[str] = frozenset()
    missing_first: bool = True
    everything: Range = (b"\x02", b"\xff")

    # --- what a model says ---

    def scalar(self, value: JSON) -> Scalar:
        """For every value, also for arrays and objects that are no scalars (usually no payload and
        not exact), and for UNDEFINED."""
        raise NotImplementedError

    def is_scalar(self, value: JSON) -> bool:
        return type(value) is not dict and type(value) is not list

    def order_key(self, value: JSON) -> Any:
        """Arrays by elements, objects by members in the order of the document. Made of integers,
        strings, bytes and tuples, in one form for what is the same: unique keys hash its text."""
        kind = type(value)
        if kind is list:
            return self.scalar(value).code, tuple(map(self.order_key, value))
        if kind is dict and not self.is_scalar(value):
            members = tuple((name, self.order_key(inner)) for name, inner in value.items())
            return self.scalar(value).code, members
        code, payload, _ = self.scalar(value)
        return code, payload

    def key(self, value: JSON) -> Component:
        raise NotImplementedError

    def check_body(self, document: dict[str, JSON]) -> None:
        """Everything is allowed."""

    # --- what follows ---

    def term(self, value: JSON, cut: int = TERM_CUT_BYTES) -> bytes:
        return _framed(*self.scalar(value), cut)

    def is_exact(self, value: JSON, cut: int = TERM_CUT_BYTES) -> bool:
        _, payload, exact = self.scalar(value)
        return exact and len(payload) <= cut

    def split_term(self, data: bytes, offset: int = 0) -> tuple[JSON | Whole | Partial, int]:
        code = data[offset]
        end = _end_of_payload(data, offset + 1)
        payload = data[offset + 1 : end].replace(ESCAPED, b"\x00")
        after = end + 2
        mark = data[end:after]
        if mark == CUT_END:
            digest_end = after + DIGEST_BYTES
            return Partial(code, payload, data[after:digest_end]), digest_end
        if mark == SHARED_END:
            return Partial(code, payload), after
        return (UNDEFINED if code == UNDEFINED_CODE else Whole(code, payload)), after

    def is_term(self, data: bytes) -> bool:
        try:
            return self.split_term(data)[1] == len(data)
        except (ValueError, IndexError):
            return False

    def recut(self, term: bytes, cut: int) -> tuple[bytes, bool] | None:
        found, _ = self.split_term(term)
        if isinstance(found, Partial):
            return (
                None if found.digest else (_framed(found.code, found.beginning, False, cut), False)
            )
        code, payload = (UNDEFINED_CODE, b"") if found is UNDEFINED else found
        return _framed(code, payload, True, cut), len(payload) <= cut

    def shared_bytes(self, bound: bytes, cut: int) -> int:
        return 1 + cut

    def neighbours(self, value: JSON) -> Range:
        code, payload, _ = self.scalar(value)
        if len(payload) > TERM_CUT_BYTES:
            start = bytes((code,)) + payload[:TERM_CUT_BYTES].replace(b"\x00", ESCAPED)
            return start + CUT_END, start + SHARED_END
        found = self.term(value)
        return found, found[:-1] + bytes((found[-1] + 1,))  # behind every key that begins with it

    def comparable(self, value: JSON) -> Range | None:
        if value is UNDEFINED:
            return None
        code = self.scalar(value).code
        return bytes((code,)), bytes((code + 1,))

    def same(self, left: JSON, right: JSON) -> bool:
        return bool(self.order_key(left) == self.order_key(right))

    def compare(self, left: JSON, right: JSON) -> int | None:
        if left is UNDEFINED or right is UNDEFINED:
            return None
        if self.scalar(left).code != self.scalar(right).code:
            return None
        one, other = self.order_key(left), self.order_key(right)
        return int(one > other) - int(one < other)

    def identity(self, value: JSON) -> Hashable:
        found: Hashable = self.order_key(value)
        return found

    def full_term(self, value: JSON) -> bytes:
        return repr(self.order_key(value)).encode("utf-8", "surrogatepass")


def _framed(code: int, payload: bytes, exact: bool, cut: int) -> bytes:
    head = bytes((code,))
    if len(payload) <= cut:
        return head + payload.replace(b"\x00", ESCAPED) + (WHOLE_END if exact else SHARED_END)
    digest = blake2b(payload, digest_size=DIGEST_BYTES).digest()
    return head + payload[:cut].replace(b"\x00", ESCAPED) + CUT_END + digest


def _end_of_payload(data: bytes, start: int) -> int:
    end = data.index(b"\x00", start)
    while data[end + 1] == 0xFF:
        end = data.index(b"\x00", end + 2)
    return end
