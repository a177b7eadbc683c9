"""The options of `armillary serve`.

With the standard library's parser, unlike all other commands: typer reads its options with
pydantic, which costs a server 11 MB for its whole life and a quarter of the time of its start.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from armillary.config import VARIABLES
from armillary.engine.address import MEMORY
from armillary.errors import BadInput
from armillary.server.process.plan import EXIT_USAGE, KEY_VARIABLE, make_plan
from armillary.temporary import make_temporary, remove_left_behind

ABOUT = "Serve the account over its protocols, each on a port with and without TLS, until SIGTERM."
EXAMPLES = """examples:
  armillary serve
  armillary serve --data :memory: --port 0
  armillary serve --partition-bytes 2MB --partition-ru 1000
  ARMILLARY_KEY=… armillary serve --host 0.0.0.0 --allow-host db.example.com"""

#: Flag → the variable that it goes before, and what it is. For watching splits on a laptop.
SETTINGS = {
    "--partition-bytes": ("ARMILLARY_PARTITION_BYTES", "a physical partition splits at, like 2MB"),
    "--partition-ru": ("ARMILLARY_PARTITION_RU", "the RU/s that a physical partition serves"),
    "--logical-bytes": (
        "ARMILLARY_PARTITION_LOGICAL_BYTES",
        "what one partition key value may hold",
    ),
    "--enforce": (
        "ARMILLARY_THROUGHPUT_ENFORCE",
        "on (the default) refuses requests above the provisioned RU/s (429), report counts them, "
        "off does neither",
    ),
}

#: The same, for the ports of the protocols alongside NoSQL.
PORTS = {
    "--table-port": ("ARMILLARY_TABLE_PORT", "Table; 0: a free one; off (default: 8902)"),
    "--mongo-port": ("ARMILLARY_MONGO_PORT", "MongoDB; 0: a free one; off (default: 10255)"),
    "--gremlin-port": ("ARMILLARY_GREMLIN_PORT", "Gremlin; 0: a free one; off (default: 8901)"),
}

#: Setting → its flag, for the others.
FLAGS = {
    ("engine", "url"): "--engine",
    ("server", "host"): "--host",
    ("server", "port"): "--port",
    ("server", "workers"): "--workers",
    ("server", "key_file"): "--key-file",
    ("server", "allow_hosts"): "--allow-host",
    ("server", "allow_emulator_key"): "--allow-emulator-key",
}


class _JsonParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _report_as_json(message)
        sys.exit(EXIT_USAGE)


def parser(
    kind: type[argparse.ArgumentParser] = argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    options = kind(
        "armillary serve",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = options.add_argument
    add(
        "--data",
        type=Path,
        default=Path(".armillary"),
        metavar="DIR",
        help="data folder, made if it is new (default: %(default)s); ':memory:' keeps nothing",
    )
    add("--engine", metavar="URL", help="a folder, ':memory:' or 'postgresql://…' (default: DIR)")
    add("--host", help="address to listen on (default: 127.0.0.1)")
    add("--port", type=_checked("ARMILLARY_SERVER_PORT"), help="0 picks a free one (default: 8081)")
    add("--workers", metavar="N", help="processes; 'auto' is one per core (default: 1)")
    add("--config", type=Path, metavar="FILE", help="settings and databases (armillary.toml)")
    add("--key-file", type=Path, metavar="FILE", help=f"keys, one per line (or {KEY_VARIABLE})")
    add(
        "--allow-emulator-key",
        action="store_true",
        help="take the public key of the emulator on any address",
    )
    add("--allow-host", action="append", default=[], metavar="NAME", help="a name to answer to")
    add("--json", action="store_true", help="say where it is as one line of JSON; errors too")
    add(
        "--stop-with-stdin",
        action="store_true",
        help="end when standard input does: with the test runner that started it",
    )
    for flag, (variable, what) in {**SETTINGS, **PORTS}.items():
        add(flag, type=_checked(variable), dest=variable, metavar="N", help=f"{what} ({variable})")
    return options


def main(words: Sequence[str]) -> int:
    """The exit code."""
    given = parser(_JsonParser if "--json" in words else argparse.ArgumentParser).parse_args(words)
    with ExitStack() as stack:
        if str(given.data) == MEMORY:
            # The certificate has to lie somewhere while the server runs.
            given.engine = given.engine or MEMORY
            given.data = make_temporary("serve")
            stack.callback(shutil.rmtree, given.data, ignore_errors=True)
        remove_left_behind()
        return _serve(given)


def _serve(given: argparse.Namespace) -> int:
    report = _report_as_json if given.json else _report
    try:
        plan = make_plan(
            environ=os.environ,
            data=given.data,
            engine=given.engine,
            host=given.host,
            port=given.port,
            workers=given.workers,
            key_file=given.key_file,
            allow_hosts=tuple(given.allow_host),
            allow_emulator_key=given.allow_emulator_key,
            flags=_given_settings(given),
            config=given.config,
            folder=Path(),
        )
    except BadInput as error:
        report(str(error))
        return EXIT_USAGE
    if given.stop_with_stdin:
        threading.Thread(target=_stop_with_stdin, name="stdin watch", daemon=True).start()
    with ExitStack() as stack:
        child = None
        if plan.folder is not None:
            from armillary.engine.lmdb.process.writer_process import WriterChild

            child = WriterChild()
            stack.callback(child.close)
        # The rest of the server, while the writer process imports its own.
        from armillary.server.process.banner import JsonBanner, TextBanner, say_at_once
        from armillary.server.process.run import run

        banner = JsonBanner(say_at_once) if given.json else TextBanner(say_at_once)
        return run(plan, banner, report, child)


def _stop_with_stdin() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGTERM)
        return
    # Raised here it would be this thread's, and one that waits for its workers would not wake up.
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGTERM)


def _given_settings(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for variable, _ in {**SETTINGS, **PORTS}.values():
        section, key, _ = VARIABLES[variable]
        if (value := getattr(given, variable)) is not None:
            found.setdefault(section, {})[key] = value
    return found


def _checked(variable: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return VARIABLES[variable][2](text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _report_as_json(line: str) -> None:
    """As all commands do (`commands/errors.py`)."""
    _report(json.dumps({"error": {"exit_code": EXIT_USAGE, "message": line}}))
