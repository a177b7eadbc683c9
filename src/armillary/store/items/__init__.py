"""Items: prepared outside a transaction, written inside one, read by key and id or page by page.
`containers` is the door that every front end uses."""
