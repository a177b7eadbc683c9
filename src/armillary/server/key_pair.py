"""A new key and a certificate for it.

    python -m armillary.server.key_pair START_S END_S NAME…      both, as PEM, to standard output

A server lets a child process do this (`tls.py`): `cryptography` costs memory and time to import.
Its first start waits for that process, so nothing is imported here that is not needed.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def make_pair(start_s: int, end_s: int, names: list[str]) -> bytes:
    """The key, then the certificate."""
    # P-256: every SDK takes it, and a handshake costs a tenth of what RSA does.
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Armillary localhost")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(start_s, UTC))
        .not_valid_after(datetime.fromtimestamp(end_s, UTC))
        .add_extension(x509.SubjectAlternativeName([_general(one) for one in names]), False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(usage, True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return key_pem + built.public_bytes(serialization.Encoding.PEM)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name.encode("idna").decode())


def main() -> None:
    sys.stdout.buffer.write(make_pair(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
    sys.stdout.flush()
    os._exit(0)  # at once: to take all that was imported apart is a tenth of its time


if __name__ == "__main__":
    main()
