"""Shared access signatures: what an account or table SAS says, whether a key of ours signed it, and
what it allows. Facts: table 2.

    account SAS   sv ss srt sp se …   services, kinds of resources, permissions
    table SAS     sv tn sp se …       one table; Storage also takes ranges of keys
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from armillary.api.table.problems import refused
from armillary.encoding.edm.values import TICKS_PER_SECOND, UNIX_TICKS, parse_ticks
from armillary.errors import BadInput

if TYPE_CHECKING:
    from armillary.api.core.gateway import Gateway

ENCRYPTION_SCOPE_SINCE: Final = "2020-12-06"  # one more field in what an account SAS signs
EXPIRED_TEXT: Final = (
    "The shared access signature is not valid at the current time (start {0}, expiry {1})."
)
RANGE: Final = ("spk", "srk", "epk", "erk")


@dataclass(frozen=True, slots=True)
class Sas:
    permissions: str
    table: str | None
    """None: an account SAS."""
    resources: str = ""
    """Of an account SAS: s(ervice), c(ontainer, here tables), o(bject, here entities)."""
    start: tuple[str, str | None] | None = None
    """First PartitionKey and RowKey that it reaches."""
    end: tuple[str, str | None] | None = None
    policy: str | None = None
    """The stored access policy that completes it (Storage)."""
    expires: bool = True

    def covers(self, partition_key: str, row_key: str) -> bool:
        """Whether an entity is inside its range of keys."""
        if self.start is not None:
            first, row = self.start
            if partition_key < first or (
                partition_key == first and row is not None and row_key < row
            ):
                return False
        if self.end is not None:
            last, row = self.end
            if partition_key > last or (
                partition_key == last and row is not None and row_key > row
            ):
                return False
        return True


def verify_sas(
    gateway: Gateway, parameters: Mapping[str, str], accounts: Sequence[str], *, secure: bool
) -> Sas:
    given = _signature(parameters["sig"])
    is_table = "tn" in parameters
    make = _table_payload if is_table else _account_payload
    payloads = [make(parameters, account) for account in accounts]
    if not any(gateway.keyring.signer_may_write(one.encode(), given) for one in payloads):
        raise unauthorized(
            "Signature did not match. String to sign used was " + payloads[0].replace("\n", "\\n")
        )
    if not parameters.get("si") or "se" in parameters:
        check_times(parameters.get("st", ""), parameters.get("se", ""), gateway.wall_s())
    protocols = parameters.get("spr", "")
    if protocols and not secure and "http" not in protocols.split(","):
        raise unauthorized("The shared access signature is for HTTPS only.")
    if parameters.get("sip"):
        raise unauthorized("This server can't check the addresses of a shared access signature.")
    permissions = parameters.get("sp", "")
    if is_table:
        return Sas(
            permissions,
            parameters["tn"].lower(),
            start=_edge(parameters, "spk", "srk"),
            end=_edge(parameters, "epk", "erk"),
            policy=parameters.get("si") or None,
            expires="se" in parameters,
        )
    if "t" not in parameters.get("ss", ""):
        raise refused("permission")
    return Sas(permissions, None, parameters.get("srt", ""))


def _account_payload(parameters: Mapping[str, str], account: str) -> str:
    get = parameters.get
    fields = [account, *(get(name, "") for name in ("sp", "ss", "srt", "st", "se", "sip", "spr"))]
    fields += [get("sv", ""), ""]
    if get("sv", "") >= ENCRYPTION_SCOPE_SINCE:
        fields.append("")
    return "\n".join(fields)


def _table_payload(parameters: Mapping[str, str], account: str) -> str:
    get = parameters.get
    resource = f"/table/{account}/{parameters['tn'].lower()}"
    fields = [get("sp", ""), get("st", ""), get("se", ""), resource]
    fields += [get(name, "") for name in ("si", "sip", "spr", "sv", *RANGE)]
    return "\n".join(fields)


def _signature(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace(" ", "+"), validate=True)
    except ValueError as error:
        raise unauthorized("The signature is not base64.") from error


def check_times(start: str, expiry: str, now_s: int) -> None:
    """Raises unless now is between the two; a start may be missing, an expiry not."""
    try:
        first = _seconds(start) if start else 0
        last = _seconds(expiry)
    except ValueError as error:
        raise unauthorized(f"The times of the shared access signature: {error}.") from error
    if not first <= now_s <= last:
        raise unauthorized(EXPIRED_TEXT.format(start or "none", expiry))


def _seconds(text: str) -> int:
    return (parse_ticks(text) - UNIX_TICKS) // TICKS_PER_SECOND


def _edge(parameters: Mapping[str, str], partition: str, row: str) -> tuple[str, str | None] | None:
    if partition not in parameters:
        return None
    return parameters[partition], parameters.get(row)


def unauthorized(message: str) -> BadInput:
    return refused("unauthorized", message=message)
