"""An empty account again: every database goes, faults too, and the clock is right. For test suites;
snapshots stay, so that the next test can start from one."""

from __future__ import annotations

from contextlib import suppress

from armillary.api.control.call import ControlCall, answer
from armillary.api.http.messages import Response
from armillary.errors import NotFound


def reset(call: ControlCall) -> Response:
    account = call.gateway.account
    databases = account.list_databases(call.budget)
    for one in databases:
        with suppress(NotFound):  # somebody else resets too
            account.delete_database(one.id)
        call.gateway.forget(one.id)
    call.controls.shared.reset()
    return answer(200, {"databases": len(databases)})
