"""May they? Keys may do everything, read-only keys read, a shared access signature what it says.

    account SAS   permission letters, and the kind of resource: s(ervice), c (tables), o (entities)
    table SAS     r a u d on entities of its table; Storage: in its range of keys

Facts: table 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from armillary.api.table.problems import refused

if TYPE_CHECKING:
    from armillary.api.table.call import Call
    from armillary.api.table.changes import Change
    from armillary.api.table.routes import Route


def authorize(call: Call, route: Route) -> None:
    caller = call.caller
    if route.writes and not caller.may_write:
        raise refused("read-only key")
    sas = caller.sas
    if sas is None:
        return
    if sas.table is None:
        if route.resource not in sas.resources:
            raise refused("permission")
    else:
        if (sas.start or sas.end) and not call.flavour.is_storage:
            raise refused("sas keys")
        if call.target.kind == "batch":
            return  # each operation is looked at by itself
        if route.resource != "o" or sas.table != call.target.table.lower():
            raise refused("permission")
        if call.target.kind == "entity":
            _check_range(call, call.target.partition_key, call.target.row_key)
    _check_letters(call, route.permissions(call))


def authorize_change(call: Call, change: Change) -> None:
    """An operation of a batch, or an insert, whose keys are in the body."""
    sas = call.caller.sas
    if sas is None:
        return
    if sas.table is not None and sas.table != call.target.table.lower():
        raise refused("permission")
    _check_range(call, change.partition_key, change.row_key)
    _check_letters(call, letters_of(change.kind, change.if_match))


def letters_of(kind: str, if_match: str | None) -> str:
    """The permissions that a change needs, all of them."""
    if kind == "insert":
        return "a"
    if kind == "delete":
        return "d"
    return "au" if if_match is None else "u"


def _check_letters(call: Call, letters: str) -> None:
    sas = call.caller.sas
    assert sas is not None
    for letter in letters.split("|"):
        if all(one in sas.permissions for one in letter):
            return
    raise refused("permission")


def _check_range(call: Call, partition_key: str, row_key: str) -> None:
    sas = call.caller.sas
    assert sas is not None
    if not sas.covers(partition_key, row_key):
        raise refused("permission")
