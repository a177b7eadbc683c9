"""One command as handlers see it: its arguments, who sent it, what it has cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from armillary.api.core.streams import Peer
from armillary.api.mongo.collation import askable, fold_of
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.hints import hinted
from armillary.api.mongo.data.reads import PAGE_ITEMS, Row, first_rows, has_order, rows_of
from armillary.api.mongo.data.writes import Statement
from armillary.api.mongo.errors import (
    MongoError,
    bad_value,
    missing_field,
    unknown_field,
    wrong_type,
)
from armillary.api.mongo.language import Language
from armillary.api.mongo.match.operators import Filter
from armillary.api.mongo.sorting import Spec
from armillary.api.mongo.wire.messages import Request
from armillary.budget import Budget
from armillary.encoding.bson.values import (
    Document,
    decode,
    decode_all_exactly,
    is_number,
    is_text,
    number_of,
    type_name,
)
from armillary.limits import MONGO_MEMORY_BYTES_MAX

if TYPE_CHECKING:
    from armillary.api.mongo.data.transactions import Transaction
    from armillary.api.mongo.login import Conversation
    from armillary.api.mongo.service import Service

#: On any command (section 5). Names that begin with `$` are passed over too.
GENERIC: Final = frozenset(
    [
        "lsid",
        "txnNumber",
        "autocommit",
        "startTransaction",
        "readConcern",
        "writeConcern",
        "comment",
        "maxTimeMS",
        "apiVersion",
        "apiStrict",
        "apiDeprecationErrors",
        "stmtId",
        "stmtIds",
        "coordinator",
        "maxTimeMSOpOnly",
        "databaseVersion",
        "shardVersion",
        "mayBypassWriteBlocking",
        "isTimeseriesNamespace",
        "rawData",
        "serialization_context",
    ]
)

RETRY_REFUSED: Final = (
    "Retryable writes are not supported. Please disable retryable writes by specifying "
    '"retrywrites=false" in the connection string or an equivalent driver specific config.'
)


@dataclass(frozen=True, slots=True)
class Command:
    """A row of the table of commands."""

    run: Callable[[Call], Document]
    fields: str = ""
    """Arguments alongside the generic ones, in words; `*`: any."""
    login: bool = True
    writes: bool = False
    operation: str | None = None
    """What faults know it by."""
    counts: bool = True
    """Its charge is what getLastRequestStatistics tells next."""
    in_transaction: bool = False


@dataclass(slots=True)
class Client:
    """One connection."""

    peer: Peer
    number: int
    may_write: bool | None = None
    """None: not logged in."""
    conversation: Conversation | None = None
    statistics: tuple[str, float, float] | None = None
    application: str = ""
    gone: bool = False


@dataclass(slots=True)
class Attempt:
    """One command from its first run to its answer. It may be put off (`Later`) and run again."""

    budget: Budget = field(default_factory=lambda: Budget(bytes_max=MONGO_MEMORY_BYTES_MAX))
    began: float | None = None
    """When it first ran; waiting for a thread is not its time."""
    throttled: int = 0
    """How often it was refused for its charge, and put off."""
    position: str | None = None
    """How far it has looked in vain, of a change stream."""


@dataclass(slots=True)
class Call:
    service: Service
    client: Client
    request: Request
    spec: Command
    attempt: Attempt
    charge_ru: float = 0.0
    transaction: Transaction | None = None
    _language: Language | None = field(default=None, init=False)

    # --- arguments ---

    @property
    def budget(self) -> Budget:
        return self.attempt.budget

    @property
    def command(self) -> Document:
        return self.request.command

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def database(self) -> str:
        return self.request.database

    def check_fields(self) -> None:
        allowed = self.spec.fields
        if allowed == "*":
            return
        known = allowed.split()
        for at, one in enumerate(self.command):
            if at and one not in known and one not in GENERIC and one[:1] != "$":
                raise unknown_field(f"{self.name}.{one}")

    def collection_name(self) -> str:
        value = self.command[self.name]
        if not is_text(value):
            raise MongoError(73, f"collection name has invalid type {type_name(value)}")
        if not value:
            raise MongoError(73, f"Invalid namespace specified '{self.database}.'")
        if "\0" in value:
            raise MongoError(73, "namespaces cannot have embedded null characters")
        return value

    def get(self, name: str, kinds: tuple[type, ...], default: Any, expected: str) -> Any:
        value = self.command.get(name)
        if value is None:
            return default
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise wrong_type(f"{self.name}.{name}", type_name(value), *expected.split())
        return value

    def text(self, name: str, default: str | None = None) -> str | None:
        value = self.command.get(name)
        if value is None or is_text(value):
            return default if value is None else value
        raise wrong_type(f"{self.name}.{name}", type_name(value), "string")

    def document(self, name: str, default: Document | None = None) -> Document:
        found: Document = self.get(name, (dict,), {} if default is None else default, "object")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.command.get(name)
        if value is None:
            return default
        if is_number(value):
            return bool(number_of(value))
        if not isinstance(value, bool):
            raise wrong_type(
                f"{self.name}.{name}", type_name(value), "bool", "long", "int", "decimal", "double"
            )
        return value

    def whole(self, name: str, default: int = 0, least: int | None = 0) -> int:
        value = self.command.get(name)
        if value is None:
            return default
        if not is_number(value):
            raise wrong_type(
                f"{self.name}.{name}", type_name(value), "long", "int", "decimal", "double"
            )
        return self._whole(name, number_of(value), least)

    @staticmethod
    def _whole(name: str, plain: Any, least: int | None) -> int:
        if plain != plain or not -(2**63) <= plain < 2**63:
            raise bad_value(f"{name} is not in the range of 64-bit integers")
        found = int(plain)
        if least is not None and found < least:
            raise MongoError(
                51024, f"BSON field '{name}' value must be >= {least}, actual value '{found}'"
            )
        return found

    def batch_size(self, default: int) -> int:
        """Of the option `cursor`."""
        size = self.document("cursor").get("batchSize", default)
        if not is_number(size):
            raise wrong_type(
                "cursor.batchSize", type_name(size), "long", "int", "decimal", "double"
            )
        return self._whole("batchSize", number_of(size), 0)

    def array(self, name: str, *, exact: bool = False) -> list[Any]:
        """An array argument; its documents may have come in a section of their own."""
        raw = self.request.arrays.get(name)
        if raw is not None:
            return decode_all_exactly(raw) if exact else [*map(decode, raw)]
        value = self.command.get(name)
        if value is None:
            raise missing_field(f"{self.name}.{name}")
        if not isinstance(value, list):
            raise wrong_type(f"{self.name}.{name}", type_name(value), "array")
        return value

    def language(self, **variables: Any) -> Language:
        if self._language is None:
            let = self.document("let") if "let" in self.command else {}
            language = self.service.language({}, self.budget)
            if let:
                from armillary.api.mongo.expressions.compiled import compile_expression, evaluate

                values = {
                    name: evaluate(compile_expression(one, language), {})
                    for name, one in let.items()
                }
                language = self.service.language(values, self.budget)
            self._language = self.collated(language, self.command.get("collation"))
        return self._language

    def collated(self, language: Language, collation: Any) -> Language:
        """The language with a collation; strict mode ignores it, as Azure Cosmos DB does."""
        fold = fold_of(collation, f"{self.name}.collation")
        if fold is None or language.strict:
            return language
        return replace(language, fold=fold)

    # --- collections ---

    def container_names(self) -> tuple[str, str] | None:
        value = self.command.get(self.name)
        return (self.database, value) if is_text(value) else None

    def collection(self) -> Collection | None:
        name = self.collection_name()
        found = self.service.collections.find(self.database, name)
        if found is None and self.transaction is not None:
            self.transaction.looked_for(self, f"{self.database}.{name}")
        return found

    def hinted_collection(self, hint: Any = None) -> Collection | None:
        """The same; a hint, of a statement or of the command, has to name an index of it."""
        found = self.collection()
        hint = self.command.get("hint") if hint is None else hint
        if found is not None and hint is not None:
            hinted(found, hint)
        return found

    def rows(
        self, collection: Collection, query: Document, language: Language | None = None
    ) -> Iterator[Row]:
        """Every document that may match, as this call sees it."""
        query = askable(query, (language or self.language()).fold)
        if self.transaction is not None:
            return self.transaction.rows(self, collection, query)
        return rows_of(collection, query, self.charge, self.budget)

    def first(
        self, collection: Collection, query: Document, test: Filter, spec: Spec, count: int | None
    ) -> list[Document] | None:
        """The first few documents of an order, where an index may have it; None: the order has to
        be made of all of them."""
        if not spec or count is None or count > PAGE_ITEMS or self.transaction is not None:
            return None
        if self.language().fold is not None or not has_order(collection, spec):
            return None
        rows = first_rows(collection, query, test, spec, count, self.charge, self.budget)
        return [row.document for row in rows]

    def charge(self, ru: float) -> None:
        self.charge_ru += ru

    # --- sessions, retryable writes, transactions ---

    @property
    def session(self) -> str:
        """The id of the logical session, as text; empty without one."""
        lsid = self.command.get("lsid")
        if not isinstance(lsid, dict) or not isinstance(lsid.get("id"), bytes):
            return ""
        return str(lsid["id"].hex())

    @property
    def in_transaction(self) -> bool:
        return self.command.get("autocommit") is False

    def statement(self) -> Callable[[int], Statement] | None:
        """How the records of this write are named; None: it is not retryable."""
        number = self.command.get("txnNumber")
        if number is None or self.in_transaction:
            return None
        if not self.session:
            raise MongoError(72, "Transaction number requires a session ID to also be specified")
        if self.service.settings.strict:
            raise bad_value(RETRY_REFUSED)
        session, plain = self.session, self.whole("txnNumber")
        given: list[Any] = self.get("stmtIds", (list,), [], "array")
        for at, one in enumerate(given):
            if not isinstance(one, int) or isinstance(one, bool):
                raise wrong_type(f"{self.name}.stmtIds.{at}", type_name(one), "int")
        base = self.whole("stmtId")

        def named(index: int) -> Statement:
            place = given[index] if index < len(given) else base + index
            return Statement(session, plain, int(place))

        return named

    def enter_transaction(self) -> None:
        from armillary.api.mongo.data.transactions import enter

        if self.in_transaction and self.name not in ("commitTransaction", "abortTransaction"):
            if not self.spec.in_transaction:
                raise MongoError(263, f"Cannot run '{self.name}' in a multi-document transaction.")
            self.transaction = enter(self)

    def abort_transaction(self) -> None:
        from armillary.api.mongo.data.transactions import abort

        if self.name not in ("commitTransaction", "abortTransaction"):
            abort(self)
