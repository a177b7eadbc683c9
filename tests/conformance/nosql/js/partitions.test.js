// Batch, bulk, change feed and throughput, also while ranges split.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { setTimeout: sleep } = require("node:timers/promises");
const { ChangeFeedStartFrom } = require("@azure/cosmos");
const { WIDE_RU, ascending, connect, fill, fresh, numbers, rangesOf } = require("./account.js");

test("batch: all", async (t) => {
  const container = await fresh(t);
  await container.items.create({ id: "old", pk: "a", n: 1 });
  const { result, code } = await container.items.batch(
    [
      { operationType: "Create", resourceBody: { id: "1", pk: "a" } },
      { operationType: "Upsert", resourceBody: { id: "2", pk: "a" } },
      { operationType: "Patch", id: "old", resourceBody: [{ op: "incr", path: "/n", value: 1 }] },
      { operationType: "Read", id: "old" },
      { operationType: "Replace", id: "2", resourceBody: { id: "2", pk: "a", n: 3 } },
      { operationType: "Delete", id: "1" },
    ],
    "a",
  );
  assert.equal(code, 200);
  assert.deepEqual(result.map((one) => one.statusCode), [201, 201, 200, 200, 200, 204]);
  assert.equal(result[3].resourceBody.n, 2);
});

test("batch: nothing", async (t) => {
  const container = await fresh(t);
  await container.items.create({ id: "1", pk: "a" });
  const { result, code } = await container.items.batch(
    ["2", "1", "3"].map((id) => ({ operationType: "Create", resourceBody: { id, pk: "a" } })),
    "a",
  );
  assert.equal(code, 207);
  assert.deepEqual(result.map((one) => one.statusCode), [424, 409, 424]);
  const { resources } = await container.items.readAll().fetchAll();
  assert.deepEqual(resources.map((one) => one.id), ["1"]);
});

test("bulk: every operation, over several ranges", async (t) => {
  const container = await fresh(t, { throughput: WIDE_RU });
  await fill(container, 100);
  assert.equal((await container.items.readAll().fetchAll()).resources.length, 100);
  const on = (n) => ({ partitionKey: `key${n}`, id: String(n) });
  const results = await container.items.executeBulkOperations([
    { operationType: "Read", ...on(1) },
    { operationType: "Delete", ...on(2) },
    { operationType: "Create", partitionKey: "key3", resourceBody: { id: "3", pk: "key3" } },
    { operationType: "Replace", ...on(4), resourceBody: { id: "4", pk: "key4", n: -4 } },
    { operationType: "Patch", ...on(5), resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } },
    { operationType: "Read", partitionKey: "key6", id: "nothing" },
  ]);
  const codes = results.map((one) => one.response?.statusCode ?? one.error.code);
  assert.deepEqual(codes, [200, 204, 409, 200, 200, 404]);
  assert.equal(results[0].response.resourceBody.n, 1);
  assert.equal(results[4].response.resourceBody.n, 6);
});

test("bulk: the older form", async (t) => {
  const container = await fresh(t, { throughput: WIDE_RU });
  const operations = numbers(40).map((n) => ({
    operationType: "Create",
    resourceBody: { id: String(n), pk: `key${n}` },
  }));
  const results = await container.items.bulk(operations);
  assert.ok(results.every((one) => one.statusCode === 201));
});

const QUIET = 20;

async function drain(iterator) {
  // "Nothing new" from every range, also after each has split, before it is believed.
  const found = [];
  for (let quiet = 0; quiet < QUIET; ) {
    const page = await iterator.readNext();
    quiet = page.statusCode === 304 ? quiet + 1 : 0;
    found.push(...(page.result ?? []));
  }
  return found;
}

const feed = (container, from) =>
  container.items.getChangeFeedIterator({ changeFeedStartFrom: from, maxItemCount: 5 });

test("change feed: from the beginning, then what is new", async (t) => {
  const container = await fresh(t, { throughput: WIDE_RU });
  await fill(container, 40);
  const iterator = feed(container, ChangeFeedStartFrom.Beginning());
  assert.deepEqual((await drain(iterator)).map((one) => one.n).sort(ascending), numbers(40));
  await container.items.upsert({ id: "3", pk: "key3", n: 33 });
  const page = await drain(iterator);
  assert.deepEqual(page.map((one) => one.n), [33]);
});

test("change feed: of a key, of a range, from now", async (t) => {
  const container = await fresh(t, { throughput: WIDE_RU });
  await fill(container, 40);
  const ofKey = await drain(feed(container, ChangeFeedStartFrom.Beginning("key7")));
  assert.deepEqual(ofKey.map((one) => one.n), [7]);
  let total = 0;
  for (const range of await container.getFeedRanges())
    total += (await drain(feed(container, ChangeFeedStartFrom.Beginning(range)))).length;
  assert.equal(total, 40);
  assert.deepEqual(await drain(feed(container, ChangeFeedStartFrom.Now())), []);
});

