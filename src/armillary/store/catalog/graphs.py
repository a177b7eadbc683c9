"""The rule for the partition key of a graph: one property at the top of its documents, and neither
`id` nor `label`, which every element has (gremlin reference 6)."""

from __future__ import annotations

from typing import Final

from armillary.encoding.partition_key import PartitionKeyDefinition
from armillary.errors import BadInput

NOT_ALLOWED: Final = frozenset({"id", "label"})


def graph_key(definition: PartitionKeyDefinition) -> str:
    """The property that is the partition key."""
    paths = definition.paths
    if definition.system_key or len(paths) != 1 or len(paths[0]) != 1:
        raise BadInput(
            "A graph needs one partition key at the top of its documents, such as /pk; "
            "hierarchical and nested keys can't be used."
        )
    (name,) = paths[0]
    if name in NOT_ALLOWED:
        raise BadInput(f"The partition key of a graph can't be /{name}.")
    return str(name)
