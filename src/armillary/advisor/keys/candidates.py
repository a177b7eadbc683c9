"""A candidate: a partition key somebody might choose, as text, as a definition, and as a function.

    /tenant                          path             one property (nested: /a/b)
    /tenant,/user                    hierarchical     up to three levels
    /device+"-"+/date                concat           joined into one text
    /date+"."+random(400)            random_suffix    1..k by chance
    /date+"."+hash(/vin,400)         computed_suffix  1..k from another property
    /device+"."+month(/ts)           time_bucket      year, month, day, hour or minute of an instant

`parse_candidate` reads this grammar and `Candidate.name` writes it. An instant that is a number
says its unit: `month(/ts,seconds)`. One separator serves a whole key, as in the specification of
synthetic keys (`keys/spec.py`), which computes the values here too; places on the ring come from
`encoding/hashing.py`. Nothing in this module knows data or workloads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Final, Literal, TypeAlias

from armillary.advisor.keys.grammar import Bucketed, Hashed, Randomly, Term, Text, parse_terms
from armillary.encoding.hashing import epk
from armillary.encoding.partition_key import (
    KeyValues,
    PartitionKeyDefinition,
    check_key,
    key_of,
    parse_definition,
)
from armillary.encoding.paths import Path, format_path
from armillary.errors import BadInput
from armillary.keys.buckets import ISO
from armillary.keys.spec import Part, Spec, Suffix
from armillary.keys.synthetic import Item, SyntheticKey
from armillary.limits import HIERARCHICAL_LEVELS_MAX
from armillary.values import JSON

Kind: TypeAlias = Literal[
    "path", "hierarchical", "concat", "random_suffix", "computed_suffix", "time_bucket"
]
#: From the plainest to the most involved: of two equal keys the earlier one is better.
KINDS: Final[tuple[Kind, ...]] = (
    "path",
    "hierarchical",
    "concat",
    "time_bucket",
    "computed_suffix",
    "random_suffix",
)
#: Where a synthetic key is stored in items, unless they have a property of that name.
STORED_IN: Final[Path] = ("partitionKey",)


@dataclass(frozen=True, slots=True)
class Candidate:
    """`paths` are those of the container's definition; of a synthetic key, where it is stored."""

    name: str
    kind: Kind
    paths: tuple[Path, ...]
    synthetic: SyntheticKey | None = None
    of_table: bool = False
    """The present key of a table, which is always PartitionKey."""

    @property
    def levels(self) -> tuple[Path, ...]:
        """The properties of the item that make the key, without the source of a suffix."""
        if self.synthetic is None:
            return self.paths
        return tuple(part.path for part in self.synthetic.spec.parts)

    @property
    def source(self) -> Path | None:
        """What a computed suffix is computed from."""
        suffix = None if self.synthetic is None else self.synthetic.spec.suffix
        return None if suffix is None else suffix.source

    @property
    def made_of(self) -> tuple[Path, ...]:
        """Every property whose value goes into the key, each once."""
        source = self.source
        return tuple(dict.fromkeys(self.levels if source is None else (*self.levels, source)))

    @property
    def suffixes(self) -> int:
        """How many keys one stem has; 1 without a suffix."""
        return 1 if self.synthetic is None else self.synthetic.k

    @property
    def is_random(self) -> bool:
        return self.synthetic is not None and self.synthetic.is_random

    def values(self, item: Item, random: Random | None = None) -> KeyValues:
        """The key of an item. A missing property is UNDEFINED in a plain key, and BadInput in a
        synthetic one; an array, or too long a text, is BadInput in both."""
        if self.synthetic is None:
            return key_of(dict(item), self.definition)
        return check_key((self.synthetic.value_for(item, random),), self.definition)

    def epk(self, values: KeyValues) -> bytes:
        """The place of a key, or of a prefix of a hierarchical one, on the ring."""
        return epk(values, self.definition)

    @property
    def definition(self) -> PartitionKeyDefinition:
        return _definition(self.paths)

    def definition_json(self) -> dict[str, JSON]:
        return self.definition.to_json()

    def spec_json(self) -> dict[str, JSON] | None:
        """The specification of a synthetic key, as the store and `keys/` take it."""
        return None if self.synthetic is None else self.synthetic.to_json()

    def container_json(self, name: str = "items") -> dict[str, JSON]:
        """The body of a request that creates the container."""
        body: dict[str, JSON] = {"id": name, "partitionKey": self.definition_json()}
        spec = self.spec_json()
        return body if spec is None else body | {"syntheticKey": spec}


