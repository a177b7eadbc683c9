"""Transactions of procedures, on each engine: what a script reads, writes and leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from tests.support.postgres import fresh_url
from tests.support.scripts import World, script, world

from armillary.errors import BadInput, ScriptConflict, ScriptFailed
from armillary.limits import SCRIPT_RETRIES_MAX
from armillary.scripts.executing import execute_procedure
from armillary.scripts.transactions import transaction

INCREMENT = """function (id) {
  __.readDocument(__.getAltLink() + '/docs/' + id, (e, doc) => {
    if (e) throw e;
    doc.n += 1;
    __.replaceDocument(doc._self, doc, (e, made) => {
      if (e) throw e;
      __.response.setBody(made.n);
    });
  });
}"""


@pytest.fixture(
    params=["memory", "lmdb", pytest.param("postgres", marks=pytest.mark.postgres)],
)
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    address: str | Path = ":memory:"
    if request.param != "memory":
        address = tmp_path / "data" if request.param == "lmdb" else fresh_url()
    with world(address) as made:
        yield made


def test_all_writes_of_a_run_share_one_lsn(here: World) -> None:
    executed = here.execute(
        """function () {
          for (let i = 0; i < 5; i++) __.createDocument(__.getSelfLink(), {id: 'i' + i, pk: 'a'});
          __.upsertDocument(__.getSelfLink(), {id: 'i0', pk: 'a', again: true});
        }"""
    )
    assert {done.lsn for done in executed.writes} == {executed.lsn}
    page = here.container.read_change_feed(max_items=2)
    assert sorted(one["id"] for one in page.items) == [f"i{n}" for n in range(5)]


def test_what_a_script_saw_of_its_items_is_what_is_stored(here: World) -> None:
    """Also when others write to the same physical partition meanwhile."""
    for n in range(20):
        here.container.create_item({"id": f"other{n}", "pk": f"key{n}"})
    seen = here.run(
        """function () {
          __.createDocument(__.getSelfLink(), {id: '1', pk: 'a'}, (e, doc) => {
            __.response.setBody(doc);
          });
        }"""
    )
    stored = here.container.read_item("1", "a")
    assert (seen["_rid"], seen["_self"], seen["_etag"]) == (
        stored["_rid"],
        stored["_self"],
        stored["_etag"],
    )
    made = [here.container.create_item({"id": f"later{n}", "pk": "a"})["_rid"] for n in range(5)]
    assert len({seen["_rid"], *made}) == 6


def test_many_runs_on_one_key_wait_for_each_other(here: World) -> None:
    here.container.create_item({"id": "n", "pk": "a", "n": 0})
    waiting = [here.begin(INCREMENT, "n") for _ in range(40)]
    done = [one.result() for one in waiting]
    assert here.container.read_item("n", "a")["n"] == 40
    assert {one.runs for one in done} == {1}, "a queue needs no retries"


def test_a_plain_write_between_read_and_commit_runs_the_script_again(here: World) -> None:
    here.container.create_item({"id": "n", "pk": "a", "n": 0})
    commit = "scripts.commit"
    engine = here.container._store.engine
    submit, left = engine.submit, iter(range(3))

    def meddling(space, command):  # type: ignore[no-untyped-def]
        if command.name == commit and next(left, None) is not None:
            here.container.patch_item("n", "a", [{"op": "incr", "path": "/n", "value": 100}])
        return submit(space, command)

    engine.submit = meddling  # type: ignore[method-assign]
    try:
        executed = here.execute(INCREMENT, "n")
    finally:
        engine.submit = submit  # type: ignore[method-assign]
    assert executed.runs == 4
    assert here.container.read_item("n", "a")["n"] == 301


def test_a_write_to_another_item_of_the_key_is_no_conflict(here: World) -> None:
    for id in ("n", "other"):
        here.container.create_item({"id": id, "pk": "a", "n": 0})
    engine = here.container._store.engine
    submit = engine.submit

    def meddling(space, command):  # type: ignore[no-untyped-def]
        if command.name == "scripts.commit":
            here.container.patch_item("other", "a", [{"op": "incr", "path": "/n", "value": 1}])
        return submit(space, command)

    engine.submit = meddling  # type: ignore[method-assign]
    try:
        by_id = here.execute(INCREMENT, "n")
        with pytest.raises(ScriptConflict):
            here.execute(
                """function () {
                  const query = 'SELECT VALUE SUM(c.n) FROM c';
                  __.queryDocuments(__.getSelfLink(), query, (e, found) => {
                    __.upsertDocument(__.getSelfLink(), {id: 'sum', pk: 'a', n: found[0]});
                  });
                }"""
            )
    finally:
        engine.submit = submit  # type: ignore[method-assign]
    assert by_id.runs == 1
    assert here.container.read_item("other", "a")["n"] == 1 + SCRIPT_RETRIES_MAX


def test_a_failed_operation_leaves_no_trace_in_the_run(here: World) -> None:
    found = here.run(
        """function () {
          const seen = [], link = __.getSelfLink();
          __.createDocument(link, {id: '1', pk: 'a', n: 1});
          __.createDocument(link, {id: '1', pk: 'a', n: 2}, (e) => seen.push(e.number));
          __.createDocument(link, {id: '2', pk: 'b'}, (e) => seen.push(e.number));
          __.createDocument(link, {id: 'x'.repeat(2000), pk: 'a'}, (e) => seen.push(e.number));
          __.deleteDocument(__.getAltLink() + '/docs/none', (e) => seen.push(e.number));
          __.queryDocuments(link, 'SELECT VALUE c.n FROM c', (e, all) => {
            __.response.setBody([seen, all]);
          });
        }"""
    )
    assert found == [[409, 400, 400, 404], [1]]
    assert [one["n"] for one in here.container.read_all_items()] == [1]


def test_unique_keys_hold_inside_a_run(here: World) -> None:
    container = here.account.database("d").create_container("u", "/pk", unique_keys=[["/mail"]])
    container.create_item({"id": "1", "pk": "a", "mail": "x"})
    text = """function () {
      const seen = [], add = (id, mail) => __.createDocument(__.getSelfLink(),
        {id, pk: 'a', mail}, (e) => { seen.push(e ? e.number : 201); __.response.setBody(seen); });
      add('2', 'x'); add('3', 'y'); add('4', 'y');
    }"""
    assert container.scripts.run_text(text, "a").value == [409, 201, 409]


def test_time_to_live_and_renaming(here: World) -> None:
    here.container.create_item({"id": "old", "pk": "a", "n": 1})
    here.run(
        """function () {
          __.readDocument(__.getAltLink() + '/docs/old', (e, doc) => {
            doc.id = 'new';
            __.replaceDocument(doc._self, doc, (e) => { if (e) throw e; });
          });
        }"""
    )
    assert [one["id"] for one in here.container.read_all_items()] == ["new"]


def test_index_entries_of_own_writes_are_used(here: World) -> None:
    for n in range(300):
        here.container.create_item({"id": str(n), "pk": "a", "n": n})
    found = here.run(
        """function () {
          __.createDocument(__.getSelfLink(), {id: 'mine', pk: 'a', n: 150.5});
          __.deleteDocument(__.getAltLink() + '/docs/150');
          const query = 'SELECT VALUE c.n FROM c WHERE c.n BETWEEN 149 AND 152 ORDER BY c.n';
          __.queryDocuments(__.getSelfLink(), query, (e, rows) => __.response.setBody(rows));
        }"""
    )
    assert found == [149, 150.5, 151, 152]
    for query in ("SELECT VALUE COUNT(1) FROM c", "SELECT VALUE COUNT(1) FROM c WHERE c.n > 149"):
        assert next(here.container.query(query)) in (300, 150)


def test_too_much_for_one_transaction(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "SCRIPT_WRITTEN_BYTES_MAX", 1 << 20)
    text = """function () {
      const body = {pk: 'a', text: 'x'.repeat(100000)};
      let n = 0;
      const more = () => __.createDocument(__.getSelfLink(), body, (e) => {
        if (e) throw e; n += 1; if (n < 60) more();
      });
      more();
    }"""
    with pytest.raises(ScriptFailed) as caught:
        here.execute(text)
    assert caught.value.facts["sub_status"] == 413
    assert list(here.container.read_all_items()) == []


def test_bodies_that_are_not_arrays_are_arguments_as_apply_has_them(here: World) -> None:
    text = "function (a) { __.response.setBody([arguments.length, typeof a]); }"
    for body, expected in (
        (b"", [0, "undefined"]),
        (b"null", [0, "undefined"]),
        (b"{}", [0, "undefined"]),
        (b'{"param1":4}', [0, "undefined"]),
        (b'{"0":"x","length":1}', [1, "string"]),
        (b'{"0":"x","length":"1"}', [1, "string"]),
        (b'{"0":"x","length":1.5}', [1, "string"]),
        (b'["a",1,{}]', [3, "string"]),
        (b'{"0":"x","length":10000}', [10000, "string"]),
    ):
        assert raw(here, text, body) == expected


@pytest.mark.parametrize(
    "body", [b'""', b'"hello"', b"0", b"-1.25", b"false", b"undefined", b"[x:4]"]
)
def test_bodies_that_are_no_arguments(here: World, body: bytes) -> None:
    with pytest.raises(BadInput):
        raw(here, "function () {}", body)


@pytest.mark.parametrize("length", ["600000", "1e9"])
def test_too_many_arguments(here: World, length: str) -> None:
    with pytest.raises(ScriptFailed):
        raw(here, "function () {}", b'{"0":"x","length":%s}' % length.encode())


def raw(here: World, text: str, body: bytes) -> object:
    store = here.container._store
    executed = execute_procedure(here.runtime, store, script(text), ("a",), body).result()
    return orjson.loads(executed.response)
