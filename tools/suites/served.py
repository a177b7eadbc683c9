"""Run a command beside servers at fixed ports, in a network of its own.

    unshare -rnm python -m tools.suites.served 8081 8903 -- go test ./...

Public suites expect an emulator at https://localhost:8081 and cannot be told otherwise. In a
network namespace those ports are free whatever else runs on the machine, and nothing leaves it.
Settings of the servers come from the environment (`ARMILLARY_…`); ports of other protocols are
closed unless set. All have one certificate, which the command finds in `SSL_CERT_FILE`. A setting
of one server alone follows its port, and a name of the network is given with its address:

    8081,ARMILLARY_API_IDS=routing-gateway 8903 account.table.cosmos.azure.com=127.0.0.1
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

START_S: Final = 60
OTHERS_OFF: Final = {
    "ARMILLARY_TABLE_PORT": "off",
    "ARMILLARY_MONGO_PORT": "off",
    "ARMILLARY_GREMLIN_PORT": "off",
}
HOST: Final = "ARMILLARY_SERVER_HOST"


def main(arguments: list[str]) -> int:
    at = arguments.index("--")
    settings, names = settings_of(arguments[:at])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="served-") as folder:
        _name(names, Path(folder))
        servers: list[subprocess.Popen[bytes]] = []
        certificate = Path(folder) / str(next(iter(settings))) / "tls"
        try:
            for port, own in settings.items():
                data = Path(folder) / str(port)
                if servers:  # one for all: two of the same subject can't both be trusted
                    shutil.copytree(certificate, data / "tls")
                servers.append(_start(data, port, own))
                _wait_for(own.get(HOST, "localhost"), port)
            trusted = str(certificate / "cert.pem")
            trust = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), trusted)
            return subprocess.run(arguments[at + 1 :], env=os.environ | trust).returncode
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait(30)


def settings_of(arguments: list[str]) -> tuple[dict[int, dict[str, str]], dict[str, str]]:
    """`8081,NAME=value` `host=address` → ({8081: {NAME: value}}, {host: address})."""
    servers: dict[int, dict[str, str]] = {}
    names: dict[str, str] = {}
    for one in arguments:
        first, *own = one.split(",")
        if "=" in first:
            host, address = first.split("=")
            names[host] = address
        else:
            servers[int(first)] = dict(each.split("=", 1) for each in own)
    return servers, names


def _name(names: dict[str, str], folder: Path) -> None:
    """In this mount namespace alone."""
    if not names:
        return
    hosts = folder / "hosts"
    lines = [f"{address} {name}" for name, address in names.items()]
    hosts.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]), "utf-8")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)


def _start(data: Path, port: int, own: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "armillary", "serve", "--data", str(data), "--port", str(port)],
        env=OTHERS_OFF | os.environ | own,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _wait_for(host: str, port: int) -> None:
    """By TLS, which makes the certificate."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"https://{host}:{port}/", timeout=2, context=unchecked)
        except urllib.error.HTTPError:
            return  # it answers: 401
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"No server at {host}:{port}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
