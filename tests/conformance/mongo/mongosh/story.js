// What a person types. Each check prints `ok` and its name; an error ends the story.
const check = (name, passed) => print(passed ? `ok ${name}` : `failed ${name}`);
const shop = db.getSiblingDB("shell");

const made = db.getSiblingDB("admin").runCommand({ shardCollection: "shell.people", key: { region: "hashed" } });
check("shardCollection", made._t === "ShardCollectionResponse" && made.collectionsharded === "shell.people" && made.ok === 1);

shop.people.insertMany([
  { _id: 1, region: "eu", name: "ada", age: 36 },
  { _id: 2, region: "us", name: "bob", age: 17 },
  { _id: 3, region: "eu", name: "cyd", age: 52 },
]);
check("documents", shop.people.find({ region: "eu" }).sort({ age: -1 }).toArray().map((one) => one._id).join() === "3,1");
shop.people.updateOne({ _id: 2, region: "us" }, { $inc: { age: 1 }, $set: { adult: true } });
check("update", shop.people.findOne({ _id: 2 }).age === 18);
check("delete", shop.people.deleteMany({ age: { $gt: 50 } }).deletedCount === 1);

shop.people.createIndex({ age: 1 });
check("indexes", shop.people.getIndexes().map((one) => one.name).join() === "_id_,age_1");
const rows = shop.people.aggregate([{ $group: { _id: "$region", n: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray();
check("aggregation", JSON.stringify(rows) === '[{"_id":"eu","n":1},{"_id":"us","n":1}]');
check("explain", shop.people.find({ age: 18 }).explain().stages !== undefined);
check("charges", shop.runCommand({ getLastRequestStatistics: 1 }).RequestCharge > 0);

const session = db.getMongo().startSession();
session.startTransaction();
session.getDatabase("shell").accounts.insertOne({ _id: "a", n: 1 });
session.abortTransaction();
session.startTransaction();
session.getDatabase("shell").accounts.insertOne({ _id: "b", n: 1 });
session.commitTransaction();
session.endSession();
check("transactions", shop.accounts.find().toArray().map((one) => one._id).join() === "b");

const stream = shop.people.watch([], { fullDocument: "updateLookup" });
shop.people.insertOne({ _id: 9, region: "eu" });
let event = null;
for (let turn = 0; event === null && turn < 100; turn++) event = stream.tryNext();
check("change streams", event !== null && event.fullDocument._id === 9);
stream.close();

check("databases", db.adminCommand({ listDatabases: 1 }).databases.some((one) => one.name === "shell"));
check("collections", shop.getCollectionNames().sort().join() === "accounts,people");
check("statistics", shop.people.stats().count === 3 && shop.stats().collections === 2);
shop.dropDatabase();
check("drop", shop.getCollectionNames().length === 0);
