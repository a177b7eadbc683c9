// Queries by functions: filter, map, pluck, sortBy, flatten, unwind, alone or as a chain. Facts:
// scripts 2.4. Compiled when a script uses one of them.
(function (library) {
  'use strict';
  const {
    fail, push, stringify, enqueue, part, optionsOf, optionsAndCallback, feedOp, collection,
  } = library;
  const isArray = Array.isArray, hasResponse = library.setup.has_response;

  const NEEDS_FUNCTION = 'The predicate/transform function must be provided.';
  const CHAIN_CALLBACK = 'When using "chain", the callback parameter can only be provided on the "value" function.';
  const NEEDS_CALLBACK = 'The callback function must be provided for scenarios, such as pre-trigger, when response object is not available.';

  function fn(value) {
    if (typeof value !== 'function') throw fail(400, NEEDS_FUNCTION);
    return value;
  }
  function compare(a, b) {
    const rank = (v) => v === undefined ? 0 : v === null ? 1 : typeof v === 'boolean' ? 2 : typeof v === 'number' ? 3 : typeof v === 'string' ? 4 : isArray(v) ? 5 : 6;
    const by = rank(a) - rank(b);
    if (by) return by;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  function deepFlat(list, isShallow) {
    const made = [];
    for (const one of list) {
      if (!isArray(one)) push(made, one);
      else for (const inner of isShallow ? one : deepFlat(one, false)) push(made, inner);
    }
    return made;
  }
  // Each stage is a function from the rows of a page to rows. `sort` needs all rows, not a page.
  const STAGES = {
    filter: (pred) => { fn(pred); return {rows: (list) => list.filter((one) => pred(one))}; },
    map: (change) => { fn(change); return {rows: (list) => list.map((one) => change(one))}; },
    pluck: (name) => {
      if (typeof name !== 'string' || name === '') throw fail(400, 'The property name must be a string and cannot be empty.');
      return {rows: (list) => list.map((one) => (one === null || one === undefined ? undefined : one[name]))};
    },
    sortBy: (key) => { fn(key); return {sort: key, sign: 1}; },
    sortByDescending: (key) => { fn(key); return {sort: key, sign: -1}; },
    flatten: (isShallow) => ({rows: (list) => deepFlat(list, isShallow === true)}),
    unwind: (inner, result) => {
      if (typeof inner !== 'function') throw fail(400, 'When using "unwind", "collectionSelector" must be used.');
      if (inner.length !== 1) throw fail(400, '"collectionSelector" requires one argument.');
      if (result !== undefined && (typeof result !== 'function' || result.length < 2)) throw fail(400, '"resultSelector" requires two arguments.');
      return {rows: (list) => {
        const made = [];
        for (const one of list) {
          const found = inner(one);
          if (isArray(found)) for (const each of found) push(made, result ? result(one, each) : each);
        }
        return made;
      }};
    },
  };
  const TAKES = {filter: 1, map: 1, pluck: 1, sortBy: 1, sortByDescending: 1, flatten: 1, unwind: 2};

  function sorted(rows, stage) {
    const keyed = rows.map((row, at) => ({row, at, key: stage.sort(row)}));
    keyed.sort((a, b) => stage.sign * compare(a.key, b.key) || a.at - b.at);
    return keyed.map((one) => one.row);
  }
  function runStages(rows, stages) {
    for (const stage of stages) rows = stage.sort ? sorted(rows, stage) : stage.rows(rows);
    return rows;
  }
  function runQuery(stages, options, callback) {
    if (!callback && !hasResponse) throw fail(400, NEEDS_CALLBACK);
    const finish = (feed, opts) => {
      if (callback) callback(undefined, feed, opts);
      else library.response.appendValue('Body', stringify(feed));
    };
    const refused = (error, opts) => {
      if (!callback) throw error;
      callback(error, undefined, opts);
    };
    const needsAll = stages.some((stage) => stage.sort);
    const all = [];
    const page = (result) => {
      if (result.error !== undefined && result.error !== null) return refused(part('refusals').answer(result), optionsOf(result));
      if (!needsAll) return finish(runStages(result.value, stages), optionsOf(result));
      for (const one of result.value) push(all, one);
      if (result.continuation) {
        const more = feedOp({pageSize: 1000, continuation: result.continuation});
        if (!enqueue(more, page)) throw fail(403, 'The script ran out of time before all items were read.');
        return undefined;
      }
      return finish(runStages(all, stages), {...optionsOf(result), continuation: undefined});
    };
    const first = needsAll ? feedOp({pageSize: 1000}) : feedOp(options);
    return {isAccepted: enqueue(first, page)};
  }
  function makeStage(name, given) {
    if (given.length && (given[0] === collection || given[0] === library.shortcut)) given = given.slice(1);
    const own = [];
    while (own.length < TAKES[name] && given.length > own.length) {
      const one = given[own.length];
      // What follows the arguments of a stage: options, or a callback that is not one of them.
      if (name === 'flatten' && typeof one !== 'boolean') break;
      if (name === 'unwind' && own.length === 1 && (typeof one !== 'function' || one.length < 2 || isCallback(given, own.length))) break;
      push(own, one);
    }
    return [STAGES[name](...own), given.slice(own.length)];
  }
  // unwind(selector, callback): a callback has three parameters, a result selector two.
  const isCallback = (given, at) => at === given.length - 1 && given[at].length > 2;

  function chain() {
    const stages = [];
    const link = {
      value(options, callback) {
        [options, callback] = optionsAndCallback(options, callback);
        return runQuery(stages, options, callback);
      },
    };
    for (const name of Object.keys(STAGES)) {
      link[name] = (...given) => {
        const [stage, rest] = makeStage(name, given);
        if (rest.some((one) => typeof one === 'function')) throw fail(400, CHAIN_CALLBACK);
        push(stages, stage);
        return link;
      };
    }
    return link;
  }
  const queries = {chain};
  for (const name of Object.keys(STAGES)) {
    queries[name] = (...given) => {
      const [stage, rest] = makeStage(name, given);
      const [options, callback] = optionsAndCallback(rest[0], rest[1]);
      return runQuery([stage], options, callback);
    };
  }
  queries.value = (options, callback) => {
    [options, callback] = optionsAndCallback(options, callback);
    return runQuery([], options, callback);
  };
  return queries;
})
