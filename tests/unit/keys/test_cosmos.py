"""The wrapper sends each request to the right partition key, with arguments the real SDK has.

The container is a fake that keeps items by (partition key, id) as a server does, answers with the
SDK's own errors, and checks every call against the signature of the real method, so that an
argument the SDK does not have fails here rather than being swallowed by its `**kwargs`.
"""

import asyncio
import inspect
import re
import threading
import typing
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any, cast

import pytest
from azure.cosmos import ContainerProxy
from azure.cosmos.aio import ContainerProxy as AsyncContainerProxy
from azure.cosmos.exceptions import CosmosResourceExistsError, CosmosResourceNotFoundError

from armillary.encoding.paths import extract
from armillary.errors import BadInput, NotTargetable
from armillary.keys import SyntheticKey
from armillary.keys.cosmos import AsyncSyntheticContainer, SyntheticContainer
from armillary.keys.keyring import filter_query
from armillary.values import UNDEFINED, same

Call = tuple[str, Any]
VIN = "1HGCM82633A004352"
DAY = "2018-08-09"


def made(*parts: Any, **more: Any) -> SyntheticKey:
    spec = {"version": 1, "path": "/pk", "parts": list(parts), "separator": "."}
    return SyntheticKey.from_json(spec | more)


COMPUTED = made("/date", suffix={"kind": "computed", "k": 400, "source": "/vin"})
WIDER = made("/date", suffix={"kind": "computed", "k": 1000, "source": "/vin"})
RANDOM = made("/date", suffix={"kind": "random", "k": 20})
DEVICE = made("/deviceId", "/date")
DAILY = made("/d", {"path": "/ts", "bucket": "day"})


