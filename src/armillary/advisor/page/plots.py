"""The drawings of the page, each from the values of a replay.

storage    bytes of each physical partition: even bars, or one that towers over the rest
heat       request units over time: a row per partition, a column per window
lorenz     how unequal keys are: the further below the diagonal, the more
top_keys   which keys take the request units, against the share of one partition
fan_out    how many partitions each operation asks, under every candidate
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias

from armillary.advisor.page.drawing import dot, line, path, rect, svg, text
from armillary.advisor.page.words import clipped, number, percent, ticks
from armillary.advisor.replay.result import PartitionUse, Replayed
from armillary.partition.usage.normalised import CHART_RANGES_MAX
from armillary.ring.style import STEPS, heat_step
from armillary.units import bytes_text

Side: TypeAlias = Literal["good", "poor"]

WIDTH: Final = 560.0
LINES_MAX: Final = 6
TOP_KEYS: Final = 8


def storage(one: Replayed, side: Side, top_bytes: float, limit_bytes: float) -> str:
    """`top_bytes` is the same for both sides: bars that are drawn to different scales lie."""
    parts = _shown(one.partitions)
    left, right, top, bottom = 62.0, 8.0, 16.0, 34.0
    height = 250.0
    marks = ticks(max(top_bytes, 1.0))
    full = marks[-1]
    scale = (height - top - bottom) / full
    floor = height - bottom
    body: list[str] = []
    for mark in marks:
        y = floor - mark * scale
        body += [
            line(left, y, WIDTH - right, y, "rule"),
            text(left - 8, y + 4, bytes_text(mark), "dim small end"),
        ]
    slot = (WIDTH - left - right) / max(1, len(parts))
    every = max(1, round(34 / slot))
    for index, part in enumerate(parts):
        x = left + slot * index
        tall = part.bytes * scale
        title = f"Partition {part.id}: {bytes_text(part.bytes)}"
        gap = min(6.0, slot * 0.14)
        body.append(rect(x + gap, floor - tall, slot - 2 * gap, tall, side, title, 2))
        if index % every == 0:
            body.append(text(x + slot / 2, floor + 16, part.id, "dim small mid"))
    if limit_bytes <= full:
        y = floor - limit_bytes * scale
        body += [
            line(left, y, WIDTH - right, y, "limit"),
            text(
                WIDTH - right,
                y - 5,
                f"a partition splits at {bytes_text(limit_bytes)}",
                "limit-text end",
            ),
        ]
    mean = sum(part.bytes for part in one.partitions) / len(one.partitions)
    y = floor - mean * scale
    body += [
        line(left, y, WIDTH - right, y, "even"),
        line(left, floor, WIDTH - right, floor, "axis"),
    ]
    body.append(
        text(left + (WIDTH - left - right) / 2, height - 2, "physical partition", "dim small mid")
    )
    label = (
        f"Storage per physical partition with {one.key}: the largest holds "
        f"{one.storage_skew:.2f} times the mean."
    )
    return svg(WIDTH, height, body, label, f"storage-{side}")


def heat(one: Replayed, side: Side, columns: int) -> str:
    """`columns` are the same for both sides. Rows are as tall as fit; neighbours of one colour are
    one rectangle."""
    shown = _hottest(one)
    left, right, top = 40.0, 8.0, 6.0
    tall = max(4.0, min(26.0, 240.0 / max(1, len(shown))))
    wide = (WIDTH - left - right) / columns
    body: list[str] = []
    every = max(1, round(13 / tall))
    for index, (ordinal, row) in enumerate(shown):
        y = top + index * tall
        gap = 1.0 if tall > 7 else 0.0
        if index % every == 0:
            body.append(text(left - 8, y + tall / 2 + 4, ordinal, "dim small end"))
        at = 0
        for step, run in groupby(row, key=heat_step):
            cells = list(run)
            width = wide * len(cells)
            begin = at * one.heat.window_ms / 1000
            until = (at + len(cells)) * one.heat.window_ms / 1000
            window = f"Partition {ordinal}, {begin:g}–{until:g} s"
            title = f"{window}: up to {max(cells):.0f} % of its budget"
            body.append(rect(left + at * wide, y, width, tall - gap, f"h{step}", title))
            at += len(cells)
    floor = top + len(shown) * tall + 4
    span = columns * one.heat.window_ms / 1000
    for mark in ticks(span, 6):
        if mark <= span * 1.001:
            x = left + (WIDTH - left - right) * mark / span
            kind = "dim small mid" if mark else "dim small"
            body += [line(x, floor, x, floor + 4, "axis"), text(x, floor + 17, f"{mark:g}", kind)]
    body.append(line(left, floor, WIDTH - right, floor, "axis"))
    body.append(text(left + (WIDTH - left - right) / 2, floor + 31, "seconds", "dim small mid"))
    body += _heat_legend(left, floor + 44)
    label = (
        f"Request units over time with {one.key}: per cent of its budget that each physical "
        f"partition used in its busiest second of every window."
    )
    return svg(WIDTH, floor + 62, body, label, f"heat-{side}")


def _heat_legend(left: float, y: float) -> list[str]:
    wide = 18.0
    body = [text(left, y + 10, "0 %", "dim small")]
    begin = left + 28
    body += [rect(begin + step * wide, y, wide, 12, f"h{step}") for step in range(STEPS + 1)]
    end = begin + wide * (STEPS + 1)
    body.append(text(end + 8, y + 10, "100 % of its budget; the rest is refused", "dim small"))
    return body


def lorenz(replays: Sequence[Replayed]) -> str:
    shown = replays[:LINES_MAX]
    left, right, top, bottom = 62.0, 12.0, 10.0, 40.0
    width, height = WIDTH, 380.0
    wide, tall = width - left - right, height - top - bottom
    body: list[str] = []
    for mark in (0, 0.25, 0.5, 0.75, 1.0):
        x, y = left + wide * mark, top + tall * (1 - mark)
        body += [
            line(left, y, width - right, y, "rule"),
            text(left - 8, y + 4, percent(mark), "dim small end"),
            text(x, height - bottom + 17, percent(mark), "dim small mid"),
        ]
    body.append(path([(left, top + tall), (left + wide, top)], "even", "all keys equal"))
    body.append(text(left + wide * 0.47, top + tall * 0.45, "all keys equal", "dim small", -35))
    for index, one in enumerate(shown):
        points = [(left + wide * x, top + tall * (1 - y)) for x, y in one.lorenz]
        body.append(path(points, f"s{index}", f"{one.key}: Gini {one.gini:.2f}"))
    body.append(line(left, height - bottom, width - right, height - bottom, "axis"))
    body.append(text(left + wide / 2, height - 6, "share of keys, smallest first", "dim small mid"))
    body.append(text(14, top + tall / 2, "share of what they hold", "dim small mid", -90))
    for index, one in enumerate(shown):
        y = top + 14 + index * 19
        body.append(line(left + 14, y - 4, left + 48, y - 4, f"s{index}"))
        name = f"{clipped(one.key, 34)}   Gini {one.gini:.2f}"
        body.append(text(left + 56, y, name, "small"))
    return svg(width, height, body, "Lorenz curves: how unequal the keys are.", "lorenz")


def top_keys(one: Replayed, side: Side, top_share: float) -> str:
    """`top_share` is the same for both sides."""
    rows = one.top_keys[:TOP_KEYS]
    left, right, top, tall = 190.0, 62.0, 8.0, 27.0
    even = 1 / len(one.partitions)
    full = max(top_share, even * 1.15, 1e-9)
    scale = (WIDTH - left - right) / full
    floor = top + tall * max(4, len(rows))
    body: list[str] = []
    for index, row in enumerate(rows):
        y = top + index * tall
        wide = max(1.0, row.share * scale)
        name = clipped(row.key, 25)
        body += [
            text(left - 10, y + 16, name, "mono end"),
            rect(
                left, y + 3, wide, tall - 8, side, f"{row.key}: {percent(row.share)} of all RU", 2
            ),
            text(left + wide + 7, y + 16, percent(row.share), "small"),
        ]
    if not rows:
        body.append(text(left, top + 16, "no operation names one key", "dim"))
    x = left + even * scale
    body += [
        line(left, top, left, floor, "axis"),
        line(x, top, x, floor + 3, "limit"),
        text(
            x,
            floor + 16,
            f"one of {len(one.partitions)} partitions: {percent(even)}",
            "limit-text mid",
        ),
    ]
    label = f"The keys that take most request units with {one.key}."
    return svg(WIDTH, floor + 22, body, label, f"top-keys-{side}")


def fan_out(replays: Sequence[Replayed]) -> str:
    """A row per operation, a column per candidate; bars are drawn to one scale."""
    shown = replays[:LINES_MAX]
    names = list(dict.fromkeys(each.name for one in shown for each in one.fan_out))
    width, left, top, tall = 1180.0, 330.0, 46.0, 34.0
    column = (width - left) / max(1, len(shown))
    most = max((each.ranges_mean for one in shown for each in one.fan_out), default=1.0)
    body: list[str] = []
    for index, one in enumerate(shown):
        x = left + index * column
        body.append(text(x + 8, 16, clipped(one.key, max(8, int(column / 7.4))), "mono bold"))
        body.append(text(x + 8, 33, f"{len(one.partitions)} partitions", "dim small"))
    for row, name in enumerate(names):
        y = top + row * tall
        body += [
            line(0, y, width, y, "rule"),
            text(0, y + 22, clipped(" ".join(name.split()), 50), "small"),
        ]
        for index, one in enumerate(shown):
            found = next((each for each in one.fan_out if each.name == name), None)
            if found is None:
                continue
            x = left + index * column + 8
            room = column - 74
            wide = max(3.0, room * found.ranges_mean / most)
            kind = "good" if found.ranges_mean <= 1.0 else "poor"
            title = (
                f"{name} with {one.key}: {number(found.ranges_mean)} partitions on average, "
                f"{found.ranges_max} at most, {number(found.ru_mean)} RU"
            )
            body += [
                rect(x, y + 11, wide, 13, kind, title, 2),
                text(x + wide + 6, y + 22, number(found.ranges_mean), "small bold"),
            ]
    floor = top + len(names) * tall
    body.append(line(0, floor, width, floor, "rule"))
    body.append(dot(6, floor + 18, 5, "good"))
    body.append(text(18, floor + 22, "one partition answers", "dim small"))
    body.append(dot(176, floor + 18, 5, "poor"))
    body.append(
        text(188, floor + 22, "several must be asked, each for 2.5 RU and more", "dim small")
    )
    label = "How many physical partitions each operation asks under every candidate."
    return svg(width, floor + 30, body, label, "fan-out")


def _shown(parts: Sequence[PartitionUse]) -> list[PartitionUse]:
    """The largest, in their order, where there are too many to draw."""
    if len(parts) <= CHART_RANGES_MAX:
        return list(parts)
    largest = sorted(parts, key=lambda part: -part.bytes)[:CHART_RANGES_MAX]
    kept = {part.id for part in largest}
    return [part for part in parts if part.id in kept]


def _hottest(one: Replayed) -> list[tuple[int, tuple[float, ...]]]:
    rows = list(zip(one.heat.partitions, one.heat.percent, strict=True))
    hottest = sorted(rows, key=lambda row: -sum(row[1]))[:CHART_RANGES_MAX]
    kept = {ordinal for ordinal, _ in hottest}
    return [row for row in rows if row[0] in kept]
