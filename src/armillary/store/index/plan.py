"""A policy compiled for walking: which paths are indexed, and the bytes their keys begin with.

The policy becomes a tree of rules; items are walked along a second tree, of nodes, that grows as
new paths are met. So the policy is asked once per path and not once per item. That tree is bounded:
a container whose property names are data would otherwise fill the memory with nodes.

Which policy path decides (nosql-query 7.1): the deepest; at the same node `/?` before `/*`, which
covers the node itself and everything below. Always indexed in consistent mode: `id` and `_ts`.
Never: the other system properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.encoding.terms import (
    ARRAY_TERM,
    FALSE_TERM,
    NULL_TERM,
    NUMBER,
    OBJECT_TERM,
    STRING,
    TRUE_TERM,
)
from armillary.store.index.kinds.base import KeyIndex, OtherIndex
from armillary.store.index.kinds.registry import compile_keyed, compile_others
from armillary.store.index.paths import (
    ARRAY,
    ROOT_HASH,
    Array,
    Path,
    Segment,
    child_hash,
    path_hash,
)
from armillary.store.index.policy import IndexPolicy, UniqueKeys
from armillary.store.rows import layout
from armillary.values import JSON

__all__ = ["IndexPlan", "Node", "Rule", "compile_index", "path_hash"]

NODES_MAX: Final = 20_000  # of one plan; nodes beyond are made and thrown away
_TS: Final = ("_ts",)


@dataclass(slots=True)
class Rule:
    """One node of the policy: what its paths say here (`/?`) and from here on (`/*`)."""

    scalar: bool | None = None
    subtree: bool | None = None
    children: dict[Segment, Rule] = field(default_factory=dict)


class Node:
    """A path met in items, with what the walk needs there, ready made.

    `included`: a scalar here is indexed. `barren`: nothing below is, so the walk turns back.
    """

    __slots__ = (
        "array",
        "barren",
        "children",
        "element",
        "false",
        "hash",
        "included",
        "inherited",
        "null",
        "number",
        "object",
        "prefix",
        "rule",
        "string",
        "true",
    )

    def __init__(self, digest: bytes, rule: Rule | None, inherited: bool) -> None:
        self.hash = digest
        self.rule = rule
        if rule is not None and rule.subtree is not None:
            inherited = rule.subtree
        self.inherited = inherited
        self.included = inherited if rule is None or rule.scalar is None else rule.scalar
        self.barren = not inherited and (rule is None or not rule.children)
        self.children: dict[str, Node] = {}
        self.element: Node | None = None
        prefix = layout.IX + digest
        self.prefix = prefix
        self.null = prefix + NULL_TERM
        self.false = prefix + FALSE_TERM
        self.true = prefix + TRUE_TERM
        self.array = prefix + ARRAY_TERM
        self.object = prefix + OBJECT_TERM
        self.number = prefix + NUMBER
        self.string = prefix + STRING

    def below(self, segment: Segment) -> Node:
        """A new node for a child; does not remember it."""
        rule = None if self.rule is None else self.rule.children.get(segment)
        return Node(child_hash(self.hash, segment), rule, self.inherited)


@dataclass(slots=True)
class IndexPlan:
    """A compiled policy. Shared by threads: they may make a node twice, which costs time only."""

    root: Node
    keyed: tuple[KeyIndex, ...]
    """Composite indexes."""
    unique_keys: UniqueKeys
    ts_prefix: bytes | None
    model: ValueModel = JSON_MODEL
    nodes: int = 0
    others: tuple[OtherIndex, ...] = ()
    """Spatial, full-text and vector indexes."""
    named: tuple[str, ...] | None = None
    """The members of an item that have entries. None: the policy does not name them all."""
    shapes: dict[tuple[bytes, ...], tuple[bytes, bool]] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Range entries and nothing else: what an item has in the indexes follows from one property
        of its root at a time."""
        return not (self.keyed or self.unique_keys or self.others)

    def covers(self, segments: Sequence[Segment]) -> bool:
        """Is a scalar at this path indexed? If so, every item that has a value there has an entry
        there.
        """
        if tuple(segments) == _TS:  # the store's own entry: the walk leaves it out
            return self.ts_prefix is not None
        if not self.model.inner_names.isdisjoint(segments):
            return False  # inside a value
        node = self.root
        for position, segment in enumerate(segments):
            known = node.element if isinstance(segment, Array) else node.children.get(segment)
            node = known or node.below(segment)
            if node.barren and position + 1 < len(segments):
                return False
        return bool(segments) and node.included

    def other(self, kind: bytes, path: Path) -> OtherIndex | None:
        """The index of a kind (`layout.SX`, `FX`, `VX`) that has the entries of a path."""
        found = (each for each in self.others if each.prefix == kind and each.covers(path))
        return next(found, None)

    def child(self, node: Node, name: str) -> Node:
        made = node.below(name)
        if self.nodes < NODES_MAX:
            self.nodes += 1
            node.children[name] = made
        return made

    def element(self, node: Node) -> Node:
        made = node.below(ARRAY)
        if self.nodes < NODES_MAX:
            self.nodes += 1
            node.element = made
        return made


def compile_index(
    policy: IndexPolicy,
    unique_keys: UniqueKeys = (),
    others: Mapping[str, JSON] | None = None,
    model: ValueModel = JSON_MODEL,
) -> IndexPlan:
    """`others`: what `other_indexes.described` says; None when there are no such indexes."""
    indexed = policy.mode == "consistent"
    root = Node(ROOT_HASH, _rules(policy), inherited=False)
    for name in SYSTEM_PROPERTIES:
        root.children[name] = Node(path_hash((name,)), None, inherited=False)
    kept = _always(policy, model) if indexed else ()
    if indexed:
        root.barren = False
    if "id" in kept:
        root.children["id"] = Node(path_hash(("id",)), Rule(scalar=True), inherited=False)
    named = None
    if indexed and not root.inherited:
        known = {*(root.rule.children if root.rule is not None else ()), *root.children}
        nodes = {one: root.children.get(one) or root.below(one) for one in known}
        named = tuple(
            sorted(
                name
                for name, node in nodes.items()
                if isinstance(name, str) and (node.included or not node.barren)
            )
        )
    return IndexPlan(
        root=root,
        named=named,
        keyed=compile_keyed(policy.document, model),
        unique_keys=unique_keys,
        ts_prefix=layout.IX + path_hash(_TS) if "_ts" in kept else None,
        model=model,
        nodes=len(root.children),
        others=compile_others(policy.document, others) if indexed and others else (),
    )


def _always(policy: IndexPolicy, model: ValueModel) -> set[str]:
    """What is indexed whatever a policy includes. Documents of MongoDB are found by `_id`: where
    the policy of their container names `id` and `_ts` as excluded, they have no entries."""
    always = {"id", "_ts"}
    if model.name != "bson":
        return always
    return always - {one.segments[0] for one in policy.excluded if len(one.segments) == 1}


def _rules(policy: IndexPolicy) -> Rule:
    root = Rule()
    for paths, said in ((policy.excluded, False), (policy.included, True)):
        for path in paths:
            if path.kind == "tuple":
                continue
            rule = root
            for segment in path.segments:
                rule = rule.children.setdefault(segment, Rule())
            if path.kind == "scalar":
                rule.scalar = said
            else:
                rule.subtree = said
    return root
