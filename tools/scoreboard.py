"""`make scoreboard`: docs/scoreboard.md and the top lines of README.md, from what was measured.

    python -m tools.scoreboard              reads bench/results/ and walks the 36 mechanisms
    python -m tools.scoreboard --run        first runs the suites and the peers that registries have

Every number is read from a result file by the pattern declared for it here; what has no file, or a
file without that line, is said to have none. The walk is run each time.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.points import POINTS

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "bench" / "results"
PAGE: Final = ROOT / "docs" / "scoreboard.md"
README: Final = ROOT / "README.md"
BEGIN, END = "<!-- scoreboard -->", "<!-- /scoreboard -->"
NOT_RECORDED: Final = "not recorded"


@dataclass(frozen=True, slots=True)
class Suite:
    """A public suite. `counts` finds passed and failed; the last match counts."""

    name: str
    files: str
    counts: str
    cause: str = ""
    run_by: str = ""
    """Its name in tools.run_suites, when a registry has it by name; empty: it is run by the command
    that its file says."""


@dataclass(frozen=True, slots=True)
class Record:
    """A run whose result is said in lines of its own, quoted as they are."""

    name: str
    files: str
    lines: str
    most: int = 4


COUNTS: Final = r"(?P<passed>[\d,]+) passed, (?P<failed>[\d,]+) failed"
#: What tools/run_suites.py writes.
IN_ALL: Final = rf"^In all {COUNTS}"
WHY: Final = r"^  (\S.*?): (.*)"
SUITES: Final = (
    Suite("JavaScript SDK `@azure/cosmos`", "sdk-javascript-*", IN_ALL, WHY),
    Suite("Go SDK `azcosmos`", "sdk-go-*", IN_ALL, WHY, run_by="go"),
    Suite("Rust SDK `azure_data_cosmos`", "sdk-rust-*", IN_ALL, WHY),
    Suite(
        "Python SDK `azure-cosmos`, marker cosmosEmulator",
        "sdk-python-*",
        IN_ALL,
        WHY,
        run_by="python",
    ),
    Suite(
        "Python SDK `azure-cosmos`, marker cosmosSplit",
        "sdk-split-*",
        IN_ALL,
        WHY,
        run_by="split",
    ),
    Suite("Python SDK, scripts", "sdk-scripts-python-*", IN_ALL, WHY, run_by="scripts-python"),
    Suite("JavaScript SDK, scripts", "sdk-scripts-javascript-*", IN_ALL, WHY),
    Suite(
        "Table SDK `azure-data-tables`, cosmos files", "sdk-table-*", IN_ALL, WHY, run_by="table"
    ),
    Suite("`pymongo`, eight files", "sdk-pymongo-*", IN_ALL, WHY, run_by="pymongo"),
)
HISTORY: Final = r"^[\d,]+ operations on .*|^\d+ sessions, .*"
RECORDS: Final = (
    Record("kills of processes, nothing lost", "crash-*", r"^In all.*"),
    Record("kills of the server under clients", "server-kills-*", r"^In all.*"),
    Record("kills while ranges move", "move-kills-*", r"^\d+ kills of.*"),
    Record("failovers", "failovers-*", r"^(?:promotions|acknowledged|lost) \d.*", 3),
    Record("transfers by scripts, killed", "script-bank-*", r".* passed$"),
    Record("histories under kills", "histories-*", HISTORY),
    Record(
        "histories through failovers", "failover-histories-*", rf"^\w+: \d+ promotions.*|{HISTORY}"
    ),
    Record("moves of shards", "shard-moves-*", r"^(?:promotions|acknowledged|lost) \d.*", 3),
    Record(
        "hostile requests",
        "attack-*",
        r"^[\d,]+ requests in.*|^\d+ defects.*|^p99 beside.*|^SIGTERM.*",
    ),
    Record("random requests", "fuzz-*", r"^\d+ (?:requests|connections)[^;]*"),
    Record("hostile scripts", "script-abuse-*", r"^p99 beside.*|^The goal.*"),
    Record("compared with Azurite, processor time", "table-20*", r"^ratio: .*processor time.*"),
    Record("compared with FerretDB", "mongo-20*", r"^\| \w.*\| [\d.]+ \|$", 8),
    Record("compared with Gremlin Server", "gremlin-20*", r".* ratio [\d.]+.*", 6),
    Record("compared with an earlier commit", "compare-*", r"^\w+ +ratio.*"),
)


@dataclass(frozen=True, slots=True)
class Row:
    suite: Suite
    file: Path | None
    passed: int | None = None
    failed: int = 0
    causes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return (self.passed or 0) + self.failed


def newest(folder: Path, files: str, pattern: str) -> Path | None:
    """By the date in its name, of those that have such a line; without one, the newest."""
    found = sorted(folder.glob(f"{files}.txt"), key=lambda path: path.name, reverse=True)
    has = (one for one in found if re.search(pattern, one.read_text("utf-8"), re.MULTILINE))
    return next(has, found[0] if found else None)


def row_of(suite: Suite, folder: Path) -> Row:
    file = newest(folder, suite.files, suite.counts)
    if file is None:
        return Row(suite, None)
    text = file.read_text("utf-8")
    found = [match.groupdict() for match in re.finditer(suite.counts, text, re.MULTILINE)]
    if not found:
        return Row(suite, file)
    passed, failed = (
        int((found[-1].get(name) or "0").replace(",", "")) for name in ("passed", "failed")
    )
    return Row(suite, file, passed, failed, tuple(causes(suite, text)) if failed else ())


def causes(suite: Suite, text: str) -> Iterator[str]:
    """Each with how many tests it explains, by a number or by their names; the same together."""
    if not suite.cause:
        return
    found: dict[str, int] = {}
    for count, why in re.findall(suite.cause, text, re.MULTILINE):
        why = " ".join(why.split()).rstrip(";:")
        found[why] = found.get(why, 0) + (int(count) if count.isdigit() else 1)
    for why, count in sorted(found.items(), key=lambda each: -each[1]):
        yield f"{count} × {why}" if count else why


def day_of(file: Path) -> str:
    found = re.search(r"\d{4}-\d\d-\d\d", file.name)
    return found[0] if found else NOT_RECORDED


def commit_of(file: Path) -> str:
    """As the file names it; all of them where runs at several commits are in it."""
    found = re.findall(r"\b(?:at|commit|and) ([0-9a-f]{7,12})\b", file.read_text("utf-8"))
    return ", ".join(dict.fromkeys(found)) or NOT_RECORDED


def walked() -> list[tuple[int, str, str]]:
    """(number, Y or N, what was seen) of each mechanism, run now."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "mechanisms" / "walk.py")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = re.findall(r"^ *(\d+)  ([YN])  (.*)$", done.stdout, re.MULTILINE)
    return [(int(number), letter, seen) for number, letter, seen in lines]


