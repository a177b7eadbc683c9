"""The sample as numbers: which key each row would have, under any candidate.

    rows            0    1    2    3
    /date           0    0    1    1        each property's values numbered
    /vin            0    1    1    2
    key             0    1    2    3        and so the keys that are made of them

Values are only computed for distinct keys, and only when their place on the ring is wanted; a
missing property gives -1.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from armillary.advisor.data.survey import Survey
from armillary.advisor.keys.candidates import Candidate, plain
from armillary.advisor.reading.shape import SIZE, Seen
from armillary.encoding.hashing import epk
from armillary.encoding.partition_key import KeyValues
from armillary.encoding.paths import Path, format_path
from armillary.errors import BadInput
from armillary.keys.buckets import bucket_of, instant_of
from armillary.keys.spec import Part
from armillary.keys.synthetic import computed_suffix
from armillary.keys.text import text_of
from armillary.keys.views import put
from armillary.values import JSON

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MISSING: Final = -1
ID: Final[Path] = ("id",)
_MANY: Final = 10


def typed(text: str, seen: Seen | None) -> JSON:
    """The value that stood in the data, from its text and the types of its property."""
    if seen is None or set(seen.types) <= {"string", "null", "object", "array"}:
        return text
    if text in ("true", "false") and seen.types["boolean"]:
        return text == "true"
    if not seen.types["number"]:
        return text
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


@dataclass(slots=True)
class Numbered:
    """One property: the number of each row's value, and the values by number."""

    codes: Ints
    texts: list[str]

    @property
    def distinct(self) -> int:
        return len(self.texts)


@dataclass(slots=True)
class Keys:
    """One candidate over the sample. `first` is a row of each key."""

    candidate: Candidate
    codes: Ints
    first: Ints
    suffix: Ints | None = None
    """Of a random suffix: what was drawn for each row."""

    @property
    def distinct(self) -> int:
        return len(self.first)

    def weights(self, rows: Floats) -> Floats:
        """What each key weighs when rows weigh this."""
        there = self.codes >= 0
        found = np.bincount(self.codes[there], rows[there], self.distinct)
        return np.asarray(found, np.float64)


class _Drawn(Random):
    """The number that was drawn already."""

    def __init__(self, number: int) -> None:
        super().__init__(0)
        self.number = number

    def randint(self, a: int, b: int) -> int:
        return self.number


