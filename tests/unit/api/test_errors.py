"""Without these, an error could reach a client with no status, with a status that makes an SDK do
the wrong thing, or lose its facts on the way out of the writer process.
"""

import json
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.support.error_kinds import every_kind

from armillary import errors
from armillary.api.errors import INTERNAL, WIRE, Reply, Wire, wire
from armillary.errors import DbError

#: The codes clients know (NoSQL REST reference, 9.1) and 304, which has no body to carry one.
KNOWN_CODES = {
    400: {"BadRequest"},
    403: {"Forbidden"},
    401: {"Unauthorized"},
    404: {"NotFound"},
    405: {"MethodNotAllowed"},
    408: {"RequestTimeout"},
    409: {"Conflict"},
    410: {"Gone"},
    412: {"PreconditionFailed"},
    413: {"RequestEntityTooLarge"},
    424: {"FailedDependency"},
    429: {"429", "TooManyRequests"},
    500: {"InternalServerError"},
    503: {"ServiceUnavailable"},
    304: {"NotModified"},
    207: {"MultiStatus"},
    423: {"Locked"},
    449: {"RetryWith"},
}


KINDS = sorted(every_kind(), key=lambda kind: kind.__name__)
ROWS: list[Wire] = sorted(set(WIRE.values()), key=str)


def test_every_error_has_a_wire_form() -> None:
    assert every_kind() == set(WIRE)


def test_the_search_for_kinds_sees_grandchildren() -> None:
    assert errors.WriteUncertain in every_kind()
    assert errors.WriteUncertain not in DbError.__subclasses__()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_status_and_code_belong_together(row: Wire) -> None:
    assert row.code in KNOWN_CODES[row.status]


@pytest.mark.parametrize(
    ("kind", "status", "sub_status", "code"),
    [
        (errors.BadInput, 400, 0, "BadRequest"),
        (errors.PartitionKeyMismatch, 400, 1001, "BadRequest"),
        (errors.TooLarge, 413, 0, "RequestEntityTooLarge"),
        (errors.NotSupported, 400, 0, "BadRequest"),
        (errors.NotFound, 404, 0, "NotFound"),
        (errors.OwnerNotFound, 404, 1003, "NotFound"),
        (errors.Conflict, 409, 0, "Conflict"),
        (errors.UniqueKeyConflict, 409, 0, "Conflict"),
        (errors.PartitionKeyCollision, 409, 3302, "Conflict"),
        (errors.PreconditionFailed, 412, 0, "PreconditionFailed"),
        (errors.NotModified, 304, 0, "NotModified"),
        (errors.PartitionKeyFull, 403, 1014, "Forbidden"),
        (errors.DependencyFailed, 424, 0, "FailedDependency"),
        (errors.Throttled, 429, 3200, "429"),
        (errors.RangeGone, 410, 1002, "Gone"),
        (errors.RangeBusy, 410, 1007, "Gone"),
        (errors.Unavailable, 503, 0, "ServiceUnavailable"),
        (errors.WriteUncertain, 408, 0, "RequestTimeout"),
        (errors.SnapshotExpired, 408, 0, "RequestTimeout"),
        (errors.StorageFull, 403, 0, "Forbidden"),
        (errors.ReadOnlyStore, 403, 0, "Forbidden"),
        (errors.FormatMismatch, 500, 0, "InternalServerError"),
    ],
)
def test_what_a_client_sees(kind: type[DbError], status: int, sub_status: int, code: str) -> None:
    assert wire(kind("why")) == Reply(status, sub_status, code, "why")
    assert wire(kind()).message == kind.text


def test_only_a_read_region_says_write_forbidden() -> None:
    # 403/3 and 403/1008 make every SDK look for another region, which has to exist then.
    elsewhere = [kind for kind in KINDS if wire(kind())[:2] in {(403, 3), (403, 1008)}]
    assert elsewhere == [errors.NotWriteRegion]


def test_a_kind_made_elsewhere_speaks_like_its_parent_and_the_root_like_a_bug() -> None:
    class Elsewhere(errors.UniqueKeyConflict):
        pass

    assert wire(Elsewhere("x")) == Reply(409, 0, "Conflict", "x")
    assert wire(DbError("x")) == Reply(INTERNAL.status, 0, INTERNAL.code, "x")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_survive_the_trip_between_processes(kind: type[DbError]) -> None:
    error = kind("wait a little", retry_after_ms=12, where={"line": 1})
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.message, copy.facts) == (error.message, error.facts)
    assert wire(copy) == wire(error)


# --- what the official SDK does with a write answered so ----------------------------------------


@contextmanager
def account_that_answers_writes_with(status: int) -> Iterator[tuple[str, list[str]]]:
    """The least of an account the SDK accepts. Reads succeed; each write is noted and refused."""
    writes: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            place = [{"name": "here", "databaseAccountEndpoint": address}]
            if self.path == "/":
                self.answer(200, {"writableLocations": place, "readableLocations": place})
            elif self.path.rstrip("/").endswith("pkranges"):
                only = {"id": "0", "minInclusive": "", "maxExclusive": "FF"}
                self.answer(200, {"_rid": "AAAAAAAAAAA=", "PartitionKeyRanges": [only]})
            else:
                key = {"paths": ["/id"], "kind": "Hash", "version": 2}
                self.answer(200, {"id": "c", "_rid": "AAAAAAAAAAA=", "partitionKey": key})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            writes.append(self.path)
            self.answer(status, {"code": "x", "message": "x"})

        def answer(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield address, writes
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("kind", "times_sent"),
    [
        (errors.Unavailable, 2),  # the SDK trusts that nothing happened: this is why 503 is wrong
        (errors.WriteUncertain, 1),  # ... for a write that may have happened
        (errors.StorageFull, 1),
        (errors.ReadOnlyStore, 1),
        (errors.FormatMismatch, 1),
    ],
)
def test_how_often_the_sdk_sends_a_write(kind: type[DbError], times_sent: int) -> None:
    with account_that_answers_writes_with(wire(kind()).status) as (address, writes):
        with CosmosClient(address, "a2V5") as client:
            container = client.get_database_client("d").get_container_client("c")
            with pytest.raises(CosmosHttpResponseError):
                container.create_item({"id": "1"})
        assert len(writes) == times_sent
