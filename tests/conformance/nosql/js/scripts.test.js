// Stored procedures, triggers and functions. Without these, programs that keep logic in the
// database might not run.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { PartitionKeyKind } = require("@azure/cosmos");
const { fill, fresh, numbers, WIDE_RU } = require("./account.js");

async function procedure(container, id, body) {
  await container.scripts.storedProcedures.create({ id, body: body.toString() });
  return container.scripts.storedProcedure(id);
}

test("scripts: created, listed, queried, replaced, deleted", async (t) => {
  const container = await fresh(t);
  const kinds = [
    [container.scripts.storedProcedures, (id) => container.scripts.storedProcedure(id), {}],
    [container.scripts.triggers, (id) => container.scripts.trigger(id), { triggerType: "Pre", triggerOperation: "All" }],
    [container.scripts.userDefinedFunctions, (id) => container.scripts.userDefinedFunction(id), {}],
  ];
  for (const [all, one, more] of kinds) {
    const { resource } = await all.create({ id: "sample script", body: "function () {}", ...more });
    assert.equal(resource.body, "function () {}");
    await assert.rejects(all.create({ id: "sample script", body: "x", ...more }), { code: 409 });
    assert.equal((await all.readAll().fetchAll()).resources.length, 1);
    const spec = { query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: "sample script" }] };
    assert.equal((await all.query(spec).fetchAll()).resources.length, 1);
    const changed = await one("sample script").replace({ id: "sample script", body: "function () { return 1; }", ...more });
    assert.equal(changed.resource.body, "function () { return 1; }");
    assert.equal((await one("sample script").read()).resource.body, "function () { return 1; }");
    await one("sample script").delete();
    await assert.rejects(one("sample script").read(), { code: 404 });
  }
});

test("scripts: a procedure answers with its body", async (t) => {
  const container = await fresh(t);
  const counts = await procedure(container, "counts", function () {
    for (let i = 0; i < 1000; i++) {
      const body = getContext().getResponse().getBody();
      if (i > 0 && body !== i - 1) throw "body mismatch";
      getContext().getResponse().setBody(i);
    }
  });
  assert.equal((await counts.execute("a")).resource, 999);
  const appends = await procedure(container, "appends", function () {
    for (let i = 0; i < 10; i++) getContext().getResponse().appendValue("Body", i);
  });
  assert.equal((await appends.execute("a")).resource, "0123456789");
  const takes = await procedure(container, "takes", function (input) {
    getContext().getResponse().setBody("a" + input.temp);
  });
  assert.equal((await takes.execute("a", [{ temp: "so" }])).resource, "aso");
  const nothing = await procedure(container, "nothing", function (given) {
    getContext().getResponse().setBody(typeof given);
  });
  assert.equal((await nothing.execute("a", null)).resource, "undefined");
});

test("scripts: logging", async (t) => {
  const container = await fresh(t);
  const logs = await procedure(container, "logs", function () {
    const mytext = "x", myval = 1;
    try {
      console.log("The value of %s is %s.", mytext, myval);
      getContext().getResponse().setBody("Success!");
    } catch (err) {
      getContext().getResponse().setBody("inline err: [" + err.number + "] " + err);
    }
  });
  const header = "x-ms-documentdb-script-log-results";
  const plain = await logs.execute("a");
  assert.equal(plain.resource, "Success!");
  assert.equal(plain.headers[header], undefined);
  const logged = await logs.execute("a", [], { enableScriptLogging: true });
  assert.equal(logged.headers[header], encodeURIComponent("The value of x is 1."));
});

test("scripts: a procedure sees one logical partition, null and none told apart", async (t) => {
  const container = await fresh(t, { partitionKey: { paths: ["/key"], kind: PartitionKeyKind.Hash, version: 2 } });
  const items = [
    { id: "document1", prop: 1 },
    { id: "document2", key: null, prop: 1 },
    { id: "document3", key: false, prop: 1 },
    { id: "document4", key: true, prop: 1 },
    { id: "document5", key: 1, prop: 1 },
    { id: "document6", key: "A", prop: 1 },
  ];
  for (const one of items) await container.items.create(one);
  const query = await procedure(container, "query", function () {
    const collection = getContext().getCollection();
    const query = "SELECT r.id, r.key, r.prop FROM r";
    const accepted = collection.queryDocuments(collection.getSelfLink(), query, function (err, found) {
      if (err) throw err;
      getContext().getResponse().setBody(found);
    });
    if (!accepted) throw new Error("not accepted");
  });
  for (const [key, index] of [[null, 1], [1, 4], ["A", 5], [undefined, 0]]) {
    const { resource } = await query.execute(key);
    assert.deepEqual(resource, [items[index]]);
  }
});

