// What the host is told of a script's error.
(function (library) {
  'use strict';
  const {Native, stringify} = library;
  const text = (value) => {
    try {
      const found = typeof value === 'string' ? value : String(value);
      return found.length > 8192 ? found.slice(0, 8192) : found;
    } catch (_) { return ''; }
  };
  return (error) => {
    const isObject = typeof error === 'object' && error !== null, isError = error instanceof Native;
    const hasNumber = isObject && typeof error.number === 'number', number = hasNumber ? error.number : 0;
    if (isError) return {name: text(error.name), message: text(error.message), number, stack: text(error.stack), isError, hasNumber};
    return {name: '', message: text(isObject ? stringify(error) : error), number, stack: '', isError, hasNumber};
  };
})
