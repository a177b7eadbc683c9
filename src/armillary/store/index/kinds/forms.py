"""Small questions that the policies of all kinds ask of the JSON they are given."""

import copy
from collections.abc import Callable
from typing import Any, Final

from armillary.encoding.paths import parse_path
from armillary.errors import BadInput
from armillary.store.index.paths import parse_property_path
from armillary.values import JSON

INVALID: Final = "One of the specified inputs is invalid"


def is_one_of(value: JSON, allowed: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value.lower() in allowed


def is_path(value: JSON) -> bool:
    if not isinstance(value, str) or value.endswith(("/", "*", "?")):
        return False
    try:
        return bool(parse_path(value))
    except BadInput:
        return False


def by_path(policy: JSON, name: str) -> dict[Any, dict[str, JSON]]:
    """Entries of a policy by their paths; those without form are for the checks to find."""
    entries = policy.get(name) if isinstance(policy, dict) else None
    found = [entry for entry in entries or () if isinstance(entry, dict)]
    return {path: entry for entry in found if isinstance(path := entry.get("path"), str)}


def an_object(source: JSON, what: str) -> dict[str, JSON]:
    if not isinstance(source, dict):
        raise BadInput(f"{INVALID}: {what} must be a JSON object.")
    return source


def a_list(given: dict[str, JSON], name: str) -> list[JSON]:
    value = given.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"{INVALID}: {name} must be a list.")
    return value


def each(name: str, check: Callable[[dict[str, JSON]], None]) -> Callable[[list[JSON]], list[JSON]]:
    """The `parse` of a kind whose entries are objects that are kept as they are."""

    def parse(entries: list[JSON]) -> list[JSON]:
        found: list[JSON] = []
        for entry in entries:
            if not isinstance(entry, dict):
                raise BadInput(f"An entry of {name} must be a JSON object.")
            check(entry)
            found.append(copy.deepcopy(entry))
        return found

    return parse


def check_property(entry: dict[str, JSON]) -> None:
    parse_property_path(entry.get("path"))


def names(text: str) -> tuple[str, ...]:
    return tuple(str(each) for each in parse_property_path(text))
