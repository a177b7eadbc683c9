"""The indexing policy and the unique keys of a container: parsed, checked, and given back as the
service gives them back.

What is absent is filled in with the defaults (nosql-rest 2.5, nosql-query 7.1). Tuple paths are
checked in form and echoed, and queries that would use them read the items instead. What a policy
means for one item is decided in store/index/entries.py; what composite, spatial, vector and
full-text indexes are, and how they fit the container's other policies, in store/index/kinds/.
"""

import copy
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.paths import Path as PropertyPath
from armillary.encoding.paths import format_path, parse_path
from armillary.errors import BadInput
from armillary.limits import (
    INDEX_PATHS_MAX,
    UNIQUE_KEY_PATHS_MAX,
    UNIQUE_KEYS_MAX,
)
from armillary.store.index.kinds.registry import KINDS
from armillary.store.index.paths import (
    IndexPath,
    parse_index_path,
)
from armillary.values import JSON

Mode: TypeAlias = Literal["consistent", "none"]
UniqueKeys: TypeAlias = tuple[tuple[PropertyPath, ...], ...]

_EVERYTHING: Final = IndexPath((), "subtree")
_ETAG_ENTRY: Final = {"path": '/"_etag"/?'}


@dataclass(frozen=True, slots=True)
class IndexPolicy:
    """What is indexed. `document` is the policy as it goes out; two policies with the same one are
    the same.
    """

    mode: Mode
    included: tuple[IndexPath, ...]
    excluded: tuple[IndexPath, ...]
    document: dict[str, JSON]

    def to_json(self) -> dict[str, JSON]:
        """A copy the caller may keep or change."""
        return copy.deepcopy(self.document)


def parse_policy(source: JSON | None) -> IndexPolicy:
    given = {} if source is None else _object(source, "The indexing policy")
    mode, automatic = _parse_mode(given)
    document: dict[str, JSON] = {"indexingMode": mode, "automatic": automatic}
    if mode == "none":
        _refuse_paths_without_index(given)
        document |= {"includedPaths": [], "excludedPaths": []}
        return IndexPolicy(mode, (), (), document)
    included, excluded = _path_entries(given)
    document |= {"includedPaths": included, "excludedPaths": excluded}
    for kind in KINDS:
        if entries := _list(given, kind.name):
            document[kind.name] = kind.parse(entries)
    return IndexPolicy(
        mode,
        tuple(parse_index_path(entry["path"]) for entry in included),
        tuple(parse_index_path(entry["path"]) for entry in excluded),
        document,
    )


def parse_unique_keys(source: JSON | None) -> UniqueKeys:
    """The constraints, each a tuple of paths."""
    given = {} if source is None else _object(source, "The unique key policy")
    entries = _list(given, "uniqueKeys")
    if len(entries) > UNIQUE_KEYS_MAX:
        raise BadInput(
            f"The container has {len(entries)} unique keys; allowed are {UNIQUE_KEYS_MAX}."
        )
    constraints = tuple(_parse_unique_key(_object(entry, "A unique key")) for entry in entries)
    # The same set of paths in another order is the same constraint.
    if len({frozenset(paths) for paths in constraints}) < len(constraints):
        raise BadInput("A unique key is given more than once.")
    return constraints


def unique_keys_json(constraints: UniqueKeys) -> dict[str, JSON]:
    return {"uniqueKeys": [{"paths": [format_path(path) for path in key]} for key in constraints]}


# --- mode and paths -------------------------------------------------------------------------------


def _parse_mode(given: dict[str, JSON]) -> tuple[Mode, bool]:
    text = given.get("indexingMode") or "consistent"
    if not isinstance(text, str) or text.lower() not in ("consistent", "lazy", "none"):
        raise BadInput(f"The indexing mode {text!r} is invalid; allowed are 'consistent', 'none'.")
    mode: Mode = "none" if text.lower() == "none" else "consistent"
    automatic = given.get("automatic")
    if automatic is not None and not isinstance(automatic, bool):
        raise BadInput("'automatic' of the indexing policy must be true or false.")
    if mode == "none" and automatic:
        raise BadInput("The indexing mode 'none' needs 'automatic' to be false.")
    return mode, mode == "consistent"  # the service gives `true` back for `false`