def shown_by(page: str) -> dict[int, str]:
    """Mechanism → the tests that docs/partitions.md names for it."""
    found: dict[int, str] = {}
    for first, last, tests in re.findall(
        r"^\| (\d+)(?:–(\d+))? \|[^|]*\| (.*) \|$", page, re.MULTILINE
    ):
        for number in range(int(first), int(last or first) + 1):
            found.setdefault(number, tests)
    return found


def top_lines(rows: list[Row], walk: list[tuple[int, str, str]]) -> str:
    held = sum(letter == "Y" for _, letter, _ in walk)
    lines = ["| | passed | of |", "|---|---:|---:|"]
    lines.append(f"| the 36 mechanisms, walked | {held} | {len(walk)} |")
    lines += [
        f"| {row.suite.name} | {row.passed:,} | {row.size:,} |"
        for row in rows
        if row.passed is not None
    ]
    return "\n".join(lines)


def page(folder: Path, walk: list[tuple[int, str, str]]) -> str:
    rows = [row_of(suite, folder) for suite in SUITES]
    return (
        "\n".join([*_head(), *_suites(rows), *_records(folder), *_mechanisms(walk), *_points()])
        + "\n"
    )


def _head() -> Iterator[str]:
    yield "# Scoreboard"
    yield ""
    yield "Written by `make scoreboard` from the files of `bench/results/`, which have commands,"
    yield "the load of the machine and the details. Nothing here is older or newer than its file."
    yield ""


