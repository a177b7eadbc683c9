"""`armillary advise`, run for a page: its input gathered, its report kept until the process ends.

    a container ──pages of items──▶ sample.jsonl ─┐
    a file that was uploaded ─────────────────────┴─▶ armillary advise FILE --json --html F

A child process, because advice over a million items takes a while and memory; it ends with the page
that asked for it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import orjson

from armillary.portal.data.account import Items
from armillary.portal.data.items import advised_body
from armillary.temporary import make_temporary

COMMAND: Final = (sys.executable, "-m", "armillary", "advise")
REPORTS_MAX: Final = 20
PAGE_ITEMS: Final = 1_000
SAMPLE_BYTES_MAX: Final = 500_000_000
MESSAGE_CHARACTERS: Final = 4_000
SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".csv", ".parquet", ".gz")


class NoAdvice(Exception):
    """It could not be done; the text says why, in the words of the command."""


@dataclass(frozen=True, slots=True)
class Advice:
    document: dict[str, Any]
    """What `--json` said."""
    report: Path | None
    """The page that `--html` wrote."""


@dataclass(slots=True)
class Workshop:
    """The folder of this process for samples and reports. Close it."""

    folder: Path = field(default_factory=lambda: make_temporary("advice"))
    _reports: list[Path] = field(default_factory=list)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_file(self, suffix: str) -> Path:
        return self.folder / f"{uuid4().hex}{suffix}"

    def keep(self, report: Path) -> None:
        self._reports.append(report)
        while len(self._reports) > REPORTS_MAX:
            self._reports.pop(0).unlink(missing_ok=True)

    def find(self, name: str) -> Path | None:
        return next((one for one in self._reports if one.name == name and one.exists()), None)


def suffix_of(name: str) -> str:
    """`orders.csv.gz` is `.csv.gz`: the command tells formats by it. Raises NoAdvice."""
    suffixes = [one.lower() for one in Path(name).suffixes[-2:]]
    if not suffixes or suffixes[-1] not in SUFFIXES:
        raise NoAdvice(f"A file is one of {', '.join(SUFFIXES)}; not {name!r}.")
    if suffixes[-1] == ".gz":
        return "".join(suffixes)
    return suffixes[-1]


async def write_sample(
    items: Items, path: Path, count: int, progress: Callable[[int], None]
) -> int:
    """The first `count` items of a container, which its hashes have put in no order, as lines."""
    written, size_bytes = 0, 0
    token: str | None = None
    with path.open("wb") as file:
        while written < count and size_bytes < SAMPLE_BYTES_MAX:
            page = await items.page(min(PAGE_ITEMS, count - written), token)
            for item in page.items:
                size_bytes += file.write(orjson.dumps(advised_body(item)) + b"\n")
            written += len(page.items)
            progress(written)
            token = page.continuation
            if token is None:
                break
    return written


async def advise(
    source: Path, options: Sequence[str], report: Path, command: Sequence[str] = COMMAND
) -> Advice:
    """Run the command; cancelling ends it. Raises NoAdvice."""
    process = await asyncio.create_subprocess_exec(
        *command,
        str(source),
        "--json",
        "--html",
        str(report),
        *options,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise NoAdvice(_message(errors.decode("utf-8", "replace")))
    try:
        document = json.loads(out)
    except ValueError as error:
        raise NoAdvice(f"The answer is not JSON: {error}.") from error
    return Advice(document, report if report.exists() else None)


def _message(text: str) -> str:
    """What the command reported: with `--json`, an object on its last line."""
    lines = text.strip().splitlines()
    try:
        return str(json.loads(lines[-1])["error"]["message"])
    except (ValueError, IndexError, KeyError, TypeError):
        return text.strip()[-MESSAGE_CHARACTERS:] or "The command ended without a word."