test("throughput: read, replaced, autoscale", async (t) => {
  const container = await fresh(t, { throughput: 400 });
  const { offer, resource } = await container.readOffer();
  assert.equal(resource.content.offerThroughput, 400);
  resource.content.offerThroughput = 800;
  await offer.replace(resource);
  assert.equal((await container.readOffer()).resource.content.offerThroughput, 800);
  const { container: scaled } = await container.database.containers.create({
    id: "scaled",
    partitionKey: { paths: ["/pk"], version: 2 },
    maxThroughput: 1000,
  });
  const { resource: autoscale } = await scaled.readOffer();
  assert.equal(autoscale.content.offerAutopilotSettings.maxThroughput, 1000);
});

test("throughput: too much is 429, and the client waits", async (t) => {
  const container = await fresh(t, { throughput: 400 });
  const hasty = connect({ connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } } });
  t.after(() => hasty.dispose());
  const same = hasty.database(container.database.id).container(container.id);
  // Over 100 indexed properties: about 45 RU.
  const costly = (n) => {
    const item = { id: String(n), pk: "a" };
    for (const p of numbers(100)) item[`p${p}`] = p;
    return item;
  };
  let refused;
  // Twenty at once are more than two seconds' worth, however slow the machine is.
  for (let n = 0; n < 400 && !refused; n += 20) {
    const wave = numbers(20).map((more) => same.items.create(costly(n + more)));
    const ends = await Promise.allSettled(wave);
    refused = ends.find((one) => one.status === "rejected")?.reason;
  }
  assert.equal(refused.code, 429);
  assert.equal(refused.substatus, 3200);
  assert.ok(refused.retryAfterInMs > 0);
  for (const n of numbers(12)) await container.items.upsert(costly(n));
});

test("split: everything goes on while every range splits", { timeout: 200000 }, async (t) => {
  const container = await fresh(t, { throughput: WIDE_RU });
  await fill(container, 60);
  const before = await rangesOf(container);
  const watching = feed(container, ChangeFeedStartFrom.Beginning());
  assert.equal((await drain(watching)).length, 60);
  const pages = container.items.query("SELECT VALUE c.n FROM c", { maxItemCount: 7 });
  const listed = [...(await pages.fetchNext()).resources];
  const order = "SELECT VALUE c.n FROM c WHERE c.n < 60 ORDER BY c.n";
  const ordered = container.items.query(order, { maxItemCount: 7 });
  const inOrder = [...(await ordered.fetchNext()).resources];

  let splitting = true;
  const written = [];
  const writer = (async () => {
    for (let n = 1000; splitting; n++) {
      await container.items.create({ id: String(n), pk: `key${n}`, n });
      const { resource } = await container.item(String(n), `key${n}`).read();
      assert.equal(resource.n, n);
      written.push(n);
    }
  })();

  const { offer, resource } = await container.readOffer();
  resource.content.offerThroughput = 2 * before.length * 1000;
  await offer.replace(resource);
  let after = before;
  const deadline = Date.now() + 120000;
  for (; after.length < 2 * before.length && Date.now() < deadline; await sleep(100))
    after = await rangesOf(container);
  splitting = false;
  await writer;

  assert.equal(after.length, 2 * before.length);
  const parents = new Set(before.map((one) => one.id));
  assert.ok(after.every((one) => one.parents.some((id) => parents.has(id))));
  assert.ok(written.length > 0);

  while (pages.hasMoreResults()) listed.push(...((await pages.fetchNext()).resources ?? []));
  const old = listed.filter((n) => n < 1000).sort(ascending);
  assert.deepEqual(old, numbers(60), "pages that began before the split");
  const news = (await drain(watching)).map((one) => one.n).sort(ascending);
  assert.deepEqual(news, written, "a feed that began before the split");

  const ask = async (query) => (await container.items.query(query).fetchAll()).resources;
  const total = 60 + written.length;
  // At a 410 this SDK (4.9.3) would keep it in its buffer and ask the same range for ever
  // (documentProducer.bufferMore).
  while (ordered.hasMoreResults()) inOrder.push(...((await ordered.fetchNext()).resources ?? []));
  assert.deepEqual(inOrder, numbers(60), "an order that began before the split");
  assert.deepEqual(await ask(order), numbers(60));
  assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c"), [total]);
  const tags = await ask("SELECT c.tag, COUNT(1) AS count FROM c WHERE c.n < 60 GROUP BY c.tag");
  assert.deepEqual(tags.map((one) => one.count), [20, 20, 20]);
  const bulk = await container.items.executeBulkOperations(
    numbers(60).map((n) => ({
      operationType: "Upsert",
      partitionKey: `key${n}`,
      resourceBody: { id: String(n), pk: `key${n}`, n: -n },
    })),
  );
  assert.ok(bulk.every((one) => one.response?.statusCode === 200));
});