def _refuse_paths_without_index(given: dict[str, JSON]) -> None:
    # Clients send their default lists along with mode none, so only real wishes are refused.
    for kind in KINDS:
        if _list(given, kind.name):
            raise BadInput(f"The indexing mode 'none' does not allow {kind.name}.")


def _path_entries(given: dict[str, JSON]) -> tuple[list[dict[str, JSON]], list[dict[str, JSON]]]:
    """includedPaths and excludedPaths, with what the service adds to them."""
    included = _parse_entries(given, "includedPaths")
    excluded = _parse_entries(given, "excludedPaths")
    everywhere = _EVERYTHING in excluded
    if given.get("includedPaths") is None and not everywhere:
        included[_EVERYTHING] = {"path": "/*"}
    if _EVERYTHING not in included and not everywhere:
        raise BadInput(
            'The special mandatory indexing path "/*" is not provided in any of the path type '
            "sets. Please provide this path in one of the sets."
        )
    for path in included.keys() & excluded.keys():
        raise BadInput(
            f"The indexing path '{included[path]['path']}' is both included and excluded."
        )
    if any(path.kind == "tuple" for path in excluded):
        raise BadInput("A tuple path can only be included, not excluded.")
    etag = parse_index_path(_ETAG_ENTRY["path"])
    if etag not in included and etag not in excluded:
        excluded[etag] = dict(_ETAG_ENTRY)
    return list(included.values()), list(excluded.values())


def _parse_entries(given: dict[str, JSON], name: str) -> dict[IndexPath, dict[str, JSON]]:
    entries = [_object(entry, f"An entry of {name}") for entry in _list(given, name)]
    if len(entries) > INDEX_PATHS_MAX:
        raise BadInput(f"{name} has {len(entries)} paths; allowed are {INDEX_PATHS_MAX}.")
    paths: dict[IndexPath, dict[str, JSON]] = {}
    for entry in entries:
        path = parse_index_path(entry.get("path"))
        # Tuples over one array differ in their members, which are kept in the text only.
        key = IndexPath((entry["path"],), "tuple") if path.kind == "tuple" else path
        paths[key] = _modern_entry(entry)
    return paths


def _modern_entry(entry: dict[str, JSON]) -> dict[str, JSON]:
    """The entry as the service gives it back: `/` is `/*`, and the index kinds of old, which all
    are range indexes now, are gone. Spatial ones stay."""
    kept = copy.deepcopy(entry)
    if kept["path"] == "/":
        kept["path"] = "/*"
    spatial = [one for one in _list(kept, "indexes") if not _is_range_index(one)]
    kept.pop("indexes", None)
    return {**kept, "indexes": spatial} if spatial else kept


def _is_range_index(entry: JSON) -> bool:
    kind = _object(entry, "An entry of indexes").get("kind")
    return isinstance(kind, str) and kind.lower() in ("hash", "range")


# --- unique keys ----------------------------------------------------------------------------------


def _parse_unique_key(entry: dict[str, JSON]) -> tuple[PropertyPath, ...]:
    paths = tuple(map(_parse_unique_path, _list(entry, "paths")))
    if not 1 <= len(paths) <= UNIQUE_KEY_PATHS_MAX:
        raise BadInput(
            f"A unique key has {len(paths)} paths; allowed are 1 to {UNIQUE_KEY_PATHS_MAX}."
        )
    if len(set(paths)) < len(paths):
        raise BadInput("A unique key names a path more than once.")
    for path in paths:
        if path[0] in SYSTEM_PROPERTIES:
            raise BadInput(f"The unique key path '{format_path(path)}' is a system property.")
    return paths


def _parse_unique_path(text: JSON) -> PropertyPath:
    if not isinstance(text, str):
        raise BadInput("A path of a unique key must be a string such as '/name'.")
    return parse_path(text)


# --- form -----------------------------------------------------------------------------------------


def _object(source: JSON, what: str) -> dict[str, JSON]:
    if not isinstance(source, dict):
        raise BadInput(f"{what} must be a JSON object.")
    return source


def _list(given: dict[str, Any], name: str) -> list[JSON]:
    """The list under `name`; absent and null are an empty one."""
    value = given.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"'{name}' must be a list.")
    return value
