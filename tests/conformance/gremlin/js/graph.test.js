// The JavaScript driver, as Microsoft's quickstart sets it up.

const test = require("node:test");
const assert = require("node:assert");
const gremlin = require("gremlin");

const user = process.env.GREMLIN_USER;
const key = process.env.GREMLIN_KEY;

function connect(options = {}) {
  const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator(user, options.key ?? key);
  return new gremlin.driver.Client(process.env.GREMLIN_URL, {
    authenticator,
    traversalsource: "g",
    rejectUnauthorized: false,
    mimeType: options.mimeType ?? "application/vnd.gremlin-v2.0+json",
  });
}

async function withClient(work, options) {
  const client = connect(options);
  await client.open();
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("no error");
}

test("the steps of the quickstart", () =>
  withClient(async (client) => {
    await client.submit("g.V().has('pk', 'quick').drop()");
    const add = "g.addV(label).property('id', id).property('pk', 'quick').property('name', name).property('n', n)";
    await client.submit(add, { label: "person", id: "thomas", name: "Thomas", n: 44 });
    await client.submit(add, { label: "person", id: "mary", name: "Mary", n: 39.5 });
    const made = await client.submit("g.V(['quick', a]).addE('knows').to(g.V(['quick', b])).property('since', 2017)", {
      a: "thomas",
      b: "mary",
    });
    assert.strictEqual(made.first().outV, "thomas");
    const found = await client.submit("g.V(['quick','thomas']).out('knows').values('name')");
    assert.deepStrictEqual(found.toArray(), ["Mary"]);
    const counted = await client.submit("g.V().has('pk','quick').count()");
    assert.strictEqual(counted.first(), 2);
    assert.ok(counted.attributes.get?.("x-ms-total-request-charge") ?? counted.attributes["x-ms-total-request-charge"] > 0);
  }));

test("a vertex has the shape of the service", () =>
  withClient(async (client) => {
    await client.submit("g.addV('city').property('id','oslo').property('pk','shape').property('name','Oslo')");
    const vertex = (await client.submit("g.V(['shape','oslo'])")).first();
    assert.strictEqual(vertex.type, "vertex");
    assert.strictEqual(vertex.properties.name[0].value, "Oslo");
    assert.deepStrictEqual(vertex.properties.pk, [{ id: "oslo|pk", value: "shape" }]);
  }));

test("errors carry codes and attributes", () =>
  withClient(async (client) => {
    const error = await failure(client.submit("g.V().fail()"));
    assert.strictEqual(error.statusCode, 597);
    assert.match(error.statusMessage, /Unable to find any method 'fail' @ line 1, column 7\./);
    const attributes = error.statusAttributes;
    assert.strictEqual(attributes.get?.("x-ms-status-code") ?? attributes["x-ms-status-code"], 400);
  }));

test("many requests on one socket at once", () =>
  withClient(async (client) => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => client.submit("g.inject(x, y)", { x: n, y: n + 1 })),
    );
    assert.deepStrictEqual(
      answers.map((one) => one.toArray()),
      Array.from({ length: 40 }, (_, n) => [n, n + 1]),
    );
  }));

test("more results than one part", () =>
  withClient(async (client) => {
    const many = Array.from({ length: 300 }, (_, n) => n);
    const found = await client.submit("g.inject(x).unfold()", { x: many });
    assert.deepStrictEqual(found.toArray(), many);
  }));

test("a wrong key is refused", () =>
  withClient(
    async (client) => {
      const error = await failure(client.submit("g.V()"));
      assert.strictEqual(error.statusCode, 401);
    },
    { key: "wrong" },
  ));

test("GraphBinary is told which serializer to set", () =>
  withClient(
    async (client) => {
      const error = await failure(client.submit("g.V()"));
      assert.strictEqual(error.statusCode, 498);
      assert.match(error.statusMessage, /vnd\.gremlin-v2\.0\+json/);
    },
    { mimeType: "application/vnd.graphbinary-v1.0" },
  ));
