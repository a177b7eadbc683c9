"""A walk over the 36 mechanisms of partitioning, each shown on a small account in this process.

    python walk.py            all of them
    python walk.py 11 13 31   some

Prints a line for each: its number, Y or N, what was seen. Ends with 1 if one of them does not hold.
Sizes are those of a laptop: a physical partition holds 60 KB here and 50 GB in the cloud.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import armillary
from armillary.account import Account, Database
from armillary.clock import VirtualClock
from armillary.container import Container
from armillary.errors import (
    BadInput,
    Conflict,
    ContainerFull,
    DbError,
    NotSplittable,
    PartitionKeyFull,
    Throttled,
)
from armillary.keys.synthetic import SyntheticKey, computed_suffix

STEPS: dict[int, tuple[str, Callable[[], str]]] = {}
TEXT = "x" * 500
DAY = "2018-08-09"


def step(number: int, title: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    def add(run: Callable[[], str]) -> Callable[[], str]:
        STEPS[number] = (title, run)
        return run

    return add


def main(wanted: list[int]) -> int:
    failed = 0
    for number in wanted or sorted(STEPS):
        title, run = STEPS[number]
        try:
            seen, letter = run(), "Y"
        except (AssertionError, DbError) as error:
            seen, letter = f"{type(error).__name__}: {error}", "N"
            failed += 1
        print(f"{number:2}  {letter}  {title}: {seen}", flush=True)
    print(f"{len(wanted or STEPS) - failed} of {len(wanted or STEPS)} hold")
    return 1 if failed else 0


# --- what the steps share -----------------------------------------------------------------------


@contextmanager
def opened(**options: Any) -> Iterator[tuple[Account, Database]]:
    small = {"partition_bytes": 60_000, "logical_bytes": 60_000, "housekeeping": False}
    with armillary.open(":memory:", **{**small, **options}) as account:
        yield account, account.create_database("walk")


def fill(container: Container, count: int, key: Callable[[int], Any], start: int = 0) -> None:
    for n in range(start, start + count):
        container.create_item({"id": str(n), "pk": key(n), "text": TEXT})


def hold(true: bool, seen: object = "") -> None:
    if not true:
        raise AssertionError(seen)


def refused(kind: type[DbError], run: Callable[[], Any]) -> DbError:
    try:
        run()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected")


def admitted(container: Container, key: str, most: int = 5_000) -> int:
    """Writes until the first 429."""
    for n in range(most):
        try:
            container.upsert_item({"id": f"{key}{n}", "pk": key})
        except Throttled:
            return n
    return most


def asked(container: Container, query: str) -> int:
    """How many physical partitions a query consults."""
    return container.query_page(query).metrics.ranges


# --- kinds of containers ------------------------------------------------------------------------


@step(1, "fixed container: one partition, a maximum, a key is optional")
def fixed() -> str:
    with opened() as (account, db):
        old = db.create_container("old")
        error = refused(ContainerFull, lambda: fill(old, 200, lambda n: n))
        account.settle()
        hold((old.kind, len(old.partitions())) == ("fixed", 1))
        refused(BadInput, lambda: old.replace_throughput(10_100))
    with armillary.open(":memory:", profile="classic", housekeeping=False) as account:
        limit = account.store.limits.logical_bytes
        hold(limit == 10_000_000_000)
    return f"{error}; 10 GB under the classic profile, at most 10,000 RU/s"


@step(2, "unlimited container: a key, and throughput that goes on")
def unlimited() -> str:
    with opened() as (_, db):
        big = db.create_container("big", "/pk", throughput=100_000)
        hold(big.kind == "unlimited")
        count = len(big.partitions())
        hold(count >= 10)
        return f"100,000 RU/s are {count} physical partitions"


@step(3, "fixed with a key grows if it began with 1,000 RU/s")
def fixed_that_grows() -> str:
    with opened() as (account, db):
        kinds = []
        for ru in (900, 1_000):
            made = db.create_container(f"f{ru}", "/pk", throughput=ru, fixed=True)
            kinds.append(made.kind)
        refused(ContainerFull, lambda: fill(db.container("f900"), 200, lambda n: f"k{n}"))
        fill(db.container("f1000"), 200, lambda n: f"k{n}")
        account.settle()
        counts = [len(db.container(f"f{ru}").partitions()) for ru in (900, 1_000)]
        hold(kinds == ["fixed", "unlimited"] and counts[0] == 1 < counts[1], (kinds, counts))
        return f"900: {kinds[0]}, 1,000: {kinds[1]} with {counts[1]} partitions"


@step(4, "containers that share the throughput of their database, all keyed")
def shared() -> str:
    with opened(enforce="on", clock=VirtualClock()) as (account, _):
        both = account.create_database("shared", throughput=400)
        one, two = (both.create_container(name, "/pk") for name in ("one", "two"))
        first, second = admitted(one, "a"), admitted(two, "a")
        refused(BadInput, lambda: both.create_container("keyless"))
        hold(first > 0 == second, (first, second))
        return f"one took {first} writes, then the other none"


@step(5, "fixed to unlimited: a copy by the change feed, cut over, nothing lost")
def migrated() -> str:
    with opened(partition_bytes=10**9, logical_bytes=10**9) as (_, db):
        old = db.create_container("old")
        fill(old, 50, lambda n: f"k{n % 7}")
        report = db.rekey("old", "new", "/pk", cut_over=True)
        found = len(list(db.container("new").read_all_items()))
        hold(report.verified and found == 50)
        refused(DbError, lambda: old.create_item({"id": "late"}))
        return f"{found} of 50 items, counts and checksums compared; late writes are refused"


# --- partitions ---------------------------------------------------------------------------------


@step(6, "physical partition: bounded storage and compute, shareable by a set")
def physical() -> str:
    with opened(enforce="on", clock=VirtualClock()) as (_, db):
        two = db.create_container("two", "/pk", throughput=800, physical_partitions=2)
        a = next(f"a{n}" for n in range(99) if home(two, f"a{n}") == "0")
        b = next(f"b{n}" for n in range(99) if home(two, f"b{n}") == "1")
        counts = admitted(two, a), admitted(two, b)
        hold(all(counts), counts)
        return f"each of two partitions served its half: {counts[0]} and {counts[1]} writes"


def home(container: Container, key: str) -> str:
    container.upsert_item({"id": "probe", "pk": key})
    (found,) = [one.partition for one in container.logical_partitions(999) if one.key == [key]]
    container.delete_item("probe", key)
    return found


@step(7, "logical partition: one key value, many per physical one, never cut")
def logical() -> str:
    with opened() as (account, db):
        cities = db.create_container("cities", "/pk")
        fill(cities, 120, lambda n: ("LAX", "AMS", "MEL")[n % 3])
        whole = {tuple(one.key) for one in cities.logical_partitions()}
        account.settle()
        after = Counter(tuple(one.key) for one in cities.logical_partitions())
        hold(len(whole) == 3 and set(after.values()) == {1}, after)
        error = refused(PartitionKeyFull, lambda: fill(cities, 99, lambda n: "LAX", 1_000))
        return f"3 keys on {len(cities.partitions())} partitions, none in two; {error.args[0][:52]}"


@step(8, "identity is partition key and id")
def identity() -> str:
    with opened() as (_, db):
        items = db.create_container("items", "/pk")
        items.create_item({"id": "1", "pk": "a", "n": 1})
        items.create_item({"id": "1", "pk": "b", "n": 2})
        refused(Conflict, lambda: items.create_item({"id": "1", "pk": "a"}))
        hold(items.read_item("1", "b")["n"] == 2)
        return "('a', 1) and ('b', 1) are two items, a second ('a', 1) is a conflict"


@step(9, "N = T / t physical partitions")
def provisioned() -> str:
    with opened(profile="classic") as (_, db):
        made = {ru: len(db.create_container(f"c{ru}", "/pk", throughput=ru).partitions())
                for ru in (10_000, 20_000, 45_000)}  # fmt: skip
        hold(made == {10_000: 1, 20_000: 2, 45_000: 5}, made)
        return ", ".join(f"{ru:,} RU/s: {count}" for ru, count in made.items())


@step(10, "hash placement: 1/N of the keys on each partition")
def placed() -> str:
    with opened(partition_bytes=10**9) as (_, db):
        four = db.create_container("four", "/pk", physical_partitions=4)
        for n in range(1_000):
            four.create_item({"id": "1", "pk": f"key{n}"})
        counts = [one.items for one in four.partitions()]
        hold(len(counts) == 4 and all(200 < count < 300 for count in counts), counts)
        return f"1,000 keys fell as {counts}"


@step(11, "storage split, invisible to clients")
def split() -> str:
    with opened() as (account, db):
        items = db.create_container("items", "/pk")
        fill(items, 200, lambda n: f"k{n}")
        before = [one.id for one in items.partitions()]
        account.settle()
        after = [one.id for one in items.partitions()]
        hold(len(after) > len(before) == 1)
        hold(all(items.read_item(str(n), f"k{n}")["id"] == str(n) for n in range(200)))
        return f"{before} became {after}, all 200 items are read as before"


@step(12, "a partition of one key can't split, and the error says its size")
def unsplittable() -> str:
    with opened() as (_, db):
        hot = db.create_container("hot", "/pk")
        error = refused(PartitionKeyFull, lambda: fill(hot, 200, lambda n: "one"))
        refused(NotSplittable, lambda: hot.split(0))
        hold("Partition key reached maximum size of 60 KB" in str(error))
        return str(error.args[0]).split(".")[0]


@step(13, "throughput above t × N splits partitions")
def scaled_up() -> str:
    with opened() as (account, db):
        items = db.create_container("items", "/pk", throughput=18_000)
        items.replace_throughput(30_000)
        account.settle()
        before = len(items.partitions())
        items.replace_throughput(45_000)
        account.settle()
        after = [one.id for one in items.partitions()]
        hold((before, len(after)) == (3, 5), (before, after))
        return f"30,000 RU/s on {before}, 45,000 on {len(after)}: {after}"


@step(14, "placement and movement by themselves as load grows")
def grows() -> str:
    with opened() as (account, db):
        items = db.create_container("items", "/pk")
        counts = []
        for round_ in range(4):
            fill(items, 100, lambda n: f"k{n}", round_ * 100)
            account.settle()
            counts.append(len(items.partitions()))
        hold(counts == sorted(counts) and counts[-1] > counts[0], counts)
        return f"partitions after each 100 items: {counts}"


@step(15, "requests find their partition, whatever has happened to it")
def routed() -> str:
    with opened() as (account, db):
        items = db.create_container("items", "/pk")
        fill(items, 150, lambda n: f"k{n}")
        account.settle()
        items.merge([one.id for one in items.partitions()][:2])
        hold(items.read_item("7", "k7")["pk"] == "k7")
        hold(asked(items, "SELECT * FROM c WHERE c.pk = 'k7'") == 1)
        everywhere = asked(items, "SELECT * FROM c WHERE c.text = 'y'")
        hold(everywhere == len(items.partitions()))
        return f"point reads and a filter on the key ask 1, others all {everywhere}"


@step(16, "RU/s are spread evenly, and requests of one key are capped")
def capped() -> str:
    with opened(enforce="on", clock=VirtualClock(), logical_bytes=10**9) as (_, db):
        even = db.create_container("even", "/pk", throughput=4_000, physical_partitions=4)
        alone = admitted(even, "hot")
        whole = db.create_container("whole", "/pk", throughput=4_000, physical_partitions=1)
        hold(3 * alone < admitted(whole, "hot"), alone)
        return f"a hot key has 1,000 of 4,000 RU/s: {alone} writes, then 429"


@step(17, "storage per partition: skewed and even")
def storage() -> str:
    with opened(partition_bytes=10**9, logical_bytes=10**9) as (_, db):
        shares = []
        for name, key in (("skewed", lambda n: "one"), ("even", lambda n: f"k{n}")):
            made = db.create_container(name, "/pk", physical_partitions=4)
            fill(made, 200, key)
            sizes = [one.size_bytes for one in made.partitions()]
            shares.append(max(sizes) / sum(sizes))
        hold(shares[0] > 0.95 and shares[1] < 0.4, shares)
        return f"the fullest of four has {shares[0]:.0%} under one key, {shares[1]:.0%} under many"


# --- keys ---------------------------------------------------------------------------------------


@step(18, "paths of keys, nested ones too; values are strings or numbers")
def paths() -> str:
    with opened() as (_, db):
        nested = db.create_container("nested", "/address/city")
        nested.create_item({"id": "1", "address": {"city": "Oslo"}})
        nested.create_item({"id": "1", "address": {"city": 47}})
        hold(nested.read_item("1", 47)["address"]["city"] == 47)
        refused(BadInput, lambda: nested.create_item({"id": "2", "address": {"city": [1]}}))
        refused(BadInput, lambda: db.create_container("bad", "no-slash"))
        return "/address/city holds 'Oslo' and 47; an array is refused"


@step(19, "the definition of the key is for life; another key is another container")
def definition() -> str:
    with opened(partition_bytes=10**9) as (_, db):
        items = db.create_container("items", "/pk")
        fill(items, 20, lambda n: f"k{n}")
        other = {"paths": ["/text"], "kind": "Hash", "version": 2}
        error = refused(BadInput, lambda: db.replace_container("items", partitionKey=other))
        hold(db.rekey("items", "by-text", "/text").verified)
        return f"{error}; a copy under /text has all items"


@step(20, "the key of an item is for life")
def value() -> str:
    with opened() as (_, db):
        items = db.create_container("items", "/pk")
        items.create_item({"id": "1", "pk": "a"})
        patch = [{"op": "set", "path": "/pk", "value": "b"}]
        refused(BadInput, lambda: items.patch_item("1", "a", patch))
        refused(DbError, lambda: items.replace_item("1", {"id": "1", "pk": "b"}, partition_key="a"))
        hold(items.read_item("1", "a")["pk"] == "a")
        return "neither a patch nor a replace changes it"


@step(21, "what makes a good key: many values, even requests, even storage")
def criteria() -> str:
    keys = {"country": lambda n: f"c{max(0, n % 12 - 9)}", "device": lambda n: f"d{n}"}
    with opened(partition_bytes=10**9, logical_bytes=10**9) as (_, db):
        share = {}
        for name, key in keys.items():
            made = db.create_container(name, "/pk", physical_partitions=4)
            fill(made, 300, key)
            sizes = [one.size_bytes for one in made.partitions()]
            share[name] = max(sizes) * 4 / sum(sizes)
        hold(share["device"] < 1.5 < share["country"], share)
        told = ", ".join(f"{one:.2f} by {name}" for name, one in share.items())
        return f"fullest partition against even: {told}"


@step(22, "transactions and scripts stay inside one logical partition")
def transactions() -> str:
    with opened() as (_, db):
        items = db.create_container("items", "/pk")
        both = [("create", ({"id": "1", "pk": "a"},)), ("create", ({"id": "2", "pk": "b"},))]
        refused(DbError, lambda: items.execute_item_batch(both, "a"))
        hold(not list(items.read_all_items()))
        items.execute_item_batch([("create", ({"id": "1", "pk": "a"},))], "a")
        text = "function (n) { getContext().getResponse().setBody(n + 1); }"
        items.scripts.put("procedure", {"id": "plus", "body": text})
        hold(items.scripts.run("plus", "a", 41).value == 42)
        return "a batch over two keys is refused whole; a procedure runs under one key"


@step(23, "reads with the key in the filter ask one partition")
def reads() -> str:
    with opened() as (_, db):
        items = db.create_container("items", "/pk", physical_partitions=4)
        fill(items, 40, lambda n: f"k{n}")
        one = asked(items, "SELECT * FROM c WHERE c.pk = 'k1' AND c.id = '1'")
        every = asked(items, "SELECT * FROM c WHERE c.id = '1'")
        hold((one, every) == (1, 4))
        return f"with the key {one}, without it {every}"


@step(24, "small containers: 1 or 2 partitions, where fan-out hardly matters")
def small() -> str:
    with opened(partition_bytes=50 * 10**9, logical_bytes=20 * 10**9) as (_, db):
        counts = [
            len(db.create_container(f"c{ru}", "/pk", throughput=ru).partitions())
            for ru in (400, 10_000, 30_000)
        ]
        hold(counts[0] == 1 and counts[1] <= 2 < counts[2], counts)
        return f"400, 10,000 and 30,000 RU/s: {counts} partitions"


@step(25, "/id as the key: every item alone, point reads; not in Gremlin")
def by_id() -> str:
    with opened() as (account, db):
        items = db.create_container("items", "/id")
        for n in range(200):
            items.create_item({"id": str(n), "text": TEXT})
        account.settle()
        hold(items.read_item("7", "7")["id"] == "7" and len(items.partitions()) > 1)
        refused(BadInput, lambda: db.create_container("graph", "/id", api="gremlin"))
        return f"{len(items.partitions())} partitions; a graph under /id is refused"


@step(26, "a container with throughput and a point read, by API")
def by_api() -> str:
    seen = []
    with opened() as (_, db):
        plain = db.create_container("c", "/vehicleId", throughput=20_000)
        plain.create_item({"id": "1", "vehicleId": "v"})
        hold(plain.read_item("1", "v")["id"] == "1")
        seen.append("NoSQL")
        for api, key in (("table", '/"$pk"'), ("gremlin", "/country"), ("mongo", "/pk")):
            try:
                db.create_container(api, key, api=api, throughput=800)
            except BadInput:
                continue
            seen.append(api)
    hold({"NoSQL", "gremlin", "mongo"} <= set(seen), seen)
    return f"{', '.join(seen)}; the clients of each are in examples/documents"


@step(27, "throughput is changed at any time")
def any_time() -> str:
    with opened() as (account, db):
        items = db.create_container("items", "/pk", throughput=400)
        seen = []
        for ru in (1_000, 20_000, 600):
            items.replace_throughput(ru)
            account.settle()
            seen.append(items.read_throughput().ru)
        hold(seen == [1_000, 20_000, 600], seen)
        return " → ".join(f"{ru:,}" for ru in seen) + " RU/s"


# --- choosing a key -----------------------------------------------------------------------------


def spread(items: list[dict[str, Any]], path: str | SyntheticKey) -> float:
    """The fullest of four partitions against an even share."""
    with opened(partition_bytes=10**9, logical_bytes=10**9) as (_, db):
        if isinstance(path, SyntheticKey):
            made = db.create_container("c", synthetic_key=path, physical_partitions=4)
        else:
            made = db.create_container("c", path, physical_partitions=4)
        for item in items:
            made.create_item(item)
        sizes = [one.items for one in made.partitions()]
        return max(sizes) * 4 / sum(sizes)


@step(28, "user, device, host and tenant as keys")
def scenarios() -> str:
    told = []
    for path in ("/userId", "/deviceId", "/hostId", "/tenantId"):
        items = [{"id": str(n), path[1:]: f"{path[1:]}{n % 150}"} for n in range(600)]
        ratio = spread(items, path)
        hold(ratio < 1.5, (path, ratio))
        told.append(f"{path} {ratio:.2f}")
    return "fullest against even: " + ", ".join(told)


@step(29, "time series: rolled up by date, another key, a container per period")
def time_series() -> str:
    with opened(partition_bytes=10**9) as (_, db):
        days = db.create_container("days", "/day", throughput=400)
        days.create_item({"id": "1", "day": DAY, "device": "d"})
        for month, ru in (("2018-08", 10_000), ("2018-07", 400)):
            db.create_container(f"readings-{month}", "/device", throughput=ru)
        old, new = (db.container(f"readings-2018-0{n}").read_throughput().ru for n in (7, 8))
        db.delete_container("readings-2018-07")
        hold((old, new) == (400, 10_000) and "readings-2018-07" not in db.containers())
        return f"this month {new:,} RU/s, the last {old}, and dropped at once when it is old"


@step(30, "tenants: a key each, a container each, or both")
def tenants() -> str:
    with opened() as (_, db):
        many = db.create_container("many", "/tenantId")
        many.create_item({"id": "1", "tenantId": "small"})
        large = db.create_container("large-tenant", "/userId", throughput=1_000)
        large.create_item({"id": "1", "userId": "u"})
        levels = db.create_container("levels", ["/tenantId", "/userId"], physical_partitions=4)
        for n in range(40):
            levels.create_item({"id": "1", "tenantId": "t", "userId": f"u{n}"})
        found = asked(levels, "SELECT * FROM c WHERE c.tenantId = 't' AND c.userId = 'u1'")
        hold(found == 1 and len(list(many.read_all_items())) == 1)
        return "key, container and hierarchical key; tenant and user together ask 1 partition"


DEVICE_DATE = SyntheticKey.from_json(
    {"version": 1, "path": "/partitionKey", "parts": ["/deviceId", "/date"], "separator": "-"}
)
RANDOM = SyntheticKey.from_json(
    {
        "version": 1,
        "path": "/partitionKey",
        "parts": ["/date"],
        "separator": ".",
        "suffix": {"kind": "random", "k": 400},
    }
)
BY_VIN = SyntheticKey.from_json(
    {
        "version": 1,
        "path": "/partitionKey",
        "parts": ["/date"],
        "separator": ".",
        "suffix": {"kind": "computed", "k": 400, "source": "/vin"},
    }
)


@step(31, "synthetic key: abc-123-2018")
def concatenated() -> str:
    with opened() as (_, db):
        made = db.create_container("c", synthetic_key=DEVICE_DATE)
        item = made.create_item({"id": "1", "deviceId": "abc-123", "date": 2018})
        hold(item["partitionKey"] == "abc-123-2018", item)
        hold(made.read_item("1", "abc-123-2018")["id"] == "1")
        return str(item["partitionKey"])


@step(32, "synthetic key put in by the client")
def by_client() -> str:
    with opened() as (_, db):
        made = db.create_container("c", "/partitionKey")
        item = DEVICE_DATE.apply({"id": "1", "deviceId": "abc-123", "date": 2018})
        made.create_item(item)
        hold(made.read_item("1", "abc-123-2018")["deviceId"] == "abc-123")
        return f"the same {item['partitionKey']}, made before it is sent"


@step(33, "random suffix 1 to 400 spreads the writes of a day")
def random_suffix() -> str:
    items = [{"id": str(n), "date": DAY} for n in range(800)]
    alone, ratio = spread(items, "/date"), spread(items, RANDOM)
    hold(alone == 4 and ratio < 1.5, (alone, ratio))
    return f"fullest of four against even: {alone:.2f} by date, {ratio:.2f} with the suffix"


@step(34, "what a random suffix costs readers")
def random_reads() -> str:
    keys = RANDOM.candidates({"date": DAY})
    with opened() as (_, db):
        made = db.create_container("c", synthetic_key=RANDOM, physical_partitions=4)
        made.create_item({"id": "1", "date": DAY})
        every = asked(made, f"SELECT * FROM c WHERE c.id = '1' AND c.date = '{DAY}'")
    hold(len(keys) == 400 and every == 4, (len(keys), every))
    return f"{len(keys)} keys to try, or a query that asks all {every} partitions"


@step(35, "computed suffix 1 to 400 from the VIN: readers compute it too")
def computed() -> str:
    vin = "WBA12345"
    number = computed_suffix(vin, 400)
    (key,) = BY_VIN.candidates({"date": DAY, "vin": vin})
    with opened() as (_, db):
        made = db.create_container("c", synthetic_key=BY_VIN, physical_partitions=4)
        made.create_item({"id": "1", "date": DAY, "vin": vin})
        hold(made.read_item("1", key)["vin"] == vin)
        one = asked(made, f"SELECT * FROM c WHERE c.vin = '{vin}' AND c.date = '{DAY}'")
    hold(1 <= number <= 400 and key == f"{DAY}.{number}" and one == 1, (key, one))
    return f"{vin} → {key}, and the query asks 1 partition"


@step(36, "a single hot key is seen, and can be avoided")
def hot() -> str:
    with opened(enforce="on", clock=VirtualClock(), logical_bytes=10**9) as (_, db):
        made = db.create_container("c", "/pk", throughput=4_000, physical_partitions=4)
        admitted(made, "hot")
        heaviest = max(made.usage().keys, key=lambda one: one.ru_share)
        lone = db.create_container("d", "/pk", throughput=4_000, physical_partitions=4)
        total = sum(admitted(lone, f"hot.{n}") for n in range(40))
        alone = admitted(made, "hot2")
        hold(heaviest.key == ["hot"] and heaviest.ru_share > 0.9, heaviest)
        hold(total > 2 * max(alone, 1), (total, alone))
        return f"key hot takes {heaviest.ru_share:.0%}; over 40 keys {total} writes were taken"


if __name__ == "__main__":
    sys.exit(main([int(one) for one in sys.argv[1:]]))
