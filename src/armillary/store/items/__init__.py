"""Items: prepared outside a transaction, written inside one, read by key and id or page by page.
`containers` is the door that every front end uses.

One folder although it is large: a write goes through most of these modules, in the order of
`preparation`, `batches` or `bulk`, `requests`, `operations`, `transaction`, `totals`."""
