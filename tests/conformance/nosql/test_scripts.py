"""Stored procedures and triggers by the official Python SDK. Numbers in comments: the behaviours to
test in the reference on scripts, section 6."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

LOG = "x-ms-documentdb-script-log-results"


@pytest.fixture
def client(server: Any) -> CosmosClient:
    """One for each test: azure-cosmos 4.17 keeps the session of an answer without `_self`, which an
    execution's is, under one name for all containers that it has not written to."""
    return cast(CosmosClient, server.client())


@pytest.fixture
def scripts(container: ContainerProxy) -> Any:
    return container.scripts


def execute(
    container: ContainerProxy, body: str, *arguments: Any, pk: Any = "a", **options: Any
) -> Any:
    """Create, run and delete a procedure."""
    container.scripts.create_stored_procedure({"id": "p", "body": body})
    try:
        return container.scripts.execute_stored_procedure(
            "p", partition_key=pk, params=list(arguments), **options
        )
    finally:
        container.scripts.delete_stored_procedure("p")


def refused(container: ContainerProxy, body: str, *arguments: Any, **options: Any) -> Any:
    with pytest.raises(CosmosHttpResponseError) as caught:
        execute(container, body, *arguments, **options)
    return caught.value


@pytest.mark.parametrize("kind", ["stored_procedure", "trigger", "user_defined_function"])
def test_create_list_query_replace_read_delete(scripts: Any, kind: str) -> None:  # 1, 2, 3
    def call(verb: str, *given: Any) -> Any:
        return getattr(scripts, f"{verb}_{kind}")(*given)

    plural = {"user_defined_function": "user_defined_functions"}.get(kind, kind + "s")
    body = {"id": "s", "body": "function () {}"}
    if kind == "trigger":
        body |= {"triggerType": "pre", "triggerOperation": "all"}
    assert call("create", body)["body"] == body["body"]
    with pytest.raises(CosmosHttpResponseError) as conflict:
        call("create", body)
    assert conflict.value.status_code == 409
    assert [one["id"] for one in getattr(scripts, f"list_{plural}")()] == ["s"]
    found = getattr(scripts, f"query_{plural}")(
        query="SELECT * FROM r WHERE r.id = @id", parameters=[{"name": "@id", "value": "s"}]
    )
    assert [one["id"] for one in found] == ["s"]
    changed = call("replace", "s", body | {"body": "function () { return 1; }"})
    assert changed["body"] == "function () { return 1; }"
    assert call("get", "s")["body"] == changed["body"]
    call("delete", "s")
    for verb in ("get", "delete"):
        with pytest.raises(CosmosHttpResponseError) as missing:
            call(verb, "s")
        assert missing.value.status_code == 404


def test_nothing_is_compiled_at_creation(container: ContainerProxy) -> None:  # 4
    trigger = {"id": "t", "body": "serverScript() { var x = 10; }"}
    trigger |= {"triggerType": "Pre", "triggerOperation": "All"}
    assert container.scripts.create_trigger(trigger)["id"] == "t"


@pytest.mark.parametrize("missing", ["body", "triggerType", "triggerOperation"])
def test_a_missing_property_is_named(container: ContainerProxy, missing: str) -> None:  # 5
    body = {"id": "t", "body": "function(){}", "triggerType": "Pre", "triggerOperation": "All"}
    del body[missing]
    with pytest.raises(CosmosHttpResponseError, match=f"'{missing}; ' - are missing") as caught:
        container.scripts.create_trigger(body)
    assert caught.value.status_code == 400


COUNT_UP = """function () {
  for (var i = 0; i < 1000; i++) {
    var item = getContext().getResponse().getBody();
    if (i > 0 && item != i - 1) throw 'body mismatch';
    getContext().getResponse().setBody(i);
  }
}"""
APPEND = """function () {
  for (var i = 0; i < 10; i++) getContext().getResponse().appendValue('Body', i);
}"""


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        (COUNT_UP, [], 999),  # 6
        (APPEND, [], "0123456789"),  # 7
        (
            "function (i) { getContext().getResponse().setBody('a' + i.temp); }",
            [{"temp": "so"}],
            "aso",
        ),
        (
            "function (v, n) { getContext().getResponse().setBody('2*' + v + ' is ' + n * 2); }",
            ["a", 123],
            "2*a is 246",
        ),
        ("function () {}", [], ""),  # 10
        ("function (p) { getContext().getResponse().setBody(p); }", [None], None),  # 12
        ("(a, b) => { __.response.setBody([a ?? 0, b?.c]); }", [None, {"c": [1]}], [0, [1]]),
        (
            "// a comment\nfunction f () { __.response.setBody(g()); }\nfunction g() { return 2; }",
            [],
            2,
        ),
        ("function () { x = 5; __.response.setBody(x); }", [], 5),  # sloppy mode
    ],
)
def test_what_a_procedure_answers(
    container: ContainerProxy, body: str, arguments: list[Any], expected: Any
) -> None:
    assert execute(container, body, *arguments) == expected


