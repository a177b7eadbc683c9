// The JavaScript driver, as Microsoft's quickstart sets it up.

const test = require("node:test");
const assert = require("node:assert");
const gremlin = require("gremlin");

const user = process.env.GREMLIN_USER;
const key = process.env.GREMLIN_KEY;

function connect(options = {}) {
  const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator(options.user ?? user, options.key ?? key);
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

test("bindings of every type, and a pair as one of them", () =>
  withClient(async (client) => {
    const values = { s: "å \"quoted\" 'x'", n: 7, l: 4294967296, d: 1.5, b: true };
    await client.submit("g.V(['types', 'all']).drop()");
    await client.submit(
      "g.addV('t').property('id', 'all').property('pk', 'types').property('s', s).property('n', n)" +
        ".property('l', l).property('d', d).property('b', b)",
      values,
    );
    const found = await client.submit("g.V(pair).project('s','n','l','d','b').by('s').by('n').by('l').by('d').by('b')", {
      pair: ["types", "all"],
    });
    const first = found.first();
    assert.deepStrictEqual(first instanceof Map ? Object.fromEntries(first) : first, values);
  }));

test("throttling says when to come back", () =>
  withClient(
    async (client) => {
      const numbers = Array.from({ length: 400 }, (_, n) => n).join(",");
      const error = await failure(client.submit(`g.inject(${numbers}).map(addV('t').property('pk','x'))`));
      const attributes = error.statusAttributes;
      const fact = (name) => attributes.get?.(name) ?? attributes[name];
      assert.strictEqual(error.statusCode, 500);
      assert.strictEqual(fact("x-ms-status-code"), 429);
      assert.strictEqual(fact("x-ms-substatus-code"), 3200);
      assert.match(fact("x-ms-retry-after-ms"), /^00:\d\d:\d\d\.\d{7}$/);
    },
    { user: process.env.GREMLIN_POOR },
  ));

test("a client closes and opens again", async () => {
  const client = connect();
  for (const n of [1, 2, 3]) {
    await client.open();
    assert.deepStrictEqual((await client.submit("g.inject(n)", { n })).toArray(), [n]);
    await client.close();
  }
});

test("a graph that splits while it is traversed", () =>
  withClient(async (client) => {
    const people = 40;
    await client.submit("g.V().hasLabel('s').drop()");
    for (let n = 0; n < people; n++)
      await client.submit("g.addV('s').property('id', id).property('pk', id)", { id: `s${n}` });
    for (let n = 0; n < people; n++) {
      const [a, b] = [`s${n}`, `s${(n + 1) % people}`];
      await client.submit("g.V([a, a]).addE('next').to(g.V([b, b]))", { a, b });
    }
    const before = (await client.submit("g.V().hasLabel('s').out('next').id().order()")).toArray();
    const headers = { authorization: `Bearer ${key}` };
    const ask = async (target, options) =>
      (await fetch(`${process.env.GREMLIN_CONTROL}/${target}`, { headers, ...options })).json();
    const begun = await ask("dbs/d/colls/splits/split", { method: "POST", body: '{"id":"0"}' });
    let splitting = true;
    let rounds = 0;
    while (splitting || rounds < 3) {
      rounds++;
      const found = (await client.submit("g.V().hasLabel('s').out('next').id().order()")).toArray();
      assert.deepStrictEqual(found, before);
      assert.deepStrictEqual((await client.submit("g.V(['s0','s0']).repeat(out()).times(3).id()")).toArray(), ["s3"]);
      splitting = (await ask(`operations/${begun.operation}`)).status === "running";
    }
    assert.strictEqual((await ask(`operations/${begun.operation}`)).status, "succeeded");
  }, { user: "/dbs/d/colls/splits" }));
