"""Who may see the portal: `/_portal` of the server's own port.

    http://127.0.0.1:8081/_portal?token=…   the link that `serve` prints
        ─▶ a cookie, HttpOnly and SameSite=Strict, and on to the same address without the token;
           a browser shows a page of ours meanwhile, because the process may have to start first
    any request under /_portal
        ─▶ with the cookie, and from a page of ours (Origin): on to the portal's own process
        ─▶ without: a short page that says where the link is

The token lies in the data folder, so that a page that is open goes on after a restart. Its owner
may do what a key may do: the portal signs with one.
"""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from armillary.api.http.messages import Request, Response
from armillary.version import install_hint

PREFIX: Final = "/_portal"
TOKEN_NAME: Final = "portal-token"
TOKEN_CHARACTERS_MIN: Final = 32
SECRET_HEADER: Final = "x-armillary-portal"

STYLE: Final = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:38rem;margin:15vh auto;padding:0 1.5rem;"
    "color:#1d2430;background:#f7f8fa}h1{font-size:1.4rem}code{background:#e6e9ef;padding:.1rem "
    ".35rem;border-radius:4px}@media(prefers-color-scheme:dark){body{color:#dfe4ec;background:"
    "#12161d}code{background:#262d38}}"
)
OPENING: Final = (
    "Opening the portal…",
    "<p>Its process starts with the first visit and ends ten minutes after the last.</p>",
)
NO_LINK: Final = (
    "The portal opens with a link",
    "<p>This page needs the link that <code>armillary serve</code> printed when it started; it "
    "ends in <code>/_portal?token=…</code>. Open that link once in this browser.</p>"
    "<p>The token is also in the data folder, in the file <code>portal-token</code>.</p>",
)
NOT_INSTALLED: Final = (
    "The portal is not installed",
    "<p>It is an extra. Install it where the server runs, and load this page again:</p>"
    f"<p><code>{install_hint('portal')}</code></p>",
)
NO_ANSWER: Final = (
    "The portal does not answer",
    "<p>Its process ended. Load this page again to start another; if it keeps ending, the log of "
    "the server says why.</p>",
)


@dataclass(frozen=True, slots=True)
class PortalDoor:
    """Plain data: goes to spawned workers."""

    token: str = field(repr=False)
    secret: str = field(repr=False)
    """Shows the portal's process that a request came through us."""
    address: str | tuple[str, int]
    """Where that process is: a Unix socket, or a port on loopback."""

    def link(self, address: str) -> str:
        return f"{address}{PREFIX}?token={self.token}"

    def answer(self, request: Request) -> Response | None:
        """None: let it through."""
        path, _, query = request.target.partition("?")
        host = request.headers.get("host", "")
        cookie = cookie_name(host, request.secure)
        given = dict(parse_qsl(query))
        if request.method == "GET" and (token := given.pop("token", None)) is not None:
            if not self._is_token(token):
                return page(401, *NO_LINK)
            rest = f"?{urlencode(given)}" if given else ""
            kept = f"{cookie}={token}; Path={PREFIX}; HttpOnly; SameSite=Strict"
            headers = {"Set-Cookie": kept + ("; Secure" if request.secure else "")}
            target = path + ("/" if path == PREFIX else "") + rest
            if "text/html" in request.headers.get("accept", ""):
                return page(200, *OPENING, headers=headers, then=target)
            return _moved(target, headers)
        origin = request.headers.get("origin")
        if origin is not None and _host_of(origin) != host.lower():
            return page(403, "Not from there", "<p>Another site may not use the portal.</p>")
        if not self._is_token(_cookies(request.headers.get("cookie", "")).get(cookie, "")):
            return page(401, *NO_LINK)
        if path == PREFIX:
            return _moved(f"{PREFIX}/" + (f"?{query}" if query else ""), {})
        if not is_installed():
            return page(503, *NOT_INSTALLED)
        return None

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())


def _host_of(origin: str) -> str:
    """Its host and port; nothing that any host is called by when it is no address."""
    try:
        return urlsplit(origin).netloc.lower() or "?"
    except ValueError:
        return "?"


def is_portal(target: str) -> bool:
    return target.startswith(PREFIX) and target[len(PREFIX) : len(PREFIX) + 1] in ("", "/", "?")


def is_installed() -> bool:
    return find_spec("nicegui") is not None


def cookie_name(host: str, secure: bool) -> str:
    """Cookies do not know ports: two servers on one machine must not take each other's."""
    port = host.rpartition(":")[2]
    name = f"armillary_portal_{port if port.isdecimal() else 'main'}"
    return f"{name}_tls" if secure else name


def keep_token(data: Path) -> str:
    """The token of this data folder, made if there is none."""
    path = data / TOKEN_NAME
    try:
        found = path.read_text("utf-8").strip()
        if len(found) >= TOKEN_CHARACTERS_MIN and found.isascii() and found.isprintable():
            return found
    except (OSError, UnicodeDecodeError):
        pass  # none yet, or nothing that could be one
    token = secrets.token_urlsafe(TOKEN_CHARACTERS_MIN)
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{token}\n")
    return token


def page(
    status: int, title: str, text: str, *, headers: dict[str, str] | None = None, then: str = ""
) -> Response:
    """`then`: where the browser goes on at once; it keeps showing this until that has an answer."""
    onward = f'<meta http-equiv="refresh" content="0;url={escape(then)}">' if then else ""
    body = (
        # Without an icon of its own a browser asks the NoSQL API for one, and is refused.
        f"<!doctype html><html lang=en><meta charset=utf-8>{onward}<link rel=icon href='data:,'>"
        f"<title>{escape(title)} · Armillary</title><style>{STYLE}</style>"
        f"<h1>{escape(title)}</h1>{text}</html>"
    )
    own = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"}
    return Response(status, own | (headers or {}), body.encode())


def _moved(location: str, headers: dict[str, str]) -> Response:
    # Encoded already: it came in a request line.
    return Response(303, {"Location": location, "Cache-Control": "no-store", **headers})


def _cookies(text: str) -> dict[str, str]:
    return {
        name.strip(): value.strip()
        for name, _, value in (one.partition("=") for one in text.split(";"))
    }
