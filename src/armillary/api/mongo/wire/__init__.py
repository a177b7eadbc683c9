"""Bytes of the MongoDB wire protocol into requests, replies into bytes. No sockets, no commands."""
