"""The engine on PostgreSQL and Citus: many servers, one database.

    engine, reader, reading, group, spaces    `Engine` by statements (`sql`, `schema`), in threads
    lanes, lane                               the same without threads, on an event loop
    connection, pool, address, errors         one connection, many, where to, what failed
    supervisor, replica, stopping, clock      which database it is, and its time

One folder although it is large: the rows above share statements, connections and the table of
errors, and nothing outside needs one of them alone.
"""
