"""Partial update: a list of operations turns one item into the next.

Three steps, all pure: `parse_patch` reads the body, `apply_patch` checks every operation before it
runs the first one, then runs them in order, each on the result of the one before. Nothing is
changed in place: an operation copies the containers on its path and shares the rest, so a failure
half way leaves nothing to undo. That is the whole of "atomic" here.

This module does not evaluate the condition, compare etags, or check the size and depth of the
result: those belong to the store that holds the item.

Rules and texts: nosql-rest reference, section 6.4, and the troubleshooting table of the documented
feature. `no path found beyond` names the first segment that is not there, as the original does.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

import msgspec

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.errors import BadInput
from armillary.limits import PATCH_OPERATIONS_MAX
from armillary.units import whole_number
from armillary.values import JSON, UNDEFINED

Pointer: TypeAlias = tuple[str, ...]

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
EXACT_MAX: Final = 2**53

_SYNTAX = "Invalid patch request: check syntax of patch specification."
_OF_SYSTEM: Final = frozenset({"id", *SYSTEM_PROPERTIES})
_LEARN = "Learn more: https://aka.ms/cosmosdbpatchdocs"


@dataclass(frozen=True, slots=True)
class Patch:
    condition: str | None
    operations: tuple[Mapping[str, JSON], ...]


class Operation(msgspec.Struct, frozen=True):
    """One checked operation. `number` counts from 1, as the messages do. A Struct, because a frozen
    dataclass takes ten times as long to make."""

    number: int
    name: str
    path: Pointer
    source: Pointer | None = None
    value: JSON = UNDEFINED

    def fail(self, what: str) -> NoReturn:
        raise BadInput(f"For Operation({self.number}): {what}", operation=self.number)


def parse_patch(body: JSON) -> Patch:
    """`{"condition": …, "operations": […]}`, or the bare array of operations that occurs too."""
    if isinstance(body, list):
        body = {"operations": body}
    if not isinstance(body, dict):
        raise BadInput(f"{_SYNTAX} The body must be an object with 'operations', or an array.")
    condition = body.get("condition")
    if condition is not None and not isinstance(condition, str):
        raise BadInput(f"{_SYNTAX} 'condition' must be a string.")
    operations = body.get("operations")
    if not isinstance(operations, list):
        raise BadInput(f"{_SYNTAX} 'operations' must be an array.")
    check_operations(operations)
    return Patch(condition, tuple(operations))


def apply_patch(
    item: Mapping[str, JSON],
    operations: Sequence[Mapping[str, JSON]],
    *,
    protected: Collection[Pointer] = (),
) -> dict[str, JSON]:
    """The item after all operations. `protected` are the partition-key paths of the container.

    The result is a new object that may share unchanged parts with `item` and with the values of
    the operations; treat those as read-only.
    """
    return apply_checked(item, check_operations(operations), protected=protected)


def apply_checked(
    item: Mapping[str, JSON], checked: Sequence[Operation], *, protected: Collection[Pointer] = ()
) -> dict[str, JSON]:
    """The same with operations whose form is known to be right."""
    for operation in checked:
        _refuse_protected(operation.number, operation.path, protected)
        if operation.source is not None:
            _refuse_protected(operation.number, operation.source, protected)
    result: JSON = item if type(item) is dict else dict(item)
    for operation in checked:
        result = _RUN[operation.name](result, operation)
    assert isinstance(result, dict)
    return result


def modified_paths(operations: Sequence[Mapping[str, JSON]]) -> int:
    """How many distinct paths are charged for; a move changes two."""
    return len(changed_pointers(check_operations(operations)))


def changed_pointers(checked: Sequence[Operation]) -> set[Pointer]:
    paths = {operation.path for operation in checked}
    for operation in checked:
        if operation.source is not None:
            paths.add(operation.source)
    return paths


# --- the form of operations -------------------------------------------------------------------


def check_operations(operations: Sequence[Mapping[str, JSON]]) -> list[Operation]:
    if not operations:
        raise BadInput(f"{_SYNTAX} At least one operation is needed.")
    if len(operations) > PATCH_OPERATIONS_MAX:
        raise BadInput(f"The number of patch operations can't exceed {PATCH_OPERATIONS_MAX}.")
    return [_check(number, operation) for number, operation in enumerate(operations, 1)]


def _check(number: int, given: JSON) -> Operation:
    if type(given) is not dict and not isinstance(given, Mapping):
        raise _misformed(number, "must be an object.")
    name = given.get("op")
    if not isinstance(name, str) or name not in _RUN:
        raise _misformed(number, f"has op {name!r}; allowed are {', '.join(_RUN)}.")
    path = parse_pointer(given.get("path"), "path", number)
    if name == "remove":
        return Operation(number, name, path)
    if name == "move":
        source = parse_pointer(given.get("from"), "from", number)
        if len(path) > len(source) and path[: len(source)] == source:
            raise _misformed(
                number,
                f"moves {format_pointer(source)} into itself: "
                f"{format_pointer(path)} lies inside it.",
            )
        return Operation(number, name, path, source=source)
    if "value" not in given:
        raise _misformed(number, f"({name}) has no value.")
    value = given["value"]
    if name == "incr":
        if not _is_number(value):
            raise _misformed(number, "(incr) needs a number as its value.")
        try:
            value = _normal(value)
        except OverflowError as error:
            raise _misformed(number, "(incr) has a value beyond doubles.") from error
    return Operation(number, name, path, None, value)


def _misformed(number: int, what: str) -> BadInput:
    return BadInput(f"{_SYNTAX} Operation({number}) {what}", operation=number)


def parse_pointer(text: JSON, what: str, number: int) -> Pointer:
    """JSON Pointer (RFC 6901): `~1` is a slash, `~0` a tilde. The whole item can't be named."""
    if not isinstance(text, str):
        raise _misformed(number, f"{what} must be a string.")
    if not text.startswith("/"):
        raise _misformed(number, f"{what} {text!r} must start with '/'.")
    segments = text[1:].split("/")
    if "~" not in text:
        return tuple(segments)
    for segment in segments:
        if "~" in segment.replace("~0", "").replace("~1", ""):
            raise _misformed(number, f"{what} {text!r} has a '~' that is neither '~0' nor '~1'.")
    return tuple(segment.replace("~1", "/").replace("~0", "~") for segment in segments)


