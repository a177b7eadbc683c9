"""JSON text → as much of an item as a query can see; the parser skips the rest.

    c.age > 3 AND c.address.zip = "1"      {("age",), ("address", "zip")}
    {"id": …, "age": 4, "address": {"zip": "1", "street": …}, …}  ──▶  {"age": 4, "address":
                                                                        {"zip": "1"}}

What comes out is an item with members missing: for the paths asked for it answers as the whole one
does. msgspec skips members that a struct has no field for; fields take any type, and one that is
not there is UNDEFINED. A struct is turned into a dict by a small generated function, because a loop
over fields costs as much as the parsing. Names of properties are never part of generated text.

HOT: once per item of a scan; numbers in bench/evaluate.py; reference: `orjson.loads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final, TypeAlias

import msgspec
import orjson

from armillary.query.expr import nodes
from armillary.values import JSON, UNDEFINED

Decoder: TypeAlias = Callable[[bytes], JSON]
Path: TypeAlias = tuple[str, ...]
#: Member → what is wanted of it; nothing inside means all of it.
_Tree: TypeAlias = "dict[str, _Tree]"

#: More members than this are not worth a struct; deeper ones are taken whole.
FIELDS_MAX: Final = 32
DEPTH_MAX: Final = 4
#: Every JSON value that is not an object: a union may have one struct alongside them.
_OTHERS: Final = None | bool | int | float | str | list[Any]
_CONTROL: Final = frozenset(map(chr, range(32))) | {'"', "\\"}


@lru_cache(maxsize=256)
def decoder_for(paths: frozenset[Path] | None) -> Decoder:
    """A function from JSON to an item that has at least these paths; None, or the empty path among
    them, means all of it.
    """
    if paths is None or () in paths:
        return orjson.loads
    tree = _tree(paths)
    if not tree:
        return lambda text: {}
    if _count(tree) > FIELDS_MAX or not all(map(_can_be_field, tree)):
        return orjson.loads
    return _Builder().decoder(tree)


@dataclass(frozen=True, slots=True)
class Parts:
    """The same without the dict, for who reads the fields of the structs himself. A field of an
    inner struct is one only if the object is there; else the field that should hold it holds
    something else.
    """

    decode: Callable[[bytes], Any] | None
    """Makes the struct of the path (); None when nothing is wanted of an item."""
    structs: dict[Path, type[msgspec.Struct]]
    fields: dict[Path, tuple[Path, str]]
    """Path → the path of its struct, and its field there."""


@lru_cache(maxsize=256)
def parts_for(paths: frozenset[Path]) -> Parts | None:
    """Structs for these paths; None when the item has to be decoded whole."""
    if () in paths:
        return None
    tree = _tree(paths)
    if _count(tree) > FIELDS_MAX or not all(map(_can_be_field, tree)):
        return None
    structs: dict[Path, type[msgspec.Struct]] = {}
    fields: dict[Path, tuple[Path, str]] = {}

    def make(tree: _Tree, at: Path) -> type[msgspec.Struct]:
        members: list[tuple[str, Any, Any]] = []
        for number, (name, inner) in enumerate(tree.items()):
            kind: Any = Any
            if inner and all(map(_can_be_field, inner)):
                kind = make(inner, (*at, name)) | _OTHERS
            else:
                fields[(*at, name)] = at, f"f{number}"
            members.append((f"f{number}", kind, UNDEFINED))
        rename = {field: name for (field, _, _), name in zip(members, tree, strict=True)}
        structs[at] = msgspec.defstruct(f"Part{len(structs)}", members, rename=rename, gc=False)
        return structs[at]

    # Made here once, before another thread knows the class: msgspec works it out at its first
    # decoder, and a thread that came by in the middle of that would crash.
    decoder = msgspec.json.Decoder(make(tree, ()))
    return Parts(decoder.decode if tree else None, structs, fields)


def paths_in(
    node: nodes.Node, roots: frozenset[str], container: nodes.Node | None = None
) -> frozenset[Path] | None:
    """The paths below the names `roots` that a query or an expression can see; None when it uses
    one of them whole. `container` is the source that only gives the item its name.
    """
    found: set[Path] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node is container:
            continue
        if isinstance(node, nodes.Native | nodes.AtPath):
            if node.root in roots:
                needs = _needs(node)
                if needs is None:
                    return None
                found.update(needs)
            continue
        path: list[str] = []
        while isinstance(node, nodes.Member):
            path.append(node.name)
            node = node.base
        if not isinstance(node, nodes.Identifier):
            waiting.extend(nodes.children(node))
        elif node.name in roots:
            if not path:
                return None
            found.add(tuple(reversed(path)))
    return frozenset(found)


def _needs(node: nodes.Native | nodes.AtPath) -> Iterable[Path] | None:
    if isinstance(node, nodes.Native):
        return node.needs
    if node.hint:
        return ()
    names = takewhile(lambda each: isinstance(each, str), node.path)
    return [tuple(str(name) for name in names)]


def _tree(paths: Iterable[Path]) -> _Tree:
    """A path that is the beginning of another takes it in."""
    tree: _Tree = {}
    for path in sorted(paths, key=len, reverse=True):
        inner = tree
        for name in path[:DEPTH_MAX]:
            inner = inner.setdefault(name, {})
        inner.clear()
    return tree


def _count(tree: _Tree) -> int:
    return sum(1 + _count(inner) for inner in tree.values())


def _can_be_field(name: str) -> bool:
    """msgspec refuses names that JSON would escape; halves of characters are in no item."""
    return _CONTROL.isdisjoint(name) and not any("\ud800" <= each <= "\udfff" for each in name)


class _Builder:
    """The struct of a tree, and the text of a function that makes dicts of it."""

    def __init__(self) -> None:
        self._constants: list[Any] = []
        self._lines: list[str] = []
        self._structs = 0

    def decoder(self, tree: _Tree) -> Decoder:
        decode = msgspec.json.Decoder(self._object(tree, 0)).decode
        names = "".join(f", k{number}" for number in range(len(self._constants)))
        lines = "\n".join(self._lines)
        text = (
            f"def make(decode, U, type{names}):\n"
            f" def run(text):\n  s0 = decode(text)\n{lines}\n  return d0\n return run\n"
        )
        scope: dict[str, Any] = {"__builtins__": {}}
        exec(compile(text, "<decoder>", "exec"), scope)
        made: Decoder = scope["make"](decode, UNDEFINED, type, *self._constants)
        return made

    def _object(self, tree: _Tree, depth: int) -> type[msgspec.Struct]:
        """The struct for an object, after the lines that turn s<depth> into d<depth>."""
        indent = "  " + " " * depth
        self._lines.append(f"{indent}d{depth} = {{}}")
        fields: list[tuple[str, Any, Any]] = []
        for number, (name, inner) in enumerate(tree.items()):
            field = f"f{number}"
            kind: Any = Any
            self._lines.append(f"{indent}v = s{depth}.{field}")
            if inner and all(map(_can_be_field, inner)):
                kind = self._nested(inner, depth + 1) | _OTHERS
            self._lines.append(f"{indent}if v is not U: d{depth}[{self._fixed(name)}] = v")
            fields.append((field, kind, UNDEFINED))
        self._structs += 1
        rename = {field: name for (field, _, _), name in zip(fields, tree, strict=True)}
        return msgspec.defstruct(f"Part{self._structs}", fields, rename=rename, gc=False)

    def _nested(self, tree: _Tree, depth: int) -> type[msgspec.Struct]:
        indent = "  " + " " * (depth - 1)
        number = len(self._constants)
        self._constants.append(None)  # the struct, which is known after its fields
        self._lines += [f"{indent}if type(v) is k{number}:", f"{indent} s{depth} = v"]
        struct = self._object(tree, depth)
        self._constants[number] = struct
        self._lines.append(f"{indent} v = d{depth}")
        return struct

    def _fixed(self, value: Any) -> str:
        self._constants.append(value)
        return f"k{len(self._constants) - 1}"
