"""The advisor page in a real browser: what it judges is what the container holds, and what the
command refuses is shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from tests.support.portal import Portal
from tests.support.waiting import until

READINGS = "dbs/shop/colls/readings"
LONG_MS = 120_000.0  # a command of its own, on a machine that does other things too


def test_a_container_is_judged_and_the_report_shown(portal: Portal, tmp_path: Path) -> None:
    portal.make_container("shop", "readings", "/pk")
    lines = []
    for number in range(200):
        item = {"id": f"r{number}", "pk": "all", "deviceId": f"d{number % 90}", "status": "ok"}
        assert portal.api.create(READINGS, item).status == 201
        lines.append(json.dumps(item))
    page = portal.open("/advisor?db=shop&c=readings")
    page.get_by_role("button", name="Advise").click()
    expect(portal.see("recommended")).to_be_visible(timeout=LONG_MS)
    sample = tmp_path / "readings.jsonl"
    sample.write_text("\n".join(lines))
    truth = advised(sample, "--container", "readings", "--current", "/pk")
    expect(portal.see("recommended")).to_have_text(truth["recommended"]["key"])
    until(lambda: portal.number("compared") == len(truth["candidates"]))
    about = portal.control("account")["databases"][0]["containers"][0]
    assert about["items"] == 200
    until(lambda: portal.number("judged") == 200)
    report = page.frame_locator("iframe[title=Report]")
    expect(report.locator("body")).to_contain_text(truth["recommended"]["key"])


def advised(sample: Path, *options: str) -> Any:
    command = [sys.executable, "-m", "armillary", "advise", str(sample), "--json", *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=LONG_MS / 1000
    )
    return json.loads(done.stdout)


def test_a_file_is_judged_and_a_wrong_one_refused(portal: Portal, tmp_path: Path) -> None:
    """In an account without containers, too."""
    page = portal.open("/advisor")
    page.get_by_role("button", name="Advise").click()
    expect(portal.see("error")).to_contain_text("Choose a file first")
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("")
    page.locator("input[type=file]").set_input_files(wrong)
    expect(page.get_by_text("wrong.jsonl is here.")).to_be_visible()
    page.get_by_role("button", name="Advise").click()
    expect(portal.see("error")).to_contain_text("There is no advice", timeout=LONG_MS)