def test_logging_is_asked_for(container: ContainerProxy) -> None:  # 13
    body = "function () { var x = 1; console.log('The value of %s is %s.', 'x', x); }"
    container.scripts.create_stored_procedure({"id": "log", "body": body})
    logged = "The%20value%20of%20x%20is%201."
    for logging, expected in ((False, None), (True, logged), (False, None)):
        container.scripts.execute_stored_procedure(
            "log", partition_key="a", params=[], enable_script_logging=logging
        )
        headers = container.client_connection.last_response_headers
        assert headers.get(LOG) == expected
        assert float(headers["x-ms-request-charge"]) > 0


CREATE = """function (pk) {
  var c = getContext().getCollection();
  c.createDocument(c.getSelfLink(), {id: 'made', pk: pk}, {}, function (err, doc) {
    if (err) throw err;
    getContext().getResponse().setBody(1);
  });
}"""


def test_only_its_own_partition_key(container: ContainerProxy) -> None:  # 14
    assert execute(container, CREATE, 2, pk=2) == 1
    error = refused(container, CREATE, 2, pk=3)
    assert error.status_code == 400
    assert "cannot reference partition keys other than the one" in str(error)
    assert container.read_item("made", 2)["pk"] == 2


def test_a_query_sees_one_logical_partition(database: DatabaseProxy) -> None:  # 15
    container = database.create_container("keys", PartitionKey("/key"))
    for at, key in enumerate([None, False, True, 1, "A"]):
        container.create_item({"id": str(at), "key": key, "prop": 1})
    container.create_item({"id": "none", "prop": 1})
    body = """function () {
      __.queryDocuments(__.getSelfLink(), 'SELECT r.id, r.key, r.prop FROM r',
        function (e, feed) { if (e) throw e; __.response.setBody(feed); });
    }"""
    # azure-cosmos 4.17 can't name the key null for an execution; the JavaScript SDK does.
    assert execute(container, body, pk=False) == [{"id": "1", "key": False, "prop": 1}]
    assert execute(container, body, pk=1) == [{"id": "3", "key": 1, "prop": 1}]


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("function () { throw new Error(1234, 'Error 1234'); }", 1234),
        ("function () { throw new Error('Error'); }", None),
        ("function () { this is not javascript }", 65535),
        ("var x = 5;", 65535),
    ],
)
def test_a_throw_chooses_the_sub_status(
    container: ContainerProxy, body: str, number: int | None
) -> None:  # 16
    error = refused(container, body)
    assert (error.status_code, error.sub_status) == (400, number)


def test_an_error_of_an_operation_thrown_on(container: ContainerProxy) -> None:  # 17
    body = """function () {
      __.readDocument(__.getAltLink() + '/docs/none', function (err) { throw err; });
    }"""
    error = refused(container, body)
    assert (error.status_code, error.sub_status) == (400, 404)
    assert "Resource Not Found" in str(error)


def test_a_handled_error_does_not_abort(container: ContainerProxy) -> None:  # 18
    container.create_item({"id": "1", "pk": "a"})
    body = """function () {
      __.createDocument(__.getSelfLink(), {id: '1', pk: 'a'}, function (err) {
        if (err.number === ErrorCodes.Conflict) __.response.setBody('dummy response');
      });
    }"""
    assert execute(container, body) == "dummy response"


def test_a_throw_undoes_everything(container: ContainerProxy) -> None:  # 19
    body = """function () {
      __.createDocument(__.getSelfLink(), {id: '1', pk: 'a'}, function () {
        __.createDocument(__.getSelfLink(), {id: '2', pk: 'a'}, function () {
          throw new Error('no');
        });
      });
    }"""
    assert refused(container, body).status_code == 400
    assert list(container.read_all_items()) == []


