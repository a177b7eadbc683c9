"""Several services on one port: each has paths of its own, one has the rest."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.api.http.messages import Begun, FastPath, Request, Response, Service


class Mounts(Service):
    """The first of `mounted` that serves a path, else `main`, which alone has fast paths: a path
    of the others must not look like one of its own."""

    def __init__(self, main: Service, mounted: Sequence[Service]) -> None:
        self._main = main
        self._mounted = tuple(mounted)

    @property
    def says_where(self) -> bool:
        return self._main.says_where

    @property
    def fast_paths(self) -> Sequence[FastPath]:
        return self._main.fast_paths

    def is_quick(self, request: Request) -> bool:
        return self._of(request).is_quick(request)

    def handle_soon(self, request: Request) -> Begun | Response:
        return self._of(request).handle_soon(request)

    def lane(self, request: Request) -> str | None:
        return self._of(request).lane(request)

    def begin(self, request: Request) -> Begun | Response | None:
        return self._of(request).begin(request)

    def handle(self, request: Request) -> Response:
        return self._of(request).handle(request)

    def screen(self, request: Request) -> Response | None:
        return self._of(request).screen(request)

    def operation_name(self, request: Request) -> str | None:
        return self._of(request).operation_name(request)

    def close(self) -> None:
        for one in (*self._mounted, self._main):
            one.close()

    def _of(self, request: Request) -> Service:
        target = request.target
        return next((one for one in self._mounted if one.serves(target)), self._main)
