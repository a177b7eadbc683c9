// An id for a document that has none: random, 8-4-4-4-12 digits.
(function () {
  'use strict';
  const random = Math.random, floor = Math.floor;
  const hex = (count) => {
    let made = '';
    while (made.length < count) made += floor(random() * 65536).toString(16).padStart(4, '0');
    return made;
  };
  return () => `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`;
})
