// Cities and roads with the JavaScript driver. `graph.py` beside it makes the container.

const gremlin = require("gremlin");

const url = process.env.GREMLIN_ENDPOINT ?? "ws://localhost:8901/gremlin";
// The public key of the Cosmos DB emulator; a server on this machine takes it.
const key =
  process.env.COSMOS_KEY ??
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

async function main() {
  const graph = new gremlin.driver.Client(url, {
    authenticator: new gremlin.driver.auth.PlainTextSaslAuthenticator("/dbs/travel/colls/roads", key),
    traversalsource: "g",
    mimeType: "application/vnd.gremlin-v2.0+json",
  });
  await graph.open();
  try {
    const near = await graph.submit("g.V([country, name]).out('road').id().order()", { country: "USA", name: "Seattle" });
    console.log("from Seattle:", near.toArray().join(", "));
    const total = await graph.submit("g.E().values('miles').sum()");
    console.log("miles in all:", total.first());
  } finally {
    await graph.close();
  }
}

main();
