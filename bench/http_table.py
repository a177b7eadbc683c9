"""What bench/http.py says at the end: every measurement, every target with what was reached, and
where both are kept.

A target is a ratio of two lines of one run, by requests per second (what a client sees) or by
requests per processor second of the server (what a busy or small machine does not disturb).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.http_chart import Bar, chart
from bench.http_drive import Seen

BEGIN, END = "<!-- numbers of bench/http.py -->", "<!-- end of the numbers -->"
TARGET_NOTE = "targets of design 10; cpu: by processor time of the server instead of by the clock"


def _rate(seen: Seen) -> str:
    return f"{seen.rate:,.0f}" if seen.rate >= 10 else f"{seen.rate:.2g}"


@dataclass(frozen=True, slots=True)
class Line:
    work: str
    server: str
    seen: Seen

    def __str__(self) -> str:
        one = self.seen
        failed = f"   {one.failures} FAILED" if one.failures else ""
        failed += f"   {one.connections} connection" if one.connections == 1 else ""
        return (
            f"{self.work:<18} {self.server:<16} {_rate(one):>9}/s   "
            f"p50 {one.p50_ms:>8.2f} ms   p99 {one.p99_ms:>8.2f} ms   "
            f"cpu {one.cpu_us:>9,.1f} us{failed}"
        )


@dataclass(frozen=True, slots=True)
class Target:
    work: str
    server: str
    beside: str
    least: float
    stretch: float | None = None
    per_cpu: bool = False
    """The target itself is by processor time."""


TARGETS = (
    Target("point read", "ours", "bare", 0.25, 0.33),
    Target("point read, TLS", "ours", "bare", 0.45),
    Target("point read", "ours", "vercel", 5.0),
    Target("create", "ours", "bare", 0.04, 0.10),
    Target("create", "ours", "vercel", 0.75, 1.0),
    Target("upsert", "ours", "vercel", 0.75, 1.0),
    Target("patch", "ours", "vercel", 0.75, 1.0),
    Target("query", "ours", "bare", 0.15),
    Target("query", "ours", "vercel", 100.0),
    Target("point read", "ours, 2 workers", "ours, 1 worker", 0.85, per_cpu=True),
)


def ratios(lines: Sequence[Line], target: Target) -> tuple[float, float] | None:
    """By the clock and by processor time; None unless both were measured and answered."""
    found = {(line.work, line.server): line.seen for line in lines}
    ours = found.get((target.work, target.server))
    beside = found.get((target.work, target.beside))
    if ours is None or beside is None or not (beside.rate and beside.cpu_us):
        return None
    return ours.rate / beside.rate, ours.per_cpu_s / beside.per_cpu_s


def table(head: str, lines: Sequence[Line], targets: Sequence[Target]) -> str:
    rows = [head, "", *map(str, lines), "", TARGET_NOTE]
    for target in targets:
        got = ratios(lines, target)
        if got is None:
            continue
        reached = got[1] if target.per_cpu else got[0]
        word = "met" if reached >= target.least else "MISSED"
        if target.stretch is not None:
            word += f" (stretch {target.stretch:g})"
        rows.append(
            f"{target.work:<18} {target.server} / {target.beside:<16} "
            f"{got[0]:>9.3g}   cpu {got[1]:>8.3g}   "
            f"at least {target.least:g}{' by cpu' if target.per_cpu else ''}: {word}"
        )
    return "\n".join(rows)


def save(root: Path, head: str, lines: Sequence[Line], targets: Sequence[Target]) -> None:
    results = root / "bench" / "results"
    at = datetime.now(UTC).isoformat(timespec="seconds")
    with (results / "http.jsonl").open("a", encoding="utf-8") as file:
        for line in lines:
            seen = line.seen
            record = {
                "at": at,
                "machine": head,
                "work": line.work,
                "server": line.server,
                "per_s": round(seen.rate, 1),
                "p50_ms": round(seen.p50_ms, 3),
                "p99_ms": round(seen.p99_ms, 3),
                "cpu_us": round(seen.cpu_us, 2),
                "failures": seen.failures,
                "connections": seen.connections,
            }
            file.write(json.dumps(record) + "\n")
    text = table(f"{at}\n{head}", lines, targets)
    (results / "http.txt").write_text(text + "\n", encoding="utf-8")
    page = root / "docs" / "performance.md"
    page.write_text(
        with_block(page.read_text(encoding="utf-8"), markdown(head, at, lines, targets)),
        encoding="utf-8",
    )
    picture = chart(bars(lines), f"Requests per second, 32 connections ({at[:10]})")
    (root / "docs" / "images" / "http.svg").write_text(picture, encoding="utf-8")


def markdown(head: str, at: str, lines: Sequence[Line], targets: Sequence[Target]) -> str:
    """What the page shows of the last run."""
    rows = [
        "![Requests per second](images/http.svg)",
        "",
        f"{at[:10]}: {head}.",
        "",
        "| work | server | requests/s | p50 ms | p99 ms | server CPU per request |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    rows += [
        f"| {line.work} | {line.server} | {_rate(line.seen)} | {line.seen.p50_ms:.2f} "
        f"| {line.seen.p99_ms:.2f} | {line.seen.cpu_us:,.0f} µs |"
        for line in lines
    ]
    rows += [
        "",
        "| target | at least | reached | by CPU time |",
        "| --- | ---: | ---: | ---: |",
    ]
    for target in targets:
        if (got := ratios(lines, target)) is not None:
            unit = " by CPU time" if target.per_cpu else ""
            rows.append(
                f"| {target.work}: {target.server} / {target.beside} | {target.least:g}{unit} "
                f"| {got[0]:.3g} | {got[1]:.3g} |"
            )
    return "\n".join(rows)


def with_block(page: str, text: str) -> str:
    """The page with `text` between the two marks."""
    before, mark, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"the page has no place for the numbers: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def bars(lines: Sequence[Line]) -> dict[str, list[Bar]]:
    """One group for each kind of work."""
    groups: dict[str, list[Bar]] = {}
    is_shown: Callable[[Line], bool] = lambda line: line.server != "ours, 1 worker"  # noqa: E731
    for line in filter(is_shown, lines):
        groups.setdefault(line.work, []).append(Bar(line.server, line.seen.rate))
    return groups
