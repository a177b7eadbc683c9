// What every script is given, before it runs: getContext(), __, console, ErrorCodes, Error.
//
//   createDocument(…) ──▶ queue            drive("poll")    ──▶ {ops: […]} or {done: …} or {error: …}
//   callback          ◀── next()           drive("results") ◀── what the operations came to
//
// The text is one function. The host calls it once per run, before the script, and keeps the
// `drive` that it gives: a script can't reach it. Nothing here calls the host; an operation is an
// entry in a queue, and the host looks at the queue when the script has returned.
//
// A context is made for every run, and most of its cost is compiling this library. So only what
// every run needs is here; the other files are compiled when a script first uses them.
(function (setupText, names) {
  'use strict';
  // Taken before a script can change them.
  const parse = JSON.parse, stringify = JSON.stringify, now = Date.now, compile = eval;
  const apply = Reflect.apply, define = Object.defineProperty, Native = Error;
  const texts = arguments, setup = parse(setupText), limits = setup.limits, begun = now();
  const push = (list, value) => define(list, list.length, {value, writable: true, enumerable: true, configurable: true});

  // --- parts compiled on first use --------------------------------------------------------------

  const parts = Object.create(null);
  const part = (name) => parts[name] || (parts[name] = compile(texts[2 + names.split(' ').indexOf(name)])(library));
  // A property that is made when it is first read, and an ordinary one from then on.
  const later = (holder, name, make) => {
    const keep = (at, value) => define(at, name, {value, writable: true, configurable: true});
    define(holder, name, {get() { const made = make(); keep(holder, made); return made; }, set(value) { keep(this, value); }, configurable: true});
  };

  // --- the queue --------------------------------------------------------------------------------

  const state = {queue: [], callbacks: [], sent: 0, waiting: [], results: [], at: 0, failed: null, accepting: true, queued: 0, queuedBytes: 0};
  const bytesOf = (op) => (op.body || '').length + (op.query || '').length + (op.parameters || '').length;
  function enqueue(op, done) {
    const bytes = state.queuedBytes + bytesOf(op);
    if (state.failed || !state.accepting || now() - begun >= limits.soft_ms ||
        state.queued >= limits.pending_max || bytes >= limits.pending_bytes) return false;
    state.queued += 1;
    state.queuedBytes = bytes;
    push(state.queue, op);
    push(state.callbacks, done);
    return true;
  }
  function failWith(error) {
    if (state.failed) return;
    try { state.failed = part('failures')(error); } catch (_) { // no room left to compile it
      state.failed = {name: 'InternalError', message: 'out of memory', isError: true};
    }
    state.queue = []; state.callbacks = []; state.results = []; state.sent = 0;
  }
  // The next operations for the host, a block at a time: what it holds at once does not grow with what a script asks for.
  function nextBlock() {
    const ops = [];
    state.waiting = [];
    while (ops.length < limits.block && state.sent < state.queue.length) {
      const op = state.queue[state.sent];
      state.queuedBytes -= bytesOf(op);
      push(ops, op);
      push(state.waiting, state.callbacks[state.sent]);
      state.sent += 1;
    }
    if (state.sent === state.queue.length) { state.queue = []; state.callbacks = []; state.sent = 0; }
    return ops;
  }

  // --- what a script sees -----------------------------------------------------------------------

  const bare = (values) => Object.assign(Object.create(null), values);
  const requestValues = bare(setup.request), responseValues = setup.has_response ? bare(setup.response) : null;
  const library = {
    setup, limits, state, parse, stringify, push, define, later, part, enqueue, Native, log: '',
    fail: (number, message) => new globalError(number, message),
  };
  // Of errors.js. The name is the script's to overwrite, this one is not.
  let globalError = function (number, message) { globalError = part('errors'); return new globalError(number, message); };
  later(globalThis, 'Error', () => (globalError = part('errors')));
  later(Native.prototype, 'constructor', () => (globalError = part('errors')));
  define(Native.prototype, 'description', {
    get() { part('errors'); return this.message; },
    set(value) { part('errors'); this.description = value; },
    configurable: true,
  });
  later(library, 'request', () => part('messages').message(requestValues, setup.request_writable));
  if (responseValues) later(library, 'response', () => part('messages').message(responseValues, ['Body']));
  later(library, 'shortcut', () => part('collection').shortcut);
  const context = {
    getCollection: () => part('collection').collection,
    getRequest: () => library.request,
    abort: failWith,
  };
  if (responseValues) context.getResponse = () => library.response;
  const getContext = () => context;
  define(globalThis, 'getContext', {value: getContext, writable: true, configurable: true});
  later(globalThis, '__', () => library.shortcut);
  later(globalThis, 'console', () => part('console'));
  const ErrorCodes = {
    BadRequest: 400, Forbidden: 403, NotFound: 404, Conflict: 409, PreconditionFailed: 412,
    RequestEntityTooLarge: 413, RetryWith: 449, InternalServerError: 500,
  };
  define(globalThis, 'ErrorCodes', {value: Object.freeze(ErrorCodes), enumerable: true});
  for (const name of ['SharedArrayBuffer', 'Atomics', 'WebAssembly']) delete globalThis[name];

  // --- what the host calls ------------------------------------------------------------------------

  function start(argumentsText) {
    const entry = globalThis[setup.entry];
    globalThis[setup.entry] = undefined; // a `var` can't be deleted
    if (typeof entry !== 'function') {
      state.failed = {name: 'SyntaxError', message: 'The script must begin with a function.', number: 65535, isError: true, hasNumber: true};
    } else try { apply(entry, undefined, parse(argumentsText) || []); } catch (error) { failWith(error); }
  }
  function take(resultsText) {
    const found = parse(resultsText);
    state.accepting = found.accepting;
    state.results = found.results;
    state.at = 0;
  }
  // One callback, and whether another one waits. The host runs promise jobs in between.
  function next() {
    if (state.at >= state.results.length || state.failed) return false;
    const at = state.at++;
    try { state.waiting[at](state.results[at]); } catch (error) { failWith(error); }
    return state.at < state.results.length && !state.failed;
  }
  function ending(values, otherwise) {
    const made = stringify(values.Body);
    if (made === undefined) return otherwise;
    if (made.length > limits.answer_characters) throw part('messages').tooLarge('Body');
    return made;
  }
  function poll() {
    if (!state.failed && state.queue.length) return stringify({ops: nextBlock()});
    if (!state.failed) {
      try {
        const done = {log: library.log};
        if (responseValues) done.response = ending(responseValues, '""');
        if (setup.request_writable.length) done.request = ending(requestValues, 'null');
        return stringify({done});
      } catch (error) { failWith(error); }
    }
    return stringify({error: state.failed, log: library.log});
  }
  const work = {start, results: take, next, poll};
  return (what, given) => work[what](given);
})
