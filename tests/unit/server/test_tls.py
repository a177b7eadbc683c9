"""Without these, a restart could present another certificate, an old one could outlive its end, or
others could read the key."""

import json
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509

from armillary.server import tls
from armillary.server.trust import SDKS, SYSTEMS, trust_text

NAMES = ["localhost", "127.0.0.1", "::1", "host.docker.internal", "box.example"]


def read(certificate: tls.Certificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate.cert_pem.read_bytes())


def test_it_is_for_every_name_and_lasts_ten_years(tmp_path: Path) -> None:
    made = read(tls.ensure(tmp_path, NAMES))
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "localhost",
        "host.docker.internal",
        "box.example",
    ]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert 3649 <= (made.not_valid_after_utc - made.not_valid_before_utc).days <= 3651
    assert made.not_valid_before_utc.timestamp() < time.time()


def test_it_can_sign_for_no_other(tmp_path: Path) -> None:
    """People are told to trust it: with the rights of an authority, the key in the data folder
    could make a certificate for any site."""
    made = read(tls.ensure(tmp_path, NAMES))
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not made.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_those_who_trust_it_connect_and_check_its_names(tmp_path: Path, host: str) -> None:
    certificate = tls.ensure(tmp_path, NAMES)
    client = ssl.create_default_context(cafile=str(certificate.cert_pem))
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # the default of newer versions of Python
    assert handshake(client, tls.context_of(certificate), host) is None
    refused = handshake(client, tls.context_of(certificate), "example.org")
    assert isinstance(refused, ssl.SSLCertVerificationError)


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> ssl.SSLError | None:
    """Without a socket: what each side writes is what the other reads."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(down, up, server_hostname=host),
        server.wrap_bio(up, down, server_side=True),
    ]
    for _ in range(6):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                return error
    return None


def test_an_authority_of_an_earlier_version_is_replaced_and_that_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = tls.ensure(tmp_path, NAMES)
    old = read(first)
    about = json.loads(first.about.read_text())
    del about["form"]
    first.about.write_text(json.dumps(about))
    tls.ready_context(tmp_path, NAMES)
    assert read(first) != old
    assert "no longer trust" in caplog.text


def test_the_key_is_only_for_its_owner(tmp_path: Path) -> None:
    certificate = tls.ensure(tmp_path, NAMES)
    assert stat.S_IMODE(certificate.server_pem.stat().st_mode) == 0o600
    assert b"PRIVATE" not in certificate.cert_pem.read_bytes()


def test_a_second_start_finds_the_same(tmp_path: Path) -> None:
    first = read(tls.ensure(tmp_path, NAMES))
    assert read(tls.ensure(tmp_path, NAMES)) == first


def test_a_child_makes_one_that_can_be_served(tmp_path: Path) -> None:
    certificate = tls.ensure(tmp_path, NAMES, in_child=True)
    assert isinstance(tls.context_of(certificate), ssl.SSLContext)
    assert certificate.is_good(NAMES, time.time())


def test_a_child_imports_nothing_of_the_server() -> None:
    """A first start waits for it."""
    look = "import sys, armillary.server.key_pair; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert not {"ssl", "logging", "subprocess", "pathlib", "armillary.server.tls"} & {
        *done.stdout.split()
    }


def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("in the way")
    with pytest.raises(tls.MakeFailed, match="exists"):
        tls.ensure(tmp_path, NAMES, in_child=True)


def test_other_names_or_its_end_make_another(tmp_path: Path) -> None:
    first = read(tls.ensure(tmp_path, NAMES))
    second = read(tls.ensure(tmp_path, [*NAMES, "other.example"]))
    assert first != second
    certificate = tls.certificate_in(tmp_path)
    about = json.loads(certificate.about.read_text())
    assert about["ends_s"] == int(second.not_valid_after_utc.timestamp())
    soon = about["ends_s"] - 29 * tls.DAY_SECONDS
    assert not certificate.is_good(about["names"], soon)


@pytest.mark.parametrize("damage", ["about", "cert_pem", "server_pem"])
def test_half_a_certificate_is_made_again(tmp_path: Path, damage: str) -> None:
    certificate = tls.ensure(tmp_path, NAMES)
    getattr(certificate, damage).write_text("{}")
    tls.ensure(tmp_path, NAMES)
    assert certificate.is_good(NAMES, time.time())
    tls.context_of(certificate)


def test_names_are_the_local_ones_and_what_was_asked_for() -> None:
    names = tls.names_for(["Box.Example", "localhost"])
    assert names[:4] == list(tls.LOCAL_NAMES)
    assert names[-1] == "box.example"
    assert len(names) == len(set(names))


def test_trust_is_explained_for_every_sdk_and_system() -> None:
    text = trust_text(Path("/data/tls/cert.pem"))
    for name in (*SDKS, *SYSTEMS):
        assert f"  {name}: " in text
    assert "{cert}" not in text
    assert "/data/tls/cert.pem" in text
