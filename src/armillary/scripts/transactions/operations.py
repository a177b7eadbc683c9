"""What a script asks for, done on its transaction: a table of operations.

Everything is checked here, whatever the library has checked before: a script can replace the
library's parts. An error of ours becomes a result that the script's callback gets; only `Fenced`
and what is not the script's doing go up, so that the run begins again or fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import orjson

from armillary import limits
from armillary.budget import Budget
from armillary.encoding.rids import parse_rid
from armillary.engine.base import SpaceGone
from armillary.errors import (
    BadInput,
    DbError,
    Fenced,
    NotFound,
    NotModified,
    TooLarge,
    Unavailable,
)
from armillary.query.run.sql import run_query
from armillary.scripts.running import Asked, Result
from armillary.scripts.transactions.numbers import number_of
from armillary.scripts.transactions.overlay_store import OverlayStore
from armillary.scripts.transactions.transaction import Transaction
from armillary.store.items import paging
from armillary.store.items.positions import decode_position, encode_position
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Done
from armillary.values import JSON

CREATED: Final = 201
OK: Final = 200
NO_CONTENT: Final = 204
NOT_MODIFIED: Final = 304
NOTHING: Final = msgspec.Raw(b"[]")
DOCUMENT_PARTS: Final = 6


class Operations:
    """The operations of one run."""

    def __init__(
        self, transaction: Transaction, self_link: str, alt_link: str, budget: Budget
    ) -> None:
        self._transaction = transaction
        self._budget = budget
        self._store = OverlayStore(transaction)
        self._self_link = self_link
        self._alt_link = alt_link

    def execute(self, asked: Asked) -> Result:
        work = TABLE.get(asked.op)
        try:
            if work is None:
                raise BadInput(f"Scripts have no operation '{asked.op}'.")
            return work(self, asked)
        except (Fenced, SpaceGone, Unavailable):
            raise
        except NotModified:
            return Result(NOT_MODIFIED, not_modified=True)
        except DbError as error:
            return Result(number_of(error), error=text_of(error))

    # --- items ----------------------------------------------------------------------------------

    def create(self, asked: Asked) -> Result:
        return self._written(Operation("create", body=body_of(asked)))

    def upsert(self, asked: Asked) -> Result:
        return self._written(Operation("upsert", body=body_of(asked), if_match=asked.etag))

    def replace(self, asked: Asked) -> Result:
        target = self._id_of(asked.link)
        return self._written(Operation("replace", target, body=body_of(asked), if_match=asked.etag))

    def delete(self, asked: Asked) -> Result:
        self._transaction.run(Operation("delete", self._id_of(asked.link), if_match=asked.etag))
        return Result(NO_CONTENT)

    def read(self, asked: Asked) -> Result:
        operation = Operation("read", self._id_of(asked.link), if_none_match=asked.if_none_match)
        done = self._transaction.run(operation)
        return Result(OK, msgspec.Raw(done.text))

    def _written(self, operation: Operation) -> Result:
        done: Done = self._transaction.run(operation)
        status = CREATED if done.outcome == "created" else OK
        return Result(status, msgspec.Raw(done.text))

    # --- many items -----------------------------------------------------------------------------

    def feed(self, asked: Asked) -> Result:
        position = None
        if asked.continuation:
            position = decode_position(asked.continuation, ["key"])
        size = paging.check_page_size(page_size(asked), limits.PAGE_ITEMS_DEFAULT)
        values = self._transaction.values
        page = paging.read_items_of_key(self._store, values, position, size, self._budget)
        following = None if page.position is None else encode_position(page.position)
        rows = b"[" + b",".join(one.text for one in page.items) + b"]"
        return Result(OK, msgspec.Raw(rows), continuation=following)

    def query(self, asked: Asked) -> Result:
        page = run_query(
            self._store,
            asked.query,
            parameters_of(asked.parameters),
            partition_key=self._transaction.values,
            continuation=asked.continuation or None,
            max_items=page_size(asked),
            budget=self._budget,
        )
        return Result(OK, msgspec.Raw(orjson.dumps(page.rows)), continuation=page.continuation)

    # --- others ---------------------------------------------------------------------------------

    def nothing(self, asked: Asked) -> Result:
        """A feed of attachments, which are history."""
        return Result(OK, NOTHING)

    def refuse(self, asked: Asked) -> Result:
        """The library found it wanting, and the script hears of it as of any other refusal."""
        return Result(asked.status if asked.status >= 400 else 400, error=asked.text)

    def _id_of(self, link: str) -> str:
        """The id that a document link names. By rid or by name, of this container only."""
        parts = link.rstrip("/").split("/")
        if len(parts) != DOCUMENT_PARTS or (parts[0], parts[2], parts[4]) != (
            "dbs",
            "colls",
            "docs",
        ):
            raise BadInput(f'Invalid document link: "{link}".')
        if link.startswith(self._self_link):
            try:
                rid = parse_rid(parts[5])
            except (BadInput, ValueError):
                raise NotFound from None
            if rid.kind != "item":
                raise NotFound
            found = self._transaction.id_of_rid(rid.number.to_bytes(8, "big"))
            if found is None:
                raise NotFound
            return found
        if link.startswith(self._alt_link + "/"):
            return unquote(parts[5])
        raise BadInput(
            "Function is not allowed to operate on resources outside current collection. Make "
            f'sure that the link provided, "{link}", belongs to current collection.'
        )


TABLE: Final[Mapping[str, Callable[[Operations, Asked], Result]]] = {
    "create": Operations.create,
    "upsert": Operations.upsert,
    "replace": Operations.replace,
    "delete": Operations.delete,
    "read": Operations.read,
    "feed": Operations.feed,
    "query": Operations.query,
    "nothing": Operations.nothing,
    "refuse": Operations.refuse,
}


def body_of(asked: Asked) -> bytes:
    body = asked.body.encode("utf-8", "surrogatepass")
    if len(body) > limits.ITEM_BYTES_MAX:
        raise TooLarge
    return body


def page_size(asked: Asked) -> int:
    size = asked.page_size
    if size is None or size != size or abs(size) > limits.QUERY_COUNT_MAX:
        raise BadInput(paging.PAGE_SIZE_TEXT.format(size))
    return min(int(size), limits.PAGE_ITEMS_MAX)


def parameters_of(text: str) -> dict[str, JSON]:
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadInput("The parameters of a query must be JSON.") from error
    if not isinstance(found, list):
        raise BadInput("The parameters of a query must be an array.")
    parameters: dict[str, JSON] = {}
    for one in found:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise BadInput("A parameter of a query must be an object with a name and a value.")
        if "value" in one:
            parameters[one["name"]] = one["value"]
    return parameters


def text_of(error: DbError) -> str:
    """A name that scripts look for, then the sentence."""
    if isinstance(error, NotFound):
        return f"Resource Not Found. {error.message}"
    return error.message
