// What a script sees: getContext(), __, console, ErrorCodes, and the Error of the service's engine.
//
//   createDocument(…) ──▶ queue            drive("poll")    ──▶ {ops: […]} or {done: …} or {error: …}
//   callback          ◀── next()           drive("results") ◀── what the operations came to
//
// The text is one function. The host calls it once per run, before the script, and keeps the
// `drive` that it gives: a script can't reach it. Nothing here calls the host; an operation is an
// entry in a queue, and the host looks at the queue when the script has returned.
(function (setupText) {
  'use strict';
  // Taken before a script can change them.
  const parse = JSON.parse, stringify = JSON.stringify, now = Date.now, isArray = Array.isArray;
  const apply = Reflect.apply, construct = Reflect.construct, define = Object.defineProperty;
  const random = Math.random, floor = Math.floor;
  const push = (list, value) => define(list, list.length, {value, writable: true, enumerable: true, configurable: true});
  const setup = parse(setupText);
  const limits = setup.limits;
  const begun = now();

  // --- errors ---------------------------------------------------------------------------------

  const ErrorCodes = Object.freeze({
    BadRequest: 400, Forbidden: 403, NotFound: 404, Conflict: 409, PreconditionFailed: 412,
    RequestEntityTooLarge: 413, RetryWith: 449, InternalServerError: 500,
  });

  const ScriptError = Error; // of errors.js
  const fail = (number, message) => new ScriptError(number, message);

  function describe(error) {
    const found = {name: '', message: '', number: 0, stack: '', isError: false, hasNumber: false};
    if (error instanceof ScriptError) {
      found.isError = true;
      found.name = text(error.name);
      found.message = text(error.message);
      found.stack = text(error.stack);
      if (typeof error.number === 'number') { found.number = error.number; found.hasNumber = true; }
    } else if (typeof error === 'object' && error !== null) {
      found.message = text(stringify(error));
      if (typeof error.number === 'number') { found.number = error.number; found.hasNumber = true; }
    } else found.message = text(error);
    return found;
  }
  function text(value) {
    try {
      const found = typeof value === 'string' ? value : String(value);
      return found.length > 8192 ? found.slice(0, 8192) : found;
    } catch (_) { return ''; }
  }

  // --- the queue ------------------------------------------------------------------------------

  const state = {
    queue: [], callbacks: [], results: [], at: 0, failed: null, aborted: false,
    accepting: true, queued: 0, queuedBytes: 0,
  };

  function enqueue(op, done) {
    if (state.failed || !state.accepting || now() - begun >= limits.soft_ms ||
        state.queued >= limits.pending_max || state.queuedBytes >= limits.pending_bytes) return false;
    state.queued += 1;
    push(state.queue, op);
    push(state.callbacks, done);
    return true;
  }

  function failWith(error) {
    if (state.failed) return;
    try { state.failed = describe(error); } catch (_) {
      state.failed = {name: '', message: '', number: 0, stack: '', isError: false, hasNumber: false};
    }
    state.queue = [];
    state.callbacks = [];
    state.results = [];
  }

  // --- links and arguments --------------------------------------------------------------------

  const selfLink = setup.self_link, altLink = setup.alt_link;

  function checkCount(name, least, given) {
    if (given < least) {
      throw fail(400, `The function "${name}" requires at least ${least} argument(s) but was called with ${given} argument(s).`);
    }
  }
  function optionsAndCallback(options, callback) {
    if (callback === undefined && typeof options === 'function') { callback = options; options = undefined; }
    if (options !== undefined && options !== null && typeof options !== 'object') {
      throw fail(400, `The "options" parameter must be of type "object". Actual type is: "${typeof options}".`);
    }
    if (callback !== undefined && callback !== null && typeof callback !== 'function') {
      throw fail(400, `The "callback" parameter must be of type "function". Actual type is: "${typeof callback}".`);
    }
    return [options || {}, callback || null];
  }
  function outside(link) {
    return fail(400, `Function is not allowed to operate on resources outside current collection. Make sure that the link provided, "${link}", belongs to current collection.`);
  }
  function checkCollection(link) {
    if (typeof link !== 'string') throw fail(400, `Invalid collection link: "${link}".`);
    if (link === selfLink || link === altLink) return;
    const parts = link.split('/').filter((part) => part !== '');
    if (parts.length === 4 && parts[0] === 'dbs' && parts[2] === 'colls') throw outside(link);
    throw fail(400, `Invalid collection link: "${link}".`);
  }
  function checkDocument(link) {
    if (typeof link !== 'string') throw fail(400, `Invalid document link: "${link}".`);
    const parts = (link.endsWith('/') ? link.slice(0, -1) : link).split('/');
    if (parts.length !== 6 || parts[0] !== 'dbs' || parts[2] !== 'colls' || parts[4] !== 'docs' || parts.some((p) => p === '')) {
      throw fail(400, `Invalid document link: "${link}".`);
    }
    if (!link.startsWith(selfLink) && !link.startsWith(altLink + '/')) throw outside(link);
  }
  const NOT_A_BODY = 'The document body must be an object or a string representing a JSON-serialized object.';
  function bodyOf(body) {
    if (typeof body === 'string') {
      try { body = parse(body); } catch (_) { throw fail(400, NOT_A_BODY); }
    }
    if (typeof body !== 'object' || body === null || isArray(body)) throw fail(400, NOT_A_BODY);
    return body;
  }
  function jsonOf(body) {
    const made = stringify(body);
    if (typeof made !== 'string') throw fail(400, NOT_A_BODY);
    state.queuedBytes += made.length;
    return made;
  }
  function newId() {
    const hex = (count) => {
      let made = '';
      for (let i = 0; i < count; i++) made += floor(random() * 16).toString(16);
      return made;
    };
    return [8, 4, 4, 4, 12].map(hex).join('-');
  }
  const string = (value) => (value === undefined || value === null ? null : String(value));

  // --- answers of operations --------------------------------------------------------------------

  function errorOf(result) {
    const body = `{"Errors":[${stringify(result.error)}]}`;
    const made = fail(result.status, body);
    made.body = body;
    return made;
  }
  function optionsOf(result) {
    const found = {
      statusCode: result.status,
      currentCollectionSizeInMB: setup.usage,
      maxCollectionSizeInMB: setup.quota,
    };
    if (result.not_modified) found.notModified = true;
    if (result.continuation) found.continuation = result.continuation;
    return found;
  }
  function deliver(callback, hasResource) {
    return (result) => {
      if (result.error !== undefined && result.error !== null) {
        const error = errorOf(result);
        if (!callback) throw error;
        callback(error, undefined, optionsOf(result));
      } else if (callback) {
        if (!hasResource) callback(undefined, optionsOf(result));
        else callback(undefined, result.not_modified ? undefined : result.value, optionsOf(result));
      }
    };
  }

  // --- the collection ---------------------------------------------------------------------------

  function write(kind, name, collLink, body, options, callback, count) {
    checkCount(name, 2, count);
    checkCollection(collLink);
    [options, callback] = optionsAndCallback(options, callback);
    body = bodyOf(body);
    if (!body.id) {
      if (options.disableAutomaticIdGeneration === true) {
        return enqueue({op: 'refuse', status: 400, text: 'The input content is invalid because the required properties - \'id; \' - are missing'}, deliver(callback, true));
      }
      body = Object.assign({}, body, {id: newId()});
    }
    return enqueue({op: kind, body: jsonOf(body), etag: string(options.etag)}, deliver(callback, true));
  }

  const attachment = (name, least, isFeed, hasResource) => function (...given) {
    checkCount(name, least, given.length);
    const callback = given.find((one) => typeof one === 'function') || null;
    if (isFeed) return enqueue({op: 'nothing'}, deliver(callback, true));
    return enqueue({op: 'refuse', status: 404, text: 'Resource Not Found'}, deliver(callback, hasResource));
  };

  const collection = {
    getSelfLink() { return selfLink; },
    getAltLink() { return altLink; },
    createDocument(collLink, body, options, callback) {
      return write('create', 'createDocument', collLink, body, options, callback, arguments.length);
    },
    upsertDocument(collLink, body, options, callback) {
      return write('upsert', 'upsertDocument', collLink, body, options, callback, arguments.length);
    },
    readDocument(docLink, options, callback) {
      checkCount('readDocument', 1, arguments.length);
      checkDocument(docLink);
      [options, callback] = optionsAndCallback(options, callback);
      return enqueue({op: 'read', link: docLink, if_none_match: string(options.ifNoneMatch)}, deliver(callback, true));
    },
    replaceDocument(docLink, body, options, callback) {
      checkCount('replaceDocument', 2, arguments.length);
      checkDocument(docLink);
      [options, callback] = optionsAndCallback(options, callback);
      return enqueue({op: 'replace', link: docLink, body: jsonOf(bodyOf(body)), etag: string(options.etag)}, deliver(callback, true));
    },
    deleteDocument(docLink, options, callback) {
      checkCount('deleteDocument', 1, arguments.length);
      checkDocument(docLink);
      [options, callback] = optionsAndCallback(options, callback);
      return enqueue({op: 'delete', link: docLink, etag: string(options.etag)}, deliver(callback, false));
    },
    readDocuments(collLink, options, callback) {
      checkCount('readDocuments', 1, arguments.length);
      checkCollection(collLink);
      [options, callback] = optionsAndCallback(options, callback);
      return enqueue(feedOp(options), deliver(callback, true));
    },
    queryDocuments(collLink, filterQuery, options, callback) {
      checkCount('queryDocuments', 2, arguments.length);
      checkCollection(collLink);
      [options, callback] = optionsAndCallback(options, callback);
      return enqueue(queryOp(filterQuery, options), deliver(callback, true));
    },
    createAttachment: attachment('createAttachment', 2, false, true),
    upsertAttachment: attachment('upsertAttachment', 2, false, true),
    readAttachment: attachment('readAttachment', 1, false, true),
    replaceAttachment: attachment('replaceAttachment', 2, false, true),
    deleteAttachment: attachment('deleteAttachment', 1, false, false),
    readAttachments: attachment('readAttachments', 1, true, true),
    queryAttachments: attachment('queryAttachments', 2, true, true),
  };

  function pageSize(options) {
    const asked = options.pageSize;
    return asked === undefined || asked === null ? 100 : Number(asked);
  }
  function feedOp(options) {
    return {op: 'feed', page_size: pageSize(options), continuation: string(options.continuation)};
  }
  function queryOp(query, options) {
    if (typeof query !== 'string' && (typeof query !== 'object' || query === null)) {
      throw fail(400, `The "filterQuery" parameter must be of type "string" or "object". Actual type is: "${typeof query}".`);
    }
    const spec = typeof query === 'string' ? {query} : query;
    if (typeof spec.query !== 'string') throw fail(400, 'The query of a query specification must be a string.');
    state.queuedBytes += spec.query.length;
    return {
      op: 'query', query: spec.query, parameters: jsonOf(spec.parameters || []),
      page_size: pageSize(options), continuation: string(options.continuation),
    };
  }

  // --- queries by functions ---------------------------------------------------------------------

  // Compiled when a script asks for one of them: few do, and the text is a third of all.
  const compileLater = eval;
  let queries = null;
  function fromQueries(name) {
    return {
      get() {
        queries = queries || (0, compileLater)(setup.queries)({
          fail, push, isArray, stringify, enqueue, errorOf, optionsOf, optionsAndCallback,
          feedOp, hasResponse: setup.has_response, response, collection, shortcut,
        });
        return queries[name];
      },
      enumerable: true,
      configurable: true,
    };
  }
  for (const name of ['chain', 'filter', 'map', 'pluck', 'sortBy', 'sortByDescending', 'flatten', 'unwind', 'value']) {
    define(collection, name, fromQueries(name));
  }

  // --- request, response, context ---------------------------------------------------------------

  const TOO_LARGE = (name) => `Resulting message would be too large because of "${name}". Return from script with current message and use continuation token to call the script again or modify your script.`;

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
        if (sizeOf(value) > limits.message_characters) throw fail(413, TOO_LARGE(name));
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
  const bare = (values) => Object.assign(Object.create(null), values);
  const requestValues = bare(setup.request), responseValues = setup.has_response ? bare(setup.response) : null;
  const request = message(requestValues, setup.request_writable);
  const response = responseValues && message(responseValues, ['Body']);

  const context = {
    getCollection() { return collection; },
    getRequest() { return request; },
    abort(error) {
      state.aborted = true;
      failWith(error);
    },
  };
  if (response) context.getResponse = () => response;

  const shortcut = Object.create(collection);
  shortcut.request = request;
  if (response) shortcut.response = response;

  // --- globals ----------------------------------------------------------------------------------

  const encode = encodeURIComponent, wellFormed = String.prototype.toWellFormed;
  let log = '', logged = 0;
  const console = {
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
      if (logged > limits.log_characters) throw fail(413, TOO_LARGE('Log'));
      log += made;
    },
  };
  const global = (name, value) => define(globalThis, name, {value, writable: true, configurable: true, enumerable: false});
  global('getContext', () => context);
  global('__', shortcut);
  global('console', console);
  define(globalThis, 'ErrorCodes', {value: ErrorCodes, enumerable: true});
  for (const name of ['SharedArrayBuffer', 'Atomics', 'WebAssembly']) delete globalThis[name];

  // --- what the host calls ------------------------------------------------------------------------

  function start(argumentsText) {
    const entry = globalThis[setup.entry];
    globalThis[setup.entry] = undefined; // a `var` can't be deleted
    if (typeof entry !== 'function') {
      state.failed = {name: 'SyntaxError', message: 'The script must begin with a function.', number: 65535, stack: '', isError: true, hasNumber: true, compile: true};
      return;
    }
    try { apply(entry, undefined, parse(argumentsText) || []); } catch (error) { failWith(error); }
  }
  function take(resultsText) {
    const found = parse(resultsText);
    state.accepting = found.accepting;
    state.results = found.results;
    state.at = 0;
    state.queuedBytes = 0;
  }
  // One callback, and whether another one waits. The host runs promise jobs in between.
  function next() {
    if (state.at >= state.results.length || state.failed) return false;
    const result = state.results[state.at];
    const done = state.waiting[state.at];
    state.at += 1;
    try { done(result); } catch (error) { failWith(error); }
    return state.at < state.results.length && !state.failed;
  }
  function poll() {
    if (!state.failed && state.queue.length) {
      const made = stringify({ops: state.queue});
      state.waiting = state.callbacks;
      state.queue = [];
      state.callbacks = [];
      return made;
    }
    if (!state.failed) {
      try {
        const done = {log};
        if (response) done.response = stringify(responseValues.Body);
        if (setup.request_writable.length) done.request = stringify(requestValues.Body);
        for (const name of ['response', 'request']) {
          if (name in done && done[name] === undefined) done[name] = name === 'response' ? '""' : 'null';
          if (name in done && done[name].length > limits.answer_characters) throw fail(413, TOO_LARGE('Body'));
        }
        return stringify({done});
      } catch (error) { failWith(error); }
    }
    return stringify({error: state.failed, log});
  }
  return (what, given) => {
    if (what === 'next') return next();
    if (what === 'poll') return poll();
    if (what === 'results') return take(given);
    return start(given);
  };
})