@dataclass(slots=True)
class Sampled:
    survey: Survey
    random_seed: int = 0
    _numbered: dict[Path, Numbered] = field(default_factory=dict)
    _parts: dict[tuple[Path, str | None], Ints] = field(default_factory=dict)
    _versions: bool | None = None
    _hashes: dict[Path, npt.NDArray[np.uint64]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.survey.sample)

    @property
    def sizes(self) -> Floats:
        return np.asarray(self.survey.sample[SIZE].to_numpy(), np.float64)

    def has(self, path: Path) -> bool:
        return format_path(path) in self.survey.sample.columns

    def numbered(self, path: Path) -> Numbered:
        found = self._numbered.get(path)
        if found is None:
            found = self._numbered[path] = self._number(path)
        return found

    def _number(self, path: Path) -> Numbered:
        if not self.has(path):
            return Numbered(np.full(self.rows, MISSING, np.int64), [])
        column = self.survey.sample[format_path(path)]
        distinct = column.drop_nulls().unique().sort()
        table = pl.DataFrame({"value": distinct, "code": np.arange(len(distinct), dtype=np.int64)})
        joined = column.to_frame("value").join(table, on="value", how="left", maintain_order="left")
        codes = joined["code"].fill_null(MISSING).to_numpy().astype(np.int64)
        return Numbered(codes, distinct.to_list())

    def value(self, path: Path, row: int) -> JSON:
        numbered = self.numbered(path)
        return typed(numbered.texts[numbered.codes[row]], self.survey.seen.get(path))

    def has_versions(self) -> bool:
        """Whether ids repeat because rows are versions of one item: some property with many values
        is the same in all rows of an id, or none tells them all apart. (Ids that are unique within
        a tenant are no versions.)"""
        if self._versions is None:
            self._versions = self._find_versions()
        return self._versions

    def _find_versions(self) -> bool:
        ids = self.numbered(ID)
        rows_of = np.bincount(ids.codes[ids.codes >= 0], minlength=ids.distinct)
        several = rows_of > 1
        if not several.any():
            return False
        told_apart = False
        for path in self.survey.columns:
            other = self.numbered(path)
            if path == ID or not 2 <= other.distinct <= 0.2 * self.rows:
                continue
            codes, first = combined([ids.codes, other.codes])
            values_of = np.bincount(ids.codes[first], minlength=ids.distinct)[several]
            if other.distinct >= _MANY and (values_of == 1).mean() > 0.9:
                return True
            told_apart |= len(first) == int((codes >= 0).sum())
        return not told_apart

    # --- keys -------------------------------------------------------------------------------------

    def keys(self, candidate: Candidate) -> Keys:
        """Rows that can have no such key (a missing part, a time that is none) have -1."""
        suffix: Ints | None = None
        if candidate.synthetic is None:
            parts = [self.numbered(path).codes for path in candidate.paths]
        else:
            spec = candidate.synthetic.spec
            parts = [self._part(part) for part in spec.parts]
            if spec.suffix is not None and spec.suffix.source is not None:
                parts.append(self._computed(spec.suffix.source, spec.suffix.k))
            elif spec.suffix is not None:
                random = np.random.default_rng(self.random_seed)
                suffix = random.integers(1, spec.suffix.k + 1, self.rows, dtype=np.int64)
                parts.append(suffix)
        codes, first = combined(parts)
        return Keys(candidate, codes, first, suffix)

    def _part(self, part: Part) -> Ints:
        numbered = self.numbered(part.path)
        if part.bucket is None:
            return numbered.codes
        found = self._parts.get((part.path, part.bucket))
        if found is None:
            names: dict[str, int] = {}
            seen = self.survey.seen.get(part.path)
            by_code = [MISSING] * numbered.distinct
            for code, text in enumerate(numbered.texts):
                try:
                    instant = instant_of(typed(text, seen), part.unit, "it")
                except BadInput:
                    continue
                by_code[code] = names.setdefault(bucket_of(instant, part.bucket), len(names))
            found = self._parts[part.path, part.bucket] = _mapped(numbered.codes, by_code)
        return found

    def _computed(self, source: Path, k: int) -> Ints:
        numbered, seen = self.numbered(source), self.survey.seen.get(source)
        where = format_path(source)
        by_code = [computed_suffix(text_of(typed(t, seen), where), k) for t in numbered.texts]
        return _mapped(numbered.codes, by_code)

    def key_values(self, keys: Keys, code: int) -> KeyValues:
        """The value of a key, from one of its rows, as the product would compute it."""
        row = int(keys.first[code])
        item: dict[str, JSON] = {}
        for path in keys.candidate.made_of:
            if self.numbered(path).codes[row] >= 0:
                item = put(item, path, self.value(path, row))
        if keys.suffix is None:
            return keys.candidate.values(item)
        return keys.candidate.values(item, _Drawn(int(keys.suffix[row])))

    def hashes(self, path: Path) -> npt.NDArray[np.uint64]:
        """The first half of the EPK of each value of a property: its place on the ring, and its
        place within a level of a hierarchical key, which hashes each level alike."""
        found = self._hashes.get(path)
        if found is None:
            definition, seen = plain(path).definition, self.survey.seen.get(path)
            numbered = self.numbered(path)
            places = [epk((typed(text, seen),), definition)[:8] for text in numbered.texts]
            found = np.frombuffer(b"".join(places), ">u8").astype(np.uint64)
            self._hashes[path] = found
        return found


def combined(parts: list[Ints]) -> tuple[Ints, Ints]:
    """(number of each row's combination, a row of each combination); -1 where any part is."""
    codes = parts[0]
    there = codes >= 0
    for part in parts[1:]:
        there &= part >= 0
        width = int(part.max(initial=0)) + 1
        codes = np.unique(codes * width + part, return_inverse=True)[1].astype(np.int64)
    result = np.full(len(codes), MISSING, np.int64)
    rows = np.flatnonzero(there)
    if not len(rows):
        return result, np.empty(0, np.int64)
    _, first, inverse = np.unique(codes[rows], return_index=True, return_inverse=True)
    result[rows] = inverse
    return result, rows[first].astype(np.int64)


def _mapped(codes: Ints, by_code: list[int]) -> Ints:
    table = np.array([*by_code, MISSING], np.int64)  # -1 looks up the last
    return np.asarray(table[codes], np.int64)


def shares_of(weights: Any) -> Floats:
    total = float(np.sum(weights))
    return np.asarray(weights / total if total > 0 else weights, np.float64)
