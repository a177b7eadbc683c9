// People by city, with the official SDK for tables: written, read, asked for.
const { AzureNamedKeyCredential, TableClient, odata } = require("@azure/data-tables");

const endpoint = process.env.TABLE_ENDPOINT ?? "http://localhost:8902";
// The public key of the Cosmos DB emulator; a server on this machine takes it.
const key =
  process.env.TABLE_KEY ??
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

async function main() {
  const credential = new AzureNamedKeyCredential("localhost", key);
  const options = { allowInsecureConnection: true };
  const people = new TableClient(endpoint, "peopleJs", credential, options);
  await people.createTable();
  for (const [number, rowKey] of ["ada", "bob", "eve", "joe"].entries()) {
    const partitionKey = number % 2 ? "rome" : "oslo";
    await people.upsertEntity({ partitionKey, rowKey, age: 30 + number });
  }
  const bob = await people.getEntity("rome", "bob");
  console.log(`bob is ${bob.age}`);
  const filter = odata`PartitionKey eq ${"oslo"} and age gt ${30}`;
  for await (const one of people.listEntities({ queryOptions: { filter } })) {
    console.log(`older in oslo: ${one.rowKey}`);
  }
}

main();
