"""`advise` as the portal runs it: what it says arrives, and what it refuses too."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from armillary.portal.data.account import ItemPage, Items
from armillary.portal.data.advising import (
    Advice,
    NoAdvice,
    Workshop,
    advise,
    suffix_of,
    write_sample,
)

GOOD = (
    "import json, sys; open(sys.argv[sys.argv.index('--html') + 1], 'w').write('<p>report');"
    "print(json.dumps({'recommended': {'key': '/a'}, 'read': open(sys.argv[1]).read(),"
    " 'options': sys.argv[5:]}))"
)
BAD = 'import sys; sys.exit(\'{"error": {"exit_code": 2, "message": "no such path /x"}}\')'


def run(code: str, source: Path, options: Sequence[str] = ()) -> Advice:
    command = (sys.executable, "-c", code)
    return asyncio.run(advise(source, options, source.with_suffix(".html"), command))


def test_the_answer_and_the_report_arrive(tmp_path: Path) -> None:
    source = tmp_path / "sample.jsonl"
    source.write_text('{"id": "1"}\n')
    advice = run(GOOD, source, ["--throughput", "4000"])
    assert advice.document["recommended"] == {"key": "/a"}
    assert advice.document["read"] == '{"id": "1"}\n'
    assert advice.document["options"] == ["--throughput", "4000"]
    assert advice.report is not None
    assert advice.report.read_text() == "<p>report"


@pytest.mark.parametrize(
    ("code", "says"),
    [(BAD, "no such path /x"), ("raise SystemExit(3)", "without a word"), ("print(5, 6)", "JSON")],
)
def test_a_refusal_is_shown_in_its_own_words(tmp_path: Path, code: str, says: str) -> None:
    with pytest.raises(NoAdvice, match=says):
        run(code, tmp_path / "x.jsonl")


def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    async def cancelled() -> None:
        command = (sys.executable, "-c", code)
        task = asyncio.ensure_future(advise(tmp_path / "x", (), tmp_path / "y", command))
        while not (mark.exists() and mark.read_text()):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert not Path(f"/proc/{mark.read_text()}").exists()


class Pages:
    """Three pages of two items."""

    async def page(self, size: int, token: str | None) -> ItemPage:
        at = int(token or 0)
        items = [{"id": f"{at}{one}", "_etag": "x"} for one in "ab"][:size]
        return ItemPage(items, str(at + 1) if at < 2 else None, 1.0)


@pytest.mark.parametrize(("count", "written"), [(100, 6), (3, 3)])
def test_a_sample_has_what_users_wrote_and_no_more_than_asked(
    tmp_path: Path, count: int, written: int
) -> None:
    path, told = tmp_path / "s.jsonl", list[int]()
    items = cast(Items, cast(Any, Pages()))
    assert asyncio.run(write_sample(items, path, count, told.append)) == written
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [set(one) for one in lines] == [{"id"}] * written
    assert told[-1] == written


def test_files_are_told_by_their_names() -> None:
    assert suffix_of("orders.JSONL") == ".jsonl"
    assert suffix_of("a.b.csv.gz") == ".csv.gz"
    for name in ("orders", "orders.exe", "../../x.sh"):
        with pytest.raises(NoAdvice):
            suffix_of(name)


def test_reports_are_found_by_name_only_and_forgotten_in_time() -> None:
    workshop = Workshop()
    try:
        files = [workshop.new_file(".html") for _ in range(25)]
        for one in files:
            one.write_text("x")
            workshop.keep(one)
        assert workshop.find(files[-1].name) == files[-1]
        assert workshop.find(files[0].name) is None
        assert not files[0].exists()
        assert workshop.find(f"../{files[-1].name}") is None
    finally:
        workshop.close()
    assert not workshop.folder.exists()
