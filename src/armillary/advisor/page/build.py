"""The page of a comparison, from top to bottom: the answer, the table, the plots.

The key to compare with is the worst of the others: what a replay is for is to see what would go
wrong. No script, no font, no picture from anywhere else: the file can be mailed and opened in ten
years.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from armillary.advisor.page import plots
from armillary.advisor.page.style import style
from armillary.advisor.page.words import (
    breakable,
    days,
    esc,
    money,
    number,
    percent,
    seconds,
)
from armillary.advisor.replay.result import Comparison, Replayed
from armillary.advisor.replay.verdicts import Verdict, full_in
from armillary.partition.provisioning.partitions import LIMITS, PartitionLimits
from armillary.units import bytes_text

REASONS_SHOWN: Final = 4
ROWS_SHOWN: Final = 100
#: Verdict → class of its badge, and a sign that says the same without colour.
BADGES: Final[dict[str, tuple[str, str]]] = {
    "recommended": ("good", "✓"),
    "good": ("good", "✓"),
    "possible": ("fair", "○"),
    "warning": ("fair", "!"),
    "rejected": ("poor", "✕"),
}


@dataclass(frozen=True, slots=True)
class PageInput:
    comparison: Comparison
    verdicts: tuple[Verdict, ...]
    """Best first; may name keys that were not replayed."""
    title: str = "Partition key report"
    source: str = ""
    notes: tuple[str, ...] = ()
    limits: PartitionLimits = LIMITS


def page(given: PageInput) -> str:
    comparison = given.comparison
    replays = _ordered(given)
    best, worst = replays[0], _worst(replays)
    body = [
        _head(given),
        _answer(given, best),
        _table(given, replays),
        _pair(
            "Storage per physical partition",
            "A key is good for storage when the bars are even: the dashed line is the mean. A tall "
            "bar splits early, or never when a single key fills it.",
            worst,
            best,
            lambda one, side: plots.storage(one, side, _top_bytes(worst, best), given.limits.bytes),
            lambda one: f"largest {one.storage_skew:.2f} × mean",
        ),
        _pair(
            "Request units over time",
            "Each row is a physical partition. Throughput is shared evenly between them and can't "
            "be borrowed: one row at its limit among quiet ones is a hot partition.",
            worst,
            best,
            lambda one, side: plots.heat(one, side, _span(worst, best)),
            lambda one: (
                f"{percent(one.throttled_share)} of requests refused (429), "
                f"{percent(one.failed_share)} of operations gave up"
            ),
        ),
        _pair(
            "Top keys",
            "Requests for one key always go to one partition. Beyond the dashed line a single key "
            "needs more than the partition that holds it has.",
            worst,
            best,
            lambda one, side: plots.top_keys(one, side, _top_share(worst, best)),
            lambda one: f"the container can serve at most {number(one.ru_ceiling)} RU/s",
        ),
        _card(
            "Fan-out per operation",
            "How many physical partitions an operation has to ask. There is no index over all of "
            "them: each that is asked costs, whether it finds anything or not.",
            f'<div class="wide">{plots.fan_out(replays)}</div>',
        ),
        '<div class="pair">',
        _card(
            "Lorenz curve",
            "How unequal keys are. A curve near the diagonal has keys of equal size; many small "
            "keys and a few giants bend it into the corner.",
            plots.lorenz(replays),
        ),
        _card("What was replayed", "", _facts_text(given)),
        "</div>",
        _details(replays),
        _foot(comparison),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{esc(given.title)}</title>'
        f"<style>{style()}</style></head><body><main>{''.join(body)}</main></body></html>"
    )


# --- parts ----------------------------------------------------------------------------------------


def _head(given: PageInput) -> str:
    one = given.comparison
    facts = (
        (f"{number(one.throughput)} RU/s", one.offer + " throughput"),
        (number(one.operations / max(one.seconds, 1e-9)), "operations per second"),
        (f"{number(one.seconds)} s", "of traffic replayed"),
        (bytes_text(one.storage_bytes), "stored, with its index"),
        (str(len(one.replays)), "candidates replayed"),
    )
    cells = "".join(
        f'<div class="fact"><b>{esc(a)}</b><span>{esc(b)}</span></div>' for a, b in facts
    )
    source = f"<p class='lead'>{esc(given.source)}</p>" if given.source else ""
    return f'<header><h1>{esc(given.title)}</h1>{source}<div class="facts">{cells}</div></header>'


def _answer(given: PageInput, best: Replayed) -> str:
    verdict = next((one for one in given.verdicts if one.key == best.key), None)
    reasons = verdict.reasons if verdict is not None else ()
    shown = "".join(f"<li>{esc(why)}</li>" for why in reasons[:REASONS_SHOWN])
    kind = best.kind.replace("_", " ")
    return (
        f'<section class="card answer"><p class="note">Best partition key · {esc(kind)}</p>'
        f'<p><span class="key">{esc(best.key)}</span></p><ul>{shown}</ul></section>'
    )


_COLUMNS: Final = (
    ("Candidate", "left"),
    ("Verdict", "left"),
    ("429s", ""),
    ("gave up", ""),
    ("wait p99", ""),
    ("busiest<br>partition", ""),
    ("largest<br>partition", ""),
    ("partitions<br>asked", ""),
    ("20 GB key", ""),
    ("RU/s<br>needed", ""),
    ("per hour<br>needed", ""),
)


def _table(given: PageInput, replays: Sequence[Replayed]) -> str:
    head = "".join(f'<th class="{kind}">{name}</th>' for name, kind in _COLUMNS)
    rows = "".join(_row(given, one, index == 0) for index, one in enumerate(replays))
    replayed = {one.key for one in replays}
    others = "".join(_other(one) for one in given.verdicts if one.key not in replayed)
    table = (
        f'<div class="wide"><table id="candidates"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}{others}</tbody></table></div>"
    )
    return _card(
        "Candidates",
        "Busiest and largest partition are against the mean of all: 1.0 is perfectly even.",
        table,
    )


def _row(given: PageInput, one: Replayed, best: bool) -> str:
    verdict = next((each for each in given.verdicts if each.key == one.key), None)
    needed = "none is enough" if one.needed_ru is None else number(one.needed_ru)
    full = full_in(one)
    cells = (
        percent(one.throttled_share),
        percent(one.failed_share),
        seconds(one.wait_p99_ms),
        f"{one.skew:.2f} ×",
        f"{one.storage_skew:.2f} ×",
        number(one.fan_out_mean),
        full,
        needed,
        money(one.needed_cost_per_hour),
    )
    numbers = "".join(f"<td>{esc(cell)}</td>" for cell in cells)
    shown = "best" if best else ""
    return (
        f'<tr class="{shown}"><td class="left"><span class="key">{breakable(one.key)}</span></td>'
        f'<td class="left">{_badge(verdict)}</td>{numbers}</tr>{_why(verdict, shown)}'
    )


def _other(one: Verdict) -> str:
    blank = f'<td class="left note" colspan="{len(_COLUMNS) - 2}">not replayed</td>'
    name = f'<td class="left"><span class="key">{breakable(one.key)}</span></td>'
    return f'<tr>{name}<td class="left">{_badge(one)}</td>{blank}</tr>{_why(one)}'


def _why(verdict: Verdict | None, shown: str = "") -> str:
    """The reasons, in a row of their own: alongside the numbers they would make narrow towers."""
    reasons = () if verdict is None else verdict.reasons[:REASONS_SHOWN]
    if not reasons:
        return ""
    listed = "".join(f"<li>{esc(why)}</li>" for why in reasons)
    cell = f'<td colspan="{len(_COLUMNS)}"><ul class="reasons">{listed}</ul></td>'
    return f'<tr class="why {shown}">{cell}</tr>'


def _badge(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    kind, sign = BADGES.get(verdict.verdict, ("fair", "·"))
    return f'<span class="badge {kind}">{sign} {esc(verdict.verdict)}</span>'


def _pair(
    title: str,
    why: str,
    worst: Replayed | None,
    best: Replayed,
    draw: Callable[[Replayed, plots.Side], str],
    caption: Callable[[Replayed], str],
) -> str:
    """Bad and good key alongside each other, drawn to one scale."""
    sides: list[tuple[Replayed, plots.Side]] = [(best, "good")]
    if worst is not None:
        sides.insert(0, (worst, "poor"))
    figures = "".join(
        f'<div><h3><span class="tag {side}">{_SIGNS[side]}</span> <span class="key">'
        f"{esc(one.key)}</span></h3>"
        f'<p class="note">{esc(caption(one))}</p>{draw(one, side)}</div>'
        for one, side in sides
    )
    return _card(title, why, f'<div class="pair">{figures}</div>')


_SIGNS: Final[dict[plots.Side, str]] = {"good": "✓ best", "poor": "✕ worst"}


def _card(title: str, why: str, body: str) -> str:
    lead = f'<p class="lead">{esc(why)}</p>' if why else ""
    return f'<section class="card"><h2>{esc(title)}</h2>{lead}{body}</section>'


def _facts_text(given: PageInput) -> str:
    one = given.comparison
    if one.throughput_given:
        chosen = f"{number(one.throughput)} RU/s were given"
    else:
        chosen = (
            f"{number(one.throughput)} RU/s: what the candidate that costs least would use at 70 %"
        )
    lines = [
        f"{number(one.operations)} operations over {number(one.seconds)} s, the same for all",
        f"each one played stands for {number(one.weight)}" if one.weight > 1 else "",
        chosen,
        f"seed {one.seed}: the same again gives the same numbers",
        "refused requests are tried again as the official SDK does: up to 9 times, up to 30 s",
        "hashes, budgets, prices and splits are those of the server",
        *given.notes,
    ]
    return "<ul>" + "".join(f"<li>{esc(each)}</li>" for each in lines if each) + "</ul>"


def _details(replays: Sequence[Replayed]) -> str:
    blocks = "".join(_detail(one) for one in replays)
    return _card("Every partition", "What each physical partition held and did.", blocks)


def _detail(one: Replayed) -> str:
    head = "".join(
        f"<th>{name}</th>"
        for name in ("partition", "RU/s", "stored", "RU used", "share", "busiest second", "429s")
    )
    rows = "".join(
        f"<tr><td>{part.id}</td><td>{number(part.ru_per_s)}</td><td>{bytes_text(part.bytes)}</td>"
        f"<td>{number(part.consumed_ru)}</td><td>{percent(part.ru_share)}</td>"
        f"<td>{part.peak_percent:.0f} %</td><td>{number(part.throttled)}</td></tr>"
        for part in one.partitions[:ROWS_SHOWN]
    )
    more = len(one.partitions) - ROWS_SHOWN
    tail = f'<p class="note">and {more:,} more</p>' if more > 0 else ""
    sentences = [
        one.hot or "",
        f"{len(one.splits)} splits on the way." if one.splits else "",
        f"The first partition is full in {days(one.first_split_days)} if it goes on like this."
        if one.first_split_days is not None
        else "",
        f"{one.full_key.key} reaches its 20 GB in {days(one.full_key.days)} ({one.full_key.date})."
        if one.full_key is not None
        else "",
        *(f"Left out: {why}" for why in one.skipped),
    ]
    said = " ".join(filter(None, sentences))
    return (
        f'<details><summary><span class="key">{esc(one.key)}</span></summary>'
        f'<p class="note">{esc(said)}</p><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{tail}</details>"
    )


def _foot(comparison: Comparison) -> str:
    return (
        "<footer><p>Prices are US list prices for one region. Charges of queries are estimates to "
        "about 30 %; reads and writes follow the published tables. A replay shows what these "
        "operations would meet, not what other traffic would.</p>"
        "<p>Made by <code>armillary</code>.</p></footer>"
    )


# --- which ----------------------------------------------------------------------------------------


def _ordered(given: PageInput) -> list[Replayed]:
    """As the verdicts are; those without one at the end."""
    places = {one.key: index for index, one in enumerate(given.verdicts)}
    return sorted(given.comparison.replays, key=lambda one: places.get(one.key, len(places)))


def _worst(replays: Sequence[Replayed]) -> Replayed | None:
    others = replays[1:]
    return max(
        others, key=lambda one: (one.failed_share, one.throttled_share, one.skew), default=None
    )


def _top_bytes(worst: Replayed | None, best: Replayed) -> float:
    sides = [best] if worst is None else [best, worst]
    return max(part.bytes for one in sides for part in one.partitions)


def _span(worst: Replayed | None, best: Replayed) -> int:
    """Windows of the longer one: retries may go on after the last operation."""
    sides = [best] if worst is None else [best, worst]
    return max((len(row) for one in sides for row in one.heat.percent), default=1)


def _top_share(worst: Replayed | None, best: Replayed) -> float:
    sides = [best] if worst is None else [best, worst]
    return max((row.share for one in sides for row in one.top_keys), default=0.0)
