"""The advisor page in a real browser: what it judges is what the container holds, and what the
command complains about is shown."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect
from tests.support.portal import Portal

READINGS = "dbs/shop/colls/readings"
LONG_MS = 120_000.0  # a command of its own, on a machine that does other things too


def test_a_container_is_judged_and_the_report_shown(portal: Portal) -> None:
    portal.make_container("shop", "readings", "/pk")
    for number in range(200):
        item = {"id": f"r{number}", "pk": "all", "deviceId": f"d{number % 90}", "status": "ok"}
        assert portal.api.create(READINGS, item).status == 201
    page = portal.open("/advisor?db=shop&c=readings")
    page.get_by_role("button", name="Advise").click()
    expect(portal.see("recommended")).to_have_text("/deviceId", timeout=LONG_MS)
    about = portal.control("account")["databases"][0]["containers"][0]
    assert portal.number("judged") == about["items"] == 200
    report = page.frame_locator("iframe[title=Report]")
    expect(report.locator("body")).to_contain_text("/deviceId")


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
