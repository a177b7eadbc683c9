"""`armillary serve`: from the options to a server that says it is ready, and back to nothing.

    1  start the writer's Python            it imports while we do (command.py)
    2  check the plan, bind the port        what is wrong is said at once, with its remedy
    3  engine, service, loop                `--workers N`: in N processes under a supervisor
    4  run.json, "ready http://…"           the last line printed
    5  SIGTERM or SIGINT: drain, close the engine, remove run.json

Imports are late on purpose: what the first steps do not need is read while the writer starts.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from armillary.api.core.settings import EMULATOR_KEY
from armillary.engine.lmdb.process.writer_process import WriterChild, WriterProcess
from armillary.errors import DbError
from armillary.server.binding import PortBusy, address_of, check_free
from armillary.server.heaps import keep_what_is_there, share_heaps
from armillary.server.portal.keeper import PortalKeeper, key_of
from armillary.server.process import logs
from armillary.server.process.backend import Backend, WriterWatch, load_ahead, start_writer
from armillary.server.process.banner import Banner, Say, Up
from armillary.server.process.ending import Ending, kill_writer, stop_writer
from armillary.server.process.plan import EXIT_USAGE, Plan
from armillary.server.process.ports import bind_first, bind_others, free_others, ports_of
from armillary.server.tls import MakeFailed, begin, ensure, names_for
from armillary.server.waiting_room import waiting_room
from armillary.version import VERSION

EXIT_FAILED = 1
RUN_NAME = "run.json"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def run(plan: Plan, banner: Banner, report: Say, child: WriterChild | None = None) -> int:
    """Serve until asked to stop. The exit code: 0, 1 (it failed), 2 (the user can mend it).
    `child`, started ahead, becomes the writer."""
    share_heaps()
    logs.configure(plan.settings.log, plan.keys or (EMULATOR_KEY,))
    banner.starting(plan)
    try:
        run_it = _run_one if plan.workers == 1 else _run_many
        return run_it(plan, banner, child)
    except (PortBusy, MakeFailed, DbError) as error:
        report(str(error))
        return EXIT_USAGE
    except OSError as error:
        what = error.filename or (plan.data if error.errno in NO_ROOM else None)
        report(f"{what or f'{plan.host}:{plan.port}'} can't be used: {error.strerror or error}.")
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_FAILED


def _run_one(plan: Plan, banner: Banner, child: WriterChild | None) -> int:
    sockets = bind_first(plan)
    address = address_of(sockets)
    others = bind_others(plan)
    bound = {plan.protocols[0].name: sockets, **others.sockets}
    keeper = _keep_portal(plan)
    front = replace(plan.front, portal=keeper.door)
    failed = threading.Event()

    def give_up() -> None:
        failed.set()
        os.kill(os.getpid(), signal.SIGTERM)

    # The stack ends in reverse: the service, the watch over the writer, the writer.
    with ExitStack() as stack:
        stack.callback(keeper.close)
        starting = _begin_writer(plan, child, stack, failed)
        begin(plan.data, names_for(plan.front.hosts))
        # The long imports, while the writer process does its own.
        from armillary.server.process.serving import serve

        load_ahead(plan)
        keep_what_is_there()
        writer = starting.result()
        ending = Ending()
        if writer is not None:
            watch = WriterWatch(writer, give_up)
            stack.callback(watch.close)

            def cut() -> None:
                watch.close()  # or it would be replaced
                kill_writer(writer)

            ending = Ending(cut)
        stack.callback(ending.done)
        with waiting_room(sockets) if plan.on_postgres else nullcontext():
            backend = Backend(plan, writer.address if writer is not None else None, first=True)
        stack.callback(backend.close)
        stack.callback(ending.begin)
        up = Up(address, ports_of(others.sockets), others.off)
        stack.enter_context(run_file(plan.data, up))
        keeper.start(address)
        serve(
            backend.listeners(bound),
            front,
            ready=partial(_ready, banner, plan, keeper, up),
            serve_loop=backend.serve_loop,
            observer=backend.observer,
            trouble=backend.trouble,
        )
    return EXIT_FAILED if failed.is_set() else 0


def _begin_writer(
    plan: Plan, child: WriterChild | None, stack: ExitStack, failed: threading.Event
) -> Future[WriterProcess | None]:
    thread = ThreadPoolExecutor(1, "writer start")
    starting = thread.submit(start_writer, plan, child)
    thread.shutdown(wait=False)

    def stop() -> None:
        writer = None if starting.exception() is not None else starting.result()
        if writer is not None and not stop_writer(writer):
            failed.set()

    stack.callback(stop)
    return starting


def _run_many(plan: Plan, banner: Banner, child: WriterChild | None) -> int:
    from armillary.server.process.workers import Supervisor

    keep_what_is_there()
    plan = replace(plan, port=check_free(plan.host, plan.port))
    plan, off = free_others(plan)
    # Once, here: workers that find none at the same time would make several.
    ensure(plan.data, names_for(plan.front.hosts), in_child=True)
    keeper = _keep_portal(plan)
    with ExitStack() as stack:
        stack.callback(keeper.close)
        supervisor = Supervisor(replace(plan, front=replace(plan.front, portal=keeper.door)))
        keeper.start(supervisor.address)
        up = Up(supervisor.address, plan.ports, off)
        stack.enter_context(run_file(plan.data, up))
        supervisor.run(partial(_ready, banner, plan, keeper, up), child)
    return EXIT_FAILED if supervisor.failed else 0


def _keep_portal(plan: Plan) -> PortalKeeper:
    return PortalKeeper(plan.data, key_of(plan.keys, EMULATOR_KEY))


def _ready(banner: Banner, plan: Plan, keeper: PortalKeeper, up: Up) -> None:
    banner.ready(plan, up, keeper.door.link(up.address))


@contextmanager
def run_file(data: Path, up: Up) -> Iterator[None]:
    """Who serves this folder and where, for tools that look for a server."""
    path = data / RUN_NAME
    ours = {
        "pid": os.getpid(),
        "address": up.address,
        "version": VERSION,
        "ports": dict(up.ports),
    }
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f"{RUN_NAME}.{os.getpid()}.new")
    temporary.write_text(json.dumps(ours) + "\n", "utf-8")
    temporary.replace(path)
    try:
        yield
    finally:
        # Another server on the same folder may have written its own since.
        if running(data) == ours:
            path.unlink(missing_ok=True)


def running(data: Path) -> dict[str, object] | None:
    """What `run.json` says; None without one that can be read. It may be left from a crash."""
    try:
        found = json.loads((data / RUN_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
