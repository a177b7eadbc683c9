// Why a call of the collection is refused, and what became of an operation. Facts: scripts 2.3.
(function (library) {
  'use strict';
  const {stringify, fail} = library;
  const outside = (link) => fail(400, `Function is not allowed to operate on resources outside current collection. Make sure that the link provided, "${link}", belongs to current collection.`);
  const wrongType = (name, kinds, value) => fail(400, `The "${name}" parameter must be of type ${kinds}. Actual type is: "${typeof value}".`);
  return {
    noId: {op: 'refuse', status: 400, text: 'The input content is invalid because the required properties - \'id; \' - are missing'},
    count: (name, least, given) => fail(400, `The function "${name}" requires at least ${least} argument(s) but was called with ${given} argument(s).`),
    parameters(options, callback) {
      if (options !== undefined && typeof options !== 'object') return wrongType('options', '"object"', options);
      return wrongType('callback', '"function"', callback);
    },
    collection(link) {
      const parts = typeof link === 'string' ? link.split('/').filter((part) => part !== '') : [];
      if (parts.length === 4 && parts[0] === 'dbs' && parts[2] === 'colls') return outside(link);
      return fail(400, `Invalid collection link: "${link}".`);
    },
    document(link) {
      const parts = typeof link === 'string' ? (link.endsWith('/') ? link.slice(0, -1) : link).split('/') : [];
      if (parts.length === 6 && parts[0] === 'dbs' && parts[2] === 'colls' && parts[4] === 'docs' && parts.every((p) => p !== '')) return outside(link);
      return fail(400, `Invalid document link: "${link}".`);
    },
    body: () => fail(400, 'The document body must be an object or a string representing a JSON-serialized object.'),
    query(query) {
      if (typeof query === 'object' && query !== null) return fail(400, 'The query of a query specification must be a string.');
      return wrongType('filterQuery', '"string" or "object"', query);
    },
    answer(result) {
      const body = `{"Errors":[${stringify(result.error)}]}`;
      const made = fail(result.status, body);
      made.body = body;
      made.stack = ''; // made while nothing of the script was running
      return made;
    },
  };
})
