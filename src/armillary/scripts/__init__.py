"""JavaScript in the database: stored procedures, triggers and user-defined functions.

    text, arguments ──▶ procedures ─┐                      ┌──▶ child process: QuickJS, a context
                        triggers  ──┼─▶ turns ─▶ running ──┤      per run, bounded, without rights
    rows of a query ──▶ functions ──┘   (one run per       └──▶ operations ─▶ transaction: a
                                         logical partition)      snapshot, own writes, one commit

    in    the text of a script, its arguments, the logical partition, a budget
    out   the response, the log, what it read and wrote, its charge; or a ScriptFailed

Nothing here is imported before the first script runs. JavaScript runs in child processes only and
never while the writer is held; it can't call into Python: what a script asks for is queued, done by
us when it returns, and handed to its callbacks. `docs/scripts.md` is for users,
`docs/decisions/0017-scripts.md` says why it is built so.
"""
