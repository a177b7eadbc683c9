// Attachments are history: their methods answer empty feeds and 404.
(function (library) {
  'use strict';
  const {checkCount, enqueue, deliver} = library;
  const attachment = (name, least, isFeed, hasResource) => function (...given) {
    checkCount(name, least, given.length);
    const callback = given.find((one) => typeof one === 'function') || null;
    if (isFeed) return enqueue({op: 'nothing'}, deliver(callback, true));
    return enqueue({op: 'refuse', status: 404, text: 'Resource Not Found'}, deliver(callback, hasResource));
  };

  return {
    createAttachment: attachment('createAttachment', 2, false, true),
    upsertAttachment: attachment('upsertAttachment', 2, false, true),
    readAttachment: attachment('readAttachment', 1, false, true),
    replaceAttachment: attachment('replaceAttachment', 2, false, true),
    deleteAttachment: attachment('deleteAttachment', 1, false, false),
    readAttachments: attachment('readAttachments', 1, true, true),
    queryAttachments: attachment('queryAttachments', 2, true, true),
  };
})