def test_own_writes_are_seen(container: ContainerProxy) -> None:  # 20
    body = """function () {
      __.createDocument(__.getSelfLink(), {id: 'mine', pk: 'a', n: 7}, function (e, doc) {
        var query = 'SELECT VALUE c.id FROM c WHERE c.n = 7';
        __.queryDocuments(__.getSelfLink(), query, function (e, found) {
          __.readDocuments(__.getSelfLink(), function (e, page) {
            __.readDocument(doc._self, function (e, again) {
              __.response.setBody([found, page.length, again._etag === doc._etag, doc._etag]);
            });
          });
        });
      });
    }"""
    found, count, same, etag = execute(container, body)
    assert (found, count, same) == (["mine"], 1, True)
    assert container.read_item("mine", "a")["_etag"] == etag  # what it saw is what was stored


def test_a_rejected_promise_is_swallowed_and_abort_is_not(
    container: ContainerProxy,
) -> None:  # 23, 24
    swallowed = "function () { (async () => { throw new Error('foo'); })(); }"
    assert execute(container, swallowed) == ""
    aborted = """function () {
      __.createDocument(__.getSelfLink(), {id: '1', pk: 'a'});
      (async () => { throw new Error(900, 'foo'); })().catch(e => getContext().abort(e));
    }"""
    error = refused(container, aborted)
    assert (error.status_code, error.sub_status) == (400, 900)
    assert list(container.read_all_items()) == []


def test_async_over_pages(container: ContainerProxy) -> None:  # 25
    for number in range(30):
        container.create_item({"id": str(number), "pk": "a"})
    body = """function () {
      const query = (token) => new Promise((resolve, reject) => {
        const options = {continuation: token, pageSize: 7};
        const ok = __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', options,
          (e, feed, options) => e ? reject(e) : resolve({feed, next: options.continuation}));
        if (!ok) reject(new Error('not accepted'));
      });
      const change = (doc) => new Promise((resolve, reject) => {
        doc.changed = true;
        __.replaceDocument(doc._self, doc, (e, d) => e ? reject(e) : resolve(d));
      });
      const main = async () => {
        let token, count = 0;
        do {
          const {feed, next} = await query(token);
          for (const doc of feed) { await change(doc); count += 1; }
          token = next;
        } while (token);
        __.response.setBody(count);
      };
      main().catch(e => getContext().abort(e));
    }"""
    assert execute(container, body) == 30
    assert all(one["changed"] for one in container.read_all_items())


def test_the_procedure_that_is_always_there(container: ContainerProxy) -> None:  # 26
    found = container.scripts.execute_stored_procedure(
        "__.sys.echo", partition_key="a", params=cast(Any, ["foobar"])
    )
    assert found == "foobar"


def test_queries_by_functions(container: ContainerProxy) -> None:  # 27, 28
    people = [("1", "Ada", 36, ["x", "y"]), ("2", "Grace", 85, ["z"]), ("3", "Alan", 41, [])]
    for id, name, age, tags in people:
        container.create_item({"id": id, "pk": "a", "name": name, "age": age, "tags": tags})
    text = execute(container, "function (v) { __.filter(r => r.age > v); }", 40)
    assert isinstance(text, str)
    assert re.findall('"name":"(.*?)"', text) == ["Grace", "Alan"]

    def asked(chain: str) -> Any:
        body = (
            "function () { %s(function (e, feed) { if (e) throw e; __.response.setBody(feed); }); }"
        )
        return execute(container, body % chain)

    assert asked("__.chain().filter(d => d.age > 40).pluck('name').value") == ["Grace", "Alan"]
    assert asked("__.chain().map(d => ({n: d.name})).value")[0] == {"n": "Ada"}
    assert asked("__.chain().sortBy(d => d.age).pluck('id').value") == ["1", "3", "2"]
    assert asked("__.chain().sortByDescending(d => d.age).pluck('id').value") == ["2", "3", "1"]
    assert asked("__.chain().pluck('tags').flatten().value") == ["x", "y", "z"]
    assert asked("__.chain().unwind(d => d.tags, (d, t) => d.id + t).value") == ["1x", "1y", "2z"]
    assert asked("__.chain().unwind(d => d.tags).value") == ["x", "y", "z"]


