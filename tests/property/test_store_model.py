"""The store against a dictionary. Whatever is done in whatever order, both agree on every item, and
every row of the store agrees with the items.

The model knows nothing of rows, LSNs or indexes: keys to bodies, and when each was written.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.support.accounts import SEED, address_of, check, plain, store_of

from armillary.account import Account, open_account
from armillary.clock import VirtualClock
from armillary.container import Item
from armillary.errors import (
    BatchFailed,
    Conflict,
    DbError,
    NotFound,
    PreconditionFailed,
    UniqueKeyConflict,
)
from armillary.store.upkeep.containers import sweep
from armillary.store.upkeep.housekeeper import keep_house

#: Few of each, so that they meet often.
KEYS: list[Any] = ["a", 1, True, "x" * 150]
IDS = ["1", "2", "y" * 300]
keys = st.sampled_from(["a", "a", "a", *KEYS])
ids = st.sampled_from(IDS)
MAILS = [None, "m1", "m2"]
mails = st.sampled_from(MAILS)
ttls = st.sampled_from([None, None, -1, 2, 7])
payloads = st.sampled_from([0, 1.5, "text", None, [1, {"z": 1}], {"p": "q"}, "é" * 300, []])
POLICIES: list[dict[str, Any]] = [
    {},
    {"includedPaths": [{"path": "/v/?"}], "excludedPaths": [{"path": "/*"}]},
    {
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/v/*"}],
        "compositeIndexes": [[{"path": "/n"}, {"path": "/_ts", "order": "descending"}]],
    },
    {"compositeIndexes": [[{"path": "/mail"}, {"path": "/n"}], [{"path": "/v"}, {"path": "/pk"}]]},
]


@dataclass(slots=True)
class Known:
    body: Item
    etag: str
    ts: int


class StoreMachine(RuleBasedStateMachine):
    """One container, two handles on it (as two processes would have), one feed reader."""

    engine = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="armillary-model-"))
        self.clock = VirtualClock()
        self.address = address_of(self.engine, self.folder)
        self.account: Account = self._open()
        self.model: dict[tuple[Any, str], Known] = {}
        self.default_ttl: int | None = None
        self.feed: str | None = None
        self.reader: dict[tuple[Any, str], Item] = {}

    def _open(self) -> Account:
        return open_account(
            self.address,
            clock=self.clock,
            seed=SEED,
            durability="relaxed",
            housekeeping=False,
        )

    @initialize(
        version=st.sampled_from([1, 2]),
        partitions=st.sampled_from([1, 3]),
        retention=st.sampled_from([None, 1]),
        ttl=st.sampled_from([None, -1, 5]),
    )
    def make(self, version: int, partitions: int, retention: int | None, ttl: int | None) -> None:
        self.default_ttl = None if self.engine == "postgres" else ttl
        self.account.create_database("d").create_container(
            "c",
            {"paths": ["/pk"], "kind": "Hash", "version": version},
            unique_keys=[["/mail"]],
            physical_partitions=partitions,
            change_feed_retention_minutes=retention,
            default_ttl=self.default_ttl,
        )
        self._handles()

    def _handles(self) -> None:
        database = self.account.database("d")
        self.both = [database.container("c"), database.container("c")]

    # --- the model --------------------------------------------------------------------------------

    def now_s(self) -> int:
        return self.clock.now_ms() // 1000

    def is_live(self, known: Known) -> bool:
        if self.default_ttl is None:
            return True
        ttl = known.body.get("ttl", self.default_ttl)
        return bool(ttl == -1 or known.ts + ttl > self.now_s())

    def live(self, key: Any, id: str) -> Known | None:
        known = self.model.get((_frozen(key), id))
        return known if known is not None and self.is_live(known) else None

    def all_live(self) -> dict[tuple[Any, str], Known]:
        return {at: known for at, known in self.model.items() if self.is_live(known)}

    def rival(self, key: Any, body: Item, own_id: str | None) -> bool:
        return any(
            pk == _frozen(key) and id != own_id and known.body.get("mail") == body.get("mail")
            for (pk, id), known in self.all_live().items()
        )

    def remember(self, body: Item, stored: Item) -> None:
        assert plain(stored) == body
        at = _frozen(body["pk"]), body["id"]
        self.model[at] = Known(body, stored["_etag"], stored["_ts"])

    def expect(self, error: type[DbError] | None, call: Any) -> Any:
        """The call succeeds, or is refused with exactly this error."""
        result: Any = None
        refused: DbError | None = None
        try:
            result = call()
        except DbError as raised:
            refused = raised
        assert type(refused) is (error or type(None)), f"{refused!r}, expected {error}"
        return result

    # --- single operations ------------------------------------------------------------------------

    @rule(key=keys, id=ids, mail=mails, ttl=ttls, v=payloads, n=st.integers(0, 3), h=st.booleans())
    def create(self, key: Any, id: str, mail: Any, ttl: Any, v: Any, n: int, h: bool) -> None:
        body = _body(key, id, mail, ttl, v, n)
        error: type[DbError] | None = None
        if self.live(key, id):
            error = Conflict
        elif self.rival(key, body, id):
            error = UniqueKeyConflict
        stored = self.expect(error, lambda: self.both[h].create_item(body))
        if stored:
            self.remember(body, stored)

    @rule(key=keys, id=ids, mail=mails, ttl=ttls, v=payloads, n=st.integers(0, 3), h=st.booleans())
    def upsert(self, key: Any, id: str, mail: Any, ttl: Any, v: Any, n: int, h: bool) -> None:
        body = _body(key, id, mail, ttl, v, n)
        error = UniqueKeyConflict if self.rival(key, body, id) else None
        stored = self.expect(error, lambda: self.both[h].upsert_item(body))
        if stored:
            self.remember(body, stored)

    @rule(
        key=keys, id=ids, new_id=ids, mail=mails, v=payloads, right=st.booleans(), h=st.booleans()
    )
    def replace(
        self, key: Any, id: str, new_id: str, mail: Any, v: Any, right: bool, h: bool
    ) -> None:
        body = _body(key, new_id, mail, None, v, 9)
        known = self.live(key, id)
        if_match = known.etag if known and right else "*" if right else "wrong"
        error: type[DbError] | None = None
        if known is None:
            error = NotFound
        elif not right:
            error = PreconditionFailed
        elif self.rival(key, body, id):
            error = UniqueKeyConflict
        elif new_id != id and self.live(key, new_id):
            error = Conflict
        stored = self.expect(
            error, lambda: self.both[h].replace_item(id, body, partition_key=key, if_match=if_match)
        )
        if stored:
            del self.model[_frozen(key), id]
            self.remember(body, stored)

    @rule(key=keys, id=ids, wanted=st.integers(0, 3), ttl=st.booleans(), h=st.booleans())
    def patch(self, key: Any, id: str, wanted: int, ttl: bool, h: bool) -> None:
        known = self.live(key, id)
        operations: list[dict[str, Any]] = [{"op": "incr", "path": "/n", "value": 1}]
        if ttl and known and "ttl" in known.body:
            operations.append({"op": "remove", "path": "/ttl"})
        error: type[DbError] | None = None
        if known is None:
            error = NotFound
        elif known.body["n"] < wanted:
            error = PreconditionFailed
        stored = self.expect(
            error,
            lambda: self.both[h].patch_item(
                id, key, operations, condition=lambda item: bool(item["n"] >= wanted)
            ),
        )
        if stored and known:
            body = known.body | {"n": known.body["n"] + 1}
            if len(operations) > 1:
                del body["ttl"]
            self.remember(body, stored)

    @rule(key=keys, id=ids, h=st.booleans())
    def delete(self, key: Any, id: str, h: bool) -> None:
        known = self.live(key, id)
        self.expect(None if known else NotFound, lambda: self.both[h].delete_item(id, key))
        if known:
            del self.model[_frozen(key), id]

    @rule(key=keys, id=ids, h=st.booleans())
    def read(self, key: Any, id: str, h: bool) -> None:
        known = self.live(key, id)
        stored = self.expect(None if known else NotFound, lambda: self.both[h].read_item(id, key))
        if known:
            assert (plain(stored), stored["_etag"]) == (known.body, known.etag)

    @rule(key=keys, ttl=ttls, h=st.booleans())
    def fill(self, key: Any, ttl: Any, h: bool) -> None:
        """Every id there is, so that renames, batches and unique keys meet something."""
        bodies = [_body(key, id, mail, ttl, 0, 1) for id, mail in zip(IDS, MAILS, strict=True)]
        for body in bodies:
            if not self.rival(key, body, body["id"]):
                self.remember(body, self.both[h].upsert_item(body))

    # --- many at once -----------------------------------------------------------------------------

    @rule(
        key=keys,
        steps=st.lists(
            st.tuples(st.sampled_from(["create", "upsert", "delete", "patch"]), ids, mails),
            min_size=1,
            max_size=5,
        ),
        h=st.booleans(),
    )
    def batch(self, key: Any, steps: list[tuple[str, str, Any]], h: bool) -> None:
        """The model runs the steps on a copy and throws it away when one fails."""
        before = dict(self.model)
        operations: list[Any] = []
        failed: int | None = None
        for position, (kind, id, mail) in enumerate(steps):
            body = _body(key, id, mail, None, kind, position)
            known = self.live(key, id)
            arguments: tuple[Any, ...] = (body,)
            if kind in ("delete", "patch"):
                arguments = (id,)
                fails = known is None
            else:
                fails = self.rival(key, body, id) or (kind == "create" and known is not None)
            if kind == "patch":
                arguments = (id, [{"op": "incr", "path": "/n", "value": 5}])
                if known:
                    body = known.body | {"n": known.body["n"] + 5}
            operations.append((kind, arguments))
            if fails and failed is None:
                failed = position
            if failed is None:
                if kind == "delete":
                    del self.model[_frozen(key), id]
                else:
                    self.model[_frozen(key), id] = Known(body, "", self.now_s())
        answers: list[Item | None] = []
        refused_at: int | None = None
        try:
            answers = self.both[h].execute_item_batch(operations, key)
        except BatchFailed as error:
            refused_at = error.facts["position"]
            self.model = before
        assert refused_at == failed
        for answer in answers:
            if answer is not None:
                at = _frozen(answer["pk"]), answer["id"]
                if at in self.model:
                    self.model[at].etag = answer["_etag"]

    @rule(key=keys, h=st.booleans())
    def delete_by_key(self, key: Any, h: bool) -> None:
        gone = [at for at in self.all_live() if at[0] == _frozen(key)]
        assert self.both[h].delete_all_items_by_partition_key(key) == len(gone)
        for at in gone:
            del self.model[at]

    @rule(size=st.integers(1, 5), h=st.booleans())
    def read_everything(self, size: int, h: bool) -> None:
        found = _by_key(self.both[h].read_all_items(page_size=size))
        assert found == {at: known.body for at, known in self.all_live().items()}

    @rule(key=keys, size=st.integers(1, 3), h=st.booleans())
    def read_one_key(self, key: Any, size: int, h: bool) -> None:
        found = _by_key(self.both[h].read_all_items(partition_key=key, page_size=size))
        expected = {at: k.body for at, k in self.all_live().items() if at[0] == _frozen(key)}
        assert found == expected

    @rule(h=st.booleans())
    def read_many(self, h: bool) -> None:
        wanted = [(id, key) for key in KEYS for id in IDS]
        found = [plain(item) for item in self.both[h].read_many(wanted)]
        assert found == [known.body for id, key in wanted if (known := self.live(key, id))]

    # --- the change feed --------------------------------------------------------------------------

    @rule(size=st.integers(1, 4), h=st.booleans())
    def follow_the_feed(self, size: int, h: bool) -> None:
        """A reader that never misses a change has seen the latest state of every live item."""
        page = self.both[h].read_change_feed(continuation=self.feed, max_items=size)
        while True:
            for item in page.items:
                self.reader[_frozen(item["pk"]), item["id"]] = plain(item)
            if page.at_end:
                break
            page = self.both[h].read_change_feed(continuation=page.continuation, max_items=size)
        self.feed = page.continuation
        for at, known in self.all_live().items():
            assert self.reader.get(at) == known.body

    # --- time and settings ------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.3, 1, 3, 70]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def keep_house(self) -> None:
        keep_house(self.account._store)
        self._forget_expired()

    def _forget_expired(self) -> None:
        """What a sweep removes does not come back when time to live is switched off."""
        self.model = self.all_live()

    @rule(ttl=st.sampled_from([None, -1, 5]), policy=st.sampled_from(POLICIES), late=st.booleans())
    def change_settings(self, ttl: int | None, policy: dict[str, Any], late: bool) -> None:
        """With `late` the indexes are not built again yet, as if the one who does it had died."""
        # Items that come back to life would be new to a feed reader that skipped them: sweep first.
        keep_house(self.account._store)
        self._forget_expired()
        if self.engine == "postgres":
            ttl = None  # it has a clock of its own, which nobody moves
        self.default_ttl = ttl
        with (
            patch("armillary.store.catalog.accounts.reindex", return_value=0)
            if late
            else nullcontext()
        ):
            self.account.database("d").replace_container(
                "c", defaultTtl=ttl, indexingPolicy=policy or None
            )
            keep_house(self.account._store)
        self._forget_expired()

    @rule()
    def open_again(self) -> None:
        if self.engine == "memory":
            return
        self.account.close()
        self.account = self._open()
        self._handles()

    @invariant()
    def statistics_agree(self) -> None:
        if not hasattr(self, "both"):
            return
        logical = {
            _frozen(one.key[0]): one.items for one in self.both[0].logical_partitions(top=100)
        }
        stored = sum(one.items for one in self.both[0].partitions())
        assert sum(logical.values()) == stored
        for at in self.all_live():
            assert logical[at[0]] >= 1

    def teardown(self) -> None:
        try:
            if hasattr(self, "both"):
                check(self.both[0])
                assert sweep(store_of(self.both[0])) >= 0
                check(self.both[0])
        finally:
            self.account.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def _frozen(key: Any) -> tuple[str, Any]:
    """True and 1 are one dictionary key, but two partition keys."""
    return type(key).__name__, key


def _body(key: Any, id: str, mail: Any, ttl: Any, v: Any, n: int) -> Item:
    body: Item = {"id": id, "pk": key, "mail": mail, "v": v, "n": n}
    if mail is None:
        body["mail"] = f"only {id}"  # so that items without one do not all collide
    return body if ttl is None else body | {"ttl": ttl}


def _by_key(items: Any) -> dict[tuple[Any, str], Item]:
    found: dict[tuple[Any, str], Item] = {}
    for item in items:
        at = _frozen(item["pk"]), item["id"]
        assert at not in found, "given twice"
        found[at] = plain(item)
    return found


def machine(engine: str) -> type[StoreMachine]:
    return type(f"{engine.title()}Machine", (StoreMachine,), {"engine": engine})


def run(engine: str, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine(engine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


@pytest.mark.parametrize(
    ("engine", "examples", "steps"),
    [
        ("memory", 100, 50),
        ("lmdb", 25, 40),
        pytest.param("postgres", 5, 25, marks=pytest.mark.postgres),
    ],
)
def test_the_store_agrees_with_a_dictionary(engine: str, examples: int, steps: int) -> None:
    run(engine, examples, steps)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("engine", ["memory", "lmdb"])
def test_the_store_agrees_with_a_dictionary_for_long(engine: str) -> None:
    run(engine, 3000, 120)
