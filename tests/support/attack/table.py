"""The Table API from outside: entities, filters, batches, damaged and signed."""

from __future__ import annotations

import json
from email.utils import formatdate
from random import Random
from typing import Any, Final
from urllib.parse import quote

from tests.support import fuzz_mutations as damage
from tests.support.table import shared_key

from armillary.api.core.settings import EMULATOR_KEY

ENTITY: Final[dict[str, Any]] = {
    "PartitionKey": "a",
    "RowKey": "1",
    "Text": "fox",
    "Number": 5,
    "Large": "9007199254740993",
    "Large@odata.type": "Edm.Int64",
    "When": "2024-01-02T03:04:05Z",
    "When@odata.type": "Edm.DateTime",
    "Bytes": "AAEC",
    "Bytes@odata.type": "Edm.Binary",
    "Id": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "Id@odata.type": "Edm.Guid",
    "Real": 1.5,
}
FILTERS: Final = (
    "PartitionKey eq 'a' and RowKey ge '1'",
    "Number gt 3 or not (Text eq 'fox')",
    "When lt datetime'2025-01-01T00:00:00Z'",
    "Id eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
    "Bytes eq X'000102' or Bytes eq binary'00'",
    "Large ge 9007199254740993L and Real lt 2.5",
    "((((((((((Number eq 1))))))))))",
    "Text ge 'f' and Text lt 'g' and true eq true",
)
BATCH: Final = (
    "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
    "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    "POST http://localhost/t HTTP/1.1\r\nContent-Type: application/json\r\nAccept: */*\r\n\r\n"
    '{"PartitionKey":"a","RowKey":"9"}\r\n'
    "--changeset_1--\r\n--batch_1--\r\n"
)


class Damaged:
    def __init__(self, port: int, random: Random) -> None:
        self._port = port
        self._random = random

    def make(self) -> bytes:
        random = self._random
        method, path, body, headers = self._plain()
        if random.random() < 0.15:
            path = "/" + damage.cut_text(random, path[1:])
        path = "".join(one for one in path if " " < one < "\x7f")
        if random.random() < 0.1 and headers:
            name = random.choice(list(headers))
            headers[name] = _line(damage.cut_text(random, headers[name]))
        return signed(self._port, method, path, body, headers, random)

    def _plain(self) -> tuple[str, str, bytes, dict[str, str]]:
        random = self._random
        name = random.choice(("t", "t", "t", "nope", damage.text(random)))
        table = quote(name.encode("utf-8", "replace"), safe="")
        key = f"/{table}(PartitionKey='a',RowKey='{random.randrange(20)}')"
        kind = {"content-type": random.choice(JSON_KINDS)}
        match random.randrange(9):
            case 0 | 1 | 2:
                text = random.choice(FILTERS)
                if random.random() < 0.8:
                    text = damage.cut_text(random, text)
                options = f"$filter={quote(text, safe='')}"
                if random.random() < 0.3:
                    options += f"&$top={random.choice(('1', '0', '-1', '1001', 'x', '9' * 30))}"
                if random.random() < 0.3:
                    options += f"&$select={quote(_plain_text(random), safe='')}"
                if random.random() < 0.3:
                    token = quote(_plain_text(random), safe="")
                    options += f"&NextPartitionKey={token}&NextRowKey={token}"
                return "GET", f"/{table}()?{options}", b"", {}
            case 3:
                return "POST", f"/{table}", damage.body(random, self._entity()), kind
            case 4:
                method = random.choice(("PUT", "MERGE", "PATCH"))
                tag = random.choice(("*", "", 'W/"x"', _plain_text(random)))
                headers = kind | ({"if-match": _line(tag)} if tag else {})
                return method, key, damage.body(random, self._entity()), headers
            case 5:
                return "DELETE", key, b"", {"if-match": random.choice(("*", "x", 'W/"1"'))}
            case 6:
                body = damage.cut(random, BATCH.encode(), times=4)
                return "POST", "/$batch", body, {"content-type": BATCH_KIND}
            case 7:
                made = {"TableName": random.choice(("t", _plain_text(random)))}
                return "POST", "/Tables", damage.body(random, made), kind
            case _:
                return "GET", random.choice((key, "/Tables", "/?comp=properties", "/")), b"", {}

    def _entity(self) -> dict[str, Any]:
        return ENTITY | {"RowKey": str(self._random.randrange(20))}


JSON_KINDS: Final = ("application/json", "application/json;odata=nometadata", "text/plain", "")
BATCH_KIND: Final = "multipart/mixed; boundary=batch_1"


class Valid:
    """The same kinds of requests in the same shares, with nothing wrong in them."""

    def __init__(self, port: int, random: Random) -> None:
        self._port = port
        self._random = random

    def make(self) -> bytes:
        random = self._random
        row = str(random.randrange(20))
        key = f"/t(PartitionKey='a',RowKey='{row}')"
        entity = json.dumps(ENTITY | {"RowKey": row}).encode()
        kind = {"content-type": "application/json"}
        match random.randrange(9):
            case 0 | 1 | 2:
                text = quote(random.choice(FILTERS), safe="")
                return signed(self._port, "GET", f"/t()?$filter={text}", b"", {})
            case 3:
                return signed(self._port, "POST", "/t", entity, kind)
            case 4:
                method = random.choice(("PUT", "MERGE", "PATCH"))
                return signed(self._port, method, key, entity, kind)
            case 5:
                return signed(self._port, "DELETE", key, b"", {"if-match": "*"})
            case 6:
                kind = {"content-type": BATCH_KIND}
                return signed(self._port, "POST", "/$batch", BATCH.encode(), kind)
            case 7:
                return signed(self._port, "POST", "/Tables", b'{"TableName":"t"}', kind)
            case _:
                path = random.choice((key, "/Tables", "/?comp=properties"))
                return signed(self._port, "GET", path, b"", {})


def signed(
    port: int,
    method: str,
    path: str,
    body: bytes,
    headers: dict[str, str],
    random: Random | None = None,
) -> bytes:
    sent = {"host": f"localhost:{port}", "x-ms-date": formatdate(usegmt=True), "accept": ""}
    sent |= headers
    sent["authorization"] = shared_key(EMULATOR_KEY, "localhost", method, path, sent)
    if random is not None and random.random() < 0.05:
        sent["authorization"] = _line(damage.cut_text(random, sent["authorization"]))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in sent.items())]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + body


def _plain_text(random: Random) -> str:
    return damage.text(random).encode("utf-8", "replace").decode()


def _line(text: str) -> str:
    return "".join(one for one in text if one >= " ")