BULK_IMPORT = """function bulkImport(docs) {
  var collection = getContext().getCollection(), link = collection.getSelfLink(), count = 0;
  if (!docs) throw new Error('The array is undefined or null.');
  if (docs.length === 0) { getContext().getResponse().setBody(0); return; }
  tryCreate(docs[count], callback);
  function tryCreate(doc, callback) {
    if (!collection.createDocument(link, doc, callback)) getContext().getResponse().setBody(count);
  }
  function callback(err, doc, options) {
    if (err) throw err;
    count++;
    if (count >= docs.length) getContext().getResponse().setBody(count);
    else tryCreate(docs[count], callback);
  }
}"""
BULK_DELETE = """function bulkDelete(query) {
  var c = getContext().getCollection(), body = {deleted: 0, continuation: true};
  tryQuery();
  function tryQuery(continuation) {
    var options = {continuation: continuation};
    if (!c.queryDocuments(c.getSelfLink(), query, options, function (e, docs, o) {
      if (e) throw e;
      if (docs.length > 0) tryDelete(docs);
      else if (o.continuation) tryQuery(o.continuation);
      else { body.continuation = false; getContext().getResponse().setBody(body); }
    })) getContext().getResponse().setBody(body);
  }
  function tryDelete(docs) {
    if (docs.length === 0) { tryQuery(); return; }
    if (!c.deleteDocument(docs[0]._self, {}, function (e) {
      if (e) throw e;
      body.deleted++;
      docs.shift();
      tryDelete(docs);
    })) getContext().getResponse().setBody(body);
  }
}"""


def test_bulk_import_and_delete(container: ContainerProxy) -> None:  # 29, 30
    docs = [{"id": str(number), "pk": "a"} for number in range(100)]
    assert execute(container, BULK_IMPORT, docs) == 100
    error = refused(container, BULK_IMPORT, [{"id": "new", "pk": "a"}, docs[7]])
    assert (error.status_code, error.sub_status) == (400, 409)
    assert len(list(container.read_all_items())) == 100
    assert execute(container, BULK_DELETE, "SELECT c._self FROM c") == {
        "deleted": 100,
        "continuation": False,
    }
    assert list(container.read_all_items()) == []


def test_counting_with_a_token(container: ContainerProxy) -> None:  # 31
    for number in range(60):
        container.create_item({"id": str(number), "pk": "a"})
    body = """function (max, token) {
      const options = {pageSize: max, continuation: token};
      __.queryDocuments(__.getSelfLink(), 'SELECT c.id FROM c', options, (e, feed, o) => {
        if (e) throw e;
        __.response.setBody({count: feed.length, token: o.continuation || null});
      });
    }"""
    token, counts = None, []
    for _ in range(3):
        found = execute(container, body, 25, *([token] if token else []))
        token = found["token"]
        counts.append(found["count"])
    assert (counts, token) == ([25, 25, 10], None)


def test_etag_conditions(container: ContainerProxy) -> None:  # 32, 34
    old = container.create_item({"id": "1", "pk": "a", "n": 1})["_etag"]
    body = """function (etag) {
      var link = __.getAltLink() + '/docs/1', seen = [];
      __.readDocument(link, {ifNoneMatch: etag}, (e, doc, o) => {
        seen.push([doc === undefined, o.notModified === true]);
      });
      __.replaceDocument(link, {id: '1', pk: 'a', n: 2}, {etag: etag}, (e, doc) => {
        if (e) throw e;
        seen.push(doc.n);
        __.replaceDocument(link, {id: '1', pk: 'a', n: 3}, {etag: etag}, (e) => {
          seen.push(e.number);
          __.deleteDocument(link, {etag: etag}, (e) => {
            seen.push(e.number);
            __.upsertDocument(__.getSelfLink(), {id: '1', pk: 'a', n: 9}, {etag: etag}, (e) => {
              seen.push(e.number);
              __.response.setBody(seen);
            });
          });
        });
      });
    }"""
    assert execute(container, body, old) == [[True, True], 2, 412, 412, 412]
    assert container.read_item("1", "a")["n"] == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "__.createDocument(__.getSelfLink())",
            "requires at least 2 argument(s) but was called with 1",
        ),
        ("__.readDocuments('dbs/x/colls/y')", "outside current collection"),
        ("__.readDocuments('nonsense')", 'Invalid collection link: "nonsense".'),
        ("__.readDocument('dbs/x')", 'Invalid document link: "dbs/x".'),
        ("__.readDocument('dbs/x/colls/y/docs/z')", "outside current collection"),
        ("__.readDocuments(__.getSelfLink(), 'x')", '"options" parameter must be of type "object"'),
        (
            "__.readDocuments(__.getSelfLink(), {}, 5)",
            '"callback" parameter must be of type "function"',
        ),
        ("__.createDocument(__.getSelfLink(), 5)", "must be an object or a string representing"),
        ("__.queryDocuments(__.getSelfLink(), 5)", '"filterQuery" parameter must be of type'),
        ("__.filter()", "The predicate/transform function must be provided."),
        ("__.pluck('')", "The property name must be a string and cannot be empty."),
        ("__.chain().filter(x => x, () => 1)", 'When using "chain", the callback parameter'),
        ("__.unwind()", 'When using "unwind", "collectionSelector" must be used.'),
        ("__.unwind(() => 1)", '"collectionSelector" requires one argument.'),
        ("__.response.setValue('Test', 1)", "Cannot set new values: Test"),
        ("__.response.setBody('a'.repeat(3000000))", 'too large because of "Body"'),
    ],
)
def test_bad_calls(container: ContainerProxy, call: str, message: str) -> None:  # 35
    body = (
        "function () { try { %s; } catch (e) { __.response.setBody(e.number + ' ' + e.message); } }"
    )
    assert message in execute(container, body % call)


