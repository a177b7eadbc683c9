// The collection: `getContext().getCollection()`, and `__`, which has request and response besides.
// Facts: scripts 2.3. What is wrong with a call is said by refusals.js.
(function (library) {
  'use strict';
  const {setup, state, parse, stringify, define, later, part, enqueue} = library;
  const selfLink = setup.self_link, altLink = setup.alt_link, isArray = Array.isArray;
  const string = (value) => (value === undefined || value === null ? null : String(value));

  // --- arguments --------------------------------------------------------------------------------

  function checkCount(name, least, given) {
    if (given < least) throw part('refusals').count(name, least, given);
  }
  function optionsAndCallback(options, callback) {
    if (callback === undefined && typeof options === 'function') { callback = options; options = undefined; }
    if ((options !== undefined && typeof options !== 'object') || (callback !== undefined && callback !== null && typeof callback !== 'function')) {
      throw part('refusals').parameters(options, callback);
    }
    return [options || {}, callback || null];
  }
  function checkCollection(link) {
    if (link !== selfLink && link !== altLink) throw part('refusals').collection(link);
  }
  function checkDocument(link) {
    const parts = typeof link === 'string' ? link.split('/') : [];
    const isWhole = parts.length === 6 || (parts.length === 7 && parts[6] === '');
    if (!isWhole || parts[4] !== 'docs' || parts[5] === '' || !(link.startsWith(selfLink) || link.startsWith(altLink + '/'))) {
      throw part('refusals').document(link);
    }
  }
  function bodyOf(body) {
    if (typeof body === 'string') {
      try { body = parse(body); } catch (_) { body = null; }
    }
    if (typeof body !== 'object' || body === null || isArray(body)) throw part('refusals').body();
    return body;
  }
  function jsonOf(body) {
    const made = stringify(body);
    if (typeof made !== 'string') throw part('refusals').body();
    return made;
  }

  // --- answers ----------------------------------------------------------------------------------

  function optionsOf(result) {
    const found = {statusCode: result.status, currentCollectionSizeInMB: setup.usage, maxCollectionSizeInMB: setup.quota};
    if (result.not_modified) found.notModified = true;
    if (result.continuation) found.continuation = result.continuation;
    return found;
  }
  const deliver = (callback, hasResource) => (result) => {
    if (result.error !== undefined && result.error !== null) {
      const error = part('refusals').answer(result);
      if (!callback) throw error;
      callback(error, undefined, optionsOf(result));
    } else if (callback) {
      if (!hasResource) callback(undefined, optionsOf(result));
      else callback(undefined, result.not_modified ? undefined : result.value, optionsOf(result));
    }
  };

  // --- methods ----------------------------------------------------------------------------------

  function write(op, name, link, body, options, callback, count) {
    checkCount(name, 2, count);
    checkCollection(link);
    [options, callback] = optionsAndCallback(options, callback);
    body = bodyOf(body);
    if (!body.id) {
      if (options.disableAutomaticIdGeneration === true) return enqueue(part('refusals').noId, deliver(callback, true));
      body = Object.assign({}, body, {id: part('identifiers')()});
    }
    return enqueue({op, body: jsonOf(body), etag: string(options.etag)}, deliver(callback, true));
  }
  // An operation on one document; `more` adds what it needs besides the link.
  const onDocument = (op, name, least, more) => function (link, ...given) {
    checkCount(name, least, arguments.length);
    checkDocument(link);
    const body = least === 2 ? given.shift() : undefined;
    const [options, callback] = optionsAndCallback(given[0], given[1]);
    return enqueue(more({op, link}, options, body), deliver(callback, op !== 'delete'));
  };
  const feedOp = (options) => {
    const asked = options.pageSize;
    return {op: 'feed', page_size: asked === undefined || asked === null ? 100 : Number(asked), continuation: string(options.continuation)};
  };
  const collection = {
    getSelfLink: () => selfLink,
    getAltLink: () => altLink,
    createDocument(link, body, options, callback) {
      return write('create', 'createDocument', link, body, options, callback, arguments.length);
    },
    upsertDocument(link, body, options, callback) {
      return write('upsert', 'upsertDocument', link, body, options, callback, arguments.length);
    },
    readDocument: onDocument('read', 'readDocument', 1, (op, options) => { op.if_none_match = string(options.ifNoneMatch); return op; }),
    replaceDocument: onDocument('replace', 'replaceDocument', 2, (op, options, body) => {
      op.body = jsonOf(bodyOf(body));
      op.etag = string(options.etag);
      return op;
    }),
    deleteDocument: onDocument('delete', 'deleteDocument', 1, (op, options) => { op.etag = string(options.etag); return op; }),
    readDocuments(link, options, callback) {
      checkCount('readDocuments', 1, arguments.length);
      checkCollection(link);
      [options, callback] = optionsAndCallback(options, callback);
      return enqueue(feedOp(options), deliver(callback, true));
    },
    queryDocuments(link, query, options, callback) {
      checkCount('queryDocuments', 2, arguments.length);
      checkCollection(link);
      [options, callback] = optionsAndCallback(options, callback);
      const spec = typeof query === 'string' ? {query} : query;
      if (typeof spec !== 'object' || spec === null || typeof spec.query !== 'string') throw part('refusals').query(query);
      const op = feedOp(options);
      op.op = 'query';
      op.query = spec.query;
      op.parameters = jsonOf(spec.parameters || []);
      return enqueue(op, deliver(callback, true));
    },
  };

  // --- what few scripts use ---------------------------------------------------------------------

  const rare = (name, get) => define(collection, name, {get, enumerable: true, configurable: true});
  for (const name of ['chain', 'filter', 'map', 'pluck', 'sortBy', 'sortByDescending', 'flatten', 'unwind', 'value']) {
    rare(name, () => part('queries')[name]);
  }
  for (const name of ['createAttachment', 'upsertAttachment', 'readAttachment', 'replaceAttachment', 'deleteAttachment', 'readAttachments', 'queryAttachments']) {
    rare(name, () => part('attachments')[name]);
  }
  rare('spatial', () => part('spatial'));
  const shortcut = Object.create(collection);
  later(shortcut, 'request', () => library.request);
  if (setup.has_response) later(shortcut, 'response', () => library.response);
  Object.assign(library, {checkCount, deliver, optionsOf, optionsAndCallback, feedOp, collection});
  return {collection, shortcut};
})
