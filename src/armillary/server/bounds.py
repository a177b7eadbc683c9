"""The bounds of one server as a value, so that a test can wait milliseconds where users wait
minutes. The defaults, with their reasons, are in `limits.py`."""

from dataclasses import dataclass

from armillary import limits


@dataclass(frozen=True, slots=True)
class Bounds:
    target_bytes: int = limits.TARGET_BYTES_MAX
    head_bytes: int = limits.HEAD_BYTES_MAX
    headers: int = limits.HEADERS_MAX
    body_bytes: int = limits.BODY_BYTES_MAX
    pipeline: int = limits.PIPELINE_MAX
    parallel: int = limits.PARALLEL_MAX
    inline: int = limits.INLINE_MAX
    connections: int = limits.CONNECTIONS_MAX
    first_byte_s: float = limits.FIRST_BYTE_SECONDS
    handshake_s: float = limits.HANDSHAKE_SECONDS
    idle_s: float = limits.IDLE_SECONDS
    stream_idle_s: float = limits.STREAM_IDLE_SECONDS
    head_s: float = limits.HEAD_SECONDS
    body_s: float = limits.BODY_SECONDS
    write_s: float = limits.WRITE_SECONDS
    linger_s: float = limits.LINGER_SECONDS
    drain_s: float = limits.DRAIN_SECONDS
    close_s: float = limits.LAST_REQUESTS_SECONDS
    write_buffer_bytes: int = limits.WRITE_BUFFER_BYTES
    threads: int = limits.THREADS_MAX
    query_threads: int = limits.QUERY_THREADS_MAX
    computing: int = limits.QUERIES_COMPUTING_MAX
    query_s: float = limits.QUERY_SECONDS_MAX
    query_bytes: int = limits.QUERY_BYTES_MAX
    query_drain_s: float = limits.QUERY_DRAIN_SECONDS
    waiting: int = limits.WAITING_MAX
    waiting_bytes: int = limits.WAITING_BYTES_MAX
    receiving_bytes: int = limits.RECEIVING_BYTES_MAX
    screened_bytes: int = limits.SCREENED_BYTES
    template_request_bytes: int = limits.TEMPLATE_REQUEST_BYTES_MAX

    @property
    def sweep_s(self) -> float:
        """How often deadlines are looked at: often enough that none is missed by much."""
        shortest = min(self.first_byte_s, self.idle_s, self.head_s, self.body_s, self.write_s)
        return min(shortest, self.linger_s * 2) / 4