def test_ids_are_made_unless_they_must_not_be(container: ContainerProxy) -> None:  # 36
    body = """function () {
      var given = {pk: 'a'};
      __.createDocument(__.getSelfLink(), given, (e, doc) => {
        const options = {disableAutomaticIdGeneration: true};
        __.createDocument(__.getSelfLink(), {pk: 'a'}, options, (e) => {
          __.response.setBody([doc.id, given.id === undefined, e.number]);
        });
      });
    }"""
    made, untouched, number = execute(container, body)
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made)
    assert (untouched, number) == (True, 400)


# --- triggers -------------------------------------------------------------------------------------


def trigger(container: ContainerProxy, id: str, type: str, operation: str, body: str) -> str:
    container.scripts.create_trigger(
        {"id": id, "triggerType": type, "triggerOperation": operation, "body": body}
    )
    return id


UPPER = """function () {
  var item = getContext().getRequest().getBody();
  item.id = item.id.toUpperCase() + 't1';
  getContext().getRequest().setBody(item);
}"""


def test_a_pre_trigger_changes_the_item(container: ContainerProxy) -> None:  # 37
    trigger(container, "t1", "Pre", "All", UPPER)
    made = container.create_item({"id": "doc1", "pk": "a"}, pre_trigger_include="t1")
    assert made["id"] == "DOC1t1"
    assert container.create_item({"id": "doc1", "pk": "a"})["id"] == "doc1"  # only when asked for


def test_pre_and_post(container: ContainerProxy) -> None:  # 38
    trigger(container, "t1", "Pre", "All", UPPER)
    check = """function () {
      var asked = getContext().getRequest().getBody().id;
      var got = getContext().getResponse().getBody().id;
      if (asked !== 'TESTING POST TRIGGERt1' || got !== asked) throw new Error(asked + got);
    }"""
    trigger(container, "check", "Post", "All", check)
    made = container.create_item(
        {"id": "testing post trigger", "pk": "a"},
        pre_trigger_include="t1",
        post_trigger_include="check",
    )
    assert made["id"] == "TESTING POST TRIGGERt1"


def test_a_post_trigger_changes_what_the_client_sees(container: ContainerProxy) -> None:  # 39, 48
    body = """function () {
      var r = getContext().getResponse(), b = r.getBody();
      b.id += 'x'; b.usage = r.getResourceQuotaCurrentUsage(); b.most = r.getMaxResourceQuota();
      r.setBody(b);
    }"""
    trigger(container, "t", "Post", "Create", body)
    made = container.create_item({"id": "1", "pk": "a"}, post_trigger_include="t")
    assert made["id"] == "1x"
    assert "collectionSize=" in made["usage"]
    assert "collectionSize=" in made["most"]
    assert container.read_item("1", "a")["id"] == "1"


@pytest.mark.parametrize(
    ("type", "line"),
    [
        ("Post", "getContext().getRequest().setBody('x')"),
        ("Post", "getContext().getRequest().setValue('Body', 'x')"),
        ("Post", "getContext().getRequest().setValue('Test', 'x')"),
        ("Post", "getContext().getResponse().setValue('Test', 'x')"),
        ("Pre", "getContext().getResponse()"),
    ],
)
def test_what_a_trigger_may_not_do(
    container: ContainerProxy, type: str, line: str
) -> None:  # 40, 41
    trigger(container, "t", type, "All", f"function () {{ {line}; }}")
    named: Any = {f"{type.lower()}_trigger_include": "t"}
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.create_item({"id": "1", "pk": "a"}, **named)
    assert caught.value.status_code == 400
    assert list(container.read_all_items()) == []


