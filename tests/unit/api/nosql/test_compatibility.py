"""Without these, the compatibility page would promise what the program does not do, or keep quiet
about what it does. That the page itself is fresh is checked with the other pages."""

import re
from pathlib import Path

import pytest
from tests.support.nosql import Api

from armillary.api import core, nosql
from armillary.api.nosql.compatibility import REQUEST_HEADERS, RESPONSE_HEADERS, route_rows
from armillary.api.nosql.routes import ROUTES

SOURCES = [
    path
    for package in (core, nosql)
    for path in Path(package.__path__[0]).rglob("*.py")
    if path.name not in ("compatibility.py", "cors.py")
]
HEADER = re.compile(r'"(x-ms-[a-z0-9-]+|x-forwarded-[a-z]+|x-armillary-[a-z-]+)"')


def named_in_source() -> set[str]:
    return {name for path in SOURCES for name in HEADER.findall(path.read_text("utf-8"))}


def test_every_header_the_source_names_is_listed() -> None:
    assert named_in_source() - REQUEST_HEADERS.keys() - RESPONSE_HEADERS.keys() == set()


def test_no_header_is_listed_that_the_source_does_not_name() -> None:
    listed = {name for name in (*REQUEST_HEADERS, *RESPONSE_HEADERS) if name.startswith("x-")}
    by_the_server = {"x-ms-request-duration-ms"}  # server/http/answers.py
    assert listed - named_in_source() == by_the_server


def test_every_route_of_the_reference_is_there() -> None:
    """nosql-rest 2.1, without direct mode."""
    coll = "/dbs/*/colls/*"
    expected = {
        "/": "GET",
        "/dbs": "GET POST",
        "/dbs/*": "GET DELETE",
        "/dbs/*/colls": "GET POST",
        coll: "GET PUT DELETE",
        f"{coll}/docs": "GET POST",
        f"{coll}/docs/*": "GET PUT PATCH DELETE",
        f"{coll}/docs/*/attachments": "GET",
        f"{coll}/sprocs": "GET POST",
        f"{coll}/sprocs/*": "GET POST PUT DELETE",
        f"{coll}/triggers": "GET POST",
        f"{coll}/triggers/*": "GET PUT DELETE",
        f"{coll}/udfs": "GET POST",
        f"{coll}/udfs/*": "GET PUT DELETE",
        f"{coll}/conflicts": "GET POST",
        f"{coll}/conflicts/*": "GET DELETE",
        f"{coll}/pkranges": "GET",
        f"{coll}/operations/partitionkeydelete": "POST",
        "/dbs/*/users": "GET POST",
        "/dbs/*/users/*": "GET PUT DELETE",
        "/dbs/*/users/*/permissions": "GET POST",
        "/dbs/*/users/*/permissions/*": "GET PUT DELETE",
        "/dbs/*/clientencryptionkeys": "GET POST",
        "/dbs/*/clientencryptionkeys/*": "GET PUT",
        "/offers": "GET POST",
        "/offers/*": "GET PUT",
    }
    found: dict[str, set[str]] = {}
    for method, path, _, _ in route_rows():
        found.setdefault(path, set()).add(method)
    assert found == {path: set(methods.split()) for path, methods in expected.items()}


@pytest.mark.parametrize("pattern", sorted({one.pattern for one in ROUTES}))
def test_other_methods_are_405_with_any_slashes(api: Api, pattern: str) -> None:
    target = "/" + pattern.replace("*", "x")
    have = {one.method for one in ROUTES if one.pattern == pattern}
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - have:
        for path in (target, "/" + target, target.rstrip("/") + "/"):
            assert api.ask(method, path, {}).status == 405, f"{method} {path}"