def check_call(real: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Fails unless one signature of the real method names every argument."""
    signatures = [inspect.signature(each) for each in typing.get_overloads(real) or [real]]
    assert any(
        set(arguments) <= set(signature.parameters) and _binds(signature, arguments)
        for signature in signatures
    ), f"{real.__qualname__} does not take {sorted(arguments)}"


def _binds(signature: inspect.Signature, arguments: dict[str, Any]) -> bool:
    try:
        signature.bind(None, **arguments)
    except TypeError:
        return False
    return True


CONDITION = re.compile(r'c((?:\["[^"]+"\])+) (?:= (@p\d+)|IN \(([@p\d, ]+)\))')


def matches(item: dict[str, Any], query: str, parameters: list[dict[str, Any]]) -> bool:
    """The conditions that `filter_query` writes, and no others."""
    values = {each["name"]: each["value"] for each in parameters}
    head, _, where = query.partition(" WHERE ")
    assert head == "SELECT * FROM c"
    for text in where.split(" AND ") if where else []:
        condition = CONDITION.fullmatch(text)
        assert condition is not None, text
        found = extract(item, tuple(re.findall(r'\["([^"]+)"\]', condition[1])))
        allowed = (condition[2] or condition[3]).split(", ")
        if not any(same(found, values[name]) for name in allowed):
            return False
    return True


class FakeServer:
    """Items by partition key and id; every call is noted with the partition key it went to."""

    def __init__(self, real: type) -> None:
        self.real = real
        self.items: dict[tuple[Any, str], dict[str, Any]] = {}
        self.calls: list[Call] = []
        self.lock = threading.Lock()

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        check_call(getattr(self.real, name), arguments)
        with self.lock:
            return getattr(self, "_" + name)(**arguments)

    def _create_item(self, body: dict[str, Any], **options: Any) -> dict[str, Any]:
        place = (self._key_of(body), body["id"])
        self.calls.append(("create", place[0]))
        if place in self.items:
            raise CosmosResourceExistsError(status_code=409, message="exists")  # type: ignore[no-untyped-call]
        self.items[place] = body
        return body

    def _upsert_item(self, body: dict[str, Any], **options: Any) -> dict[str, Any]:
        key = self._key_of(body)
        self.calls.append(("upsert", key))
        self.items[key, body["id"]] = body
        return body

    def _replace_item(self, item: str, body: dict[str, Any], **options: Any) -> dict[str, Any]:
        key = self._key_of(body)
        self.calls.append(("replace", key))
        self._get(item, key)
        self.items[key, item] = body
        return body

    def _read_item(self, item: str, partition_key: Any, **options: Any) -> dict[str, Any]:
        self.calls.append(("read", partition_key))
        return self._get(item, partition_key)

    def _patch_item(
        self, item: str, partition_key: Any, patch_operations: list[Any], **options: Any
    ) -> dict[str, Any]:
        self.calls.append(("patch", partition_key))
        stored = self._get(item, partition_key)
        for operation in patch_operations:
            stored[operation["path"][1:]] = operation["value"]
        return stored

    def _delete_item(self, item: str, partition_key: Any, **options: Any) -> None:
        self.calls.append(("delete", partition_key))
        self._get(item, partition_key)
        del self.items[partition_key, item]

    def _query_items(
        self,
        query: str,
        parameters: list[dict[str, Any]],
        partition_key: Any = UNDEFINED,
        **options: Any,
    ) -> list[dict[str, Any]]:
        self.calls.append(("query", partition_key))
        if partition_key is UNDEFINED and self.real is ContainerProxy:
            assert options["enable_cross_partition_query"] is True
        return [
            item
            for (key, _), item in self.items.items()
            if partition_key in (key, UNDEFINED) and matches(item, query, parameters)
        ]

    def _key_of(self, body: dict[str, Any]) -> Any:
        key = extract(body, ("pk",))
        assert isinstance(key, str), "the wrapper fills the key in"
        return key

    def _get(self, item: str, key: Any) -> dict[str, Any]:
        if (key, item) not in self.items:
            raise CosmosResourceNotFoundError(status_code=404, message="not found")  # type: ignore[no-untyped-call]
        return self.items[key, item]


class FakeContainer:
    def __init__(self, server: FakeServer) -> None:
        self.server = server

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda **arguments: self.server.call(name, arguments)


class FakeAsyncContainer:
    def __init__(self, server: FakeServer) -> None:
        self.server = server

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def answer(**arguments: Any) -> Any:
            return self.server.call(name, arguments)

        return answer

    def query_items(self, **arguments: Any) -> AsyncIterator[dict[str, Any]]:
        async def pages() -> AsyncIterator[dict[str, Any]]:
            for item in self.server.call("query_items", arguments):
                yield item

        return pages()


class Blocking:
    """The asynchronous wrapper with the face of the other, so that each test runs on both."""

    def __init__(self, wrapped: AsyncSyntheticContainer) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def collected(*args: Any, **options: Any) -> list[Any]:
            return [item async for item in self.wrapped.read_group(*args, **options)]

        method = collected if name == "read_group" else getattr(self.wrapped, name)
        return lambda *args, **options: asyncio.run(method(*args, **options))


Opened = tuple[Any, FakeServer]
Open = Callable[..., Opened]


@pytest.fixture(params=["sync", "aio"])
def opened(request: pytest.FixtureRequest) -> Open:
    def open_one(key: SyntheticKey, **more: Any) -> Opened:
        if request.param == "sync":
            server = FakeServer(ContainerProxy)
            container = cast(ContainerProxy, FakeContainer(server))
            return SyntheticContainer(container, key, **more), server
        server = FakeServer(AsyncContainerProxy)
        other = cast(AsyncContainerProxy, FakeAsyncContainer(server))
        return Blocking(AsyncSyntheticContainer(other, key, **more)), server

    return open_one


def trip(number: int, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "date": DAY, "vin": f"VIN{number}", **more}


def ids(items: Any) -> list[str]:
    return sorted(item["id"] for item in items)


def test_a_vin_makes_every_operation_one_request(opened: Open) -> None:
    trips, server = opened(COMPUTED)
    known = {"date": DAY, "vin": VIN}
    item = {"id": "1", **known}
    assert trips.create_item(item)["pk"] == f"{DAY}.363"
    assert item == {"id": "1", **known}
    assert trips.read_item("1", known)["id"] == "1"
    trips.replace_item("1", {**item, "km": 7})
    trips.upsert_item({**item, "km": 8})
    assert trips.read_item("1", known)["km"] == 8
    operations = [{"op": "set", "path": "/km", "value": 9}]
    assert trips.patch_item("1", known, operations)["km"] == 9
    trips.delete_item("1", known)
    names = ["create", "read", "replace", "upsert", "read", "patch", "delete"]
    assert server.calls == [(name, f"{DAY}.363") for name in names]
    assert server.items == {}


def test_a_group_is_one_query_in_each_of_its_keys(opened: Open) -> None:
    trips, server = opened(COMPUTED)
    for number in range(10):
        trips.create_item(trip(number))
    trips.create_item(trip(10, date="2018-08-10"))
    server.calls.clear()
    assert ids(trips.read_group({"date": DAY})) == [str(number) for number in range(10)]
    assert sorted(server.calls) == sorted(("query", f"{DAY}.{n}") for n in range(1, 401))
    server.calls.clear()
    assert ids(trips.read_group({"date": DAY, "vin": "VIN3"})) == ["3"]
    assert server.calls == [("query", trips_key("VIN3"))]


def trips_key(vin: str) -> str:
    return COMPUTED.value_for({"date": DAY, "vin": vin})


def test_a_random_suffix_is_searched_for(opened: Open) -> None:
    trips, server = opened(RANDOM, random=Random(5))
    stored = trips.create_item(trip(1))
    suffix = int(stored["pk"].rpartition(".")[2])
    assert suffix > 1, "a seed that shows the search"
    server.calls.clear()
    assert trips.read_item("1", {"date": DAY}) == stored
    assert server.calls == [("read", f"{DAY}.{n}") for n in range(1, suffix + 1)]
    server.calls.clear()
    assert trips.read_item("1", stored) == stored
    assert server.calls == [("read", stored["pk"])]


def test_replace_keeps_a_random_key(opened: Open) -> None:
    trips, server = opened(RANDOM, random=Random(5))
    stored = trips.create_item(trip(1))
    assert trips.replace_item("1", trip(1, km=5))["pk"] == stored["pk"]
    assert trips.replace_item("1", {**stored, "km": 6})["pk"] == stored["pk"]
    assert list(server.items) == [(stored["pk"], "1")]
    with pytest.raises(BadInput, match="but the item's other properties make it"):
        trips.replace_item("1", {**stored, "date": "2018-08-10"})


def test_an_item_that_is_nowhere_is_not_found(opened: Open) -> None:
    trips, server = opened(RANDOM)
    with pytest.raises(CosmosResourceNotFoundError):
        trips.read_item("1", {"date": DAY})
    assert len(server.calls) == 20
    with pytest.raises(CosmosResourceNotFoundError):
        trips.delete_item("1", {"date": DAY})
    with pytest.raises(CosmosResourceNotFoundError):
        trips.replace_item("1", trip(1))
    with pytest.raises(BadInput, match="No partition key is possible"):
        trips.read_item("1", {}, among={"/date": []})


def test_other_errors_end_the_search(opened: Open) -> None:
    trips, server = opened(COMPUTED)
    trips.create_item(trip(1))
    with pytest.raises(CosmosResourceExistsError):
        trips.create_item(trip(1))
    assert len(server.calls) == 2


def test_an_upsert_that_could_make_a_second_copy_is_refused(opened: Open) -> None:
    trips, server = opened(RANDOM)
    with pytest.raises(BadInput, match="An upsert needs '/pk' in the item"):
        trips.upsert_item(trip(1))
    assert server.calls == []
    assert trips.upsert_item(trip(1, pk=f"{DAY}.7"))["pk"] == f"{DAY}.7"
    with pytest.raises(BadInput, match="but the item's other properties make it"):
        trips.upsert_item(trip(1, pk=f"{DAY}.21"))


def test_items_from_before_k_grew_are_found_and_kept(opened: Open) -> None:
    trips, server = opened(WIDER, earlier=[COMPUTED])
    known = {"date": DAY, "vin": VIN}
    old = COMPUTED.apply({"id": "1", **known})
    server.items[old["pk"], "1"] = old
    assert trips.read_item("1", known) == old
    assert server.calls == [("read", f"{DAY}.963"), ("read", f"{DAY}.363")]
    assert trips.replace_item("1", {"id": "1", **known, "km": 1})["pk"] == f"{DAY}.363"
    with pytest.raises(BadInput, match="An upsert needs"):
        trips.upsert_item({"id": "1", **known})
    trips.upsert_item({**old, "km": 2})
    assert trips.create_item({"id": "2", **known})["pk"] == f"{DAY}.963"
    assert ids(trips.read_group(known)) == ["1", "2"]


def test_device_and_date_read_by_either_part(opened: Open) -> None:
    devices, server = opened(DEVICE)
    for number, (device, date) in enumerate([("a", 2017), ("a", 2018), ("b", 2018), ("a.b", 2018)]):
        devices.create_item({"id": str(number), "deviceId": device, "date": date})
    server.calls.clear()
    assert ids(devices.read_group({"deviceId": "a"}, among={"/date": [2016, 2017, 2018]})) == [
        "0",
        "1",
    ]
    assert sorted(server.calls) == [("query", f"a.{year}") for year in (2016, 2017, 2018)]
    server.calls.clear()
    assert ids(devices.read_group({"date": 2018}, fan_out=True)) == ["1", "2", "3"]
    assert server.calls == [("query", UNDEFINED)]
    with pytest.raises(NotTargetable):
        list(devices.read_group({"date": 2018}))


def test_groups_that_share_a_key_by_accident_are_told_apart(opened: Open) -> None:
    devices, _ = opened(DEVICE)
    for number, (device, date) in enumerate([("a.b", "c"), ("a", "b.c")]):
        assert (
            devices.create_item({"id": str(number), "deviceId": device, "date": date})["pk"]
            == "a.b.c"
        )
    assert ids(devices.read_group({"deviceId": "a", "date": "b.c"})) == ["1"]


def test_an_interval_is_cut_inside_its_first_and_last_bucket(opened: Open) -> None:
    events, server = opened(DAILY)
    for number, hour in enumerate([1, 11, 12, 23]):
        for day in (9, 10, 11):
            ts = f"2026-04-{day:02}T{hour:02}:00:00Z"
            events.create_item({"id": f"{day}-{number}", "d": "x", "ts": ts})
    server.calls.clear()
    interval = ("2026-04-09T12:00:00Z", "2026-04-10T11:00:00Z")
    assert ids(events.read_group({"d": "x"}, between=interval)) == ["10-0", "10-1", "9-2", "9-3"]
    assert sorted(server.calls) == [("query", "x.2026-04-09"), ("query", "x.2026-04-10")]
    assert ids(events.read_group({}, between=interval, fan_out=True)) == [
        "10-0",
        "10-1",
        "9-2",
        "9-3",
    ]
    assert events.read_item("9-3", {"d": "x"}, between=interval)["ts"] == "2026-04-09T23:00:00Z"


def test_options_reach_the_container_and_wrong_ones_are_seen(opened: Open) -> None:
    trips, _ = opened(COMPUTED)
    trips.create_item(trip(1), session_token="0:1#2")
    assert ids(trips.read_group({"date": DAY, "vin": "VIN1"}, max_item_count=5)) == ["1"]
    with pytest.raises(AssertionError, match="create_item does not take"):
        trips.create_item(trip(2), partition_key="x")


def test_the_query_names_nested_and_odd_properties_safely() -> None:
    known = {"a": {"b c": 1, "d": None}, 'q"]': "x' OR 1=1 --", "e": {}}
    query, parameters = filter_query(known, {"/l": [1, "2"], "/none": []})
    assert query == (
        'SELECT * FROM c WHERE c["a"]["b c"] = @p0 AND c["a"]["d"] = @p1 AND c["q\\"]"] = @p2 '
        'AND c["e"] = @p3 AND c["l"] IN (@p4, @p5) AND false'
    )
    assert [each["value"] for each in parameters] == [1, None, "x' OR 1=1 --", {}, 1, "2"]
    assert filter_query({}, None) == ("SELECT * FROM c", [])
