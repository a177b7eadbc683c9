"""The demonstration. Without these tests the first thing that people try could be broken."""

from __future__ import annotations

import orjson
from typer.testing import CliRunner

from armillary.cli import app
from armillary.commands.demo.live import _link
from armillary.testing.process import start_server

RUN = CliRunner()


def test_it_runs_on_a_server_of_its_own_and_the_bad_key_is_worse() -> None:
    done = RUN.invoke(app, ["demo", "--items", "400", "--seconds", "0", "--json"])
    assert done.exit_code == 0, (done.output, done.stderr)
    told = orjson.loads(done.stdout)
    bad, good = told["by-country"], told["by-device"]
    assert bad["written"] + bad["refused"] == good["written"] + good["refused"] == 400
    assert bad["written"] == bad["items"]
    assert bad["fullest_by_mean"] > good["fullest_by_mean"]


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


def test_a_server_that_does_not_answer_is_told() -> None:
    done = RUN.invoke(app, ["demo", "http://127.0.0.1:9", "--no-browser"])
    assert done.exit_code == 1
    assert "does not answer" in done.stderr


def test_links_lead_to_the_page_of_a_container() -> None:
    assert _link("http://x/_portal?token=t", "a b") == (
        "http://x/_portal/partitions?db=telemetry&c=a+b&token=t"
    )
