"""Collations: strings that count as equal, and their order, by the rules of a language.

A string is folded to a text that compares as the collation says, level by level: letters, then
accents (strength 2), then case (strength 3). Filters, sorts, groups and distinct values are asked
of folded documents. Indexes have no collation, so what is looked up in them is only what a
collation leaves alone (`askable`).

Known are the simple collation and English; letters of other alphabets come in the order of their
code points. Azure Cosmos DB has none of this: in strict mode collations have no effect.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from bson.regex import Regex

from armillary.api.mongo.errors import MongoError, bad_value, wrong_type
from armillary.encoding.bson.values import Document, is_number, is_text, number_of, type_name

Fold = Callable[[Any], Any]
"""A value with every string in it folded."""

KNOWN: Final = frozenset(
    {
        "locale",
        "strength",
        "caseLevel",
        "caseFirst",
        "numericOrdering",
        "alternate",
        "maxVariable",
        "backwards",
        "normalization",
        "version",
    }
)
_DEFAULTS: Final[Document] = {
    "caseLevel": False,
    "caseFirst": "off",
    "numericOrdering": False,
    "alternate": "non-ignorable",
    "backwards": False,
}


def fold_of(collation: Any, field: str) -> Fold | None:
    """None: the simple collation, which compares bytes."""
    if collation is None:
        return None
    if not isinstance(collation, dict):
        raise wrong_type(field, type_name(collation), "object")
    if not collation:
        return None
    for one in collation:
        if one not in KNOWN:
            raise MongoError(40415, f"BSON field 'collation.{one}' is an unknown field.")
    locale = collation.get("locale")
    if not is_text(locale):
        raise MongoError(40414, "BSON field 'collation.locale' is missing but a required field")
    if locale == "simple":
        return None
    if locale.partition("_")[0] != "en":
        raise bad_value(
            f"Field 'locale' is invalid in: {{locale: \"{locale}\"}}; known: en, simple"
        )
    for name, value in _DEFAULTS.items():
        if collation.get(name, value) != value:
            raise bad_value(f"The collation option '{name}: {collation[name]}' is not supported.")
    strength = collation.get("strength", 3)
    if not is_number(strength) or number_of(strength) not in (1, 2, 3, 4, 5):
        raise bad_value(f"Field 'strength' is invalid: {strength}; it is 1 to 5")
    return _FOLDS[min(3, int(number_of(strength)))]


@lru_cache(maxsize=4096)
def _folded(text: str, strength: int) -> str:
    spelt = unicodedata.normalize("NFD", text)
    letters = "".join(one for one in spelt if not unicodedata.combining(one))
    levels = [letters.casefold()]
    if strength > 1:
        levels.append(spelt.casefold())
    if strength > 2:
        levels.append("".join("1" if one.isupper() else "0" for one in spelt))
        levels.append(text)
    return "\0".join(levels)


def _fold(strength: int) -> Fold:
    def fold(value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return _folded(value, strength)
        if kind is dict:
            return {name: fold(one) for name, one in value.items()}
        if kind is list:
            return [fold(one) for one in value]
        return value

    return fold


_FOLDS: Final = {strength: _fold(strength) for strength in (1, 2, 3)}
#: Operators whose argument is no string to compare with.
_KEPT: Final = frozenset({"$type", "$exists", "$size", "$mod", "$comment", "$options"})


def folded_query(query: Any, fold: Fold) -> Any:
    """The query for folded documents. Regular expressions look at the letters themselves."""
    if isinstance(query, Regex):
        raise bad_value("A regular expression can't be combined with a collation.")
    if isinstance(query, dict):
        if "$regex" in query or "$expr" in query:
            raise bad_value("$regex and $expr can't be combined with a collation.")
        return {
            name: one if name in _KEPT else folded_query(one, fold) for name, one in query.items()
        }
    if isinstance(query, list):
        return [folded_query(one, fold) for one in query]
    return fold(query)


def askable(query: Document, fold: Fold | None) -> Document:
    """What of a query may be looked up by exact value."""
    if fold is None:
        return query
    return {
        name: value
        for name, value in query.items()
        if name[:1] != "$" and not isinstance(value, str | dict | list | Regex)
    }
