"""What one item puts into the indexes of its container.

    {"id": "1", "tags": ["a", "b"], "at": {"x": 5}}
      ix  /id "1" · /tags array · /tags/[] "a" · /tags/[] "b" · /at object · /at/x 5

`compile_index` turns a policy into a plan; `index_entries` walks an item once along it. An included
array or object puts its bare type there, so that a scan of an included path in the index meets
every item that has anything at it. Items that lack the path have no entry; `shape` and `paths` let
the store count them.

Keys are made here without the rid at the end and, for ux, without the EPK in front: the store knows
those. The entry of `_ts` is for the store as well: `plan.ts_prefix` + its term.
"""

from hashlib import blake2b
from typing import Final

import msgspec

from armillary.encoding.edm.model import EDM_MODEL, STRING_HEAD, number_term
from armillary.encoding.edm.values import STRING, TYPE, VALUE
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.terms import DOUBLE, WHOLE_END, number_bytes, string_term, term
from armillary.limits import TERM_CUT_BYTES
from armillary.store.index.kinds.registry import changed_indexes, other_rows
from armillary.store.index.paths import ARRAY, Path, Segment
from armillary.store.index.plan import IndexPlan, Node, compile_index, path_hash
from armillary.store.index.stamps import Stamp, stamp
from armillary.store.index.unique_keys import unique_key
from armillary.store.rows import layout
from armillary.values import JSON

__all__ = [
    "ARRAY",
    "Entries",
    "IndexPlan",
    "Path",
    "Segment",
    "compile_index",
    "index_entries",
    "path_hash",
    "paths_of",
    "stamp",
]

PATH: Final = slice(len(layout.IX), len(layout.IX) + 8)  # the hash of a path in its entries
SHAPE_CACHE_MAX: Final = 1_000
SHAPE_CACHE_PATHS_MAX: Final = 200  # longer walks are not remembered
_pack_double = DOUBLE.pack


def _shape(paths: frozenset[bytes]) -> bytes:
    return blake2b(b"".join(sorted(paths)), digest_size=8).digest()


NO_SHAPE: Final = _shape(frozenset())


class Entries(msgspec.Struct, frozen=True, array_like=True):
    """The keys of one item. A Struct, because a frozen dataclass takes ten times as long to make.

    `leaves` counts every indexed scalar, repeated ones too: it is what indexing is charged by.
    `shape` stands for the included paths that the item has (`paths_of`). `stamps` says where the
    time has to be put into `cx`; see `stamp`. `others` are rows of spatial, full-text and vector
    indexes: keys without the rid, values without the EPK.
    """

    ix: list[bytes] = []
    cx: list[bytes] = []
    ux: list[bytes] = []
    leaves: int = 0
    shape: bytes = NO_SHAPE
    stamps: list[Stamp] = []
    others: list[tuple[bytes, bytes]] = []


def index_entries(plan: IndexPlan, item: dict[str, JSON]) -> Entries:
    ix: list[bytes] = []
    hashes: list[bytes] = []
    bare = 0
    if not plan.root.barren:
        walk = WALKS.get(plan.model.name, walk_model)
        bare = walk(plan, plan.root, item, ix, hashes)
    leaves = len(ix) - bare
    shape, repeats = _known_shape(plan, tuple(hashes))
    if repeats:  # elements of an array, which may be equal
        ix = list(dict.fromkeys(ix))
    cx: list[bytes] = []
    stamps: list[Stamp] = []
    for index in plan.keyed:
        index.append_keys(item, cx, stamps)
    ux = [unique_key(*key, item, plan.model) for key in enumerate(plan.unique_keys)]
    others = other_rows(plan.others, item) if plan.others else []
    leaves += changed_indexes([], others)[1] if others else 0
    return Entries(ix, cx, ux, leaves, shape, stamps, others)


def walk_item(plan: IndexPlan, item: dict[str, JSON]) -> tuple[list[bytes], list[bytes]]:
    """(range entries, hashes of their paths), both as often as they are met."""
    ix: list[bytes] = []
    hashes: list[bytes] = []
    if item and not plan.root.barren:
        WALKS.get(plan.model.name, walk_model)(plan, plan.root, item, ix, hashes)
    return ix, hashes


def paths_of(plan: IndexPlan, entries: Entries) -> frozenset[bytes]:
    """The hashes of the included paths that an item has, `_ts` among them: each entry has its own
    behind its kind."""
    return _with_ts(plan, frozenset([entry[PATH] for entry in entries.ix]))


def _with_ts(plan: IndexPlan, paths: frozenset[bytes]) -> frozenset[bytes]:
    return paths if plan.ts_prefix is None else paths | {plan.ts_prefix[PATH]}


def shape_of_paths(plan: IndexPlan, hashes: tuple[bytes, ...]) -> bytes:
    """Found again by the paths in the order of the walk, because items of one kind have them in
    the same order.
    """
    return _known_shape(plan, hashes)[0]


def _known_shape(plan: IndexPlan, hashes: tuple[bytes, ...]) -> tuple[bytes, bool]:
    """And whether a path comes twice."""
    known = plan.shapes.get(hashes)
    if known is None:
        paths = frozenset(hashes)
        known = _shape(_with_ts(plan, paths)), len(paths) < len(hashes)
        if len(hashes) <= SHAPE_CACHE_PATHS_MAX:
            if len(plan.shapes) >= SHAPE_CACHE_MAX:
                plan.shapes.clear()
            plan.shapes[hashes] = known
    return known