def _suites(rows: list[Row]) -> Iterator[str]:
    yield "## Public suites"
    yield ""
    yield "Run from outside the repository; none of them is in it."
    yield ""
    yield "| suite | size | passed | failed | date | commit | file |"
    yield "|---|---:|---:|---:|---|---|---|"
    for row in rows:
        if row.file is None or row.passed is None:
            why = "no result file" if row.file is None else "no such line in the file"
            file = "" if row.file is None else f"`{row.file.name}`"
            yield f"| {row.suite.name} | {why} | | | | | {file} |"
            continue
        yield (
            f"| {row.suite.name} | {row.size:,} | {row.passed:,} | {row.failed:,} | "
            f"{day_of(row.file)} | {commit_of(row.file)} | `{row.file.name}` |"
        )
    yield ""
    yield "Failures and their causes, as the files name them:"
    yield ""
    for row in rows:
        for cause in row.causes:
            yield f"- {row.suite.name}: {cause}"
        if row.failed and not row.causes:
            yield f"- {row.suite.name}: cause not recorded"
    yield ""
    by_hand = [row.suite.name for row in rows if not row.suite.run_by]
    ran = [row.suite.name for row in rows if row.suite.run_by]
    yield f"`make scoreboard RUN=1` runs again: {'; '.join(ran)}. The others are run by the"
    yield f"commands that their files say: {'; '.join(by_hand)}."
    yield ""


def _records(folder: Path) -> Iterator[str]:
    yield "## Endurance, and compared with others"
    yield ""
    for record in RECORDS:
        file = newest(folder, record.files, record.lines)
        if file is None:
            yield f"**{record.name}**: no result file"
            yield ""
            continue
        found = re.findall(record.lines, file.read_text("utf-8"), re.MULTILINE)
        yield f"**{record.name}** ({day_of(file)}, {commit_of(file)}, `{file.name}`)"
        yield ""
        yield "```text"
        yield from found[: record.most] or ["no such line in the file"]
        yield "```"
        yield ""


def _mechanisms(walk: list[tuple[int, str, str]]) -> Iterator[str]:
    tests = shown_by((ROOT / "docs" / "partitions.md").read_text("utf-8"))
    held = sum(letter == "Y" for _, letter, _ in walk)
    yield "## The mechanisms"
    yield ""
    yield f"`python examples/mechanisms/walk.py`: {held} of {len(walk)} hold."
    yield "Tests are below `tests/`."
    yield ""
    yield "| # | holds | mechanism | shown by |"
    yield "|---:|---|---|---|"
    for number, letter, seen in walk:
        title = seen.split(": ", 1)[0].replace("|", "\\|")
        shown = ", ".join(filter(None, (f"step {number} of the walk", tests.get(number))))
        yield f"| {number} | {letter} | {title} | {shown} |"


def _points() -> Iterator[str]:
    yield ""
    yield "## What users stumbled over"
    yield ""
    yield "Each point with the tests that show it mended (`tools/points.py`)."
    yield ""
    yield "| point | | shown by |"
    yield "|---|---|---|"
    for point in POINTS:
        shown = ", ".join(_linked(one) for one in point.tests)
        yield f"| {point.name} | {point.text} | {shown} |"


def _linked(test: str) -> str:
    """A page as a link from this one; a test as it is given to pytest below tests/."""
    return f"[{test}]({test.removeprefix('docs/')})" if test.startswith("docs/") else f"`{test}`"


def with_top(readme: str, lines: str) -> str:
    before, rest = readme.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{lines}\n{END}{rest.split(END, 1)[1]}"


def _run_all() -> None:
    """Suites and peers that registries have by name."""
    from tools import run_peers, run_suites

    for suite in SUITES:
        if suite.run_by:
            print(f"--- {suite.name}", flush=True)
            run_suites.run(suite.run_by, RESULTS)
    for peer in run_peers.PEERS:
        print(f"--- compared with others: {peer}", flush=True)
        run_peers.run(peer, RESULTS)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Write docs/scoreboard.md.")
    parser.add_argument("--run", action="store_true", help="first run what a registry has by name")
    given = parser.parse_args(arguments)
    if given.run:
        _run_all()
    walk = walked()
    rows = [row_of(suite, RESULTS) for suite in SUITES]
    PAGE.write_text(page(RESULTS, walk), "utf-8")
    README.write_text(with_top(README.read_text("utf-8"), top_lines(rows, walk)), "utf-8")
    print(top_lines(rows, walk))
    return 0 if walk and all(letter == "Y" for _, letter, _ in walk) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
