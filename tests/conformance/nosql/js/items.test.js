// Items, databases and containers. Without these, an application's first lines might not run.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { connect, fresh } = require("./account.js");

test("items: created, read, replaced, deleted", async (t) => {
  const container = await fresh(t);
  const created = await container.items.create({ id: "1", pk: "a", n: 1 });
  assert.equal(created.statusCode, 201);
  assert.ok(created.requestCharge > 0);
  const read = await container.item("1", "a").read();
  assert.equal(read.statusCode, 200);
  assert.deepEqual(read.resource, created.resource);
  assert.equal(read.etag, created.resource._etag);
  const replaced = await container.item("1", "a").replace({ id: "1", pk: "a", n: 2 });
  assert.equal(replaced.resource.n, 2);
  const deleted = await container.item("1", "a").delete();
  assert.equal(deleted.statusCode, 204);
  const gone = await container.item("1", "a").read();
  assert.equal(gone.statusCode, 404);
  assert.equal(gone.resource, undefined);
});

test("items: upsert creates, then replaces", async (t) => {
  const container = await fresh(t);
  assert.equal((await container.items.upsert({ id: "1", pk: "a", n: 1 })).statusCode, 201);
  assert.equal((await container.items.upsert({ id: "1", pk: "a", n: 2 })).statusCode, 200);
  assert.equal((await container.item("1", "a").read()).resource.n, 2);
});

test("items: an id is made when there is none", async (t) => {
  const container = await fresh(t);
  const { resource } = await container.items.create({ pk: "a" });
  assert.match(resource.id, /^[0-9a-f-]{36}$/);
});

test("items: created twice is 409", async (t) => {
  const container = await fresh(t);
  await container.items.create({ id: "1", pk: "a" });
  await assert.rejects(container.items.create({ id: "1", pk: "a" }), { code: 409 });
  await container.items.create({ id: "1", pk: "b" });
});

test("items: an old etag is 412", async (t) => {
  const container = await fresh(t);
  const { resource } = await container.items.create({ id: "1", pk: "a" });
  const condition = { type: "IfMatch", condition: resource._etag };
  const item = container.item("1", "a");
  await item.replace({ id: "1", pk: "a", n: 2 }, { accessCondition: condition });
  await assert.rejects(item.replace({ id: "1", pk: "a" }, { accessCondition: condition }), {
    code: 412,
  });
});

test("items: a read with the current etag is 304", async (t) => {
  const container = await fresh(t);
  const { resource } = await container.items.create({ id: "1", pk: "a" });
  const condition = { type: "IfNoneMatch", condition: resource._etag };
  const same = await container.item("1", "a").read({ accessCondition: condition });
  assert.equal(same.statusCode, 304);
});

test("items: names with spaces and letters of all kinds", async (t) => {
  const container = await fresh(t);
  for (const name of ["a b", "ä+ö", "50%", "日本", "a&b=c", "🌍"]) {
    await container.items.create({ id: name, pk: name });
    assert.equal((await container.item(name, name).read()).resource.id, name);
  }
});

test("items: keys of every kind, and none", async (t) => {
  const container = await fresh(t);
  const keys = ["a", 1, 1.5, -1, true, false, null, undefined];
  for (const [at, pk] of keys.entries()) {
    await container.items.create({ id: String(at), pk });
    const { resource } = await container.item(String(at), pk).read();
    assert.equal(resource?.id, String(at), `key ${pk}`);
  }
});

test("items: session consistency reads its own writes", async (t) => {
  const container = await fresh(t);
  const client = connect({ consistencyLevel: "Session" });
  t.after(() => client.dispose());
  const same = client.database(container.database.id).container(container.id);
  for (let n = 0; n < 5; n++) {
    await same.items.upsert({ id: "1", pk: "a", n });
    assert.equal((await same.item("1", "a").read()).resource.n, n);
  }
});