@lru_cache(maxsize=1024)
def _definition(paths: tuple[Path, ...]) -> PartitionKeyDefinition:
    kind = "MultiHash" if len(paths) > 1 else "Hash"
    return parse_definition({"paths": list(map(format_path, paths)), "kind": kind, "version": 2})


def plain(*paths: Path) -> Candidate:
    """One property, or several as the levels of a hierarchical key."""
    if not 1 <= len(paths) <= HIERARCHICAL_LEVELS_MAX:
        raise BadInput(f"A hierarchical key has 2 to {HIERARCHICAL_LEVELS_MAX} levels.")
    kind: Kind = "hierarchical" if len(paths) > 1 else "path"
    _definition(paths)  # which refuses the same path twice
    return Candidate(",".join(map(format_path, paths)), kind, paths)


def synthetic(
    parts: Sequence[Part],
    *,
    separator: str = "-",
    suffix: Suffix | None = None,
    stored_in: Path = STORED_IN,
) -> Candidate:
    # Through JSON: the specification's own reader does the checking.
    key = SyntheticKey.from_json(Spec(stored_in, tuple(parts), separator, suffix=suffix).to_json())
    return Candidate(_name(key.spec), _kind(key.spec), (stored_in,), key)


def parse_candidate(text: str, *, stored_in: Path = STORED_IN) -> Candidate:
    """The candidate a text means; BadInput says what does not fit, and where."""
    levels = [parse_terms(level) for level in _levels(text)]
    if len(levels) > 1 or (len(levels[0]) == 1 and isinstance(levels[0][0], tuple)):
        if not all(len(level) == 1 and isinstance(level[0], tuple) for level in levels):
            raise BadInput(f"The levels of '{text}' must be paths: '/a,/b'.")
        return plain(*(level[0] for level in levels if isinstance(level[0], tuple)))
    return _synthetic(text, levels[0], stored_in)


def parse_candidates(texts: Sequence[str], *, stored_in: Path = STORED_IN) -> list[Candidate]:
    """Each once, in order."""
    found = (parse_candidate(text, stored_in=stored_in) for text in texts)
    return list({one.name: one for one in found}.values())


def _levels(text: str) -> list[str]:
    """The text cut at commas that stand neither in quotes nor in parentheses."""
    levels, quote, depth, start = [], "", 0, 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[at - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "," and depth == 0:
            levels.append(text[start:at])
            start = at + 1
    return [*levels, text[start:]]


def _synthetic(text: str, terms: Sequence[Term], stored_in: Path) -> Candidate:
    separators = [term.text for term in terms[1::2] if isinstance(term, Text)]
    alternate = len(separators) == len(terms) // 2 and len(terms) % 2 == 1
    if not alternate or any(isinstance(term, Text) for term in terms[::2]):
        raise BadInput(
            f"'{text}' must be paths or functions with a separator between each two of them, "
            'as in /a+"-"+/b.'
        )
    if len(set(separators)) > 1:
        raise BadInput(f"'{text}' has several separators; one serves a whole key.")
    return synthetic(
        list(_parts(text, terms[::2])),
        separator=separators[0] if separators else "-",
        suffix=_suffix(terms[-1]),
        stored_in=stored_in,
    )


def _parts(text: str, terms: Sequence[Term]) -> Iterator[Part]:
    for at, term in enumerate(terms):
        match term:
            case tuple():
                yield Part(term)
            case Bucketed(bucket, path, unit):
                yield Part(path, bucket, unit)
            case Hashed() | Randomly() if at < len(terms) - 1:
                raise BadInput(f"The suffix in '{text}' must be at its end.")


def _suffix(term: Term) -> Suffix | None:
    match term:
        case Hashed(source, k):
            return Suffix("computed", k, source)
        case Randomly(k):
            return Suffix("random", k)
    return None


def _kind(spec: Spec) -> Kind:
    if spec.suffix is not None:
        return "computed_suffix" if spec.suffix.source is not None else "random_suffix"
    return "time_bucket" if any(part.bucket for part in spec.parts) else "concat"


def _name(spec: Spec) -> str:
    texts = [_part_name(part) for part in spec.parts]
    if spec.suffix is not None:
        source, k = spec.suffix.source, spec.suffix.k
        texts.append(f"random({k})" if source is None else f"hash({format_path(source)},{k})")
    separator = spec.separator.replace("\\", "\\\\").replace('"', '\\"')
    return f'+"{separator}"+'.join(texts)


def _part_name(part: Part) -> str:
    path = format_path(part.path)
    if part.bucket is None:
        return path
    return f"{part.bucket}({path})" if part.unit == ISO else f"{part.bucket}({path},{part.unit})"
