"""Partition keys: the definition a container is created with, and the values items carry.

    {"paths": ["/t", "/u"], "kind": "MultiHash", "version": 2}  ──parse_definition──▶ definition
    item      ──key_of──────────▶ ("contoso", 7)  ─┐
    header    ──parse_key_header──▶ check_key ─────┴─▶ same_key? ──▶ hashing.locate

A key value is a tuple with one component per path. `None` is JSON null, `UNDEFINED` a property
that is not there; they are different keys. The empty tuple belongs to containers that never chose
a key (the system key): it is the key of items without `/_partitionKey`.

A path that ends in an object is UNDEFINED: SDKs extract it so, send `[{}]`, and expect the item
to be created (azure-cosmos 4.17, its tests of key extraction). So is a missing step, or a step
*through* something that is not an object. A path that ends in an array is refused (400).

Not here: hashing, and where a key lives. Facts: nosql-rest 4.1, 4.2, 9.3; partitioning 5.
"""

import json
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import orjson

from armillary.encoding.paths import Path, extract, format_path, parse_path
from armillary.errors import BadInput, NotSupported, PartitionKeyMismatch
from armillary.limits import HIERARCHICAL_LEVELS_MAX, PARTITION_KEY_BYTES_MAX
from armillary.values import JSON, UNDEFINED, Undefined, type_rank

Component: TypeAlias = bool | int | float | str | Undefined | None
KeyValues: TypeAlias = tuple[Component, ...]

EXACT_INTEGER_MAX: Final = 2**53

FEWER: Final = "PartitionKey has fewer components than defined the collection resource."
MORE: Final = "PartitionKey has more components than defined the collection resource."
SUPPORTED: Final = "Numeric, string, bool, null, Undefined are the only supported types."
IMPRECISE: Final = (
    "The requested partition key is out of key range, "
    "possibly because of loss of precision of partition key value"
)


# --- definitions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionKeyDefinition:
    """Fixed when a container is created. Equal when they hash alike, however they were spelled."""

    paths: tuple[Path, ...]
    kind: Literal["Hash", "MultiHash"]
    version: int
    system_key: bool
    source: Mapping[str, JSON] = field(compare=False, repr=False)

    def to_json(self) -> dict[str, JSON]:
        """What the client sent. An absent version stays absent: to every SDK that means V1."""
        return deepcopy(dict(self.source))


#: What the server writes into every item.
SYSTEM_NAMES: Final = frozenset({"_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"})


def parse_definition(source: JSON) -> PartitionKeyDefinition:
    if not isinstance(source, dict):
        raise BadInput("The partition key definition must be an object with 'paths'.")
    texts = source.get("paths")
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise BadInput("The partition key definition must have 'paths', a list of property paths.")
    paths = tuple(map(_parsed, texts))
    kind = source.get("kind", "Hash")
    version = source.get("version", 1)
    system_key = source.get("systemKey", False)
    if type(version) is not int or version not in (1, 2):
        raise BadInput(f"The partition key version '{version}' is invalid; it must be 1 or 2.")
    if type(system_key) is not bool:
        raise BadInput("The partition key property 'systemKey' must be true or false.")
    _check_paths(paths, kind, version)
    # Version 1 as well: "no key" has an empty EPK, and only V1 marks the end of an EPK in a key.
    if system_key and (kind != "Hash" or version != 1 or paths != (("_partitionKey",),)):
        raise BadInput(
            "A system partition key is kind 'Hash', version 1, with the one path '/_partitionKey'."
        )
    return PartitionKeyDefinition(paths, kind, version, system_key, deepcopy(source))


def _parsed(text: str) -> Path:
    if not text.startswith("/"):
        raise BadInput(
            f"The partition key component definition path '{text}' could not be accepted, failed "
            "near position '0'. A path begins with '/', as in '/tenant'."
        )
    return parse_path(text)


def check_new_paths(definition: PartitionKeyDefinition) -> None:
    """What a new container can't have; those that were made before stay as they are."""
    if definition.system_key:
        return
    for path, text in zip(definition.paths, _texts(definition), strict=True):
        if path[0] in SYSTEM_NAMES:
            raise BadInput(
                f"The partition key path '{text}' is a system property: the server writes it after "
                "the item has its place. Choose a property of your own."
            )
        if " " in text and '"' not in text:
            raise BadInput(
                "Partition key paths must contain only valid characters and not contain a trailing "
                f"slash or wildcard character: '{text}'. A name with a space is written in quotes, "
                'as in /"first name".'
            )


def _texts(definition: PartitionKeyDefinition) -> list[str]:
    texts = definition.source["paths"]
    assert isinstance(texts, list)
    return [str(text) for text in texts]


def _check_paths(paths: tuple[Path, ...], kind: JSON, version: int) -> None:
    match kind:
        case "Hash":
            if len(paths) > 1:
                raise BadInput(
                    f"Too many partition key paths: kind 'Hash' takes one, not {len(paths)}; "
                    "use kind 'MultiHash' with version 2 for a hierarchical key."
                )
        case "MultiHash":
            if len(paths) > HIERARCHICAL_LEVELS_MAX:
                raise BadInput(
                    "Too many partition key paths: Subpartitioning is only supported for atmost "
                    f"{HIERARCHICAL_LEVELS_MAX} partition paths"
                )
            if version != 2:
                raise BadInput("Subpartitioning is only supported for Hash V2.")
        case "Range":
            raise NotSupported(
                "The partition key kind 'Range' is a legacy form and is not supported; use 'Hash'."
            )
        case _:
            raise BadInput(
                f"The partition key kind '{kind}' is invalid; it must be 'Hash' or 'MultiHash'."
            )
    if len(set(paths)) < len(paths):
        raise BadInput("The partition key definition has the same path twice.")