test("items: patch", async (t) => {
  const container = await fresh(t);
  await container.items.create({ id: "1", pk: "a", n: 1, list: [1, 2], old: true });
  const { resource } = await container.item("1", "a").patch([
    { op: "incr", path: "/n", value: 4 },
    { op: "add", path: "/list/1", value: 9 },
    { op: "set", path: "/deep", value: { x: 1 } },
    { op: "set", path: "/deep/y", value: 2 },
    { op: "remove", path: "/old" },
    { op: "move", from: "/list", path: "/moved" },
  ]);
  assert.equal(resource.n, 5);
  assert.deepEqual(resource.moved, [1, 9, 2]);
  assert.deepEqual(resource.deep, { x: 1, y: 2 });
  assert.ok(!("old" in resource) && !("list" in resource));
  const refused = container.item("1", "a").patch({
    condition: "from c where c.n = 1",
    operations: [{ op: "set", path: "/n", value: 0 }],
  });
  await assert.rejects(refused, { code: 412 });
});

test("databases: created once, listed, read, deleted", async (t) => {
  const client = connect();
  t.after(() => client.dispose());
  const id = `js-list-${process.pid}`;
  const { database } = await client.databases.createIfNotExists({ id });
  await client.databases.createIfNotExists({ id });
  await assert.rejects(client.databases.create({ id }), { code: 409 });
  const { resources } = await client.databases.readAll().fetchAll();
  assert.ok(resources.some((one) => one.id === id));
  const query = { query: "SELECT * FROM r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] };
  assert.equal((await client.databases.query(query).fetchAll()).resources.length, 1);
  await database.delete();
  await assert.rejects(database.read(), { code: 404 });
});

test("containers: what was asked for comes back", async (t) => {
  const body = {
    indexingPolicy: {
      indexingMode: "consistent",
      automatic: true,
      includedPaths: [{ path: "/*" }],
      excludedPaths: [{ path: "/blob/*" }],
      compositeIndexes: [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]],
    },
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/mail"] }] },
    defaultTtl: 1000,
  };
  const container = await fresh(t, body);
  const { resource } = await container.read();
  assert.equal(resource.defaultTtl, 1000);
  assert.deepEqual(resource.uniqueKeyPolicy.uniqueKeys[0].paths, ["/mail"]);
  assert.equal(resource.indexingPolicy.compositeIndexes[0][1].order, "descending");
  await container.items.create({ id: "1", pk: "a", mail: "x" });
  await assert.rejects(container.items.create({ id: "2", pk: "a", mail: "x" }), { code: 409 });
  const replaced = await container.replace({ ...resource, defaultTtl: -1 });
  assert.equal(replaced.resource.defaultTtl, -1);
});

test("containers: only paths, as old programs send it", async (t) => {
  const container = await fresh(t, { partitionKey: "/pk" });
  await container.items.create({ id: "1", pk: "a" });
  assert.equal((await container.item("1", "a").read()).resource.id, "1");
});

test("keys: hierarchical", async (t) => {
  const partitionKey = { paths: ["/tenant", "/user"], version: 2, kind: "MultiHash" };
  const container = await fresh(t, { partitionKey, throughput: 4000 });
  for (const tenant of ["a", "b"])
    for (const user of [1, 2, 3]) await container.items.create({ id: `${user}`, tenant, user });
  assert.equal((await container.item("2", ["a", 2]).read()).resource.user, 2);
  const query = container.items.query("SELECT VALUE c.user FROM c", { partitionKey: ["a"] });
  assert.deepEqual((await query.fetchAll()).resources.sort(), [1, 2, 3]);
});

test("permissions: a token lets somebody else read", async (t) => {
  const container = await fresh(t);
  await container.items.create({ id: "1", pk: "a" });
  const { user } = await container.database.users.create({ id: "ada" });
  const { resource } = await user.permissions.create({
    id: "p",
    permissionMode: "Read",
    resource: container.url,
  });
  const guest = connect({ key: undefined, permissionFeed: [resource] });
  t.after(() => guest.dispose());
  const seen = guest.database(container.database.id).container(container.id);
  assert.equal((await seen.item("1", "a").read()).resource.id, "1");
  await assert.rejects(seen.items.create({ id: "2", pk: "a" }), { code: 403 });
});
