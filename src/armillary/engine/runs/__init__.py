"""Sorted runs of secondary rows: index entries are appended in groups, not put where they belong.

    flush(changes of a group) ──▶ a new run ──▶ merged with its neighbours, piece by piece
    get, scan ◀── one ordered sequence of pending changes, runs (newest to oldest), tree

A row of a *packed kind* (the first byte of its key says so) is not put where its key belongs: the
changes of one commit are sorted, cut into blocks of a page and put side by side, so that a create
dirties three pages in place of thirty. What a key means is decided by the newest run that has it; a
tombstone (None) hides older ones.

    blocks      entries to bytes and back, with a checksum; the keys that blocks lie under
    directory   which runs there are, from the newest to the oldest, and which are being merged
    area        the rows of one space inside one LMDB transaction
    reading     get, scan and short range reads over runs and tree
    writing     the changes of a commit as a run
    merging     which runs to merge, and a bounded piece of it; rows of the tree move to the bottom
    checking    does everything agree (for `armillary doctor`)

Only the LMDB engine has runs. docs/formats.md shows the bytes, decision 0018 the reasons.
"""