#: What containers made without a partition key read back as, once clients require one.
SYSTEM_KEY: Final = parse_definition(
    {"paths": ["/_partitionKey"], "kind": "Hash", "systemKey": True}
)


def check_unchanged(old: PartitionKeyDefinition, new: PartitionKeyDefinition) -> None:
    """A container keeps its definition for life; another key means another container."""
    if old != new:
        raise BadInput("Document collection partition key cannot be changed.")


# --- values ---------------------------------------------------------------------------------------


def key_of(
    item: JSON,
    definition: PartitionKeyDefinition,
    component: Callable[[JSON], Component] | None = None,
) -> KeyValues:
    """The full key an item carries, checked. Missing properties count as UNDEFINED. `component` is
    the `key` function of the container's value model; without it JSON's."""
    read = component or scalar_key
    values: list[Component] = []
    for path in definition.paths:
        try:
            values.append(read(extract(item, path)))
        except BadInput as error:
            raise BadInput(f"Partition key '{format_path(path)}' is invalid: {error}") from error
    return check_key(tuple(values), definition)


def scalar_key(value: JSON) -> Component:
    """The key component of a JSON value."""
    if type(value) is list:
        raise BadInput(f"it holds an array. {SUPPORTED}")
    return UNDEFINED if type(value) is dict else value


def check_key(
    values: KeyValues, definition: PartitionKeyDefinition, *, prefix_allowed: bool = False
) -> KeyValues:
    """The values, if they can address this container: count, types, precision and size.

    Returned rather than only checked: the system key has two spellings of "no key", and integers
    beyond 2^53 come back as the doubles they are.
    """
    if len(values) == 1 == len(definition.paths):
        value = values[0]
        if type(value) is str and len(value) <= PARTITION_KEY_BYTES_MAX and value.isascii():
            return values  # nearly every key; nothing below could object
    if definition.system_key and (values == () or values == (UNDEFINED,)):
        return ()
    levels = len(definition.paths)
    if len(values) > levels:
        raise BadInput(MORE)
    if len(values) < levels and not prefix_allowed:
        # 1001 tells clients to reread the definition; the reference has it for partial keys only.
        raise PartitionKeyMismatch(FEWER) if values else BadInput(FEWER)
    checked = tuple(map(_checked, values))
    if definition.version == 2:
        size = sum(len(value.encode()) for value in checked if type(value) is str)
        if size > PARTITION_KEY_BYTES_MAX:
            raise BadInput(
                f"The partition key value has {size} bytes; "
                f"at most {PARTITION_KEY_BYTES_MAX} bytes are allowed."
            )
    return checked


def same_key(left: KeyValues, right: KeyValues) -> bool:
    """Numbers compare as doubles (1 = 1.0); true is not 1; null is not UNDEFINED."""
    return len(left) == len(right) and all(map(_same_component, left, right))


def parse_key_header(text: str) -> KeyValues:
    """The header `x-ms-documentdb-partitionkey`: a JSON array, where `{}` means UNDEFINED."""
    try:
        parts = orjson.loads(text)
        if not isinstance(parts, list):
            raise BadInput(f"Cannot deserialize PartitionKey value '{text}'")
        values = tuple(map(_component, parts))
        if any(type(value) is float and abs(value) >= EXACT_INTEGER_MAX for value in values):
            # orjson turns integers beyond 64 bits into doubles; `check_key` must see what was lost.
            values = tuple(map(_component, json.loads(text)))
    except ValueError as error:
        raise BadInput(f"Cannot deserialize PartitionKey value '{text}'") from error
    return values


def coerce(value: Any) -> KeyValues:
    """What Python callers pass: one scalar, or a list or tuple with one component per level."""
    if isinstance(value, list | tuple):
        return tuple(map(_component, value))
    return (_component(value),)


def _component(value: Any) -> Component:
    """A plain scalar: subclasses (an `IntEnum`, say) become what they stand for."""
    match value:
        case None | bool() | Undefined():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case dict() if not value:
            return UNDEFINED
        case _:
            raise _unsupported(value)


def _checked(value: Component) -> Component:
    match value:
        case None | bool() | Undefined():
            return value
        case str():
            if not value.isascii():
                _check_unicode(value)
            return value
        case int():
            if -EXACT_INTEGER_MAX <= value <= EXACT_INTEGER_MAX:
                return value
            if not _is_double(value):
                raise BadInput(IMPRECISE)
            return float(value)
        case float():
            if not math.isfinite(value):
                raise BadInput(f"The partition key value '{value}' is invalid; numbers are finite.")
            return value
        case _:
            raise _unsupported(value)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            "The partition key value is not valid Unicode: it has half of a surrogate pair."
        ) from error


def _is_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _same_component(left: Component, right: Component) -> bool:
    if type_rank(left) != type_rank(right):
        return False
    if isinstance(left, int | float) and isinstance(right, int | float):
        return float(left) == float(right)
    return left == right


def _unsupported(value: object) -> BadInput:
    shown = json.dumps(value, default=repr, skipkeys=True)
    return BadInput(f"Unsupported PartitionKey value component '{shown}'. {SUPPORTED}")
