// User-defined functions of a query: compiled once, called in blocks of rows. No context, no state
// that a function could rely on.
(function (errorsText) {
  'use strict';
  const parse = JSON.parse, stringify = JSON.stringify, apply = Reflect.apply, define = Object.defineProperty;
  for (const name of ['SharedArrayBuffer', 'Atomics', 'WebAssembly']) delete globalThis[name];
  const Native = Error, ScriptError = (0, eval)(errorsText)({define, Native});
  define(globalThis, 'Error', {value: ScriptError, writable: true, configurable: true});
  const text = (value) => {
    try { return String(value).slice(0, 8192); } catch (_) { return ''; }
  };
  const describe = (error) => ({
    name: error instanceof Error ? text(error.name) : '',
    message: error instanceof Error ? text(error.message) : text(error),
    stack: error instanceof Error ? text(error.stack) : '',
    number: error && typeof error.number === 'number' ? error.number : 0,
    isError: error instanceof Error,
    hasNumber: Boolean(error && typeof error.number === 'number'),
  });
  let names = [], functions = [];
  // The texts are compiled after this: none of them has run when the lines above took what they need.
  function load(entries) {
    names = entries.map((one) => one.name);
    functions = entries.map((one) => {
      const found = globalThis[one.entry];
      globalThis[one.entry] = undefined; // a `var` can't be deleted
      return found;
    });
    const wrong = functions.findIndex((one) => typeof one !== 'function');
    return stringify({wrong: wrong < 0 ? null : names[wrong]});
  }
  function call(rows) {
    const made = [], missing = [], errors = [];
    for (let at = 0; at < rows.length; at++) {
      const which = rows[at][0];
      let found;
      try {
        found = apply(functions[which], undefined, rows[at][1]);
        if (typeof found === 'object' && found !== null) stringify(found); // cycles are its own fault
        else if (typeof found === 'bigint') throw new TypeError('BigInt value can\'t be serialized in JSON');
      } catch (error) {
        errors[errors.length] = [at, which, describe(error)];
        found = null;
      }
      if (found === undefined || typeof found === 'function' || typeof found === 'symbol') {
        missing[missing.length] = at;
        found = null;
      }
      made[at] = found;
    }
    return stringify({rows: made, missing, errors});
  }
  return (what, given) => (what === 'load' ? load(parse(given)) : call(parse(given)));
})
