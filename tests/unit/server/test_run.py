"""Without these, a start could fail without a word, a stop could cut answers or leave processes,
or one dead process could take the whole server with it."""

import json
import math
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.raw_http import Answers, get, post
from tests.support.server_process import ServerProcess, children_of, environment
from tests.unit.server.test_connection import until

from armillary.api.core.settings import told_apart
from armillary.config import PartitionSettings
from armillary.errors import BadInput
from armillary.server import command
from armillary.server.process.plan import Plan, make_plan, read_keys, worker_count
from armillary.testing.process import start_server
from armillary.version import VERSION

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
Serve = Callable[..., ServerProcess]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    servers: list[ServerProcess] = []

    def begin(ready: bool = True, **options: Any) -> ServerProcess:
        server = ServerProcess(tmp_path / "data", **options)
        servers.append(server)
        if ready:
            server.wait_until_ready()
        return server

    yield begin
    for server in servers:
        server.close()


# --- start and stop -----------------------------------------------------------------------------


def test_a_start_says_where_it_is_and_a_stop_leaves_nothing(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = serve()
    assert server.lines[-1] == f"ready http://127.0.0.1:{server.port}"
    (limits,) = [one for one in server.lines if one.split()[:1] == ["RU/s"]]
    assert "throughput.enforce" in limits
    assert json.loads((data / "run.json").read_text()) == {
        "pid": server.process.pid,
        "address": f"http://127.0.0.1:{server.port}",
        "version": VERSION,
        "ports": {},
    }
    assert server.ask("/write/shop", "POST").status == 201
    assert server.ask("/list").json() == ["shop"]
    until(True, (data / "tls" / "about.json").exists)  # made beside, on the first start
    with server.connect() as client:
        client.sendall(post("/slow", b"") + get("/quick"))
        answers = Answers(client)
        answers.get()
        server.terminate(signal.SIGTERM)
        assert server.end() == (0, "", "")
    assert not (data / "run.json").exists()
    again = serve(port=server.port)  # at once, at the same port
    assert again.ask("/list").json() == ["shop"]
    again.terminate(signal.SIGINT)
    assert again.end() == (0, "", "")


def test_serve_serves_the_api(serve: Serve, tmp_path: Path) -> None:
    server = serve(real=True)
    assert server.lines[-1] == f"ready http://127.0.0.1:{server.port}"
    health = server.ask("/_armillary/health").json()
    assert (health["status"], health["version"]) == ("ready", VERSION)
    assert health["protocols"]["nosql"] == server.port
    unsigned = server.ask("/dbs")
    assert unsigned.status == 401
    assert unsigned.json()["code"] == "Unauthorized"
    with server.connect() as idle:
        idle.sendall(get("/alive"))
        Answers(idle).get()
        server.terminate()
        assert server.end() == (0, "", "")


def test_a_busy_port_is_exit_2_with_the_remedy(serve: Serve) -> None:
    first = serve()
    for workers in (1, 2):
        second = serve(ready=False, port=first.port, workers=workers)
        code, _, errors = second.end()
        assert code == 2
        assert f"Port {first.port} of 127.0.0.1 is in use." in errors
        assert "--port" in errors
        assert len(errors.splitlines()) == 1


def test_a_data_folder_that_can_not_be_opened_is_exit_2_and_one_line(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "data.mdb").write_text("foreign")
    code, _, errors = serve(ready=False).end()
    assert code == 2
    assert "not a data folder" in errors
    assert len(errors.splitlines()) == 1


@LINUX
def test_a_killed_writer_is_replaced(serve: Serve) -> None:
    server = serve()
    assert server.ask("/write/one", "POST").status == 201
    (writer,) = (p for p, c in children_of(server.process.pid).items() if "armillary-writer" in c)
    os.kill(writer, signal.SIGKILL)
    until(201, lambda: server.ask(f"/write/{time.monotonic_ns()}", "POST").status)
    assert "one" in server.ask("/list").json()
    server.terminate()
    code, _, errors = server.end()
    assert code == 0
    assert "the writer process died (-9); starting another" in errors


@LINUX
def test_only_the_writer_is_beside_a_server(serve: Serve, tmp_path: Path) -> None:
    """Each further process costs an idle server megabytes. The certificate's has ended by then."""
    server = serve()
    until(True, (tmp_path / "data" / "tls" / "about.json").exists)
    until(1, lambda: len(children_of(server.process.pid)))
    (what,) = children_of(server.process.pid).values()
    assert "armillary-writer" in what
    assert "multiprocessing" not in what


@LINUX
def test_an_idle_server_uses_no_cpu_and_a_killed_one_takes_its_writer_with_it(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve()
    until(True, (tmp_path / "data" / "tls" / "about.json").exists)
    # What a start leaves to do ends; what would wake it again and again would not.
    until(True, lambda: cpu_seconds(server, 1.5) <= 0.02)
    children = children_of(server.process.pid)
    assert children
    server.process.kill()
    until(True, lambda: not any(Path(f"/proc/{child}/stat").exists() for child in children))


# --- several workers ----------------------------------------------------------------------------


def pids(server: ServerProcess) -> set[str]:
    """The workers that answer, by asking often."""
    return {server.ask("/list").headers["x-pid"] for _ in range(40)}


def pids_after_a_death(server: ServerProcess) -> set[str]:
    """The same, while what was on its way to the dead may be lost."""
    try:
        return pids(server)
    except (OSError, AssertionError):
        return set()


@LINUX
def test_workers_share_port_and_data_and_a_dead_one_is_replaced(serve: Serve) -> None:
    server = serve(workers=2)
    first = pids(server)
    assert len(first) == 2
    writers = {server.ask(f"/write/{n}", "POST").headers["x-pid"] for n in range(60)}
    assert writers == first
    assert len(server.ask("/list").json()) == 60
    victim = min(first)
    os.kill(int(victim), signal.SIGKILL)
    # No client may wait for a dead worker's socket: it is gone with its last connections.
    until(True, lambda: victim not in (pids_after_a_death(server) or {victim}))
    until(2, lambda: len(pids(server)))
    assert len(server.ask("/list").json()) == 60
    with server.connect() as client:
        client.sendall(get("/quick"))
        Answers(client).get()
        os.killpg(server.process.pid, signal.SIGTERM)  # as a service manager does: to every process
        code, out, errors = server.end()
    assert (code, out) == (0, "")
    assert errors == f"ERROR worker {'01'.index(errors[13])} died (-9)\n"
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_workers_share_an_inherited_socket_where_the_kernel_does_not_balance(serve: Serve) -> None:
    server = serve(workers=2, inherit=True)
    assert {server.ask(f"/write/{n}", "POST").status for n in range(10)} == {201}
    assert len(server.ask("/list").json()) == 10
    server.terminate()
    assert server.end() == (0, "", "")


# --- very many ----------------------------------------------------------------------------------


@LINUX
def test_ten_thousand_idle_connections_block_no_client_and_leave_nothing(serve: Serve) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    room = 2**20 if hard == resource.RLIM_INFINITY else hard
    count = min(10_000, room - 1_000)  # fewer where the system allows fewer
    server = serve()
    server.ask("/quick")
    before = files_of(server)
    clients = []
    try:
        for number in range(count):
            clients.append(server.connect())
            if number % 2:  # half of them never say a word, the others had an answer
                clients[-1].sendall(get("/quick"))
        for client in clients[1::2]:
            assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        until(True, lambda: files_of(server) > before + count - 10)
        # In the server's own time: how long it takes by the clock is a matter of the machine.
        assert cpu_seconds(server, lambda: [server.ask("/quick") for _ in range(20)]) < 1.0
        until(True, lambda: cpu_seconds(server, 1.0) < 0.2)
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(True, lambda: files_of(server) <= before + 2)
    assert server.ask("/quick").status == 200


def files_of(server: ServerProcess) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def cpu_seconds(server: ServerProcess, during: float | Callable[[], object]) -> float:
    """What the server and its children take while somebody asks, or for seconds while nobody
    does."""
    processes = [server.process.pid, *children_of(server.process.pid)]

    def taken() -> float:
        try:
            stats = [Path(f"/proc/{one}/stat").read_text() for one in processes]
        except OSError:
            return math.nan  # a process ended meanwhile: it is not at rest yet
        return sum(sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in stats)

    begin = taken()
    if callable(during):
        during()
    else:
        time.sleep(during)
    return (taken() - begin) / os.sysconf("SC_CLK_TCK")


# --- plans --------------------------------------------------------------------------------------


def test_another_address_needs_a_key_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="ARMILLARY_KEY"):
        make_plan(environ={}, data=tmp_path, host="0.0.0.0")
    plan = make_plan(environ={"ARMILLARY_KEY": "c2VjcmV0"}, data=tmp_path, host="0.0.0.0")
    assert plan.keys == ("c2VjcmV0",)
    assert "c2VjcmV0" not in repr(plan)
    assert not plan.front.check_hosts


def test_keys_come_from_a_file_one_per_line(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# primary\nYQ==\n\n Yg== \n")
    assert read_keys({"ARMILLARY_KEY": "Yw=="}, file) == ("YQ==", "Yg==")
    file.write_text("# nothing\n")
    with pytest.raises(BadInput, match="has no key"):
        read_keys({}, file)
    with pytest.raises(BadInput, match="can't be read"):
        read_keys({}, tmp_path / "none")
    file.write_text("read-only YQ==\n")
    with pytest.raises(BadInput, match="may write"):
        read_keys({}, file)
    file.write_text("read-only YQ==\nYg==\n")
    assert told_apart(read_keys({}, file)) == (("Yg==",), ("YQ==",))


def test_the_engine_is_the_data_folder_unless_said_otherwise(tmp_path: Path) -> None:
    plan = make_plan(environ={}, data=tmp_path)
    assert (plan.folder, plan.settings.engine.url) == (tmp_path, str(tmp_path))
    for engine in (":memory:", "postgresql://u@h/d"):
        assert make_plan(environ={}, data=tmp_path, engine=engine).folder is None
    variable = {"ARMILLARY_ENGINE_URL": ":memory:"}
    assert make_plan(environ=variable, data=tmp_path).engine == ":memory:"


def test_workers_are_counted(tmp_path: Path) -> None:
    assert worker_count("auto") == os.cpu_count()
    assert worker_count("3") == 3
    for wrong in ("0", "-1", "x", "257"):
        with pytest.raises(BadInput, match="--workers"):
            worker_count(wrong)
    with pytest.raises(BadInput, match="one process"):
        make_plan(environ={}, data=tmp_path, engine=":memory:", workers="2")


# --- the command line ---------------------------------------------------------------------------


def armillary(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "armillary", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment()
    )


def test_serve_refuses_what_can_not_be_with_exit_2(tmp_path: Path) -> None:
    done = armillary("serve", "--data", tmp_path / "data", "--host", "0.0.0.0", "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "openssl rand -base64 64" in done.stderr
    assert not (tmp_path / "data").exists()


WRONG = [("--port", "65536"), ("--port", "x"), ("--nonsense",), ("--partition-bytes", "large")]


@pytest.mark.parametrize("words", WRONG)
def test_options_that_are_wrong_are_exit_2(words: tuple[str, ...]) -> None:
    done = armillary("serve", *words)
    assert done.returncode == 2
    assert "usage: armillary serve" in done.stderr


def test_a_flag_goes_before_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMILLARY_PARTITION_BYTES", "1MB")
    monkeypatch.setenv("ARMILLARY_PARTITION_RU", "700")
    plans: list[Plan] = []

    def keep(plan: Plan, *_: object) -> int:
        plans.append(plan)
        return 0

    monkeypatch.setattr("armillary.server.process.run.run", keep)
    assert command.main(["--partition-bytes", "2MB", "--logical-bytes", "1MB"]) == 0
    assert plans[0].settings.partition == PartitionSettings(2_000_000, 1_000_000, 700)
    assert command.main(["--partition-ru", "0"]) == 2


def printed(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout


def test_a_server_does_not_import_what_it_does_not_need() -> None:
    # Each of these would cost an idle server megabytes, and its start a part of a second.
    script = (
        "import sys, armillary.__main__, armillary.server.command\n"
        "import armillary.api.nosql.service, armillary.engine.lmdb.process.worker\n"
        "print([name for name in 'typer rich pydantic psycopg cryptography azure'.split()"
        " if name in sys.modules])"
    )
    assert printed(script) == "[]\n"


def test_the_writer_is_started_before_the_server_is_imported() -> None:
    # The writer process takes longest to be there; what a server serves with is read meanwhile.
    script = (
        "import sys, armillary.server.command\n"
        "late = 'asyncio lmdb armillary.server.pool armillary.api.core.gateway'\n"
        "print([name for name in late.split() if name in sys.modules])\n"
        "import armillary.store.commands\n"
        "print('armillary.store.catalog.accounts' in sys.modules)"
    )
    assert printed(script) == "[]\nFalse\n"


def test_cert_is_of_a_folder_that_is_there(tmp_path: Path) -> None:
    """One made elsewhere is a certificate that no server uses."""
    done = armillary("cert", "--data", tmp_path / "none")
    assert done.returncode == 2
    assert "--data FOLDER" in done.stderr
    assert not (tmp_path / "none").exists()


def test_cert_prints_exports_and_explains(tmp_path: Path) -> None:
    printed = armillary("cert", "--data", tmp_path, "--pem").stdout
    assert printed.startswith("-----BEGIN CERTIFICATE-----\n")
    done = armillary("cert", "--data", tmp_path, "--export", tmp_path / "mine.pem")
    assert (tmp_path / "mine.pem").read_text() == printed
    assert str(tmp_path / "mine.pem") in done.stdout
    assert "NODE_EXTRA_CA_CERTS" in done.stdout


def test_data_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Folder and files: a server on a shared machine must not show its data to other accounts."""
    data = tmp_path / "data"
    with start_server(data=data, options=["--workers", "2"]):
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (data, *data.rglob("*"))}
    shown = {"FORMAT", "run.json", "cert.pem", "about.json"}
    assert modes[data] == 0o700
    assert modes[data / "data.mdb"] == 0o600
    for path, mode in modes.items():
        if path.is_file() and path.name not in shown:
            assert mode == 0o600, path


def test_a_key_that_is_none_ends_with_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "armillary", "serve", "--data", ":memory:", "--port", "0"],
        env={**os.environ, "ARMILLARY_KEY": "not base64!"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert "ARMILLARY_KEY" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
