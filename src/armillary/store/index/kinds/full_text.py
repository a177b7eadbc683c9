"""Full text: its policy with languages, its indexes, and a row for each token.

Texts are those that the SDKs' own tests ask for (azure-cosmos test_full_text_policy; the Java
FullTextIndexTest).
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from armillary.encoding.paths import extract, parse_path
from armillary.encoding.terms import string_term
from armillary.encoding.text_tokens import ANALYSIS, tokens
from armillary.errors import BadInput
from armillary.store.index.kinds.base import Kind, Row, row_prefix
from armillary.store.index.kinds.forms import (
    a_list,
    an_object,
    by_path,
    check_property,
    each,
    is_path,
    names,
)
from armillary.store.index.paths import Path
from armillary.store.rows import layout
from armillary.values import JSON

LANGUAGES: Final = ("en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT")
#: Windows' numbers of some of them, which the service takes as well.
NUMBERED_LANGUAGES: Final = {
    "1033": "en-US",
    "1031": "de-DE",
    "3082": "es-ES",
    "1036": "fr-FR",
}
WORDS: Final = b"\x00"
TOKEN: Final = b"\x01"
TOKEN_CUT_BYTES: Final = 64  # longer words are distinguished by a digest, and by the item
COUNT: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class TextIndex:
    path: tuple[str, ...]
    language: str
    analysis: int = ANALYSIS

    @property
    def prefix(self) -> bytes:
        return layout.FX

    def covers(self, path: Path) -> bool:
        """Queries ask in the tokens of today, which an index of an older analysis does not have."""
        return path == self.path and self.analysis == ANALYSIS

    def rows(self, item: dict[str, JSON]) -> Iterator[Row]:
        text = extract(item, self.path)
        if type(text) is not str:
            return
        prefix = row_prefix(layout.FX, self.path)
        found = tokens(text, self.language, self.analysis)
        yield prefix + WORDS, COUNT.pack(len(found))
        for token in dict.fromkeys(found):
            yield prefix + TOKEN + string_term(token, TOKEN_CUT_BYTES), b""


def languages(document: Mapping[str, JSON]) -> tuple[str, dict[str, str]]:
    """(the language of full text, the languages of paths that have their own)."""
    policy = document.get("fullTextPolicy")
    given = policy if isinstance(policy, dict) else {}
    default = _language(given.get("defaultLanguage")) or "en-US"
    paths = by_path(given, "fullTextPaths")
    return default, {
        path: _language(entry.get("language")) or default for path, entry in paths.items()
    }


def _language(given: JSON) -> str:
    return NUMBERED_LANGUAGES.get(str(given), "" if given is None else str(given))


def _describe(document: Mapping[str, Any]) -> dict[str, JSON]:
    default, by_path = languages(document)
    return {"language": default, "languages": by_path, "analysis": ANALYSIS}


def _told(document: Mapping[str, Any]) -> dict[str, Any]:
    """Policies speak of paths, functions get values: which language a call has is decided by the
    path that its argument is."""
    default, by_path = languages(document)
    return {
        "language": default,
        "languages": {parse_path(path): each for path, each in by_path.items()},
    }


def _compile(entry: Mapping[str, Any], known: Mapping[str, Any]) -> TextIndex:
    language = known["languages"].get(entry["path"], known["language"])
    return TextIndex(names(entry["path"]), language, known.get("analysis", 1))


# --- policies -------------------------------------------------------------------------------------


def _check_policies(document: Mapping[str, Any]) -> None:
    policy = document.get("fullTextPolicy")
    if policy is not None:
        _check_full_text(an_object(policy, "fullTextPolicy"))
    texts = by_path(policy, "fullTextPaths")
    for index in a_list(document.get("indexingPolicy") or {}, "fullTextIndexes"):
        path = an_object(index, "fullTextIndexes").get("path")
        if path not in texts:
            raise BadInput(
                f"The Full Text Indexing Policy's path::{path} not matching in Full Text Policy's "
                "path."
            )


def _check_full_text(policy: dict[str, JSON]) -> None:
    _check_language(policy.get("defaultLanguage"))
    entries = a_list(policy, "fullTextPaths")
    for entry in entries:
        given = an_object(entry, "fullTextPaths")
        if not is_path(given.get("path")):
            raise BadInput(f"The Full Text Policy contains an invalid Path: {given.get('path')}")
        _check_language(given.get("language"))
    if len(by_path(policy, "fullTextPaths")) < len(entries):
        raise BadInput("The Full Text Policy contains a Path more than once.")


def _check_language(language: JSON) -> None:
    known = language is None or language in LANGUAGES or str(language) in NUMBERED_LANGUAGES
    if not known:
        names = ", ".join(f'"{name}"' for name in LANGUAGES)
        raise BadInput(
            f"The Full Text Policy contains an unsupported language {language}. Supported "
            f"languages are: {names}."
        )


KIND: Final = Kind(
    name="fullTextIndexes",
    prefix=layout.FX,
    parse=each("fullTextIndexes", check_property),
    describe=_describe,
    compile=_compile,
    told=_told,
    check_policies=_check_policies,
)