test("scripts: errors carry the number of the script", async (t) => {
  const container = await fresh(t);
  const throws = await procedure(container, "throws", function () {
    throw new Error(1234, "Error 1234");
  });
  await assert.rejects(throws.execute("a"), (error) => {
    assert.equal(error.code, 400);
    assert.equal(error.substatus, 1234);
    assert.match(error.message, /Error 1234/);
    return true;
  });
  await assert.rejects(container.scripts.storedProcedure("none").execute("a"), { code: 404 });
});

test("scripts: triggers", async (t) => {
  const container = await fresh(t);
  const triggers = [
    { id: "t1", triggerType: "Pre", triggerOperation: "All", body: `function () {
        const item = getContext().getRequest().getBody();
        item.id = item.id.toUpperCase() + "t1";
        getContext().getRequest().setBody(item);
      }` },
    { id: "response1", triggerType: "Post", triggerOperation: "All", body: `function () {
        const pre = getContext().getRequest().getBody(), post = getContext().getResponse().getBody();
        if (pre.id !== post.id) throw "post trigger: id mismatch";
        post.seen = true;
        getContext().getResponse().setBody(post);
      }` },
    { id: "triggerOpType", triggerType: "Post", triggerOperation: "Delete", body: "function () {}" },
  ];
  for (const one of triggers) await container.scripts.triggers.create(one);
  const made = await container.items.create({ id: "doc1", pk: "a" }, { preTriggerInclude: "t1" });
  assert.equal(made.resource.id, "DOC1t1");
  const both = await container.items.create(
    { id: "testing post trigger", pk: "a" },
    { preTriggerInclude: "t1", postTriggerInclude: "response1" },
  );
  assert.equal(both.resource.id, "TESTING POST TRIGGERt1");
  assert.equal(both.resource.seen, true);
  assert.equal((await container.item(both.resource.id, "a").read()).resource.seen, undefined);
  await assert.rejects(
    container.items.create({ id: "Docoptype", pk: "a" }, { postTriggerInclude: "triggerOpType" }),
    { code: 400 },
  );
  const deleted = await container.item("DOC1t1", "a").delete({ postTriggerInclude: "triggerOpType" });
  assert.equal(deleted.statusCode, 204);
});

test("scripts: one procedure, many items, all or nothing", async (t) => {
  const container = await fresh(t);
  const bulk = await procedure(container, "bulk", function (docs) {
    for (const doc of docs) __.createDocument(__.getSelfLink(), doc);
    __.response.setBody(docs.length);
  });
  const docs = numbers(50).map((n) => ({ id: String(n), pk: "a" }));
  assert.equal((await bulk.execute("a", [docs])).resource, 50);
  await assert.rejects(bulk.execute("a", [[{ id: "new", pk: "a" }, docs[3]]]), { code: 400, substatus: 409 });
  const { resources } = await container.items.readAll().fetchAll();
  assert.equal(resources.length, 50);
});

test("scripts: functions in every clause, over several ranges", async (t) => {
  const container = await fresh(t, { throughput: WIDE_RU });
  await fill(container, 60);
  const functions = {
    tax: "function (n) { return n < 10 ? n * 0.2 : n * 0.4; }",
    even: "function (n) { return n % 2 === 0; }",
    tag: "function (n) { return 't' + n % 3; }",
  };
  for (const [id, body] of Object.entries(functions)) {
    await container.scripts.userDefinedFunctions.create({ id, body });
  }
  const ask = async (query) => (await container.items.query(query).fetchAll()).resources;
  assert.deepEqual(await ask("SELECT VALUE udf.tax(c.n) FROM c WHERE c.n = 50"), [20]);
  assert.equal((await ask("SELECT * FROM c WHERE udf.even(c.n)")).length, 30);
  assert.equal((await ask("SELECT * FROM c WHERE udf.even(c.n) = true AND c.n < 10")).length, 5);
  assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c WHERE udf.tag(c.n) = 't1'"), [20]);
  const groups = await ask("SELECT udf.tag(c.n) AS tag, COUNT(1) AS n FROM c GROUP BY udf.tag(c.n)");
  assert.deepEqual(groups.map((one) => one.n), [20, 20, 20]);
  const rows = await ask("SELECT TOP 3 c.n, udf.tax(c.n) AS tax FROM c ORDER BY c.n DESC");
  assert.deepEqual(rows.map((one) => one.n), [59, 58, 57]);
  assert.deepEqual(await ask("SELECT udf.tax(c.none) AS tax FROM c WHERE c.n = 1"), [{}]);
});
