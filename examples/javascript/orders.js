// Orders by region with the MongoDB driver: a sharded collection, written, asked for, summed up.
const { MongoClient } = require("mongodb");

// As `armillary serve` prints it, with the public key of the Cosmos DB emulator.
const uri =
  process.env.MONGO_URI ??
  "mongodb://localhost:C2y6yDjf5%2FR%2Bob0N8A7Cgv30VRDJIWEHLM%2B4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw%2FJw%3D%3D@localhost:10255/?replicaSet=globaldb";

async function main() {
  const client = new MongoClient(uri);
  try {
    const shop = client.db("shop");
    const there = await shop.listCollections({ name: "ordersJs" }).toArray();
    if (there.length === 0) {
      // The shard key is the partition key of the container.
      await client.db("admin").command({ shardCollection: "shop.ordersJs", key: { region: "hashed" } });
    }
    const orders = shop.collection("ordersJs");
    for (let number = 0; number < 6; number++) {
      const filter = { _id: number, region: number % 2 ? "us" : "eu" };
      await orders.updateOne(filter, { $set: { total: 10 * number } }, { upsert: true });
    }
    const large = await orders.find({ region: "us", total: { $gt: 20 } }).toArray();
    console.log("large in us:", large.map((one) => one._id).sort().join(", "));
    const steps = [{ $group: { _id: "$region", total: { $sum: "$total" } } }, { $sort: { _id: 1 } }];
    const totals = await orders.aggregate(steps).toArray();
    console.log("totals:", totals.map((one) => `${one._id} ${one.total}`).join(", "));
  } finally {
    await client.close();
  }
}

main();
