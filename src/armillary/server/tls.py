"""The certificate of a server: made on the first start, kept in the data folder, loaded again.

    DATA/tls/server.pem   the private key and the certificate, mode 0600, in one file so that the
                          two can never belong to different pairs
    DATA/tls/cert.pem     the certificate alone, for those who are to trust it
    DATA/tls/about.json   its names and its end, so that a start need not parse it

It is self-signed, for the names under which a local server is reached, and it is no authority: who
trusts it trusts this server, not what its key might sign. It is made again when it is about to end,
when the names changed (another host name, another --allow-host), or when it is one of the
authorities that earlier versions made. `key_pair.py` makes key and certificate, for a server in a
child process.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

VALID_DAYS = 3650
RENEW_DAYS = 30  # before the end
DAY_SECONDS = 86_400
MAKE_SECONDS_MAX = 30.0
CERTIFICATE_BEGINS = b"-----BEGIN CERTIFICATE-----"
FORM = 2  # 1 was an authority that could sign for any name
REPLACED_TEXT = (
    "the certificate in %s could sign for any name and was replaced by one that can't: no longer "
    "trust the old one, and trust %s in its place (armillary cert says how)"
)
#: As `python -m armillary.server.key_pair`; it lives for a moment, and garbage is not looked for.
PAIR_PROGRAM = "import gc; gc.disable(); from armillary.server.key_pair import main; main()"
log = logging.getLogger("armillary.server")
_making = threading.Lock()  # one maker at a time: the second finds what the first made

#: Of the moments between which it is good, and the names: the key and the certificate, as PEM.
Pair: TypeAlias = Callable[[int, int, list[str]], bytes]

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "host.docker.internal")


class MakeFailed(Exception):
    """There is no certificate; the text says why."""


@dataclass(frozen=True, slots=True)
class Certificate:
    folder: Path

    @property
    def server_pem(self) -> Path:
        return self.folder / "server.pem"

    @property
    def cert_pem(self) -> Path:
        return self.folder / "cert.pem"

    @property
    def about(self) -> Path:
        return self.folder / "about.json"

    def is_good(self, names: Iterable[str], now_s: float) -> bool:
        """Whether it is there, whole, for these names, and far from its end."""
        try:
            about = json.loads(self.about.read_text("utf-8"))
            certificate = self.cert_pem.read_text("utf-8")
            whole = certificate in self.server_pem.read_text("utf-8")
            lasts = about["ends_s"] - now_s > RENEW_DAYS * DAY_SECONDS
            return whole and lasts and about["names"] == list(names) and about.get("form") == FORM
        except (OSError, ValueError, KeyError, TypeError):
            return False  # none yet, or half of one: make it again

    def is_authority(self) -> bool:
        """Made by an earlier version."""
        try:
            return self.server_pem.exists() and "form" not in json.loads(self.about.read_bytes())
        except (OSError, ValueError):
            return False


def certificate_in(data: Path) -> Certificate:
    return Certificate(data / "tls")


def names_for(extra: Iterable[str] = ()) -> list[str]:
    """The names a certificate is for, in a fixed order."""
    names = [*LOCAL_NAMES, socket.gethostname().lower(), *(name.lower() for name in extra)]
    return list(dict.fromkeys(name for name in names if name))


def ensure(data: Path, names: list[str], *, in_child: bool = False) -> Certificate:
    """The certificate of this data folder, made if there is no good one."""
    certificate = certificate_in(data)
    with _making:
        if certificate.is_good(names, time.time()):
            return certificate
        replaced = certificate.is_authority()
        try:
            make(certificate, names, time.time(), _pair_of_child if in_child else _pair)
        except OSError as error:
            if not in_child:
                raise
            raise MakeFailed(str(error)) from error
    if replaced:
        log.warning(REPLACED_TEXT, certificate.folder, certificate.cert_pem)
    return certificate


def begin(data: Path, names: list[str]) -> None:
    """Make it in the background where there is none; who needs it calls `ensure`, which waits, or
    tries again and says what is wrong."""

    def make_early() -> None:
        with suppress(OSError, MakeFailed):
            ensure(data, names, in_child=True)

    threading.Thread(target=make_early, name="certificate", daemon=True).start()


def _pair(start_s: int, end_s: int, names: list[str]) -> bytes:
    from armillary.server.key_pair import make_pair

    return make_pair(start_s, end_s, names)


def _pair_of_child(start_s: int, end_s: int, names: list[str]) -> bytes:
    command = [sys.executable, "-c", PAIR_PROGRAM, str(start_s), str(end_s), *names]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=MAKE_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise MakeFailed(f"no certificate within {MAKE_SECONDS_MAX:.0f} seconds") from error
    if done.returncode:
        raise MakeFailed(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    return done.stdout


def ready_context(data: Path, names: list[str]) -> ssl.SSLContext:
    """The certificate of the folder, made again also where it looks whole and is not."""
    certificate = ensure(data, names, in_child=True)
    try:
        return context_of(certificate)
    except ssl.SSLError as error:
        log.warning("the certificate in %s is damaged (%s): a new one", certificate.folder, error)
        certificate.about.unlink(missing_ok=True)
        return context_of(ensure(data, names, in_child=True))


def context_of(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.server_pem)
    context.set_alpn_protocols(["http/1.1"])
    context.sni_callback = _remember_name
    return context


def _remember_name(connection: Any, name: str | None, context: ssl.SSLContext) -> None:
    """What the client calls us: MongoDB tells it where the replica set is."""
    connection.asked_name = name


def make(certificate: Certificate, names: list[str], now_s: float, pair: Pair) -> None:
    """A new key and certificate. The file with the key is put in place last but one, whole; what
    describes it comes last, so a maker that was killed leaves something `is_good` refuses."""
    start_s = int(now_s) - DAY_SECONDS  # for clients whose clock is behind
    end_s = start_s + VALID_DAYS * DAY_SECONDS
    both = pair(start_s, end_s, names)
    certificate.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    certificate.folder.mkdir(exist_ok=True, mode=0o700)
    certificate.about.unlink(missing_ok=True)
    _write(certificate.cert_pem, both[both.index(CERTIFICATE_BEGINS) :], 0o644)
    _write(certificate.server_pem, both, 0o600)
    about = {"names": names, "ends_s": end_s, "form": FORM}
    _write(certificate.about, json.dumps(about).encode() + b"\n", 0o644)


def _write(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    temporary.replace(path)
