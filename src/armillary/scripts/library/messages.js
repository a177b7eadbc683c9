// Request and response of a run: a property P gives getP, and when it may be written setP and
// appendP. Facts: scripts 2.2.
(function (library) {
  'use strict';
  const {limits, stringify, fail} = library;
  const tooLarge = (name) => fail(413, `Resulting message would be too large because of "${name}". Return from script with current message and use continuation token to call the script again or modify your script.`);
  function sizeOf(value) {
    if (typeof value === 'string') return value.length;
    const made = stringify(value);
    return made === undefined ? 0 : made.length;
  }
  function message(values, writable) {
    const made = {
      getValue(name) {
        if (!(name in values)) throw new TypeError(`Unable to get property '${name}' of undefined or null reference`);
        return values[name];
      },
      setValue(name, value) {
        if (!(name in values)) throw fail(400, `Cannot set new values: ${name}`);
        if (!writable.includes(name)) throw fail(403, `Not a writable property: ${name}`);
        if (sizeOf(value) > limits.message_characters) throw tooLarge(name);
        values[name] = value;
      },
      appendValue(name, value) {
        const old = made.getValue(name);
        let joined;
        if (old === null || old === undefined) joined = value;
        else if (typeof old === 'string') joined = old + (typeof value === 'string' ? value : typeof value === 'object' && value !== null ? stringify(value) : String(value));
        else joined = old + value;
        made.setValue(name, joined);
      },
    };
    for (const name of Object.keys(values)) {
      made['get' + name] = () => made.getValue(name);
      if (writable.includes(name)) {
        made['set' + name] = (value) => made.setValue(name, value);
        made['append' + name] = (value) => made.appendValue(name, value);
      }
    }
    return made;
  }
  return {message, tooLarge};
})
