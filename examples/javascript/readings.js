// Readings of devices, with the official SDK: written, read, asked for.
const { CosmosClient } = require("@azure/cosmos");

const endpoint = process.env.COSMOS_ENDPOINT ?? "http://localhost:8081";
// The public key of the Cosmos DB emulator; a server on this machine takes it.
const key =
  process.env.COSMOS_KEY ??
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

async function main() {
  const client = new CosmosClient({ endpoint, key });
  const { database } = await client.databases.createIfNotExists({ id: "weather" });
  const { container } = await database.containers.createIfNotExists({
    id: "readings-js",
    partitionKey: { paths: ["/deviceId"] },
  });
  for (let device = 0; device < 5; device++) {
    for (let hour = 0; hour < 4; hour++) {
      await container.items.upsert({
        id: `${device}-${hour}`,
        deviceId: `device${device}`,
        celsius: 15 + hour,
      });
    }
  }
  const { resource, requestCharge } = await container.item("3-2", "device3").read();
  console.log(`device3 at 2: ${resource.celsius} °C for ${requestCharge} RU`);
  const { resources } = await container.items
    .query("SELECT VALUE COUNT(1) FROM c WHERE c.celsius > 16")
    .fetchAll();
  console.log(`warm everywhere: ${resources[0]}`);
  client.dispose();
}

main();
