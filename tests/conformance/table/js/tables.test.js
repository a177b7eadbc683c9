// The acceptance script of the Table API, by the official SDK.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { AzureNamedKeyCredential, AzureSASCredential, RestError, TableClient, TableServiceClient,
  TableTransaction, generateAccountSas, generateTableSas, odata } = require("@azure/data-tables");

const url = process.env.TABLE_ENDPOINT;
const credential = new AzureNamedKeyCredential("localhost", process.env.TABLE_KEY);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 3 } };
let made = 0;

async function fresh(t) {
  const client = new TableClient(url, `js${process.pid}x${++made}`, credential, options);
  await client.createTable();
  t.after(() => client.deleteTable());
  return client;
}

async function all(pages) {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
}

const fails = (promise, code, status) =>
  assert.rejects(promise, (error) => {
    assert.equal(error.details?.odataError?.code ?? error.code, code);
    assert.equal(error.statusCode, status);
    return true;
  });

test("tables are created, listed and deleted", async (t) => {
  const service = new TableServiceClient(url, credential, options);
  const client = await fresh(t);
  await client.createTable(); // the SDK takes 409 for done
  const names = (await all(service.listTables())).map((one) => one.name);
  assert.ok(names.includes(client.tableName));
  const filter = odata`TableName eq ${client.tableName}`;
  assert.equal((await all(service.listTables({ queryOptions: { filter } }))).length, 1);
  const pages = service.listTables().byPage({ maxPageSize: 1 });
  assert.equal((await pages.next()).value.length, 1);
  await service.deleteTable("neverMade"); // and 404 as well
});

