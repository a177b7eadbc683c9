"""Rows that are stored items: for front ends that answer in a form of their own."""

from __future__ import annotations

from dataclasses import dataclass

from armillary.encoding.documents import Header, unpack_header
from armillary.store.items.reading import Stored


@dataclass(frozen=True, slots=True)
class StoredRow:
    """An item as it lies in the store. Its JSON is not parsed, its header only when asked for."""

    rid: bytes
    """Unique in the container for ever; what ties of a sort go by."""
    value: bytes

    @property
    def text(self) -> bytes:
        """The JSON, system properties included."""
        return Stored(self.value).text

    @property
    def etag(self) -> str:
        return Stored(self.value).etag

    @property
    def lsn(self) -> int:
        return Stored(self.value).lsn

    @property
    def header(self) -> Header:
        """LSN, time, etag, EPK and digest of the partition key, body size."""
        return unpack_header(self.value)[0]
