"""Passwords, TLS and poolers between a server and PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.counting import COUNTING
from tests.support.pg_cluster import USER, PgServer, free_port, servers
from tests.support.postgres import fresh_url, refusal_of
from tests.support.waiting import until

from armillary.engine.base import META_KEY, Command
from armillary.engine.postgres.engine import PostgresEngine
from armillary.errors import NotSupported, Unavailable

pytestmark = pytest.mark.postgres

PASSWORD = "s3cret"


@pytest.fixture(scope="module")
def server() -> Iterator[PgServer]:
    with servers() as make:
        server = make("a")
        server.execute(
            f"CREATE ROLE app LOGIN PASSWORD '{PASSWORD}'",
            "GRANT CREATE ON DATABASE postgres TO app",
        )
        yield server


def _url(server: PgServer, user: str, more: str = "") -> str:
    return fresh_url(f"postgresql://{user}@127.0.0.1:{server.port}/postgres{more}")


@pytest.fixture
def strict(server: PgServer) -> Iterator[PgServer]:
    """Asks all but the tests themselves for a password."""
    hba = server.folder / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text("host all app 127.0.0.1/32 scram-sha-256\n" + before)
    server.execute("SELECT pg_reload_conf()")
    until(lambda: _refuses(server))
    yield server
    hba.write_text(before)


def _refuses(server: PgServer) -> bool:
    try:
        PostgresEngine(_url(server, "app"), COUNTING, start_s=0.5).close()
    except Unavailable as error:
        return "password" in str(error)
    return False


def test_an_ordinary_user_with_a_password_is_enough(strict: PgServer) -> None:
    engine = PostgresEngine(_url(strict, f"app:{PASSWORD}"), COUNTING)
    try:
        engine.create_space(1, [(META_KEY, b"0")])
        assert engine.run(1, Command("add", b"")) == 1
        identity = engine.health().identity
        assert identity is not None
        assert identity.timeline == 1
        assert identity.system_id != 0
    finally:
        engine.close()


def test_a_password_may_come_from_a_file_or_the_environment(
    strict: PgServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    PostgresEngine(_url(strict, "app"), COUNTING).close()
    monkeypatch.delenv("PGPASSWORD")
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"*:*:*:app:{PASSWORD}\n")
    passfile.chmod(0o600)
    PostgresEngine(_url(strict, "app", f"?passfile={passfile}"), COUNTING).close()


def test_a_wrong_password_is_said_and_not_shown(strict: PgServer) -> None:
    told = refusal_of(_url(strict, "app:wr0ng"), COUNTING)
    assert "password" in told
    assert "wr0ng" not in told


def test_a_server_without_tls_is_refused_where_the_address_asks_for_it(server: PgServer) -> None:
    assert "SSL" in refusal_of(_url(server, "postgres", "?sslmode=require"), COUNTING)


@dataclass(frozen=True)
class Authority:
    """Signs certificates; its own is `root.crt` of its folder."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    name: x509.Name

    @classmethod
    def made(cls, folder: Path, name: str = "root") -> Authority:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        authority = cls(folder, ec.generate_private_key(ec.SECP256R1()), subject)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        (folder / f"{name}.crt").write_bytes(
            authority._signed(subject, authority.key, basic, critical=True)
        )
        return authority

    def issue(self, name: str) -> tuple[bytes, bytes]:
        """A certificate for this name at 127.0.0.1, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        places = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return (
            self._signed(subject, key, places, critical=False),
            key.private_bytes(*form, serialization.NoEncryption()),
        )

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        extension: x509.ExtensionType,
        *,
        critical: bool,
    ) -> bytes:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=critical)
            .sign(self.key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PgServer, Path]]:
    """A server that speaks TLS and knows `app` by a certificate, and a folder with `root.crt`,
    which signed all of them, `other.crt`, which did not, and `app.crt` with its key."""
    # The one from PyPI was built without TLS.
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        pytest.skip("needs a PostgreSQL with TLS, such as Debian's")
    ours = tmp_path_factory.mktemp("certificates")
    authority = Authority.made(ours)
    Authority.made(ours, "other")
    for name, content in zip(("app.crt", "app.key"), authority.issue("app"), strict=True):
        _write(ours / name, content)
    with servers() as make:
        server = make("tls", other=found[-1])
        server.execute("CREATE ROLE app LOGIN", "GRANT CREATE ON DATABASE postgres TO app")
        given = dict(zip(("server.crt", "server.key"), authority.issue("server"), strict=True))
        for name, content in (given | {"root.crt": (ours / "root.crt").read_bytes()}).items():
            path = _write(server.folder / name, content)
            if os.geteuid() == 0:
                shutil.chown(path, USER)
        hba = server.folder / "pg_hba.conf"
        hba.write_text("hostssl all app 127.0.0.1/32 cert\n" + hba.read_text())
        server.stop()
        server.settings |= {"ssl": "on", "ssl_ca_file": "root.crt"}
        server.start()
        yield server, ours


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
def test_tls_with_a_certificate_that_is_checked(
    encrypted: tuple[PgServer, Path], mode: str
) -> None:
    server, ours = encrypted
    more = f"?sslmode={mode}&sslrootcert={ours}/root.crt"
    engine = PostgresEngine(_url(server, "postgres", more), COUNTING)
    try:
        with engine._reads.connection() as connection:
            assert connection.pgconn.ssl_in_use
    finally:
        engine.close()


def test_a_certificate_of_another_authority_is_refused(
    encrypted: tuple[PgServer, Path],
) -> None:
    server, ours = encrypted
    more = f"?sslmode=verify-full&sslrootcert={ours}/other.crt"
    assert "certificate" in refusal_of(_url(server, "postgres", more), COUNTING)


def test_a_client_may_be_known_by_its_certificate(encrypted: tuple[PgServer, Path]) -> None:
    server, ours = encrypted
    more = f"?sslmode=verify-full&sslrootcert={ours}/root.crt"
    assert "certificate" in refusal_of(_url(server, "app", more), COUNTING)
    more += f"&sslcert={ours}/app.crt&sslkey={ours}/app.key"
    PostgresEngine(_url(server, "app", more), COUNTING).close()


@pytest.fixture(params=["extra_float_digits", "extra_float_digits,options"])
def pooled(server: PgServer, request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of pgbouncer in transaction mode: as it is, it refuses settings of a session; told
    to ignore them, it forgets them."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/bin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    port = free_port()
    config = server.folder / "pgbouncer.ini"
    (server.folder / "users.txt").write_text('"postgres" ""\n')
    config.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={server.port}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {server.folder}/users.txt\npool_mode = transaction\n"
        f"ignore_startup_parameters = {request.param}\n"
    )
    process = subprocess.Popen([program, "-u", USER, str(config)], stderr=subprocess.DEVNULL)
    yield port
    process.terminate()
    process.wait()


def test_a_pooler_in_transaction_mode_is_refused_with_a_clear_message(pooled: int) -> None:
    url = f"postgresql://postgres@127.0.0.1:{pooled}/postgres"
    with pytest.raises(NotSupported, match="pgbouncer"):
        until(lambda: _open(url))


def _open(url: str) -> bool:
    try:
        PostgresEngine(fresh_url(url), COUNTING, start_s=1.0).close()
    except Unavailable:  # it is not up yet
        return False
    return True
