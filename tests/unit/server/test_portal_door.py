"""Who may see the portal. Without these tests a page of somebody else's could drive it, or a token
could end up where it can be read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from armillary.api.http.messages import Request, Response
from armillary.server.portal import door as portal_door
from armillary.server.portal.door import PortalDoor, cookie_name, is_portal, keep_token

TOKEN = "t" * 43
DOOR = PortalDoor(TOKEN, "secret", "/nowhere")
COOKIE = {"cookie": f"other=1; armillary_portal_8081={TOKEN}"}


def asked(target: str, method: str = "GET", **headers: str) -> Request:
    return Request(method, target, {"host": "localhost:8081"} | headers)


def answer(target: str, method: str = "GET", **headers: str) -> Response:
    found = DOOR.answer(asked(target, method, **headers))
    assert found is not None
    return found


def test_the_link_gives_a_cookie_and_takes_the_token_out_of_the_address() -> None:
    link = DOOR.link("http://localhost:8081")
    found = answer(link.removeprefix("http://localhost:8081"))
    assert (found.status, found.headers["Location"]) == (303, "/_portal/")
    cookie = found.headers["Set-Cookie"]
    assert cookie.startswith(f"armillary_portal_8081={TOKEN};")
    for word in ("Path=/_portal", "HttpOnly", "SameSite=Strict"):
        assert word in cookie
    assert "Secure" not in cookie
    kept = answer(f"/_portal/query?db=a%20b&token={TOKEN}&c=x")
    assert kept.headers["Location"] == "/_portal/query?db=a+b&c=x"


def test_a_browser_has_a_page_to_show_while_the_process_starts() -> None:
    found = answer(f"/_portal/query?db=%22%3E&token={TOKEN}", accept="text/html,*/*;q=0.8")
    assert (found.status, "Location" in found.headers) == (200, False)
    assert found.headers["Set-Cookie"].startswith(f"armillary_portal_8081={TOKEN};")
    assert b'content="0;url=/_portal/query?db=%22%3E"' in found.body
    assert TOKEN.encode() not in found.body


def test_over_tls_the_cookie_is_one_of_its_own() -> None:
    request = asked(f"/_portal?token={TOKEN}")
    request.secure = True
    found = DOOR.answer(request)
    assert found is not None
    assert "Secure" in found.headers["Set-Cookie"]
    assert cookie_name("localhost:8081", True) != cookie_name("localhost:8081", False)
    assert cookie_name("localhost:8081", False) != cookie_name("localhost:8082", False)


def test_with_the_cookie_it_passes() -> None:
    assert DOOR.answer(asked("/_portal/", **COOKIE)) is None
    assert (
        DOOR.answer(asked("/_portal/x", "POST", **COOKIE, origin="http://localhost:8081")) is None
    )
    assert answer("/_portal", **COOKIE).headers["Location"] == "/_portal/"


@pytest.mark.parametrize(
    "request_of",
    [
        asked("/_portal/"),
        asked("/_portal/", cookie="armillary_portal_8081=wrong"),
        asked("/_portal/", cookie=f"armillary_portal_8082={TOKEN}"),
        asked("/_portal/?token=wrong"),
        asked("/_portal/?token=é"),
        asked(f"/_portal/?token={TOKEN}", "POST"),
    ],
)
def test_without_it_there_is_only_a_page_that_says_where_the_link_is(request_of: Request) -> None:
    found = DOOR.answer(request_of)
    assert found is not None
    assert found.status == 401
    assert b"armillary serve" in found.body
    assert TOKEN.encode() not in found.body


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9999", "http://[", ""]
)
def test_another_origin_is_refused_even_with_the_cookie(origin: str) -> None:
    assert answer("/_portal/", "POST", origin=origin, **COOKIE).status == 403


def test_a_portal_that_is_not_installed_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portal_door, "is_installed", lambda: False)
    found = answer("/_portal/", **COOKIE)
    assert found.status == 503
    assert b"pip install 'armillary[portal]'" in found.body


def test_only_its_own_paths_are_the_portals() -> None:
    for target in ("/_portal", "/_portal/", "/_portal?x", "/_portal/a/b"):
        assert is_portal(target)
    for target in ("/", "/_portals", "/dbs/_portal", "/_armillary/"):
        assert not is_portal(target)


def test_the_token_stays_and_no_other_user_may_read_it(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    token = keep_token(data)
    assert len(token) >= 32
    assert keep_token(data) == token
    path = data / portal_door.TOKEN_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("short\n")
    assert keep_token(data) not in (token, "short")
    path.write_bytes(b"\xff" * 50)
    assert keep_token(data).isascii()
