"""Every route there is, of the NoSQL API and of the controls: who may not, is refused. A new route
is in a table, and so in these tests; without them one could be open to strangers unseen.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.nosql import READ_ONLY_KEY, WRONG_KEY, Api, document
from tests.support.nosql import api as made

from armillary.api.control import routes as control
from armillary.api.nosql import routes as nosql
from armillary.server.http import health

QUARTER_HOUR = 16 * 60


class Case:
    """A route, with names in the place of its stars and braces."""

    def __init__(self, method: str, target: str, headers: dict[str, str], writes: bool) -> None:
        self.method, self.target, self.headers, self.writes = method, target, headers, writes
        self.id = f"{method} {target} {' '.join(headers)}".strip()


VARIANTS = {
    "": {},
    "query": {"x-ms-documentdb-isquery": "true"},
    "plan": {"x-ms-cosmos-is-query-plan-request": "true"},
    "batch": {"x-ms-cosmos-is-batch-request": "true"},
    "changes": {"a-im": "Incremental feed"},
}


def cases() -> Iterator[Case]:
    for route in nosql.ROUTES:
        # Of another database than the one the token of these tests is for.
        names = iter(["other", "c", "x", "y"])
        segments = [next(names) if one == "*" else one for one in route.pattern.split("/")]
        target = "/" + "/".join(segments)
        yield Case(route.method, target, VARIANTS[route.variant], route.writes)
    for one in control.ROUTES:
        target = "/_armillary/" + one.pattern.format(db="d", coll="c", id="x", name="x")
        yield Case(one.method, target, {}, one.writes)
    for alias in control.ALIASES:
        yield Case("GET", alias, {}, False)


CASES = list(cases())
every_route = pytest.mark.parametrize("case", CASES, ids=[one.id for one in CASES])


@pytest.fixture(scope="module")
def open_api() -> Iterator[Api]:
    with made() as one:
        one.account.create_database("other")
        yield one


@pytest.fixture(scope="module")
def token(open_api: Api) -> str:
    """May do all with the items of d/c, and nothing else."""
    assert open_api.ask("POST", "/dbs/d/users", {"id": "ada"}).status == 201
    permission = {"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c"}
    answer = open_api.ask("POST", "/dbs/d/users/ada/permissions", permission)
    return str(document(answer)["_token"])


def test_the_tables_are_not_empty_and_all_of_them_is_here() -> None:
    assert len(CASES) == len(nosql.ROUTES) + len(control.ROUTES) + len(control.ALIASES)
    assert len(nosql.ROUTES) > 60
    assert len(control.ROUTES) > 10


@every_route
def test_unsigned_requests_are_refused(open_api: Api, case: Case) -> None:
    headers = {"x-ms-date": open_api.date(), **case.headers}
    assert open_api.send(case.method, case.target, headers).status == 401
    empty = headers | {"authorization": ""}
    assert open_api.send(case.method, case.target, empty).status == 401


@every_route
def test_wrong_signatures_are_refused(open_api: Api, case: Case) -> None:
    answer = open_api.ask(case.method, case.target, {}, case.headers, key=WRONG_KEY)
    assert answer.status == 401
    other = ("dbs", "dbs/elsewhere")
    answer = open_api.ask(case.method, case.target, {}, case.headers, signed_as=other)
    assert answer.status == 401
    bearer = {"authorization": f"Bearer {WRONG_KEY}", **case.headers}
    assert open_api.send(case.method, case.target, bearer).status == 401


@every_route
@pytest.mark.parametrize("shift_s", [-QUARTER_HOUR, QUARTER_HOUR])
def test_old_and_early_signatures_are_refused(open_api: Api, case: Case, shift_s: int) -> None:
    answer = open_api.ask(case.method, case.target, {}, case.headers, shift_s=shift_s)
    assert answer.status == 403


@pytest.mark.parametrize(
    # The account document is for every holder of a token or a key.
    "case",
    [one for one in CASES if one.target != "/"],
    ids=lambda one: one.id,
)
def test_a_token_for_something_else_is_refused(open_api: Api, token: str, case: Case) -> None:
    headers = {"authorization": token, "x-ms-date": open_api.date(), **case.headers}
    assert open_api.send(case.method, case.target, headers).status == 403


@pytest.mark.parametrize("case", [one for one in CASES if one.writes], ids=lambda one: one.id)
def test_a_read_only_key_changes_nothing(open_api: Api, case: Case) -> None:
    answer = open_api.ask(case.method, case.target, {}, case.headers, key=READ_ONLY_KEY)
    assert answer.status == 403


@pytest.mark.parametrize(
    "route", [one for one in control.ROUTES if not one.writes], ids=lambda one: one.pattern
)
def test_a_read_only_key_may_look(open_api: Api, route: control.ControlRoute) -> None:
    target = "/_armillary/" + route.pattern.format(db="d", coll="c", id="x", name="x")
    body = None if route.method == "GET" else {"query": "SELECT 1"}
    assert open_api.ask(route.method, target, body, key=READ_ONLY_KEY).status in (200, 404)


def test_only_health_is_open() -> None:
    assert frozenset({"/_armillary/health", "/alive", "/ready"}) == health.PATHS
    served = {f"/_armillary/{one.pattern}" for one in control.ROUTES} | set(control.ALIASES)
    assert not served & health.PATHS
