"""What holds for every test.

**The same examples every time.** `make test` must say the same of the same code, so hypothesis
draws its examples from the text of each test. `make soak` (`-m soak`) and `ARMILLARY_EXPLORE=1`
draw new ones in every run, and print what repeats a failure. A slow machine is no failure: nothing
has a deadline of its own.

**Compiled once.** Hundreds of tests start Python in another process. Where the environment says to
keep no compiled modules, each would compile the whole program again; they are kept in a folder of
this run then.

**Long files first.** Two processes share the files (`--dist loadfile`). Were a long one the last,
the other process would have nothing to do meanwhile.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent
COMPILED = "ARMILLARY_TEST_COMPILED"
"""Names the folder of compiled modules to the processes that run the tests."""

#: By their time, the longest first; what is not here takes a few seconds at most. Only their order
#: matters, so nobody needs to keep the list exact.
LONG_FILES = (
    "crash/test_kills.py",
    "crash/test_failovers.py",
    "crash/test_rolling_restart.py",
    "unit/engine/test_postgres_supervisor.py",
    "sim/test_split_model.py",
    "crash/test_histories.py",
    "crash/test_move_kills.py",
    "unit/test_tutorial.py",
    "crash/test_server_kills.py",
    "crash/test_scripts_bank.py",
    "unit/scripts/test_hostile.py",
    "unit/api/gremlin/test_bounds.py",
    "storm/test_attack.py",
    "conformance/nosql/test_js.py",
    "portal/test_partitions_page.py",
    "portal/test_query.py",
    "portal/test_frame.py",
    "portal/test_process.py",
    "portal/test_load_page.py",
    "portal/test_explorer.py",
    "portal/test_advisor.py",
    "conformance/nosql/test_query_cases.py",
    "conformance/nosql/test_replay.py",
    "conformance/nosql/test_queries.py",
    "conformance/nosql/test_async.py",
    "unit/server/test_environment.py",
    "unit/query/test_hostile.py",
    "unit/server/test_run.py",
    "unit/advisor/test_scenarios.py",
    "crash/test_durability.py",
    "storm/test_storm.py",
    "storm/test_one_budget.py",
    "crash/test_two_processes.py",
    "unit/sim/test_run.py",
    "property/test_compile.py",
    "property/test_sql_text.py",
    "property/test_fuzz.py",
    "property/test_naive_query.py",
    "property/test_store_model.py",
    "property/test_query_indexes.py",
    "property/test_query_executor.py",
    "property/test_decoding.py",
    "unit/partition/test_ledger_file.py",
    "unit/partition/test_ledger_postgres.py",
    "unit/query/sql/test_parser.py",
    "unit/query/test_paging.py",
    "unit/advisor/test_replay.py",
    "unit/advisor/test_reading.py",
    "unit/commands/test_demo.py",
    "unit/commands/test_advise.py",
    "unit/testing/test_pytest_plugin.py",
    "unit/testing/test_checks.py",
    "unit/store/test_leasing.py",
    "unit/store/test_move_positions.py",
    "unit/api/control/test_serving.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is imported, and before other processes of this run are started."""
    _keep_compiled(config)
    _choose_profile(config)


def _keep_compiled(config: pytest.Config) -> None:
    folder = os.environ.get(COMPILED)
    if folder is None:
        if not os.environ.get("PYTHONDONTWRITEBYTECODE") or os.environ.get("PYTHONPYCACHEPREFIX"):
            return
        made = tempfile.TemporaryDirectory(prefix="armillary-compiled-")
        config.add_cleanup(made.cleanup)
        folder = os.environ[COMPILED] = made.name
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # the processes that run the tests find installed packages compiled where they are
    del os.environ["PYTHONDONTWRITEBYTECODE"]
    os.environ["PYTHONPYCACHEPREFIX"] = folder


def _choose_profile(config: pytest.Config) -> None:
    """`@settings` takes what it does not name from the profile."""
    slow = [HealthCheck.too_slow]
    settings.register_profile(
        "repeat", derandomize=True, database=None, deadline=None, suppress_health_check=slow
    )
    settings.register_profile(
        "explore", derandomize=False, deadline=None, print_blob=True, suppress_health_check=slow
    )
    exploring = config.option.markexpr == "soak" or os.environ.get("ARMILLARY_EXPLORE")
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("explore" if exploring else "repeat")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {ROOT / name: at for at, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


# --- how long it took -----------------------------------------------------------------------------

_seconds: defaultdict[str, float] = defaultdict(float)
SLOWEST: Final = 10


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The files to look at first when a run becomes too long."""
    if len(_seconds) <= SLOWEST:
        return
    terminalreporter.section("slowest files")
    slowest = sorted(_seconds.items(), key=lambda one: -one[1])
    for name, seconds in slowest[:SLOWEST]:
        terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