def format_pointer(path: Pointer) -> str:
    return "".join("/" + segment.replace("~", "~0").replace("/", "~1") for segment in path)


def _refuse_protected(number: int, path: Pointer, protected: Collection[Pointer]) -> None:
    first = path[0]
    if first in _OF_SYSTEM:
        raise BadInput(
            f"Invalid patch request: Can't patch system property {first}.", operation=number
        )
    for key in protected:
        # The one is the other, or lies inside it.
        if key[0] == first and all(one == other for one, other in zip(path, key, strict=False)):
            raise BadInput(
                f"Invalid patch request: Can't patch {format_pointer(path)}, because the "
                f"partition key path {format_pointer(key)} of an item can't change.",
                operation=number,
            )


# --- walking ------------------------------------------------------------------------------------

Leaf: TypeAlias = Callable[[JSON, str], JSON]  # (copied parent, last segment) → changed parent


def _edit(item: JSON, path: Pointer, operation: Operation, leaf: Leaf) -> JSON:
    """`item` with the parent of `path` changed by `leaf`; copies the containers on the way.

    A loop rather than recursion: values of earlier operations can make an item deeper than the
    stack before its depth is checked.
    """
    trail: list[tuple[JSON, JSON]] = []  # (container, its key), outermost first
    node = item
    for position, segment in enumerate(path[:-1]):
        key: JSON = segment
        if isinstance(node, list):
            key = _index(node, segment, operation, bound=len(node) - 1)
        elif not isinstance(node, dict) or segment not in node:
            _no_parent(operation, path, position if isinstance(node, dict) else position - 1)
        trail.append((node, key))
        node = node[key]
    if not isinstance(node, dict | list):
        _no_parent(operation, path, len(path) - 2)
    changed = leaf(node.copy(), path[-1])
    for container, key in reversed(trail):
        copied = container.copy()
        copied[key] = changed
        changed = copied
    return changed


def _no_parent(operation: Operation, path: Pointer, position: int) -> NoReturn:
    if operation.name == "remove" or path == operation.source:
        _removed_absent(operation, path)
    who = "Add" if operation.name == "add" else "Given"
    operation.fail(
        f"{who} Operation can only create a child object of an existing node(array or object) and "
        f"cannot create path recursively, no path found beyond: '{path[position]}'. {_LEARN}"
    )


