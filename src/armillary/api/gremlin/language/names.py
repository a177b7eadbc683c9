"""Names that mean something without parentheses, and the names of predicates."""

from __future__ import annotations

from typing import Final

from armillary.api.gremlin.language.nodes import Enum

ENUMS: Final[dict[str, tuple[str, ...]]] = {
    "T": ("id", "label", "key", "value"),
    "Order": ("incr", "decr", "asc", "desc", "shuffle"),
    "Scope": ("local", "global"),
    "Column": ("keys", "values"),
    "Pop": ("first", "last", "all", "mixed"),
    "Cardinality": ("single", "list", "set"),
    "Direction": ("OUT", "IN", "BOTH"),
    "Pick": ("any", "none"),
    "Operator": ("sum", "minus", "mult", "div", "min", "max", "assign", "and", "or", "addAll"),
}
#: One meaning each; `asc` and `desc` are the later names of `incr` and `decr`.
SAME: Final = {"asc": "incr", "desc": "decr"}
#: What the service does not know by its bare name (recorded: `option(none, …)`).
NOT_BARE: Final = frozenset({"none", "any", "and", "or", "min", "max", "sum", "mult", "div"})
BARE: Final[dict[str, Enum]] = {
    name: Enum(kind, SAME.get(name, name))
    for kind, names in reversed(ENUMS.items())
    for name in names
    if name not in NOT_BARE
}
PREDICATES: Final = frozenset({
    "eq", "neq", "lt", "lte", "gt", "gte", "inside", "outside", "between", "within", "without",
})  # fmt: skip
TEXT_PREDICATES: Final = frozenset({
    "startingWith", "endingWith", "containing",
    "notStartingWith", "notEndingWith", "notContaining",
})  # fmt: skip
STRATEGIES: Final = frozenset({"PartitionStrategy", "ProjectionStrategy"})