test("every type comes back", async (t) => {
  const client = await fresh(t);
  const sent = {
    partitionKey: "p",
    rowKey: "r's",
    text: "größe 😀",
    whole: { type: "Int32", value: "7" },
    half: 2.5,
    large: 9223372036854775807n,
    flag: true,
    at: new Date("2020-01-02T03:04:05.678Z"),
    key: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
    data: new Uint8Array([0, 1, 2, 255]),
  };
  const created = await client.createEntity(sent);
  assert.match(created.etag, /^W\/"datetime'/);
  const found = await client.getEntity("p", "r's");
  assert.equal(found.text, sent.text);
  assert.equal(found.whole, 7);
  assert.equal(found.half, 2.5);
  assert.equal(found.large, sent.large);
  assert.equal(found.flag, true);
  assert.equal(found.at.toISOString(), sent.at.toISOString());
  assert.deepEqual(found.key, sent.key);
  assert.deepEqual([...found.data], [0, 1, 2, 255]);
  assert.equal(found.etag, created.etag);
  const typed = await client.getEntity("p", "r's", { disableTypeConversion: true });
  assert.deepEqual(typed.whole, { type: "Int32", value: "7" });
});

test("updates, merges and conditions", async (t) => {
  const client = await fresh(t);
  await client.createEntity({ partitionKey: "p", rowKey: "r", a: 1, b: 1 });
  await fails(client.createEntity({ partitionKey: "p", rowKey: "r" }), "EntityAlreadyExists", 409);
  await client.updateEntity({ partitionKey: "p", rowKey: "r", a: 2 }, "Merge");
  let found = await client.getEntity("p", "r");
  assert.deepEqual([found.a, found.b], [2, 1]);
  await client.updateEntity({ partitionKey: "p", rowKey: "r", a: 3 }, "Replace", { etag: found.etag });
  const stale = client.updateEntity({ partitionKey: "p", rowKey: "r", a: 4 }, "Merge", {
    etag: found.etag,
  });
  await fails(stale, "UpdateConditionNotSatisfied", 412);
  found = await client.getEntity("p", "r");
  assert.deepEqual([found.a, found.b], [3, undefined]);
  await client.upsertEntity({ partitionKey: "p", rowKey: "s", a: 1 }, "Merge");
  await client.upsertEntity({ partitionKey: "p", rowKey: "s", b: 2 }, "Merge");
  found = await client.getEntity("p", "s");
  assert.deepEqual([found.a, found.b], [1, 2]);
  await fails(client.updateEntity({ partitionKey: "p", rowKey: "x" }, "Merge"), "ResourceNotFound", 404);
  await client.deleteEntity("p", "s");
  await fails(client.getEntity("p", "s"), "ResourceNotFound", 404);
});

test("filters by every type, and selections", async (t) => {
  const client = await fresh(t);
  const at = new Date("2020-01-02T03:04:05.000Z");
  const key = { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" };
  await client.createEntity({ partitionKey: "p", rowKey: "1", n: 1, big: 5n, at, key, s: "it's" });
  await client.createEntity({ partitionKey: "q", rowKey: "2", n: 2, big: 6n, s: "b" });
  const rows = async (filter) =>
    (await all(client.listEntities({ queryOptions: { filter } }))).map((one) => one.rowKey);
  assert.deepEqual(await rows(odata`n gt ${1}`), ["2"]);
  assert.deepEqual(await rows(odata`big eq ${5n}`), ["1"]);
  assert.deepEqual(await rows(odata`at eq ${at}`), ["1"]);
  assert.deepEqual(await rows(`key eq guid'${key.value}'`), ["1"]);
  assert.deepEqual(await rows(odata`s eq ${"it's"}`), ["1"]);
  assert.deepEqual(await rows(odata`PartitionKey eq ${"q"} and RowKey ge ${"2"}`), ["2"]);
  assert.deepEqual(await rows("not (n eq 1)"), ["2"]);
  const [one] = await all(client.listEntities({ queryOptions: { filter: "n eq 2", select: ["s"] } }));
  assert.equal(one.s, "b");
  assert.equal(one.n, undefined);
  await fails(rows("n eq"), "InvalidInput", 400);
});

test("pages", async (t) => {
  const client = await fresh(t);
  for (let n = 0; n < 7; n++) await client.createEntity({ partitionKey: `p${n}`, rowKey: "r", n });
  const seen = [];
  let pages = 0;
  for await (const page of client.listEntities().byPage({ maxPageSize: 2 })) {
    assert.ok(page.length <= 2);
    pages++;
    seen.push(...page.map((one) => one.n));
  }
  assert.equal(pages, 4);
  assert.deepEqual(seen.sort(), [0, 1, 2, 3, 4, 5, 6]);
  const first = await client.listEntities().byPage({ maxPageSize: 3 }).next();
  const token = first.value.continuationToken;
  const rest = [];
  for await (const page of client.listEntities().byPage({ continuationToken: token })) rest.push(...page);
  assert.equal(rest.length, 4);
});

test("transactions are all or nothing", async (t) => {
  const client = await fresh(t);
  await client.createEntity({ partitionKey: "p", rowKey: "old", n: 1 });
  const good = new TableTransaction();
  good.createEntity({ partitionKey: "p", rowKey: "a", n: 1 });
  good.upsertEntity({ partitionKey: "p", rowKey: "b", n: 2 }, "Replace");
  good.updateEntity({ partitionKey: "p", rowKey: "old", n: 3 }, "Merge");
  const answer = await client.submitTransaction(good.actions);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((one) => one.status), [204, 204, 204]);
  assert.ok(answer.getResponseForEntity("a").etag);
  const bad = new TableTransaction();
  bad.deleteEntity("p", "a");
  bad.createEntity({ partitionKey: "p", rowKey: "b" });
  await assert.rejects(client.submitTransaction(bad.actions), (error) => {
    assert.ok(error instanceof RestError);
    assert.equal(error.statusCode, 409);
    assert.equal(error.code, "EntityAlreadyExists");
    return true;
  });
  assert.equal((await all(client.listEntities())).length, 3);
});

test("shared access signatures", async (t) => {
  const client = await fresh(t);
  await client.createEntity({ partitionKey: "p", rowKey: "r" });
  const sas = generateTableSas(client.tableName, credential, { permissions: { query: true } });
  const reader = new TableClient(url, client.tableName, new AzureSASCredential(sas), options);
  assert.equal((await all(reader.listEntities())).length, 1);
  await fails(
    reader.createEntity({ partitionKey: "p", rowKey: "s" }), "AuthorizationPermissionMismatch", 403);
  const whole = generateAccountSas(credential);
  const other = new TableServiceClient(url, new AzureSASCredential(whole), options);
  assert.ok((await all(other.listTables())).length >= 1);
});

test("another key is refused", async () => {
  const wrong = new AzureNamedKeyCredential("localhost", Buffer.from("wrong").toString("base64"));
  const client = new TableClient(url, "nothing", wrong, options);
  await fails(client.getEntity("p", "r"), "Unauthorized", 401);
});
