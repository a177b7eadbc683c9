"""What the headers of a request say, each read in one place. Facts: nosql-rest 3.1.

A header is looked at when somebody asks for it: a point read asks for few. Values that make no
sense are refused with the sentence of the original.
"""

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

import orjson

from armillary.encoding.partition_key import KeyValues, parse_key_header
from armillary.errors import BadInput
from armillary.store.items.paging import PAGE_SIZE_TEXT
from armillary.values import JSON

KEY: Final = "x-ms-documentdb-partitionkey"
AUTOSCALE: Final = "x-ms-cosmos-offer-autopilot-settings"
RANGE_ID: Final = "x-ms-documentdb-partitionkeyrangeid"
CONTAINER_RID: Final = "x-ms-cosmos-intended-collection-rid"
UPSERT: Final = "x-ms-documentdb-is-upsert"
CROSS_PARTITION: Final = "x-ms-documentdb-query-enablecrosspartition"
#: Sent by SDKs; nothing depends on them.
UNREAD: Final = frozenset(
    {
        "x-ms-client-id",
        "x-ms-cosmos-correlated-activityid",
        "x-ms-cosmos-sdk-supportedcapabilities",
        "x-ms-documentdb-query-iscontinuationexpected",
        "x-ms-documentdb-query-parallelizecrosspartitionquery",
        "x-ms-thinclient-proxy-operation-type",
        "x-ms-thinclient-proxy-resource-type",
    }
)
QUERY: Final = ("x-ms-documentdb-isquery", "x-ms-documentdb-query")

#: Strongest first. A request may ask for its account's level or a weaker one.
LEVELS: Final = ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual")

INCREMENTAL: Final = "incremental feed"
FULL_FIDELITY: Final = "full-fidelity feed"


@dataclass(frozen=True, slots=True)
class Options:
    headers: dict[str, str]

    # --- what is asked for ----------------------------------------------------------------------

    @property
    def is_query(self) -> bool:
        return any(map(self.flag, QUERY))

    @property
    def is_plan(self) -> bool:
        return self.flag("x-ms-cosmos-is-query-plan-request")

    @property
    def is_batch(self) -> bool:
        return self.flag("x-ms-cosmos-is-batch-request")

    @property
    def is_atomic(self) -> bool:
        return self.flag("x-ms-cosmos-batch-atomic")

    @property
    def goes_on(self) -> bool:
        """Whether the entries of a bulk after one that failed are tried all the same."""
        return self.headers.get("x-ms-cosmos-batch-continue-on-error", "").lower() != "false"

    @property
    def is_upsert(self) -> bool:
        return self.flag(UPSERT)

    @property
    def is_minimal(self) -> bool:
        """No body in the answer to a write."""
        return "return=minimal" in self.headers.get("prefer", "").lower().replace(" ", "")

    @property
    def feed_mode(self) -> str | None:
        """`A-IM`, in lower case."""
        mode = self.headers.get("a-im")
        if mode is None:
            return None
        mode = mode.strip().lower()
        if mode not in (INCREMENTAL, FULL_FIDELITY):
            raise _bad_header(mode, "A-IM")
        return mode

    # --- conditions -----------------------------------------------------------------------------

    @property
    def if_match(self) -> str | None:
        return self.headers.get("if-match")

    @property
    def if_none_match(self) -> str | None:
        return self.headers.get("if-none-match")

    @property
    def since(self) -> int | None:
        """`If-Modified-Since` in seconds."""
        text = self.headers.get("if-modified-since")
        if text is None:
            return None
        try:
            return int(parsedate_to_datetime(text).timestamp())
        except (ValueError, OverflowError) as error:
            raise _bad_header(text, "If-Modified-Since") from error

    # --- where ----------------------------------------------------------------------------------

    @property
    def key(self) -> KeyValues | None:
        text = self.headers.get(KEY)
        return None if text is None else parse_key_header(text)

    @property
    def range_id(self) -> str | None:
        """Without the container's rid that may stand before it."""
        text = self.headers.get(RANGE_ID)
        return None if text is None else text.rpartition(",")[2].strip()

    @property
    def epk_bounds(self) -> tuple[str, str] | None:
        start, end = self.headers.get("x-ms-start-epk"), self.headers.get("x-ms-end-epk")
        if start is None and end is None:
            return None
        return start or "", "FF" if end is None else end

    @property
    def container_rid(self) -> str | None:
        return self.headers.get(CONTAINER_RID)

    # --- pages ----------------------------------------------------------------------------------

    @property
    def page_size(self) -> int:
        """-1 leaves it to us."""
        size = self.number("x-ms-max-item-count")
        if size is None:
            return -1
        if size < 1 and size != -1:
            raise BadInput(PAGE_SIZE_TEXT.format(size))
        return size

    @property
    def continuation(self) -> str | None:
        return self.headers.get("x-ms-continuation") or None

    # --- sessions -------------------------------------------------------------------------------

    @property
    def session_token(self) -> str | None:
        return self.headers.get("x-ms-session-token") or None

    def level(self, account: str) -> str:
        """The consistency level to read at."""
        asked = self.headers.get("x-ms-consistency-level")
        if asked is None or asked == account:
            return account
        if asked not in LEVELS:
            raise _bad_header(asked, "x-ms-consistency-level")
        if LEVELS.index(asked) < LEVELS.index(account):
            raise BadInput(
                f"ConsistencyLevel {asked} specified in the request is invalid when service is "
                f"configured with consistency level {account}. Ensure the request consistency "
                "level is not stronger than the service consistency level."
            )
        return asked

    # --- throughput -----------------------------------------------------------------------------

    @property
    def throughput(self) -> int | None:
        return self.number("x-ms-offer-throughput")

    @property
    def autoscale(self) -> dict[str, JSON] | None:
        text = self.headers.get(AUTOSCALE)
        if text is None:
            return None
        try:
            settings = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise _bad_header(text, AUTOSCALE) from error
        if not isinstance(settings, dict) or type(settings.get("maxThroughput")) is not int:
            raise _bad_header(text, AUTOSCALE)
        return settings

    # --- reading --------------------------------------------------------------------------------

    def flag(self, name: str) -> bool:
        return self.headers.get(name, "").strip().lower() == "true"

    def number(self, name: str) -> int | None:
        text = self.headers.get(name)
        if text is None or not text.strip():
            return None
        try:
            return int(text)
        except ValueError as error:
            raise _bad_header(text, name) from error

    def names(self, name: str) -> list[str]:
        """A comma-separated list."""
        return [one.strip() for one in self.headers.get(name, "").split(",") if one.strip()]


def _bad_header(value: Any, name: str) -> BadInput:
    return BadInput(f"Value '{value}' specified for the header '{name}' is invalid.")
