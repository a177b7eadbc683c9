"""Fixtures for pytest: a fresh account for every test, and the official SDK on it.

    @pytest.mark.armillary(containers={"orders": "/customerId"})
    def test_an_order(cosmos_container): ...

| fixture | is |
|---|---|
| `cosmos_client` | `azure.cosmos.CosmosClient` |
| `cosmos_client_aio` | `azure.cosmos.aio.CosmosClient` |
| `cosmos_container` | the first container the marker declares, of the SDK |
| `cosmos_database` | the database `test`, of the SDK |
| `cosmos_gremlin` | a client of gremlinpython on the first container the marker declares |
| `cosmos_mongo` | `pymongo.MongoClient` on the same account |
| `cosmos_account` | the same data in process, without the SDK (`armillary.Account`) |
| `table_service_client` | `azure.data.tables.TableServiceClient` on the same account |
| `cosmos_clock` | freezes time; `advance(seconds)` |
| `cosmos` | all of it: `armillary.testing.Cosmos` |
| `cosmos_factory` | makes more accounts: `cosmos_factory(enforce=True)` |

`@pytest.mark.armillary_check(max_key_share=0.1, max_fanout=1)` checks after the test how its
account was used; what it may insist on is in `checks.py`.

Marks add up, the nearest to the test wins. Each account lives in the memory of its own process, so
workers of pytest-xdist share nothing. Nothing of the database or the SDK is imported before a test
asks for one of these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy
    from azure.cosmos.aio import CosmosClient as AsyncCosmosClient
    from azure.data.tables import TableServiceClient
    from pymongo import MongoClient

    from armillary.account import Account
    from armillary.clock import VirtualClock
    from armillary.testing.inprocess import Cosmos


def _leave_us_alone() -> None:
    """pytest rewrites the asserts of every package that brings a plugin: hundreds of modules here,
    which would take seconds of a suite where no bytecode may be written. Ours are not tests."""
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard("armillary")
        known = getattr(finder, "_marked_for_rewrite_cache", None)
        if isinstance(known, dict):
            known.clear()


_leave_us_alone()

MARK = "armillary"
MARK_CHECK = "armillary_check"
ACCOUNTS: pytest.StashKey[list[Cosmos]] = pytest.StashKey()
ABOUT = (
    "armillary(containers=…, enforce=False, frozen=False, seed=None, …): how the account of the "
    "cosmos fixtures is made; the options of armillary.testing.Cosmos."
)
ABOUT_CHECK = (
    "armillary_check(max_key_share=…, max_key_bytes=…, max_fanout=…, max_ru=…, max_429_share=…, "
    "max_normalized_ru=…, max_partition_skew=…, containers=None): after the test, how its account "
    "was used."
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", ABOUT)
    config.addinivalue_line("markers", ABOUT_CHECK)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """After a test that passed, while its accounts are there."""
    result = yield
    if next(item.iter_markers(MARK_CHECK), None) is not None:
        from armillary.testing.checks import check_accounts

        accounts: list[Cosmos] = item.stash.get(ACCOUNTS, [])
        check_accounts(item, accounts)
    return result


@pytest.fixture
def cosmos_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cosmos]]:
    from armillary.testing.inprocess import Cosmos

    made: list[Cosmos] = request.node.stash.setdefault(ACCOUNTS, [])
    checked = request.node.get_closest_marker(MARK_CHECK) is not None
    with ExitStack() as accounts:

        def make(**options: Any) -> Cosmos:
            if checked and options.get("enforce", False) in (False, "off"):
                options["enforce"] = "report"  # counted, not refused
            made.append(accounts.enter_context(Cosmos(**options)))
            return made[-1]

        yield make


@pytest.fixture
def cosmos(request: pytest.FixtureRequest, cosmos_factory: Callable[..., Cosmos]) -> Cosmos:
    options = _options(request.node)
    if "cosmos_clock" in request.fixturenames:
        options["frozen"] = True
    try:
        return cosmos_factory(**options)
    except TypeError as error:
        raise pytest.UsageError(f"@pytest.mark.{MARK}: {error}") from error


@pytest.fixture
def cosmos_client(cosmos: Cosmos) -> CosmosClient:
    return cosmos.client()


@pytest.fixture
def cosmos_client_aio(cosmos: Cosmos) -> AsyncCosmosClient:
    return cosmos.async_client()


@pytest.fixture
def table_service_client(cosmos: Cosmos) -> TableServiceClient:
    return cosmos.table_service()


@pytest.fixture
def cosmos_account(cosmos: Cosmos) -> Account:
    return cosmos.account


@pytest.fixture
def cosmos_clock(cosmos: Cosmos) -> VirtualClock:
    return cosmos.clock


@pytest.fixture
def cosmos_database(cosmos: Cosmos) -> DatabaseProxy:
    return cosmos.database()


@pytest.fixture
def cosmos_container(cosmos: Cosmos) -> ContainerProxy:
    return cosmos.container()


@pytest.fixture
def cosmos_gremlin(cosmos: Cosmos) -> Iterator[Any]:
    client = cosmos.gremlin().client()
    yield client
    client.close()


@pytest.fixture
def cosmos_mongo(cosmos: Cosmos) -> Iterator[MongoClient[dict[str, Any]]]:
    with cosmos.mongo().client() as client:
        yield client


def _options(node: pytest.Item) -> dict[str, Any]:
    """Of all marks, the farthest first. Containers add up, anything else is replaced."""
    options: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers(MARK))):
        if mark.args:
            raise pytest.UsageError(f"@pytest.mark.{MARK} takes options by name: {ABOUT}")
        declared = {**options.get("containers", {}), **mark.kwargs.get("containers", {})}
        options = {**options, **mark.kwargs, "containers": declared}
    return options
