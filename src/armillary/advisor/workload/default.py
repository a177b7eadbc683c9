"""A workload for who gave none: writes, and reads by whatever things in the data have names.

What follows from data alone: items were written, and they are probably read again by their id
and by the properties that group them. Those are the properties with several values and several
items per value that name something (`naming.py`), or, if there are none, whole numbers; each gets
the same share of the queries, so that none is favoured. Items that are things themselves (people,
articles) are looked for by their id, unless something names large numbers of groups. A user who
knows better says it in a workload file, and the answer says that this was assumed.
"""

from typing import Final

from armillary.advisor.data.sampled import Sampled
from armillary.advisor.data.timing import Clock
from armillary.advisor.keys.naming import items_are_things, names_things
from armillary.advisor.workload.filters import Filters
from armillary.advisor.workload.model import ID, Operation, Workload
from armillary.encoding.paths import Path, format_path

RATE: Final = 1_000.0
CREATES: Final = 0.4
READS: Final = 0.2
QUERIES: Final = 0.4
GROUPS_MAX: Final = 6
VALUES_MIN: Final = 20
#: Of a value, on average; of a number that may as well be an amount, more.
ITEMS_MIN: Final = 1.5
NUMBERS_ITEMS_MIN: Final = 3.0
#: Of groups of things, which are found by their own names first.
THINGS_VALUES_MIN: Final = 100


def default_workload(sampled: Sampled, clock: Clock) -> Workload:
    groups = _groups(sampled, clock)
    operations = [Operation("create", RATE * CREATES, name="create")]
    if sampled.has(ID):
        reads = READS if groups else READS + QUERIES
        # Who reads an item knows its key, whatever that will be.
        operations.append(Operation("read", RATE * reads, (ID, *groups), name="read of one item"))
    for path in groups:
        operations.append(_query(path, RATE * QUERIES / len(groups)))
    return Workload(tuple(operations), assumed=True)


def _query(path: Path, rate: float) -> Operation:
    text = f"SELECT * FROM c WHERE c{''.join(f'[{name!r}]' for name in path)} = @value"
    return Operation(
        "query", rate, (path,), text, filters=Filters({path: 1}, {}),
        name=f"query by {format_path(path)}",
    )  # fmt: skip


def _groups(sampled: Sampled, clock: Clock) -> list[Path]:
    """Properties that group items, those with most values first."""
    survey = sampled.survey
    things = items_are_things(sampled, clock)
    least = THINGS_VALUES_MIN if things else VALUES_MIN
    found: list[tuple[float, Path]] = []
    for path, column in survey.columns.items():
        several = least <= column.distinct <= survey.items / ITEMS_MIN
        everywhere = column.items >= 0.99 * survey.items
        if several and everywhere and not clock.is_time(path) and path != ID:
            found.append((column.distinct, path))
    found.sort(key=lambda each: (-each[0], each[1]))
    named = [path for _, path in found if names_things(sampled, clock, path)]
    if not named and not things:
        few = survey.items / NUMBERS_ITEMS_MIN
        named = [path for many, path in found if survey.seen[path].types["number"] and many <= few]
    return named[:GROUPS_MAX]
