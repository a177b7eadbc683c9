"""`@pytest.mark.armillary_check`: after a test, the statistics of its accounts against thresholds.

    @pytest.mark.armillary(containers={"orders": "/customerId"})
    @pytest.mark.armillary_check(max_key_share=0.5, max_fanout=1, max_ru=20)
    def test_checkout(cosmos_container): ...

The thresholds are those of `armillary check`. Each account is as old as its test, so what is
counted is what the test did. A failure names the key, the query or the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import pytest

from armillary.operate.checking import Finding, Thresholds, check, measures_of

if TYPE_CHECKING:
    from armillary.testing.inprocess import Cosmos

MARK = "armillary_check"
NAMES = [one.name for one in fields(Thresholds)]


def check_accounts(item: pytest.Item, accounts: Sequence[Cosmos]) -> None:
    """Fail the test that has just passed, if something does not hold."""
    options: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARK))):
        if mark.args:
            raise pytest.UsageError(f"@pytest.mark.{MARK} takes thresholds by name.")
        options |= mark.kwargs
    chosen = options.pop("containers", None)
    if isinstance(chosen, str):
        chosen = [chosen]
    for name, value in options.items():
        if name not in NAMES:
            raise pytest.UsageError(f"@pytest.mark.{MARK} has no {name!r}: {', '.join(NAMES)}.")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise pytest.UsageError(f"@pytest.mark.{MARK}: {name} has to be a number.")
    if not options:
        raise pytest.UsageError(f"@pytest.mark.{MARK} asserts nothing: {', '.join(NAMES)}.")
    if not accounts:
        raise pytest.UsageError(f"@pytest.mark.{MARK} needs one of the cosmos fixtures.")
    missing = set(chosen or ()) - {name for account in accounts for name in _names(account)}
    if missing:
        # Without this, a name that is misspelt would hold for ever.
        raise pytest.UsageError(
            f"@pytest.mark.{MARK}: the test has no container {', '.join(sorted(missing))}."
        )
    if not any(_was_used(account, chosen) for account in accounts):
        # Nothing done breaks no rule; a test that does nothing would hold for ever too.
        pytest.fail(
            f"@pytest.mark.{MARK}: the test made no request, so nothing was checked.", False
        )
    broken = [
        finding
        for account in accounts
        for finding in findings_of(account, Thresholds(**options), chosen)
        if not finding.holds
    ]
    if broken:
        pytest.fail("\n".join(str(one) for one in broken), pytrace=False)


def _names(cosmos: Cosmos) -> Iterator[str]:
    for name in cosmos.account.databases():
        for container in cosmos.account.database(name).containers():
            yield from (container, f"{name}/{container}")


def _was_used(cosmos: Cosmos, containers: Sequence[str] | None) -> bool:
    return any(
        one.requests
        for name in cosmos.account.databases()
        for container in cosmos.account.database(name).containers()
        if containers is None or {container, f"{name}/{container}"} & set(containers)
        for one in cosmos.account.database(name).container(container).usage().partitions
    )


def findings_of(
    cosmos: Cosmos, thresholds: Thresholds, containers: Sequence[str] | None = None
) -> list[Finding]:
    """Of every container of an account, or of those named (`orders` or `shop/orders`)."""
    found: list[Finding] = []
    for name in cosmos.account.databases():
        database = cosmos.account.database(name)
        for container in database.containers():
            if containers is None or {container, f"{name}/{container}"} & set(containers):
                usage = database.container(container).usage()
                found += check(measures_of(asdict(usage)), thresholds)
    return found
