"""The numbers of the documents through the official SDK: how many physical partitions, which of
them split, what is refused meanwhile. Scaling is run by the test, so that "meanwhile" lasts.
"""

from itertools import pairwise
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.conformance.nosql.conftest import Server

from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.store.catalog.accounts import AccountStore
from armillary.store.throughput.provisioned import run_scaling

PK = PartitionKey("/pk")


@pytest.fixture(autouse=True)
def _later(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.service.gateway, "scale_later", lambda store: None)


@pytest.fixture
def account(server: Server) -> AccountStore:
    return server.account


def ranges(container: ContainerProxy) -> list[dict[str, Any]]:
    connection = container.client_connection
    return list(connection._ReadPartitionKeyRanges(container.container_link))


def parents(container: ContainerProxy) -> dict[str, list[str]]:
    return {one["id"]: one["parents"] for one in ranges(container)}


def scale(account: AccountStore, container: ContainerProxy, database: DatabaseProxy) -> None:
    run_scaling(account.container(database.id, container.id), of=account.limits)


def refused(call: Any) -> CosmosHttpResponseError:
    with pytest.raises(CosmosHttpResponseError) as caught:
        call()
    return caught.value


def test_thirty_to_forty_five_thousand(database: DatabaseProxy, account: AccountStore) -> None:
    """3 partitions; at 45,000 two of them are parents of two each, and the third is as it was."""
    container = database.create_container("c", PK, offer_throughput=18_000)
    container.replace_throughput(30_000)
    assert parents(container) == {"0": [], "1": [], "2": []}
    for number in range(60):
        container.create_item({"id": str(number), "pk": f"key{number}"})
    asked = container.replace_throughput(45_000)
    assert asked.offer_throughput == 30_000, "until the splits are done"
    assert refused(lambda: container.replace_throughput(50_000)).status_code == 423
    assert {one["status"] for one in ranges(container)} == {"online", "splitting"}
    assert len(list(container.read_all_items())) == 60
    scale(account, container, database)
    found = parents(container)
    made = sorted(of[0] for of in found.values() if of)
    assert len(found) == 5
    assert made[0] == made[1] != made[2] == made[3]
    assert {one for one, of in found.items() if not of} == {"0", "1", "2"} - set(made)
    tiles = sorted((one["minInclusive"], one["maxExclusive"]) for one in ranges(container))
    assert tiles[0][0] == ""
    assert tiles[-1][1] == "FF"
    assert all(a[1] == b[0] for a, b in pairwise(tiles))
    assert container.get_throughput().offer_throughput == 45_000
    assert len(list(container.read_all_items())) == 60
    container.replace_throughput(50_000)
    assert len(ranges(container)) == 5, "50,000 is the instant maximum of 5"
    assert container.get_throughput().offer_throughput == 50_000


def test_an_even_scale_up_goes_by_doubling(database: DatabaseProxy, account: AccountStore) -> None:
    container = database.create_container("c", PK, offer_throughput=30_000)
    assert len(ranges(container)) == 5
    container.replace_throughput(200_000)
    scale(account, container, database)
    container.replace_throughput(150_000)
    assert container.get_throughput().offer_throughput == 150_000
    found = ranges(container)
    assert len(found) == 20
    assert {len(one["parents"]) for one in found} == {2}
    assert {round(one["throughputFraction"], 6) for one in found} == {0.05}


def test_the_smallest_after_a_peak(database: DatabaseProxy) -> None:
    container = database.create_container("c", PK, offer_throughput=50_000)
    for less in (400, 450):
        assert refused(lambda less=less: container.replace_throughput(less)).status_code == 400
    container.replace_throughput(500)
    connection = container.client_connection
    assert connection.last_response_headers["x-ms-cosmos-min-throughput"] == "500"
    wanted = ThroughputProperties(auto_scale_max_throughput=50_000)
    other = database.create_container("d", PK, offer_throughput=wanted)
    below = ThroughputProperties(auto_scale_max_throughput=4_000)
    assert refused(lambda: other.replace_throughput(below)).status_code == 400
    other.replace_throughput(ThroughputProperties(auto_scale_max_throughput=5_000))
    assert other.get_throughput().auto_scale_max_throughput == 5_000


# --- fixed containers, as they were in 2018 ------------------------------------------------------


@pytest.fixture
def classic(account: AccountStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "classic", True)
    limits = PartitionLimits(bytes=20_000, logical_bytes=50_000)
    monkeypatch.setattr(account, "limits", limits)


@pytest.mark.usefixtures("classic")
def test_a_container_with_a_key_grows_if_it_began_with_a_thousand(
    database: DatabaseProxy, account: AccountStore
) -> None:
    fixed = database.create_container("fixed", PK, offer_throughput=900)
    grows = database.create_container("grows", PK, offer_throughput=1_000)

    def overfill(container: ContainerProxy) -> None:
        for number in range(200):
            container.create_item({"id": str(number), "pk": f"k{number}", "text": "x" * 500})

    full = refused(lambda: overfill(fixed))
    assert full.status_code == 403
    assert full.sub_status in (None, 0)
    assert "maximum size of 50 KB" in full.message
    overfill(grows)
    assert len(ranges(fixed)) == 1
    assert refused(lambda: fixed.replace_throughput(10_100)).status_code == 400
    fixed.replace_throughput(10_000)
    assert len(ranges(fixed)) == 1
    grows.replace_throughput(20_000)
    scale(account, grows, database)
    assert len(ranges(grows)) == 2


def test_a_fixed_container_is_made_by_a_header(
    database: DatabaseProxy, account: AccountStore
) -> None:
    headers = {"x-armillary-kind": "fixed"}
    small = database.create_container("small", PK, offer_throughput=900, headers=headers)
    small.create_item({"id": "1", "pk": "a"})
    assert refused(lambda: small.replace_throughput(10_100)).status_code == 400
    large = database.create_container("large", PK, offer_throughput=1_000, headers=headers)
    large.replace_throughput(20_000)
    scale(account, large, database)
    assert [len(ranges(one)) for one in (small, large)] == [1, 2]
