"""The account as one worker serves it, asked by several threads."""

from __future__ import annotations

from tests.support.nosql import Api


def test_a_database_is_deleted_while_another_request_opens_a_container(api: Api) -> None:
    """Two clients that delete their databases at once met 500: a dictionary that grew while it was
    looked through."""
    gateway = api.gateway
    gateway.container("d", "c")

    class Database(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            gateway._stores["d", "opened meanwhile"] = gateway.container("d", "c")
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    gateway.forget(Database("gone"))
    assert gateway.known_container("d", "c") is not None
