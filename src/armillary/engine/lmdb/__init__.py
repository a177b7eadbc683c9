"""The embedded engine: one LMDB map per folder, one writer process for all workers.

    environment, folder, format, place, spaces     the map, its folder, where a space lies in it
    access, write, commit, compaction, turnstile   snapshots, group commit, copies, who may write
    engine, worker, writer_process, writer_main    `Engine` alone, or with one writer for all,
    inbox, outbox, pending                         and the way there and back
    lone                                           a worker that commits by itself

One folder although it is large: the rows above share the environment, and nothing outside needs one
of them alone.
"""
