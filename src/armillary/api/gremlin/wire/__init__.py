"""Bytes and messages: WebSocket, the framing of requests, GraphSON, GraphBinary. No evaluation."""