def test_a_change_after_set_body_counts(container: ContainerProxy) -> None:  # 42, 43
    body = """function () {
      var request = getContext().getRequest(), doc = request.getBody();
      for (var i = 0; i < 200; i++) { doc.id += 'a'; request.setBody(doc); }
      __.queryDocuments(__.getSelfLink(), 'SELECT VALUE MAX(c.n) FROM c', function (e, found) {
        if (e) throw e;
        doc.n = (found[0] || 0) + 1;
      });
    }"""
    trigger(container, "t", "Pre", "All", body)
    first = container.create_item({"id": "one", "pk": "a"}, pre_trigger_include="t")
    second = container.upsert_item({"id": "two", "pk": "a"}, pre_trigger_include="t")
    assert (len(first["id"]), first["n"], second["n"]) == (203, 1, 2)


@pytest.mark.parametrize(
    ("type", "operation", "named"),
    [
        ("Post", "Delete", {"post_trigger_include": "t"}),
        ("Pre", "Update", {"pre_trigger_include": "t"}),
        ("Post", "All", {"pre_trigger_include": "t"}),
        ("Pre", "All", {"post_trigger_include": "t"}),
        ("Pre", "All", {"pre_trigger_include": "t,t"}),
        ("Post", "All", {"post_trigger_include": "t,t"}),
    ],
)
def test_triggers_that_do_not_fit(
    container: ContainerProxy, type: str, operation: str, named: Any
) -> None:  # 44, 45
    trigger(container, "t", type, operation, "function () {}")
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.create_item({"id": "1", "pk": "a"}, **named)
    assert caught.value.status_code == 400


@pytest.mark.parametrize(("type", "number"), [("Pre", 409), ("Post", 4444)])
def test_a_trigger_that_throws_undoes_the_write(
    container: ContainerProxy, type: str, number: int
) -> None:  # 46
    trigger(container, "t", type, "All", f"function () {{ throw new Error({number}, 'no'); }}")
    named: Any = {f"{type.lower()}_trigger_include": "t"}
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.upsert_item({"id": "1", "pk": "a"}, **named)
    assert (caught.value.status_code, caught.value.sub_status) == (400, number)
    assert list(container.read_all_items()) == []


def test_a_post_trigger_may_delete_what_was_made(container: ContainerProxy) -> None:  # 47
    body = "function () { __.deleteDocument(getContext().getResponse().getBody()._self); }"
    trigger(container, "t", "Post", "Create", body)
    assert container.create_item({"id": "1", "pk": "a"}, post_trigger_include="t")["id"] == "1"
    assert list(container.read_all_items()) == []


def test_an_unknown_trigger(container: ContainerProxy) -> None:
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.create_item({"id": "1", "pk": "a"}, pre_trigger_include="none")
    assert caught.value.status_code == 404


def test_a_running_total(container: ContainerProxy) -> None:  # 49, in small
    body = """function () {
      var request = getContext().getRequest();
      var kind = request.getOperationType(), doc = request.getBody();
      var link = __.getAltLink() + '/docs/total';
      __.readDocument(link, function (e, total) {
        if (e && e.number !== 404) throw e;
        total = total || {id: 'total', pk: doc.pk, count: 0};
        total.count += {Create: 1, Delete: -1, Replace: 0, Upsert: 10}[kind];
        __.upsertDocument(__.getSelfLink(), total, function (e) { if (e) throw e; });
      });
    }"""
    trigger(container, "t", "Pre", "All", body)
    named: Any = {"pre_trigger_include": "t"}
    item = container.create_item({"id": "1", "pk": "a"}, **named)
    container.replace_item(item, {"id": "1", "pk": "a", "x": 1}, **named)
    container.upsert_item({"id": "2", "pk": "a"}, **named)
    container.delete_item("1", "a", **named)
    assert container.read_item("total", "a")["count"] == 10
    changed = container.query_items_change_feed(start_time="Beginning", partition_key="a")
    assert sorted(one["id"] for one in changed) == ["2", "total"]
