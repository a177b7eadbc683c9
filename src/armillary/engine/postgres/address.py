"""A database's address, and the session settings every connection gets.

The address is PostgreSQL's own URL with one more parameter, `schema`:

    postgresql://user@host/database?schema=armillary
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from armillary.errors import BadInput
from armillary.limits import POSTGRES_CONNECT_SECONDS, STATEMENT_TIMEOUT_MS

SCHEMA_DEFAULT: Final = "armillary"

#: Given when connecting, so that no statement ever runs without them.
SETTINGS: Final[dict[str, str]] = {
    "statement_timeout": str(STATEMENT_TIMEOUT_MS),
    # A server that stops in the middle of a group must not keep its space locked.
    "idle_in_transaction_session_timeout": str(STATEMENT_TIMEOUT_MS),
    # Every statement is meant to walk the primary key. Without statistics (a young table, a plan
    # made while it was empty) the planner would at times read the whole table instead.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",  # compiling costs more than any of these statements
}

#: A machine that is gone is noticed by the kernel in some seconds.
KEEPALIVES: Final[dict[str, int]] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class Address:
    url: str
    """Without the schema."""
    schema: str

    @classmethod
    def parse(cls, url: str, schema: str | None = None) -> Address:
        parts = urlsplit(url)
        if parts.scheme not in ("postgresql", "postgres"):
            raise BadInput(f"{parts.scheme}: is no address of PostgreSQL; begin with postgresql:")
        rest: list[str] = []
        for pair in filter(None, parts.query.split("&")):
            name, _, value = pair.partition("=")
            if name == "schema":
                schema = schema or unquote(value)
            else:
                rest.append(pair)  # as it came: libpq has its own rules of quoting
        schema = schema or SCHEMA_DEFAULT
        if not _NAME.fullmatch(schema):
            raise BadInput(
                f"The schema {schema!r} must be lower-case letters, digits and underscores."
            )
        plain = urlunsplit(parts._replace(query="&".join(rest)))
        if not parts.netloc:  # urlunsplit drops the empty host of postgresql:///database
            plain = plain.replace(f"{parts.scheme}:", f"{parts.scheme}://", 1)
        try:
            conninfo_to_dict(plain)
        except psycopg.ProgrammingError as error:
            raise BadInput(f"The address of the database is not understood: {error}") from error
        return cls(plain, schema)

    @property
    def shown(self) -> str:
        """The address without its password, for messages."""
        parts = urlsplit(self.url)
        user, at, host = parts.netloc.rpartition("@")
        pairs = [(k, v) for k, v in parse_qsl(parts.query) if k != "password"]
        netloc = f"{user.partition(':')[0]}{at}{host}"
        return f"{parts.scheme}://{netloc}{parts.path}" + (f"?{urlencode(pairs)}" if pairs else "")

    def conninfo(self, synchronous_commit: str | None, **settings: str) -> str:
        """`settings` are of the session; they win over everything else."""
        given: dict[str, Any] = conninfo_to_dict(self.url)
        options = [f"-c {name}={value}" for name, value in SETTINGS.items()]
        options.append(given.get("options") or "")  # later ones win: the caller may tune these
        options += [f"-c {name}={value}" for name, value in settings.items()]
        if synchronous_commit is not None:
            options.append(f"-c synchronous_commit={synchronous_commit}")  # but not this promise
        given["options"] = " ".join(filter(None, options))
        given.setdefault("connect_timeout", POSTGRES_CONNECT_SECONDS)
        for name, value in KEEPALIVES.items():
            given.setdefault(name, value)
        given.setdefault("fallback_application_name", "armillary")
        return make_conninfo(**given)
