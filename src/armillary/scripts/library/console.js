// console.log: text for the log header of the answer. Facts: scripts 2.5.
(function (library) {
  'use strict';
  const {setup, limits, stringify, fail, part} = library;
  const encode = encodeURIComponent, wellFormed = String.prototype.toWellFormed;
  let logged = 0;
  return {
    log(...given) {
      if (!setup.logging) return;
      if (!given.length) throw fail(400, 'The function "log" requires at least 1 argument(s) but was called with 0 argument(s).');
      let made;
      if (given.length === 1) made = typeof given[0] === 'string' ? given[0] : typeof given[0] === 'object' && given[0] !== null ? stringify(given[0]) : String(given[0]);
      else {
        if (typeof given[0] !== 'string') throw fail(400, 'First argument to console.log should be a string containing zero or more substitution strings.');
        let at = 1;
        made = given[0].replace(/%[s%]/g, (found) => (found === '%%' ? '%' : at < given.length ? String(given[at++]) : found));
      }
      // As it travels in a header: percent-encoded.
      logged += encode(wellFormed.call(made)).length;
      if (logged > limits.log_characters) throw part('messages').tooLarge('Log');
      library.log += made;
    },
  };
})
