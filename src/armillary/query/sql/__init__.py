"""The SQL front end: text → tokens → AST → bound query, and AST → text."""
