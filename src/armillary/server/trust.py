"""How to trust the certificate: what `armillary cert` prints, per SDK and per system."""

from pathlib import Path

SDKS = {
    "Python": "The SDK does not verify localhost and 127.0.0.1. Under other names: "
    "CosmosClient(…, connection_verify=r'{cert}').",
    "JavaScript": "NODE_EXTRA_CA_CERTS={cert} node app.js (or, for this process only and verifying "
    "nothing, NODE_TLS_REJECT_UNAUTHORIZED=0).",
    ".NET": "Add DisableServerCertificateValidation=True to the connection string, or trust it in "
    "the system, and set ConnectionMode.Gateway.",
    "Java": "keytool -importcert -noprompt -alias armillary -cacerts -storepass changeit "
    "-file {cert} (or -DCOSMOS.EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED=true with "
    "-DCOSMOS.EMULATOR_HOST=localhost); then .gatewayMode().",
    "Go": "SSL_CERT_FILE={cert} on Linux, or a transport of your own with the certificate in its "
    "RootCAs.",
}

SYSTEMS = {
    "Debian, Ubuntu": "sudo cp {cert} /usr/local/share/ca-certificates/armillary.crt && "
    "sudo update-ca-certificates",
    "Fedora, RHEL": "sudo cp {cert} /etc/pki/ca-trust/source/anchors/armillary.pem && "
    "sudo update-ca-trust",
    "macOS": "sudo security add-trusted-cert -d -r trustRoot "
    "-k /Library/Keychains/System.keychain {cert}",
    "Windows": "certutil -user -addstore Root {cert}",
}


def trust_text(cert: Path) -> str:
    """Plain HTTP on the same port needs none of this, and comes first."""
    parts = [
        f"The certificate is {cert}.",
        "Plain http:// on the same port needs no certificate; Python, JavaScript and Go take it.",
        "",
        "By SDK:",
        *(f"  {name}: {how}" for name, how in SDKS.items()),
        "",
        "For the whole system:",
        *(f"  {name}: {how}" for name, how in SYSTEMS.items()),
    ]
    return "\n".join(parts).replace("{cert}", str(cert))
