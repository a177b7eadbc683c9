"""Logs to standard error: for people, or one JSON object per line. Keys never get there.

    {"time": "2026-11-16T02:20:00.000Z", "level": "warning", "logger": "armillary.server", …}

A record may carry `facts`, which become members of the object. Whatever is written, a message or a
traceback, has the account's keys, signatures and tokens taken out first: a bug can put anything
into a text.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from armillary.config import LogSettings

HIDDEN: Final = "[redacted]"
SECRET_CHARACTERS_MIN: Final = 8
#: Signatures of requests, bearer and resource tokens, passwords in URLs.
PATTERNS: Final = re.compile(
    r"(?i)(sig(?:=|%3d)|bearer\s+|authorization['\"]?\s*[:=]\s*['\"]?|accountkey=|://[^/\s:@]*:)"
    r"[^\s&'\"@;,]+"
)


class Redactor:
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        words = {word for line in secrets for word in line.split()}
        long = sorted((one for one in words if len(one) >= SECRET_CHARACTERS_MIN), key=len)
        self._secrets = re.compile("|".join(map(re.escape, reversed(long)))) if long else None

    def clean(self, text: str) -> str:
        if self._secrets is not None:
            text = self._secrets.sub(HIDDEN, text)
        return PATTERNS.sub(rf"\1{HIDDEN}", text)


class TextFormatter(logging.Formatter):
    def __init__(self, redactor: Redactor, who: str) -> None:
        super().__init__(f"%(levelname)s {who}%(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.clean(super().format(record))


class JsonFormatter(logging.Formatter):
    def __init__(self, redactor: Redactor, who: str) -> None:
        super().__init__()
        self._redactor = redactor
        self._who = who.strip(" :")

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if self._who:
            line["who"] = self._who
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        line |= getattr(record, "facts", {})
        clean = {
            name: self._redactor.clean(value) if isinstance(value, str) else value
            for name, value in line.items()
        }
        return json.dumps(clean, ensure_ascii=False, default=str)


def configure(settings: LogSettings, secrets: Iterable[str], who: str = "") -> None:
    """For the whole process."""
    kind = JsonFormatter if settings.format == "json" else TextFormatter
    handler = logging.StreamHandler()
    handler.setFormatter(kind(Redactor(secrets), who))
    logging.basicConfig(handlers=[handler], level=settings.level.upper())
    if settings.requests:
        logging.getLogger("armillary.requests").setLevel(logging.INFO)
