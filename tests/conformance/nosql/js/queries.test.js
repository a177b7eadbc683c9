// Queries over several physical partitions: what the client merges itself after asking for a plan.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { ChangeFeedStartFrom } = require("@azure/cosmos");
const { WIDE_RU, ascending, create, fill, numbers, rangesOf, remove } = require("./account.js");

const COUNT = 60;

let container;
test.before(async () => {
  const compositeIndexes = [
    [{ path: "/tag", order: "ascending" }, { path: "/n", order: "descending" }],
  ];
  container = await create({ throughput: WIDE_RU, indexingPolicy: { compositeIndexes } });
  await fill(container, COUNT, 20);
});
test.after(() => remove(container));

async function ask(query, options) {
  return (await container.items.query(query, options).fetchAll()).resources;
}

test("queries: there are at least three ranges, and items in each", async () => {
  assert.ok((await rangesOf(container)).length >= 4);
  const counts = [];
  for (const range of await container.getFeedRanges())
    counts.push((await feedOf(range)).length);
  assert.ok(counts.every((count) => count > 0), String(counts));
  assert.equal(counts.reduce((sum, count) => sum + count, 0), COUNT);
});

async function feedOf(range) {
  const options = { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(range), maxItemCount: 100 };
  const page = await container.items.getChangeFeedIterator(options).readNext();
  return page.result;
}

test("queries: everything, page by page", async () => {
  const iterator = container.items.query("SELECT * FROM c", { maxItemCount: 7 });
  const found = [];
  while (iterator.hasMoreResults()) {
    const { resources } = await iterator.fetchNext();
    assert.ok((resources ?? []).length <= 7);
    found.push(...(resources ?? []).map((one) => one.n));
  }
  assert.deepEqual(found.sort(ascending), numbers(COUNT));
});

test("queries: readAll", async () => {
  assert.equal((await container.items.readAll().fetchAll()).resources.length, COUNT);
});

test("queries: of one key", async () => {
  const query = "SELECT VALUE c.n FROM c ORDER BY c.n DESC";
  assert.deepEqual(await ask(query, { partitionKey: "key3" }), [43, 23, 3]);
});

test("queries: parameters", async () => {
  const query = {
    query: "SELECT VALUE c.n FROM c WHERE c.n >= @from AND ARRAY_CONTAINS(@tags, c.tag)",
    parameters: [{ name: "@from", value: 50 }, { name: "@tags", value: ["t0", "t1"] }],
  };
  const found = await ask(query);
  assert.deepEqual(found.sort(ascending), [51, 52, 54, 55, 57, 58]);
});

test("queries: in order", () => inOrder(undefined));
test("queries: in order, in pages of 4", () => inOrder(4));

async function inOrder(maxItemCount) {
  const up = await ask("SELECT c.n FROM c ORDER BY c.n", { maxItemCount });
  assert.deepEqual(up.map((one) => one.n), numbers(COUNT));
  const down = await ask("SELECT VALUE c.n FROM c ORDER BY c.n DESC", { maxItemCount });
  assert.deepEqual(down, numbers(COUNT).reverse());
}

test("queries: in order of two properties", async () => {
  const found = await ask("SELECT c.tag, c.n FROM c ORDER BY c.tag ASC, c.n DESC");
  const expected = ["t0", "t1", "t2"].flatMap((tag, at) =>
    numbers(COUNT).filter((n) => n % 3 === at).reverse().map((n) => ({ tag, n })));
  assert.deepEqual(found, expected);
});

const MERGED = {
  "SELECT VALUE COUNT(1) FROM c": [60],
  "SELECT VALUE SUM(c.n) FROM c": [1770],
  "SELECT VALUE AVG(c.n) FROM c": [29.5],
  "SELECT VALUE MIN(c.n) FROM c WHERE c.n > 7": [8],
  "SELECT VALUE MAX(c.n) FROM c": [59],
  "SELECT VALUE COUNT(1) FROM c WHERE c.n > 1000": [0],
  "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC": [59, 58, 57],
  "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 4": [5, 6, 7, 8],
  "SELECT DISTINCT VALUE c.tag FROM c ORDER BY c.tag": ["t0", "t1", "t2"],
  "SELECT COUNT(1) AS count, SUM(c.n) AS sum FROM c": [{ count: 60, sum: 1770 }],
};

test("queries: aggregates, TOP and OFFSET", async () => {
  for (const [query, expected] of Object.entries(MERGED))
    assert.deepEqual(await ask(query), expected, query);
});

test("queries: DISTINCT", async () => {
  const found = await ask("SELECT DISTINCT c.tag, c.even FROM c");
  assert.equal(found.length, 6);
  const values = await ask("SELECT DISTINCT VALUE c.pk FROM c", { maxItemCount: 3 });
  assert.equal(new Set(values).size, 20);
  assert.equal(values.length, 20);
});

test("queries: GROUP BY", async () => {
  const query =
    "SELECT c.tag, COUNT(1) AS count, SUM(c.n) AS sum, AVG(c.n) AS mean, MIN(c.n) AS least," +
    " MAX(c.n) AS most FROM c GROUP BY c.tag";
  const found = await ask(query);
  found.sort((left, right) => left.tag.localeCompare(right.tag));
  assert.deepEqual(found, [
    { tag: "t0", count: 20, sum: 570, mean: 28.5, least: 0, most: 57 },
    { tag: "t1", count: 20, sum: 590, mean: 29.5, least: 1, most: 58 },
    { tag: "t2", count: 20, sum: 610, mean: 30.5, least: 2, most: 59 },
  ]);
  const values = await ask("SELECT VALUE COUNT(1) FROM c GROUP BY c.even");
  assert.deepEqual(values, [30, 30]);
});

test("queries: with a plan first", async () => {
  const options = { forceQueryPlan: true };
  assert.equal((await ask("SELECT * FROM c WHERE c.even", options)).length, 30);
  const top = "SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n";
  assert.deepEqual(await ask(top, options), [0, 1]);
});

test("queries: can be continued by somebody else", async () => {
  const query = "SELECT VALUE c.n FROM c";
  const first = await container.items.query(query, { maxItemCount: 10 }).fetchNext();
  const found = [...first.resources];
  let continuationToken = first.continuationToken;
  while (continuationToken) {
    const page = await container.items
      .query(query, { maxItemCount: 10, continuationToken })
      .fetchNext();
    found.push(...(page.resources ?? []));
    continuationToken = page.continuationToken;
  }
  assert.deepEqual(found.sort(ascending), numbers(COUNT));
});

test("queries: errors say where", async () => {
  await assert.rejects(ask("SELECT * FROM c WHERE"), (error) => {
    assert.equal(error.code, 400);
    assert.match(JSON.stringify(error.body ?? error.message), /SC\d{4}/);
    return true;
  });
});

test("queries: metrics and charge", async () => {
  const options = { partitionKey: "key3", populateQueryMetrics: true };
  const answer = await container.items.query("SELECT * FROM c", options).fetchAll();
  assert.ok(answer.requestCharge > 0);
});