def walk_model(
    plan: IndexPlan, node: Node, value: JSON, keys: list[bytes], hashes: list[bytes]
) -> int:
    """The walk under any model. `_walk_object` is this one with the terms of JSON inlined; tests
    compare the two."""
    model = plan.model
    is_object = type(value) is dict
    inside = value.items() if is_object else ((None, each) for each in value)
    bare = 0
    for name, each in inside:
        if name is None:
            child = node.element or plan.element(node)
        else:
            child = node.children.get(name) or plan.child(node, name)
        if child.barren and not child.included:
            continue
        kind = type(each)
        is_scalar = (kind is not dict and kind is not list) or model.is_scalar(each)
        if child.included:
            bare += not is_scalar
            hashes.append(child.hash)
            keys.append(child.prefix + model.term(each))
        if not is_scalar and not child.barren:
            bare += walk_model(plan, child, each, keys, hashes)
    return bare


def _walk_document(
    plan: IndexPlan, node: Node, item: dict[str, JSON], keys: list[bytes], hashes: list[bytes]
) -> int:
    """`walk_model` for documents of MongoDB, of which few members have entries: where the policy
    names them, the others are not looked at."""
    if plan.named is not None:
        item = {name: item[name] for name in plan.named if name in item}
    return walk_model(plan, node, item, keys, hashes)


def _walk_entity(
    plan: IndexPlan, node: Node, item: dict[str, JSON], keys: list[bytes], hashes: list[bytes]
) -> int:
    """`walk_model` for entities of tables, which are flat, with the terms of short texts inlined
    and those of plain numbers without steps between. HOT: once per property of an entity."""
    bare = 0
    children, term_of = node.children, EDM_MODEL.term
    for name, value in item.items():
        child = children.get(name)
        if child is None:
            child = plan.child(node, name)
        text = value
        if type(value) is dict:
            kind, text = (value.get(TYPE), value.get(VALUE)) if len(value) == 2 else (None, None)
            if kind != STRING:
                number = number_term(kind, text) if child.included else None
                if number is not None:
                    hashes.append(child.hash)
                    keys.append(child.prefix + number)
                    continue
                if not EDM_MODEL.is_scalar(value):  # what another API left
                    bare += walk_model(plan, node, {name: value}, keys, hashes)
                    continue
                text = None
        elif type(value) is list:
            bare += walk_model(plan, node, {name: value}, keys, hashes)
            continue
        if not child.included:
            continue
        hashes.append(child.hash)
        if (
            type(text) is str
            and len(text) <= TERM_CUT_BYTES
            and text.isascii()
            and "\x00" not in text
        ):
            keys.append(child.prefix + STRING_HEAD + text.encode() + WHOLE_END)
        else:
            keys.append(child.prefix + term_of(value))
    return bare


# HOT: once per value of every written item, about 0.4 µs each. The two walks differ only in where
# children come from; reference tests/property/slow_indexing.py
def _walk_object(
    plan: IndexPlan, node: Node, item: dict[str, JSON], keys: list[bytes], hashes: list[bytes]
) -> int:
    """Appends a key and a path hash for each included value; returns how many of them are the bare
    type of an array or object.
    """
    bare = 0
    children = node.children
    for name, value in item.items():
        child = children.get(name)
        if child is None:
            child = plan.child(node, name)
        kind = type(value)
        if kind is str:
            if child.included:
                hashes.append(child.hash)
                if value.isascii() and "\x00" not in value and len(value) <= TERM_CUT_BYTES:
                    keys.append(child.string + value.encode() + WHOLE_END)
                else:
                    keys.append(child.prefix + string_term(value))
        elif kind is dict:
            if child.included:
                bare += 1
                hashes.append(child.hash)
                keys.append(child.object)
            if not child.barren:
                bare += _walk_object(plan, child, value, keys, hashes)
        elif kind is list:
            if child.included:
                bare += 1
                hashes.append(child.hash)
                keys.append(child.array)
            if not child.barren:
                bare += _walk_array(plan, child, value, keys, hashes)
        elif child.included:
            hashes.append(child.hash)
            if kind is int or kind is float:
                if value > 0:
                    keys.append(child.number + _pack_double(-value))
                else:
                    keys.append(child.number + number_bytes(value))
            elif value is None:
                keys.append(child.null)
            else:
                keys.append(child.true if value else child.false)
    return bare


def _walk_array(
    plan: IndexPlan, node: Node, items: list[JSON], keys: list[bytes], hashes: list[bytes]
) -> int:
    bare = 0
    child = node.element or plan.element(node)
    included, barren, digest = child.included, child.barren, child.hash
    for value in items:
        kind = type(value)
        if kind is str:
            if included:
                hashes.append(digest)
                if value.isascii() and "\x00" not in value and len(value) <= TERM_CUT_BYTES:
                    keys.append(child.string + value.encode() + WHOLE_END)
                else:
                    keys.append(child.prefix + string_term(value))
        elif kind is dict:
            if included:
                bare += 1
                hashes.append(digest)
                keys.append(child.object)
            if not barren:
                bare += _walk_object(plan, child, value, keys, hashes)
        elif kind is list:
            if included:
                bare += 1
                hashes.append(digest)
                keys.append(child.array)
            if not barren:
                bare += _walk_array(plan, child, value, keys, hashes)
        elif included:
            hashes.append(digest)
            keys.append(child.prefix + term(value))
    return bare


BSON: Final = "bson"
WALKS: Final = {
    JSON_MODEL.name: _walk_object,
    EDM_MODEL.name: _walk_entity,
    BSON: _walk_document,
}
