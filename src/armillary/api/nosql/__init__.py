"""The NoSQL (SQL) API: requests in, responses out, translation in between. No sockets here."""
