"""Run a command beside servers at fixed ports, in a network of its own.

    unshare -rn python -m tools.served 8081 8903 -- go test ./...

Public suites expect an emulator at https://localhost:8081 and cannot be told otherwise. In a
network namespace those ports are free whatever else runs on the machine, and nothing leaves it.
Settings of the servers come from the environment (`ARMILLARY_…`). The command finds the certificate
in `SSL_CERT_FILE`. A setting of one server alone follows its port:

    8081,ARMILLARY_API_IDS=routing-gateway 8903
"""

from __future__ import annotations

import os
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
OTHERS_OFF: Final = ("--mongo-port", "off", "--gremlin-port", "off", "--table-port", "off")


def main(arguments: list[str]) -> int:
    at = arguments.index("--")
    settings, command = settings_of(arguments[:at]), arguments[at + 1 :]
    ports = list(settings)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="served-") as folder:
        servers = [_start(Path(folder) / str(port), port, own) for port, own in settings.items()]
        try:
            for port in ports:
                _wait_for(port)
            certificate = Path(folder) / str(ports[0]) / "tls" / "cert.pem"
            environment = {**os.environ, "SSL_CERT_FILE": str(certificate)}
            return subprocess.run(command, env=environment, check=False).returncode
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait(30)


def settings_of(arguments: list[str]) -> dict[int, dict[str, str]]:
    """`8081,NAME=value` → {8081: {NAME: value}}."""
    split = (one.split(",") for one in arguments)
    return {int(port): dict(one.split("=", 1) for one in own) for port, *own in split}


def _start(data: Path, port: int, own: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "armillary", "serve", "--data", str(data), "--port", str(port),
         *OTHERS_OFF],
        env={**os.environ, **own},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _wait_for(port: int) -> None:
    """By TLS, which makes the certificate."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"https://localhost:{port}/", timeout=2, context=unchecked)
        except urllib.error.HTTPError:
            return  # it answers: 401
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"No server at port {port}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
