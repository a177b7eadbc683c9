"""Every violation answers with its status, sub-status and text, and not one byte changes.

A row is (what, call, status, sub-status, text); the text may be the beginning of a longer one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.accounts import World, check, open_world, refusal, rows_of

from armillary.change_feed import FeedRange
from armillary.container import Container
from armillary.keys import SyntheticKey
from armillary.limits import ITEM_BYTES_MAX
from armillary.values import UNDEFINED

VINS = {
    "version": 1,
    "path": "/key",
    "parts": ["/date"],
    "separator": ".",
    "suffix": {"kind": "computed", "k": 400, "source": "/vin"},
}
DRAWN = VINS | {"suffix": {"kind": "random", "k": 10}}
CAR = {"id": "1", "date": "2018-08-09", "vin": "1HGCM82633A004352"}


@dataclass(frozen=True, slots=True)
class Cast:
    """One container of each kind, with one item each."""

    world: World
    plain: Container
    levels: Container
    fixed: Container
    synthetic: Container
    drawn: Container

    def all(self) -> list[Container]:
        return [self.plain, self.levels, self.fixed, self.synthetic, self.drawn]


@pytest.fixture(scope="module")
def cast() -> Iterator[Cast]:
    with open_world(":memory:") as world:
        made = Cast(
            world,
            world.container("plain", unique_keys=[["/mail"]], default_ttl=-1),
            world.container("levels", ["/t", "/u"], physical_partitions=3),
            world.container("fixed", None),
            world.container("synthetic", None, synthetic_key=SyntheticKey.from_json(VINS)),
            world.container("drawn", None, synthetic_key=DRAWN),
        )
        made.plain.create_item({"id": "1", "pk": "a", "n": 1, "list": [1]})
        made.plain.create_item({"id": "2", "pk": "a", "mail": "x"})
        made.levels.create_item({"id": "1", "t": "x", "u": 7})
        made.fixed.create_item({"id": "1"})
        made.synthetic.create_item(CAR)
        made.drawn.create_item(CAR)
        yield made


def nested(depth: int) -> dict[str, Any]:
    """An item with so many objects inside each other."""
    inner: dict[str, Any] = {}
    for _ in range(depth - 2):
        inner = {"x": inner}
    return {"id": "deep", "pk": "a", "x": inner}


def sized(body_bytes: int) -> dict[str, Any]:
    body = {"id": "big", "pk": "a", "text": ""}
    empty = len(json.dumps(body, separators=(",", ":")))
    return body | {"text": "x" * (body_bytes - empty)}


def create(body: Any, **options: Any) -> Callable[[Cast], Any]:
    return lambda cast: cast.plain.create_item(body, **options)


def patch(*operations: Any, id: str = "1") -> Callable[[Cast], Any]:
    return lambda cast: cast.plain.patch_item(id, "a", operations)


def new(name: Any = "new", key: Any = "/pk", **options: Any) -> Callable[[Cast], Any]:
    return lambda cast: cast.world.container(name, key, **options)


SET = {"op": "set", "path": "/n", "value": 2}
MISMATCH = (
    "Partition key provided either doesn't correspond to definition in the collection or "
    "doesn't match partition key field values specified in the document."
)
FEWER = "PartitionKey has fewer components than defined the collection resource."
MORE = "PartitionKey has more components than defined the collection resource."
TOO_LARGE = (
    "The size of the request exceeded the maximum allowed size. "
    f"It has {ITEM_BYTES_MAX + 1:,} bytes; {ITEM_BYTES_MAX:,} are allowed."
)
TTL = "The 'ttl' of an item must be -1 or an integer from 1 to 2147483647 seconds."
DEEP = "The item is nested deeper than 128 objects and arrays."
NO_KEY = "PartitionKey value must be supplied for this operation."
PAGE = (
    "The input PageSize {0} is invalid. Ensure to pass a valid page size which must be a positive "
    "integer or -1 for a dynamic page size."
)

ROWS: list[tuple[str, Callable[[Cast], Any], int, int, str]] = [
    # ids
    (
        "no id",
        create({"pk": "a"}),
        400,
        0,
        "The input content is invalid because the required properties - 'id; ' - are missing",
    ),
    ("number as id", create({"id": 5, "pk": "a"}), 400, 0, "The 'id' of an item must be a string"),
    ("empty id", create({"id": "", "pk": "a"}), 400, 0, "The 'id' of an item must be a string"),
    ("two dots as id", create({"id": "..", "pk": "a"}), 400, 0, "The 'id' can't be"),
    ("1024 bytes of id", create({"id": "é" * 512, "pk": "a"}), 400, 0, "The 'id' has 1024 bytes"),
    ("half a surrogate as id", create({"id": "\ud800", "pk": "a"}), 400, 0, "The 'id' is not"),
    ("dots when renaming", lambda c: c.plain.replace_item("1", {"id": ".", "pk": "a"}), 400, 0, ""),
    ("half a surrogate, read", lambda c: c.plain.read_item("\ud800", "a"), 400, 0, "The 'id' is"),
    ("half a surrogate, delete", lambda c: c.plain.delete_item("\ud800", "a"), 400, 0, "The 'id'"),
    ("half a surrogate, patch", patch(SET, id="\ud800"), 400, 0, "The 'id' is not valid Unicode"),
    ("half a surrogate, many", lambda c: c.plain.read_many([("\ud800", "a")]), 400, 0, "The 'id'"),
    # bodies
    ("2 MB + 1", create(sized(ITEM_BYTES_MAX + 1)), 413, 0, TOO_LARGE),
    ("2 MB + 1 by a patch", patch({"op": "set", "path": "/n", "value": "x" * 2097152}), 413, 0, ""),
    ("depth 129", create(nested(129)), 400, 0, DEEP),
    ("depth 129 as text", create(json.dumps(nested(129))), 400, 0, DEEP),
    ("depth 129 by a patch", patch(SET | {"value": nested(129)}), 400, 0, DEEP),
    ("NaN", create({"id": "x", "pk": "a", "n": float("nan")}), 400, 0, "The value at '/n' is nan"),
    ("NaN as text", create('{"id": "x", "pk": "a", "n": NaN}'), 400, 0, "The request body is not"),
    ("infinity by a patch", patch(SET | {"value": float("inf")}), 400, 0, "The value at '/n' is i"),
    ("lone surrogate", create({"id": "x", "pk": "a", "s": "\udc00"}), 400, 0, "The item can't be"),
    ("lone surrogate as text", create('{"id":"x","pk":"a","s":"\\ud800"}'), 400, 0, "The request"),
    ("a list", create("[]"), 400, 0, "The request body must be a JSON object."),
    ("no JSON", create("{"), 400, 0, "The request body is not valid JSON"),
    ("a set", create({"id": "x", "pk": "a", "s": {1}}), 400, 0, "The value at '/s' is of type set"),
    ("a number as a name", create({"id": "x", "pk": "a", 5: 1}), 400, 0, "The value at '/5' has a"),
    # ttl
    *(
        (f"ttl {ttl!r}", create({"id": "x", "pk": "a", "ttl": ttl}), 400, 0, TTL)
        for ttl in (0, -2, None, "5", 1.5, True, 2147483648)
    ),
    ("ttl 0 by a patch", patch({"op": "add", "path": "/ttl", "value": 0}), 400, 0, TTL),
    # keys
    ("wrong key beside", create({"id": "x", "pk": "a"}, partition_key="b"), 400, 1001, MISMATCH),
    ("null is not missing", create({"id": "x"}, partition_key=None), 400, 1001, MISMATCH),
    ("true is not 1", create({"id": "x", "pk": 1}, partition_key=True), 400, 1001, MISMATCH),
    (
        "changed key",
        lambda c: c.plain.replace_item("1", {"id": "1", "pk": "b"}, partition_key="a"),
        400,
        1001,
        MISMATCH,
    ),
    (
        "array as key",
        create({"id": "x", "pk": ["a"]}),
        400,
        0,
        "Partition key '/pk' is invalid: it holds an array. Numeric, string, bool, null",
    ),
    (
        "object as key beside",
        lambda c: c.plain.read_item("1", {"a": 1}),
        400,
        0,
        "Unsupported PartitionKey value component '{\"a\": 1}'. Numeric, string, bool, null, "
        "Undefined are the only supported types.",
    ),
    (
        "key beyond doubles",
        create({"id": "x", "pk": 2**53 + 1}),
        400,
        0,
        "The requested partition key is out of key range, possibly because of loss of precision "
        "of partition key value",
    ),
    ("NaN as key", lambda c: c.plain.read_item("1", float("nan")), 400, 0, "The partition key val"),
    ("2049 bytes of key", create({"id": "x", "pk": "k" * 2049}), 400, 0, "The partition key value"),
    ("2049 bytes, read", lambda c: c.plain.read_item("1", "k" * 2049), 400, 0, "The partition key"),
    (
        "surrogate as key",
        lambda c: c.plain.read_item("1", "\ud800"),
        400,
        0,
        "The partition key va",
    ),
    ("no key, read", lambda c: c.plain.read_item("1"), 400, 0, NO_KEY),
    ("two keys for one", lambda c: c.plain.read_item("1", ["a", "b"]), 400, 0, MORE),
    ("no level", lambda c: c.levels.read_item("1", []), 400, 0, FEWER),
    ("half a key, text", lambda c: c.levels.read_item("1", "x"), 400, 1001, FEWER),
    ("half a key, list", lambda c: c.levels.read_item("1", ["x"]), 400, 1001, FEWER),
    ("half a key, delete", lambda c: c.levels.delete_item("1", ["x"]), 400, 1001, FEWER),
    ("half a key, patch", lambda c: c.levels.patch_item("1", ["x"], [SET]), 400, 1001, FEWER),
    ("half a key, many", lambda c: c.levels.read_many([("1", ["x"])]), 400, 1001, FEWER),
    (
        "half a key, delete all",
        lambda c: c.levels.delete_all_items_by_partition_key(["x"]),
        400,
        1001,
        FEWER,
    ),
    (
        "half a key, create",
        lambda c: c.levels.create_item({"id": "2", "t": "x", "u": 1}, partition_key=["x"]),
        400,
        1001,
        FEWER,
    ),
    ("three levels of two", lambda c: c.levels.read_item("1", ["x", 7, 1]), 400, 0, MORE),
    # synthetic keys
    (
        "a key that does not fit",
        lambda c: c.synthetic.create_item(CAR | {"id": "2", "key": "2018-08-09.1"}),
        400,
        0,
        "'/key' is '2018-08-09.1', but the item's other properties make it '2018-08-09.363'.",
    ),
    (
        "without a part",
        lambda c: c.synthetic.create_item({"id": "2", "vin": "v"}),
        400,
        0,
        "The partition key '/key' is made of '/date', which the item does not have.",
    ),
    (
        "a part changed by replace",
        lambda c: c.synthetic.replace_item(
            "1", CAR | {"date": "2018-08-10"}, partition_key="2018-08-09.363"
        ),
        400,
        0,
        "'/key' is '2018-08-09.363', but the item's other properties make it '2018-08-10.363'",
    ),
    (
        "a part changed by a patch",
        lambda c: c.synthetic.patch_item(
            "1", "2018-08-09.363", [{"op": "set", "path": "/vin", "value": "other"}]
        ),
        400,
        0,
        "'/key' is '2018-08-09.363', but the item's other properties make it",
    ),
    ("replace by chance", lambda c: c.drawn.replace_item("1", CAR), 400, 0, NO_KEY),
    (
        "replace under no key",
        lambda c: c.drawn.replace_item("1", CAR, partition_key=UNDEFINED),
        400,
        0,
        NO_KEY,
    ),
    (
        "replace without a level",
        lambda c: c.drawn.replace_item("1", CAR, partition_key=[]),
        400,
        0,
        FEWER,
    ),
    (
        "a stem alone",
        lambda c: c.drawn.upsert_item(CAR | {"key": "2018-08-09."}),
        400,
        0,
        "'/key' is",
    ),
    (
        "known of a plain key",
        lambda c: c.plain.read_item("1", known={}),
        400,
        0,
        "The container has",
    ),
    # patch
    ("no operation", patch(), 400, 0, "Invalid patch request: check syntax"),
    (
        "11 operations",
        patch(*[SET] * 11),
        400,
        0,
        "The number of patch operations can't exceed 10.",
    ),
    ("unknown operation", patch({"op": "put", "path": "/n"}), 400, 0, "Invalid patch request"),
    ("patch of the id", patch(SET | {"path": "/id"}), 400, 0, "Invalid patch request: Can't patch"),
    (
        "patch of the key",
        patch(SET | {"path": "/pk"}),
        400,
        0,
        "Invalid patch request: Can't patch",
    ),
    (
        "no parent",
        patch({"op": "add", "path": "/x/y", "value": 1}),
        400,
        0,
        "For Operation(1): Add Operation can only create a child object of an existing node(array "
        "or object) and cannot create path recursively, no path found beyond: 'x'. Learn more: "
        "https://aka.ms/cosmosdbpatchdocs",
    ),
    (
        "remove nothing",
        patch(SET, {"op": "remove", "path": "/x"}),
        400,
        0,
        "For Operation(2): Node",
    ),
    (
        "incr a list",
        patch({"op": "incr", "path": "/list", "value": 1}),
        400,
        0,
        "For Operation(1):",
    ),
    # batches
    (
        "no operations",
        lambda c: c.plain.execute_item_batch([], "a"),
        400,
        0,
        "Batch request has no",
    ),
    (
        "101 operations",
        lambda c: c.plain.execute_item_batch(
            [("create", ({"id": f"b{n}", "pk": "a"},)) for n in range(101)], "a"
        ),
        400,
        0,
        "Batch request has more operations than what is supported.",
    ),
    (
        "two keys in a batch",
        lambda c: c.plain.execute_item_batch(
            [("delete", ("1",)), ("create", ({"id": "y", "pk": "b"},))], "a"
        ),
        207,
        0,
        "Operation 1 of the batch failed, so nothing was changed: " + MISMATCH,
    ),
    (
        "unknown operation of a batch",
        lambda c: c.plain.execute_item_batch([("put", ({},))], "a"),
        400,
        0,
        "Unknown operation 'put'; there are create, upsert, replace, patch, delete, read.",
    ),
    (
        "unknown option",
        lambda c: c.plain.execute_item_batch([("read", ("1",), {"x": 1})], "a"),
        400,
        0,
        "Unknown options of 'read': x.",
    ),
    # conflicts
    (
        "id taken",
        create({"id": "1", "pk": "a", "mail": "z"}),
        409,
        0,
        "Entity with the specified id",
    ),
    (
        "unique key",
        create({"id": "3", "pk": "a", "mail": "x"}),
        409,
        0,
        "Resource with specified id",
    ),
    # pages and feeds
    *(
        (
            f"page of {size!r}",
            lambda c, size=size: c.plain.read_page(max_items=size),
            400,
            0,
            PAGE.format(size),
        )
        for size in (0, -2, 1.5, "10", None, True)
    ),
    *(
        (
            f"token {text!r}",
            lambda c, text=text: c.plain.read_page(continuation=text),
            400,
            0,
            "Invalid Continuation Token",
        )
        for text in ("", "garbage", "é", "W10", "eyJhIjoxfQ", "WzEsIml0ZW1zIixbXV0")
    ),
    ("feed of 0", lambda c: c.plain.read_change_feed(max_items=0), 400, 0, PAGE.format(0)),
    ("feed token", lambda c: c.plain.read_change_feed(continuation="x"), 400, 0, "Invalid Contin"),
    (
        "feed mode",
        lambda c: c.plain.read_change_feed(mode="all"),  # type: ignore[arg-type]
        400,
        0,
        "The change feed mode is 'latest' or 'all_versions', not 'all'.",
    ),
    (
        "feed start",
        lambda c: c.plain.read_change_feed(start="yesterday"),  # type: ignore[arg-type]
        400,
        0,
        "The change feed starts from 'beginning', 'now' or a datetime.",
    ),
    (
        "all versions from the beginning",
        lambda c: c.plain.read_change_feed(mode="all_versions"),
        400,
        0,
        "The all-versions change feed starts from now or from a continuation.",
    ),
    (
        "all versions from a time",
        lambda c: c.plain.read_change_feed(mode="all_versions", start=datetime.now(UTC)),
        400,
        0,
        "The all-versions change feed starts from now",
    ),
    (
        "all versions without a policy",
        lambda c: c.plain.read_change_feed(mode="all_versions", start="now"),
        400,
        0,
        "The all-versions change feed needs a container with a changeFeedPolicy",
    ),
    *(
        (
            f"feed range {start}-{end} from {at}",
            lambda c, start=start, end=end, at=at: c.plain.read_change_feed(
                feed_range=FeedRange(start, end), start=at
            ),
            400,
            0,
            "The feed range",
        )
        for start, end in (("20", "10"), ("10", "10"), ("", "FFFF"))
        for at in ("beginning", "now")
    ),
    (
        "feed range of letters",
        lambda c: c.plain.read_change_feed(feed_range=FeedRange("x", "y")),
        400,
        0,
        "The effective partition key 'x' is not hexadecimal.",
    ),
    # containers and databases
    ("container without name", new(""), 400, 0, "The 'id' of a resource must be a string"),
    ("slash in a name", new("a/b"), 400, 0, "The resource name presented contains invalid char"),
    ("question mark in a name", new("a?"), 400, 0, "The resource name presented contains invalid"),
    ("256 characters", new("x" * 256), 400, 0, "The resource name has 256 characters"),
    ("surrogate in a name", new("\ud800"), 400, 0, "The 'id' is not valid Unicode"),
    ("database name", lambda c: c.world.account.create_database("a#"), 400, 0, "The resource name"),
    ("surrogate database", lambda c: c.world.account.create_database("\ud800"), 400, 0, "The 'id'"),
    ("container taken", new("plain"), 409, 0, "Entity with the specified id already exists"),
    (
        "database taken",
        lambda c: c.world.account.create_database("shop"),
        409,
        0,
        "Entity with the",
    ),
    ("key without slash", new(key="pk"), 400, 0, ""),
    ("no levels", new(key=[]), 400, 0, "A hierarchical partition key needs at least one path."),
    (
        "four levels",
        new(key=["/a", "/b", "/c", "/d"]),
        400,
        0,
        "Too many partition key paths: Subpartitioning is only supported",
    ),
    (
        "levels of version 1",
        new(key={"paths": ["/a", "/b"], "kind": "MultiHash", "version": 1}),
        400,
        0,
        "Subpartitioning is only supported for Hash V2.",
    ),
    (
        "system key of version 2",
        new(key={"paths": ["/_partitionKey"], "systemKey": True, "version": 2}),
        400,
        0,
        "A system partition key is kind 'Hash', version 1",
    ),
    *(
        (f"defaultTtl {ttl!r}", new(default_ttl=ttl), 400, 0, f"The defaultTtl '{ttl}' is invalid.")
        for ttl in (0, -2, 1.5, 2147483648, "5")
    ),
    ("retention", new(change_feed_retention_minutes=-1), 400, 0, "The changeFeedPolicy must be"),
    ("0 partitions", new(physical_partitions=0), 400, 0, "A container can start with 1 to"),
    (
        "fixed with 2",
        new(key=None, physical_partitions=2),
        400,
        0,
        "A fixed container has one phys",
    ),
    ("11 unique keys", new(unique_keys=[[f"/{n}"] for n in range(11)]), 400, 0, ""),
    ("bad policy", new(indexing_policy={"indexingMode": "lazy-ish"}), 400, 0, ""),
    (
        "another key",
        lambda c: c.world.database.replace_container(
            "plain", partitionKey={"paths": ["/x"], "kind": "Hash", "version": 2}
        ),
        400,
        0,
        "Document collection partition key cannot be changed.",
    ),
    (
        "other unique keys",
        lambda c: c.world.database.replace_container("plain", uniqueKeyPolicy=None),
        400,
        0,
        "The unique keys of a container can't be changed after it was created.",
    ),
    (
        "another synthetic key",
        lambda c: c.world.database.replace_container("synthetic", syntheticKey=DRAWN),
        400,
        0,
        "The synthetic key of a container can't be changed after it was created.",
    ),
    (
        "synthetic key elsewhere",
        new(key="/other", synthetic_key=VINS),
        400,
        0,
        "The synthetic key's path must be the container's one partition key path.",
    ),
    ("no such container", lambda c: c.world.database.container("none"), 404, 0, "Entity with the"),
    ("no such database", lambda c: c.world.account.database("none"), 404, 0, "Entity with the"),
]


@pytest.mark.parametrize(
    ("call", "status", "sub_status", "text"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_violation_is_refused_and_nothing_is_written(
    cast: Cast, call: Callable[[Cast], Any], status: int, sub_status: int, text: str
) -> None:
    before = [rows_of(one) for one in cast.all()]
    names = cast.world.account.databases(), cast.world.database.containers()
    reply = refusal(lambda: call(cast))
    assert (reply.status, reply.sub_status) == (status, sub_status), reply.message
    assert reply.message.startswith(text)
    assert reply.message.strip()
    assert [rows_of(one) for one in cast.all()] == before
    assert (cast.world.account.databases(), cast.world.database.containers()) == names
    check(*cast.all())


# --- what is allowed, just inside each bound -----------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        sized(ITEM_BYTES_MAX),
        nested(128),
        {"id": "é" * 511 + "x", "pk": "a"},
        {"id": "a?b#c", "pk": "a"},
        {"id": "x", "pk": "k" * 2048},
        {"id": "x", "pk": 2**53},
        {"id": "x", "pk": "a", "ttl": -1},
        {"id": "x", "pk": "a", "ttl": 2147483647},
    ],
    ids=lambda body: str(body)[:30],
)
def test_just_inside_the_bounds_is_fine(memory: World, body: dict[str, Any]) -> None:
    items = memory.container()
    items.create_item(body)
    assert items.read_item(body["id"], body["pk"])["id"] == body["id"]
    check(items)


def test_the_last_of_two_equal_names_wins_and_system_properties_are_ours(memory: World) -> None:
    items = memory.container()
    items.create_item('{"id":"x","pk":"b","n":1,"pk":"a","n":2,"_rid":"mine","_ts":1}')
    read = items.read_item("x", "a")
    assert read["n"] == 2
    assert read["_rid"] != "mine"
    assert read["_ts"] > 1
    check(items)
