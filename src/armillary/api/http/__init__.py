"""HTTP without sockets, for every protocol that speaks it: a request, a response, and the service
between them (`messages.py`). `server/` reads and writes the bytes."""
