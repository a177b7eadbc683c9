// What the tests share: a client, and databases and containers of their own.
"use strict";

const { CosmosClient } = require("@azure/cosmos");

const endpoint = process.env.COSMOS_ENDPOINT;
const key = process.env.COSMOS_KEY;

// The server is started with 1,000 RU/s per physical partition, and 4,000 makes several of them.
const WIDE_RU = 4000;

function connect(options = {}) {
  return new CosmosClient({ endpoint, key, ...options });
}

let made = 0;

/** A new container in a database of its own. */
async function create(body = {}) {
  const { database } = await connect().databases.create({ id: `js-${process.pid}-${++made}` });
  const { container } = await database.containers.create({
    id: "items",
    partitionKey: { paths: ["/pk"], version: 2 },
    throughput: 1000,
    ...body,
  });
  return container;
}

async function remove(container) {
  await container.database.delete();
  container.database.client.dispose();
}

/** The same for one test. */
async function fresh(t, body) {
  const container = await create(body);
  t.after(() => remove(container));
  return container;
}

async function rangesOf(container) {
  const { resources } = await container.readPartitionKeyRanges().fetchAll();
  return resources;
}

/** Items 0 … count-1 under `keys` partition keys, by bulk. */
async function fill(container, count, keys = count) {
  const operations = numbers(count).map((n) => ({
    operationType: "Create",
    partitionKey: `key${n % keys}`,
    resourceBody: { id: String(n), pk: `key${n % keys}`, n, even: n % 2 === 0, tag: `t${n % 3}` },
  }));
  const results = await container.items.executeBulkOperations(operations);
  const failed = results.filter((one) => one.error || one.response.statusCode !== 201);
  if (failed.length) throw new Error(JSON.stringify(failed[0]));
}

const numbers = (count) => Array.from({ length: count }, (_, n) => n);
const ascending = (left, right) => left - right;

module.exports = { WIDE_RU, ascending, connect, create, fill, fresh, numbers, rangesOf, remove };
