// Pages of a table whose ranges split under the reader, by the official SDK.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { AzureNamedKeyCredential, TableClient } = require("@azure/data-tables");

const key = process.env.TABLE_KEY;
const credential = new AzureNamedKeyCredential("localhost", key);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 30 } };
const report = `${process.env.CONTROL}/_armillary/dbs/TablesDB/colls/splittingJs/partitions`;

async function countRanges() {
  const answer = await fetch(report, { headers: { authorization: `Bearer ${key}` } });
  return (await answer.json()).partitions.length;
}

async function fill(table, prefix, from, to, size) {
  for (let number = from; number < to; number++) {
    const rows = Array.from({ length: 10 }, (_, row) => ({
      partitionKey: `${prefix}${number}`, rowKey: `${row}`, text: "x".repeat(size),
    }));
    await table.submitTransaction(rows.map((row) => ["upsert", row, "Replace"]));
  }
}

test("every entity comes once while ranges split", async () => {
  const table = new TableClient(process.env.TABLE_ENDPOINT, "splittingJs", credential, options);
  const customHeaders = { "x-ms-offer-throughput": "25000" };
  await table.createTable({ requestOptions: { customHeaders } });
  await fill(table, "p", 0, 40, 300);
  const before = await countRanges();
  assert.ok(before >= 3, `${before} ranges`);
  const seen = [];
  let pages = 0;
  for await (const page of table.listEntities().byPage({ maxPageSize: 10 })) {
    seen.push(...page.map((one) => `${one.partitionKey} ${one.rowKey}`));
    pages += 1;
    if (pages < 30 && (await countRanges()) < before + 2) {
      await fill(table, "q", pages * 4, pages * 4 + 4, 2500);
    }
    // The test has a bound of its own for the whole file.
    while (pages === 30 && (await countRanges()) === before) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  assert.ok((await countRanges()) > before);
  assert.equal(new Set(seen).size, seen.length);
  for (let number = 0; number < 40; number++) {
    for (let row = 0; row < 10; row++) assert.ok(seen.includes(`p${number} ${row}`));
  }
});
