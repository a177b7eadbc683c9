// The MongoDB driver for Node against `armillary serve`. It handshakes with OP_QUERY, puts single
// documents into the command itself, and compresses, which PyMongo does not.
"use strict";

const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { Binary, Decimal128, Long, MongoClient, ObjectId, Timestamp } = require("mongodb");

const uri = process.env.MONGO_URI;
let client, db;

before(async () => {
  client = await new MongoClient(uri, { compressors: ["zlib"] }).connect();
  db = client.db("node");
});
after(() => client.close());

test("documents are written, found, changed and removed", async () => {
  const people = db.collection("people");
  await people.insertMany(Array.from({ length: 300 }, (_, n) => ({ _id: n, age: n, tags: ["a"] })));
  assert.equal(await people.countDocuments({}), 300);
  const found = await people.find({ age: { $gte: 290 } }).sort({ age: -1 }).limit(3).toArray();
  assert.deepEqual(found.map((one) => one._id), [299, 298, 297]);
  assert.equal((await people.find({}, { batchSize: 7 }).toArray()).length, 300);
  assert.equal((await people.updateMany({ age: { $lt: 10 } }, { $inc: { age: 1000 } })).modifiedCount, 10);
  const after = await people.findOneAndUpdate({ _id: 5 }, { $push: { tags: "b" } }, { returnDocument: "after" });
  assert.deepEqual(after.tags, ["a", "b"]);
  assert.equal((await people.deleteMany({ age: { $gte: 1000 } })).deletedCount, 10);
  await assert.rejects(people.insertOne({ _id: 50 }), { code: 11000 });
});

test("types come back as they went", async () => {
  const types = db.collection("types");
  const document = {
    _id: new ObjectId(),
    long: Long.fromString("9007199254740993"),
    decimal: Decimal128.fromString("1.50"),
    bytes: new Binary(Buffer.from("ab"), 4 - 4),
    at: new Date(1700000000000),
    stamp: new Timestamp({ t: 1, i: 2 }),
    pattern: /a.*/i,
    nothing: null,
  };
  await types.insertOne(document);
  const found = await types.findOne({ _id: document._id }, { promoteLongs: false });
  assert.equal(found.long.toString(), "9007199254740993");
  assert.equal(found.decimal.toString(), "1.50");
  assert.equal(found.at.getTime(), 1700000000000);
  assert.equal(found.pattern.source, "a.*");
  assert.equal(found.nothing, null);
});

test("shardCollection answers as the documents say", async () => {
  const answer = await client.db("admin").command({ shardCollection: "node.orders", key: { region: "hashed" } });
  assert.equal(answer._t, "ShardCollectionResponse");
  assert.equal(answer.ok, 1);
  assert.equal(answer.collectionsharded, "node.orders");
  const orders = db.collection("orders");
  await orders.insertMany(["eu", "us", "eu"].map((region, _id) => ({ _id, region })));
  assert.equal(await orders.countDocuments({ region: "eu" }), 2);
  await assert.rejects(orders.insertOne({ _id: 9 }), { code: 61 });
});

test("a bulk reports what failed", async () => {
  const many = db.collection("many");
  const operations = [1, 2, 1, 3].map((_id) => ({ insertOne: { document: { _id } } }));
  await assert.rejects(many.bulkWrite(operations), (error) => {
    assert.equal(error.writeErrors[0].index, 2);
    return true;
  });
  await assert.rejects(many.bulkWrite(operations, { ordered: false }));
  assert.equal(await many.countDocuments({}), 3);
});

test("indexes and aggregation", async () => {
  const sales = db.collection("sales");
  await sales.createIndex({ k: 1, v: -1 });
  await sales.insertMany(Array.from({ length: 30 }, (_, n) => ({ k: n % 3, v: n })));
  const rows = await sales
    .aggregate([{ $match: { v: { $gte: 3 } } }, { $group: { _id: "$k", total: { $sum: "$v" } } }, { $sort: { _id: 1 } }])
    .toArray();
  assert.deepEqual(rows.map((one) => one.total), [135, 144, 153]);
  assert.deepEqual(Object.keys(await sales.indexInformation()).sort(), ["_id_", "k_1_v_-1"]);
});

test("a transaction is all or nothing", async () => {
  const bank = db.collection("bank");
  await bank.insertMany([{ _id: "a", n: 10 }, { _id: "b", n: 0 }]);
  await client.withSession((session) =>
    session.withTransaction(async () => {
      await bank.updateOne({ _id: "a" }, { $inc: { n: -5 } }, { session });
      await bank.updateOne({ _id: "b" }, { $inc: { n: 5 } }, { session });
    })
  );
  assert.deepEqual((await bank.find().sort({ _id: 1 }).toArray()).map((one) => one.n), [5, 5]);
  await assert.rejects(
    client.withSession((session) =>
      session.withTransaction(async () => {
        await bank.deleteOne({ _id: "a" }, { session });
        throw new Error("no");
      })
    ),
    /no/
  );
  assert.equal(await bank.countDocuments({}), 2);
});

test("a change stream sees what is written and goes on by its token", async () => {
  const feed = db.collection("feed");
  await feed.insertOne({ _id: "first" });
  const stream = feed.watch([], { fullDocument: "updateLookup", maxAwaitTimeMS: 200 });
  const waiting = stream.next();
  await new Promise((resolve) => stream.cursor.once("init", resolve) && setImmediate(resolve));
  let number = 0;
  let seen = null;
  waiting.then((event) => (seen = event));
  while (seen === null && number < 500) await feed.insertOne({ _id: number++ });
  assert.ok(seen !== null);
  const token = stream.resumeToken;
  await stream.close();
  await feed.insertOne({ _id: "last" });
  const again = feed.watch([], { fullDocument: "updateLookup", resumeAfter: token, maxAwaitTimeMS: 200 });
  let event;
  do event = await again.next();
  while (event.documentKey._id !== "last");
  await again.close();
});

test("a wrong key is refused", async () => {
  const wrong = new MongoClient(uri.replace(/:[^:@]+@/, ":d3Jvbmc=@"), { serverSelectionTimeoutMS: 20000 });
  await assert.rejects(wrong.connect(), { code: 18 });
  await wrong.close();
});
