"""What the target of a request names. Facts: table 1, 3.

/Tables('t')                                   kind "table"    name t
/t(PartitionKey='p',RowKey='r')?$select=a      kind "entity"   name t, keys p and r
/devstoreaccount1/t()                          the same as /t(), with an account in the path
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote

from armillary.api.table.problems import refused

Kind: TypeAlias = Literal["service", "tables", "table", "entities", "entity", "batch"]

#: A literal: quotes inside are doubled.
_TEXT: Final = r"'((?:[^']|'')*)'"
_TABLE: Final = re.compile(rf"Tables\({_TEXT}\)", re.DOTALL)
_ENTITY: Final = re.compile(
    rf"(.+?)\((?:PartitionKey={_TEXT},RowKey={_TEXT}|RowKey={_TEXT},PartitionKey={_TEXT})\)",
    re.DOTALL,
)
KEYS_HINT: Final = "Keys have the form (PartitionKey='…',RowKey='…'), quotes in them doubled."
SECONDARY: Final = "-secondary"


@dataclass(frozen=True, slots=True)
class Target:
    kind: Kind
    table: str = ""
    partition_key: str = ""
    row_key: str = ""
    account: str = ""
    """The account in the path; empty: the host says it."""


def split_target(target: str) -> tuple[str, str]:
    """Path and query string, both as they were sent."""
    path, _, query = target.partition("?")
    return path, query


def parse_parameters(query: str) -> dict[str, str]:
    """Query parameters by name; of a repeated one the first."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=64)
    except ValueError as error:  # not UTF-8, or too many
        raise refused("url") from error
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def parse_target(path: str, accounts: Collection[str], *, is_service: bool = False) -> Target:
    """`is_service`: the query string asks for the service, so that a lone name is the account."""
    segments = path.strip("/").split("/") if path.strip("/") else []
    if "//" in path:
        raise refused("url")
    account = ""
    if segments and (len(segments) > 1 or is_service):
        name = segments[0].removesuffix(SECONDARY)
        if name in accounts:
            account = segments.pop(0)
    if len(segments) > 1 or (is_service and segments):
        raise refused("url segments")
    if not segments:
        return Target("service", account=account)
    try:
        text = unquote(segments[0], errors="strict") if "%" in segments[0] else segments[0]
    except UnicodeDecodeError as error:
        raise refused("url") from error
    return _parse(text, account)


@lru_cache(maxsize=1024)
def _parse(text: str, account: str) -> Target:
    if text in ("Tables", "Tables()"):
        return Target("tables", account=account)
    if text == "$batch":
        return Target("batch", account=account)
    found = _TABLE.fullmatch(text)
    if found is not None:
        return Target("table", _literal(found[1]), account=account)
    found = _ENTITY.fullmatch(text)
    if found is not None:
        table, first, second, row, partition = found.groups()
        if first is None:
            first, second = partition, row
        return Target("entity", table, _literal(first), _literal(second), account)
    if text.endswith("()") and len(text) > 2:
        text = text[:-2]
    elif text.endswith(")") and "(" in text and "=" in text:
        raise refused("url", hint=KEYS_HINT)
    return Target("entities", text, account=account)


def _literal(text: str) -> str:
    return text.replace("''", "'")


def key_literal(text: str) -> str:
    """As it stands in links: quotes doubled, percent-encoded by the caller."""
    return text.replace("'", "''")
