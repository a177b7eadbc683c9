"""Synthetic partition keys: a key made from other properties of the item.

    item {"date": "2018-08-09", "vin": "1HGCM82633A004352", …}
        stem    2018-08-09           the parts, joined by the separator
        suffix  1 + hash(vin) mod k  or a random 1..k, or none
        key     2018-08-09.363       stored in the item at `path`

One hot value (a date) becomes k keys, which spread over the physical partitions. What that costs
is paid by reads, and `candidates` says how much: one key when the source of a computed suffix is
known, k keys otherwise, and `NotTargetable` when not even the stem is known, which means asking
every partition.

Nothing here touches storage or a clock, and chance is passed in. Where the key is filled in on
writes is the store's affair (or `keys/cosmos.py`, for clients of other servers).
Facts: partitioning reference, sections 6.2 to 6.4; definition: docs/synthetic-keys.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from random import Random
from typing import TypeAlias

import mmh3

from armillary.encoding.paths import Path, extract, format_path
from armillary.errors import BadInput, NotTargetable
from armillary.keys.buckets import BUCKETS, bucket_of, instant_of, instants_between
from armillary.keys.spec import Part, Spec, parse_spec
from armillary.keys.text import escaped, text_of
from armillary.keys.views import Among, put, views
from armillary.limits import PARTITION_KEY_BYTES_MAX, SYNTHETIC_CANDIDATES_MAX
from armillary.values import JSON, UNDEFINED

Item: TypeAlias = Mapping[str, JSON]
#: The ends of an interval of time, both inside: as the property holds them, or as datetimes.
Interval: TypeAlias = tuple[JSON | datetime, JSON | datetime]


def computed_suffix(text: str, k: int) -> int:
    """1..k from a text: the low half of MurmurHash3 x64-128 with seed 0. Part of version 1."""
    return 1 + int(mmh3.hash64(text.encode(), seed=0, signed=False)[0]) % k


@dataclass(frozen=True, slots=True)
class SyntheticKey:
    spec: Spec

    @classmethod
    def from_json(cls, spec: JSON) -> "SyntheticKey":
        return cls(parse_spec(spec))

    def to_json(self) -> dict[str, JSON]:
        return self.spec.to_json()

    @property
    def path(self) -> Path:
        return self.spec.path

    @property
    def sources(self) -> tuple[Path, ...]:
        """The properties that the key is made of, each once."""
        suffix = self.spec.suffix
        ends = () if suffix is None or suffix.source is None else (suffix.source,)
        return tuple(dict.fromkeys((*(part.path for part in self.spec.parts), *ends)))

    @property
    def k(self) -> int:
        """How many keys one stem has."""
        return 1 if self.spec.suffix is None else self.spec.suffix.k

    @property
    def is_random(self) -> bool:
        return self.spec.suffix is not None and self.spec.suffix.kind == "random"

    # --- writes -----------------------------------------------------------------------------------

    def value_for(self, item: Item, random: Random | None = None) -> str:
        """The key of an item. A random suffix is drawn anew by every call."""
        view = dict(item)
        return self._join([self._stem(view), *self._one_suffix(view, random)])

    def fits(self, item: Item, value: JSON) -> bool:
        """Whether `value` is a key this item may have. Raises when the item lacks a part."""
        if not isinstance(value, str):
            return False
        if not self.is_random:
            return value == self.value_for(item)
        before = self._join([self._stem(dict(item)), ""])
        suffix = value.removeprefix(before)
        # The length first: int() of a very long text is slow, and refused by Python itself.
        plain = suffix.isascii() and suffix.isdigit() and len(suffix) <= len(str(self.k))
        return value == before + suffix and plain and suffix[0] != "0" and int(suffix) <= self.k

    def apply(
        self, item: Item, random: Random | None = None, *, stored: JSON = UNDEFINED
    ) -> dict[str, JSON]:
        """A copy of the item with its key in place. A key that is there, or else the one `stored`
        under which the item already lives (replace), is kept if it fits and refused if not.
        """
        view = dict(item)
        given = extract(view, self.path)
        if given is not UNDEFINED and stored is not UNDEFINED and given != stored:
            raise self._misfit(view, given, f"; the item is stored under {stored!r}")
        if given is UNDEFINED:
            given = stored
        if given is UNDEFINED:
            return put(view, self.path, self.value_for(view, random))
        if not self.fits(view, given):
            kept = "" if stored is UNDEFINED else "; the key of a stored item can't change"
            raise self._misfit(view, given, kept)
        return put(view, self.path, given)

    def apply_stably(self, item: Item) -> dict[str, JSON]:
        """As `apply`, with a random suffix that follows from the item's id: doing it twice with one
        item gives one key. For those who copy items and may have to begin again."""
        digest = blake2b(str(item.get("id", "")).encode("utf-8", "replace"), digest_size=8).digest()
        return self.apply(item, Random(int.from_bytes(digest)))

    # --- reads ------------------------------------------------------------------------------------

    def candidates(
        self, known: Item, *, among: Among | None = None, between: Interval | None = None
    ) -> list[str]:
        """Every key that an item with the known properties may have, each once, in order.

        `among` lists the possible values of properties that are not in `known`; `between` is an
        interval for the one property that has time buckets. What is still missing then is fatal for
        a part (`NotTargetable`), and costs all k suffixes for the source of a suffix. A key that is
        itself among the known properties is the one candidate.
        """
        return narrowed(self.path, known, [self], among, between)

    def group(
        self, known: Item, *, among: Among | None = None, between: Interval | None = None
    ) -> list[str]:
        """All keys that share the known stem: k of them, whatever the source of the suffix is."""
        return self.possible(known, among, between, whole_group=True)

    def possible(
        self,
        known: Item,
        among: Among | None = None,
        between: Interval | None = None,
        *,
        whole_group: bool = False,
    ) -> list[str]:
        """As `candidates`, for readers that do not trust a key found among the known properties."""
        found: dict[str, None] = {}
        made = 0
        for view in views(dict(known), among or {}):
            suffixes = self._all_suffixes(view, whole_group)
            for stem in self._stems(view, between):
                made += len(suffixes)
                if made > SYNTHETIC_CANDIDATES_MAX:
                    raise BadInput(
                        f"More than {SYNTHETIC_CANDIDATES_MAX} partition keys are possible; "
                        "say more about the item, or take a shorter interval."
                    )
                found.update((self._join([stem, *suffix]), None) for suffix in suffixes)
        return list(found)

    # --- parts ------------------------------------------------------------------------------------

    def _stem(self, view: dict[str, JSON]) -> str | None:
        return self._stem_of([self._part_text(part, view) for part in self.spec.parts])

    def _stems(self, view: dict[str, JSON], between: Interval | None) -> Iterator[str | None]:
        unknown = [part for part in self.spec.parts if extract(view, part.path) is UNDEFINED]
        if not unknown:
            yield self._stem(view)
            return
        for instant in self._instants(unknown, between):
            yield self._stem_of(
                [
                    bucket_of(instant, part.bucket)
                    if part in unknown and part.bucket is not None
                    else self._part_text(part, view)
                    for part in self.spec.parts
                ]
            )

    def _instants(self, unknown: list[Part], between: Interval | None) -> Iterator[datetime]:
        """Instants of the interval, one in each of the finest buckets that are wanted."""
        timed = [part for part in unknown if part.bucket is not None]
        plain = [part for part in unknown if part.bucket is None]
        if plain or between is None or len({part.path for part in timed}) > 1:
            missing = (plain or timed)[0]
            remedy = "list its values" if missing.bucket is None else "give its interval of time"
            raise NotTargetable(
                f"The partition key needs '{format_path(missing.path)}', which is not known: "
                f"{remedy}, or ask every partition.",
                path=format_path(missing.path),
            )
        where, unit = format_path(timed[0].path), timed[0].unit
        start, end = (instant_of(bound, unit, f"{where} of the interval") for bound in between)
        if start > end:
            raise BadInput(f"The interval of '{where}' ends before it starts.")
        finest = max((part.bucket or "" for part in timed), key=BUCKETS.__getitem__)
        return instants_between(start, end, finest)

    def _part_text(self, part: Part, view: dict[str, JSON]) -> str:
        where = format_path(part.path)
        value = extract(view, part.path)
        if value is UNDEFINED:
            raise BadInput(
                f"The partition key '{format_path(self.path)}' is made of '{where}', "
                "which the item does not have.",
                path=where,
            )
        if part.bucket is None:
            return text_of(value, where)
        return bucket_of(instant_of(value, part.unit, where), part.bucket)

    def _stem_of(self, texts: list[str]) -> str | None:
        """None when there are no parts: a key that is only a suffix has no separator."""
        if self.spec.escape:
            texts = [escaped(text, self.spec.separator) for text in texts]
        return self.spec.separator.join(texts) if texts else None

    def _join(self, texts: Sequence[str | None]) -> str:
        value = self.spec.separator.join(text for text in texts if text is not None)
        if len(value) * 4 > PARTITION_KEY_BYTES_MAX:
            size = len(value.encode())
            if size > PARTITION_KEY_BYTES_MAX:
                raise BadInput(
                    f"The partition key would have {size} bytes; "
                    f"at most {PARTITION_KEY_BYTES_MAX} are allowed."
                )
        return value

    # --- suffixes ---------------------------------------------------------------------------------

    def _one_suffix(self, view: dict[str, JSON], random: Random | None) -> list[str]:
        suffix = self.spec.suffix
        if suffix is None:
            return []
        if suffix.source is None:
            if random is None:
                raise TypeError("a key with a random suffix needs a Random to draw it from")
            return [str(random.randint(1, suffix.k))]
        known = self._computed(view)
        if known is None:
            where = format_path(suffix.source)
            raise BadInput(
                f"The suffix of '{format_path(self.path)}' is computed from '{where}', "
                "which the item does not have.",
                path=where,
            )
        return [known]

    def _all_suffixes(self, view: dict[str, JSON], whole_group: bool) -> list[list[str]]:
        """The possible endings of a key: `[[]]` means exactly one, and it is empty."""
        suffix = self.spec.suffix
        if suffix is None:
            return [[]]
        known = None if whole_group else self._computed(view)
        if known is not None:
            return [[known]]
        return [[str(number)] for number in range(1, suffix.k + 1)]

    def _computed(self, view: dict[str, JSON]) -> str | None:
        suffix = self.spec.suffix
        if suffix is None or suffix.source is None:
            return None
        value = extract(view, suffix.source)
        if value is UNDEFINED:
            return None
        return str(computed_suffix(text_of(value, format_path(suffix.source)), suffix.k))

    def _misfit(self, view: dict[str, JSON], given: JSON, more: str = "") -> BadInput:
        first, last = self._range_of(view)
        expected = repr(first) if first == last else f"{first!r} to {last!r}"
        return BadInput(
            f"'{format_path(self.path)}' is {given!r}, but the item's other properties make it "
            f"{expected}{more}. Leave it out to have it filled in.",
            path=format_path(self.path),
            expected=first,
        )

    def _range_of(self, view: dict[str, JSON]) -> tuple[str, str]:
        if not self.is_random:
            return (value := self.value_for(view)), value
        stem = self._stem(view)
        return self._join([stem, "1"]), self._join([stem, str(self.k)])


def narrowed(
    path: Path,
    known: Item,
    keys: Sequence[SyntheticKey],
    among: Among | None,
    between: Interval | None,
) -> list[str]:
    """What any of the keys makes possible, cut down to the key that `known` itself holds."""
    given = extract(dict(known), path)
    try:
        found = [value for key in keys for value in key.possible(known, among, between)]
    except NotTargetable:
        if not isinstance(given, str):
            raise
        return [given]  # nothing contradicts it
    if given is not UNDEFINED and given not in found:
        raise BadInput(
            f"'{format_path(path)}' is {given!r}, which no item with these properties has."
        )
    return list(dict.fromkeys(found)) if given is UNDEFINED else [given]
