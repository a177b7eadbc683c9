// Error(number, message) as under Chakra, the engine of the service. Error("text", {cause}) of newer
// engines stays as it is. Facts: scripts 2.6. Gives the constructor that takes the place of Error.
(function (library) {
  'use strict';
  const {define, Native} = library;
  const construct = Reflect.construct;
  function ScriptError(first, second) {
    const count = arguments.length, target = new.target || ScriptError;
    const isCause = count === 2 && typeof first === 'string' && typeof second === 'object' && second !== null;
    let made;
    if (isCause) made = construct(Native, [first, second], target);
    else if (count > 1) made = construct(Native, [second], target);
    else made = construct(Native, count ? [first] : [], target);
    if (count !== 1 && !isCause) {
      define(made, 'number', {value: count ? Number(first) : 0, writable: true, configurable: true});
    }
    return made;
  }
  ScriptError.prototype = Native.prototype;
  define(ScriptError, 'prototype', {writable: false});
  define(ScriptError, 'name', {value: 'Error'});
  define(ScriptError, 'length', {value: 1});
  define(Native.prototype, 'constructor', {value: ScriptError, writable: true, configurable: true});
  define(Native.prototype, 'description', {
    get() { return this.message; },
    set(value) { define(this, 'description', {value, writable: true, configurable: true}); },
    configurable: true,
  });
  for (const name of ['captureStackTrace', 'stackTraceLimit', 'isError']) {
    const found = Object.getOwnPropertyDescriptor(Native, name);
    if (found && 'value' in found) define(ScriptError, name, found);
  }
  for (const kind of [TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError]) {
    Object.setPrototypeOf(kind, ScriptError);
  }
  return ScriptError;
})
