"""What is answered on the event loop: nothing yet beside the handshake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from armillary.api.core.streams import Event, Work
from armillary.api.mongo.call import Client
from armillary.api.mongo.wire.messages import Request

if TYPE_CHECKING:
    from armillary.api.mongo.service import Service


def hot_event(
    service: Service, client: Client, request: Request, work: Work, replies: Iterator[int]
) -> Event | None:
    return None