def _index(array: list[JSON], segment: str, operation: Operation, *, bound: int) -> int:
    """The position a segment names, 0..bound. RFC 6901: digits without leading zeros."""
    index = whole_number(segment, digits=9)
    if index is None or index > bound or (segment[0] == "0" and segment != "0"):
        operation.fail(f"Index({segment}) to operate on is out of array bounds.")
    return index


def _end_or_index(array: list[JSON], segment: str, operation: Operation) -> int:
    if segment == "-":
        return len(array)
    return _index(array, segment, operation, bound=len(array))


def _removed_absent(operation: Operation, path: Pointer) -> NoReturn:
    operation.fail(
        f"Node({format_pointer(path)}) to be removed is absent. "
        "Note: it might also have been removed earlier in the transaction."
    )


# --- the operations -----------------------------------------------------------------------------


def _add(item: JSON, operation: Operation) -> JSON:
    return _put_new(item, operation, operation.value)


def _put_new(item: JSON, operation: Operation, value: JSON) -> JSON:
    def leaf(parent: JSON, segment: str) -> JSON:
        if isinstance(parent, list):
            parent.insert(_end_or_index(parent, segment, operation), value)
        else:
            parent[segment] = value
        return parent

    return _edit(item, operation.path, operation, leaf)


def _set(item: JSON, operation: Operation) -> JSON:
    def leaf(parent: JSON, segment: str) -> JSON:
        if isinstance(parent, list):
            position = _end_or_index(parent, segment, operation)
            # A slice, so that the position after the last element appends.
            parent[position : position + 1] = [operation.value]
        else:
            parent[segment] = operation.value
        return parent

    return _edit(item, operation.path, operation, leaf)


def _replace(item: JSON, operation: Operation) -> JSON:
    def leaf(parent: JSON, segment: str) -> JSON:
        if isinstance(parent, list):
            parent[_index(parent, segment, operation, bound=len(parent) - 1)] = operation.value
        elif segment in parent:
            parent[segment] = operation.value
        else:
            operation.fail(f"Node({format_pointer(operation.path)}) to be replaced is absent.")
        return parent

    return _edit(item, operation.path, operation, leaf)


def _remove(item: JSON, operation: Operation) -> JSON:
    return _take(item, operation, operation.path)[0]


def _take(item: JSON, operation: Operation, path: Pointer) -> tuple[JSON, JSON]:
    """The item without the value at `path`, and that value."""
    taken: JSON = UNDEFINED

    def leaf(parent: JSON, segment: str) -> JSON:
        nonlocal taken
        if isinstance(parent, list):
            taken = parent.pop(_index(parent, segment, operation, bound=len(parent) - 1))
        elif segment in parent:
            taken = parent.pop(segment)
        else:
            _removed_absent(operation, path)
        return parent

    return _edit(item, path, operation, leaf), taken


def _move(item: JSON, operation: Operation) -> JSON:
    assert operation.source is not None
    rest, taken = _take(item, operation, operation.source)
    return _put_new(rest, operation, taken)


def _incr(item: JSON, operation: Operation) -> JSON:
    def leaf(parent: JSON, segment: str) -> JSON:
        if isinstance(parent, list):
            position = _index(parent, segment, operation, bound=len(parent))
            if position == len(parent):
                parent.append(operation.value)
                return parent
            parent[position] = _sum(parent[position], operation)
        elif segment in parent:
            parent[segment] = _sum(parent[segment], operation)
        else:
            parent[segment] = operation.value
        return parent

    return _edit(item, operation.path, operation, leaf)


def _sum(old: JSON, operation: Operation) -> int | float:
    if not _is_number(old):
        operation.fail(f"Node({format_pointer(operation.path)}) isn't a number.")
    try:
        return _normal(old + operation.value)
    except OverflowError:
        operation.fail(f"Node({format_pointer(operation.path)}) would not be a finite number.")


def _normal(number: int | float) -> int | float:
    """The form in which the store keeps numbers: integers of 64 bits, else finite doubles; a double
    without fraction below 2^53 is an integer, so that 0.5 + 0.5 is 1 as if it had been sent so.
    """
    if isinstance(number, int):
        return number if INT64_MIN <= number <= INT64_MAX else float(number)
    if not math.isfinite(number):
        raise OverflowError
    return int(number) if number.is_integer() and abs(number) < EXACT_MAX else number


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_RUN: Final[dict[str, Callable[[JSON, Operation], JSON]]] = {
    "add": _add,
    "set": _set,
    "replace": _replace,
    "remove": _remove,
    "incr": _incr,
    "move": _move,
}
