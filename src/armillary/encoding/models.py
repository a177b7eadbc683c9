"""Value models: what a container's API means by a value.

A container knows the API it was made for; the model of that API sets how values compare, the index
terms they have, what of a key is hashed, and what a body may hold. The store and the query planner
ask the model and have no branch by its name:

    api      model   values
    nosql    json    JSON (default; terms are those of `terms.py`, byte for byte)
    gremlin  json
    table    edm     {"$t": 18, "$v": "5"}: a tagged object is one value
    mongo    bson

Stored items are JSON under every model. A value that JSON lacks is stored as a tagged object;
`is_scalar` says which objects are one value, so that indexing does not descend into them.

A new model subclasses `FramedModel`: it says for each value a type code and order-preserving bytes,
and framing, cutting and bounds follow. Laws, held by tests/property/test_value_models.py:

    same(a, b)        ⇔ order_key(a) == order_key(b)  ⇒ term(a) == term(b), key(a) == key(b)
    compare(a, b) < 0 ⇒ term(a) <= term(b), and < where one of the two is exact
    is_exact(a)       ⇒ term(a) == term(b) only if same(a, b)
"""

from __future__ import annotations

from collections.abc import Hashable
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from armillary.encoding.partition_key import Component
from armillary.encoding.terms import Partial
from armillary.limits import TERM_CUT_BYTES
from armillary.values import JSON

Range: TypeAlias = tuple[bytes, bytes]
"""start <= term < end"""


class Whole(NamedTuple):
    """An exact term whose value is not decoded: its place among others is certain."""

    code: int
    payload: bytes


class ValueModel(Protocol):
    """What store and query ask. All functions are pure and total over JSON values and UNDEFINED,
    but `key` and `check_body`, which raise `BadInput`.
    """

    name: str
    inner_names: frozenset[str]
    """Names of the members of tagged values. A path through one of them is inside a value, so no
    index has it."""
    missing_first: bool
    """Whether an absent value sorts before every present one, so that an index of one path, in
    which items without the path are missing, can give the order of all."""
    everything: Range
    """Every term that a present value can have."""

    def is_scalar(self, value: JSON) -> bool:
        """Whether this is one value: indexing does not descend into it."""

    def term(self, value: JSON, cut: int = TERM_CUT_BYTES) -> bytes:
        """Order-preserving bytes; no term is the beginning of another. Arrays and objects that are
        no scalars have one as well (in JSON just their type), UNDEFINED too (composite keys)."""

    def is_exact(self, value: JSON, cut: int = TERM_CUT_BYTES) -> bool:
        """Whether the term stands for this value (and those `same` as it) only. Must be the same
        answer for all values of one term."""

    def split_term(self, data: bytes, offset: int = 0) -> tuple[JSON | Whole | Partial, int]:
        """The term at `offset` and where it ends: its value, `Whole` where values are not decoded,
        `Partial` where the term is not exact."""

    def is_term(self, data: bytes) -> bool:
        """Whether the bytes are one whole term, and not just the beginning of some."""

    def recut(self, term: bytes, cut: int) -> tuple[bytes, bool] | None:
        """The term of the same value under a shorter cut, and whether it is exact; None when it was
        cut already."""

    def shared_bytes(self, bound: bytes, cut: int) -> int:
        """How many bytes of a bound of terms mean the same under a shorter cut."""

    def neighbours(self, value: JSON) -> Range:
        """The terms that this value and those it can be confused with may have."""

    def comparable(self, value: JSON) -> Range | None:
        """All terms of the values that `<` can compare with this one; None when there is no order
        for it."""

    def same(self, left: JSON, right: JSON) -> bool:
        """Equality of present values: `=`, IN, DISTINCT, unique keys."""

    def compare(self, left: JSON, right: JSON) -> int | None:
        """Negative, 0, positive; None when `<` has no answer for the two."""

    def order_key(self, value: JSON) -> Any:
        """Sorts as ORDER BY does, across all types; UNDEFINED included."""

    def identity(self, value: JSON) -> Hashable:
        """Equal for values that are `same`: DISTINCT, GROUP BY, sets. UNDEFINED is itself."""

    def full_term(self, value: JSON) -> bytes:
        """Equal exactly for values that are `same`, nothing cut: for digests of unique keys."""

    def key(self, value: JSON) -> Component:
        """What is hashed when this value is (a level of) the partition key."""

    def check_body(self, document: dict[str, JSON]) -> None:
        """Raises `BadInput` when a write, by whichever API, breaks the shape of the container."""


#: The model of each API.
MODEL_OF_API: Final[dict[str, str]] = {
    "nosql": "json",
    "gremlin": "json",
    "table": "edm",
    "mongo": "bson",
}

_MODULES: Final = {
    "json": ("armillary.encoding.json_model", "JSON_MODEL"),
    "edm": ("armillary.encoding.edm.model", "EDM_MODEL"),
    "bson": ("armillary.encoding.bson.model", "BSON_MODEL"),
}
_known: dict[str, ValueModel] = {}


def model_named(name: str) -> ValueModel:
    """By its name in container records; the module is imported when the first container asks."""
    found = _known.get(name)
    if found is None:
        module, attribute = _MODULES[name]
        found = _known[name] = getattr(import_module(module), attribute)
    return found


def register_model(model: ValueModel, api: str) -> None:
    """One more model and its API in this process (tests)."""
    _known[model.name] = model
    MODEL_OF_API[api] = model.name
