// One JSON object per line for each test that ended: what pytest reads.
"use strict";

module.exports = async function* report(events) {
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    const error = data.details.error;
    const line = {
      name: data.name,
      nesting: data.nesting,
      passed: type === "test:pass",
      skipped: data.skip ?? false,
      error: error ? String(error.cause?.stack ?? error.cause ?? error.stack ?? error) : null,
      ms: Math.round(data.details.duration_ms),
    };
    yield JSON.stringify(line) + "\n";
  }
};
