"""What a write waits for may have to be waited for again when it is answered: its refusal names the
range, which may be frozen by then. Without this it would be answered 500.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from armillary.api.http.messages import Begun, Request, Response, Service
from armillary.clock import MayNotWait
from armillary.server.http.hub import Hub
from armillary.server.pool import Pool


class Refusing(Service):
    def __init__(self) -> None:
        self.finished_in: list[int] = []

    def begin(self, request: Request) -> Begun:
        future: Future[None] = Future()
        future.set_result(None)
        return Begun(future, self._finish)

    def _finish(self) -> Response:
        self.finished_in.append(threading.get_ident())
        if len(self.finished_in) == 1:
            raise MayNotWait
        return Response(404, {}, b"")


def test_a_write_that_may_not_wait_on_the_loop_is_finished_in_a_thread() -> None:
    service = Refusing()

    async def ask() -> int:
        pool = Pool(asyncio.get_running_loop())
        answered: asyncio.Future[Response] = pool.loop.create_future()
        Hub(service, pool).answer_later(Request("DELETE", "/", {}, b""), answered.set_result)
        response = await answered
        assert pool.waiting == 0
        await pool.drain()
        return response.status

    assert asyncio.run(ask()) == 404
    on_loop, in_thread = service.finished_in
    assert on_loop == threading.get_ident() != in_thread
