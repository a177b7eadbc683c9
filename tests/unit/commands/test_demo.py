"""The demonstration. Without these tests the first thing that people try could be broken."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from armillary.cli import app
from armillary.commands.demo.live import OPTIONS, Pace, _link, run_live
from armillary.commands.remote import Remote
from armillary.testing.process import start_server

RUN = CliRunner()


def test_it_runs_on_a_server_of_its_own_and_the_bad_key_is_worse() -> None:
    done = RUN.invoke(app, ["demo", "--items", "400", "--seconds", "0", "--json"])
    assert done.exit_code == 0, (done.output, done.stderr)
    told = orjson.loads(done.stdout)
    bad, good = told["by-country"], told["by-device"]
    for one in (bad, good):
        assert one["written"] + one["refused"] + one["refused_full"] == 400
    assert bad["written"] == bad["items"]
    assert bad["fullest_by_mean"] > good["fullest_by_mean"]


def played(seconds: float, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The whole demonstration on the server's clock, which is stopped but for the pace."""
    with start_server(enforce=True, options=OPTIONS) as server, Remote(server.endpoint) as remote:
        passed = 0.0

        def sleep(seconds: float) -> None:
            nonlocal passed
            passed += seconds
            remote.control("POST", "clock", {"advance_ms": round(seconds * 1000), "stopped": True})

        pace = Pace(now=lambda: passed, sleep=sleep)
        sleep(0.0)
        run_live(server.endpoint, 600, seconds, browser=False, as_json=True, pace=pace)
        assert passed >= seconds
    told: dict[str, Any] = orjson.loads(capsys.readouterr().out)
    return told


@pytest.mark.parametrize(
    "seconds", [15, pytest.param(300, marks=pytest.mark.soak)], ids=["short", "whole"]
)
def test_it_runs_its_full_length_and_the_good_key_looks_good(
    seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bad key reaches its size limit after some seconds: that is shown, and ends nothing."""
    told = played(seconds, capsys)
    bad, good = told["by-country"], told["by-device"]
    assert bad["refused_full"] > 0
    assert bad["refused"] > 0.05 * (bad["written"] + bad["refused"])
    assert good["refused_full"] == 0
    assert good["refused"] < 0.005 * good["written"]
    assert good["partitions"] > 6


def test_it_runs_on_a_server_that_is_there_and_again() -> None:
    with start_server(enforce=False) as server:
        words = ["demo", server.endpoint, "--items", "100", "--seconds", "0", "--no-browser"]
        for _ in range(2):
            done = RUN.invoke(app, words)
            assert done.exit_code == 0, (done.output, done.stderr)
        assert "/_portal/partitions?db=telemetry&c=by-country" in done.stdout


def test_the_terminal_alone_is_enough() -> None:
    done = RUN.invoke(app, ["demo", "--terminal", "--items", "200"])
    assert done.exit_code == 0
    assert "/deviceId" in done.stdout


def test_a_server_that_does_not_answer_is_reported() -> None:
    done = RUN.invoke(app, ["demo", "http://127.0.0.1:9", "--no-browser"])
    assert done.exit_code == 1
    assert "does not answer" in done.stderr


def test_links_lead_to_the_page_of_a_container() -> None:
    assert _link("http://x/_portal?token=t", "a b") == (
        "http://x/_portal/partitions?db=telemetry&c=a+b&token=t"
    )
