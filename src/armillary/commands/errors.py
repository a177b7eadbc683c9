"""How commands end: exit codes, and what is said when something is wrong.

    0  done
    1  it failed: the data, the disk or the database said no; or a check found something
    2  it was called wrongly, or the caller can mend it
    3  it stopped before the end and the same command goes on where it was

With `--json` an error is one JSON object on standard error: `{"error": {"exit_code", "message"}}`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import orjson
import typer

from armillary.errors import BadInput, DbError, NotFound, Throttled

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_PARTIAL: Final = 3
CODES: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (BadInput, EXIT_USAGE),
    (NotFound, EXIT_USAGE),
    (Throttled, EXIT_PARTIAL),
    (KeyboardInterrupt, EXIT_PARTIAL),
    (DbError, EXIT_FAILED),
    (OSError, EXIT_FAILED),
)


class CommandError(Exception):
    """What went wrong, in lines for people, and the exit code it means."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@contextmanager
def reporting_errors(as_json: bool, stopped: str = "Stopped.") -> Iterator[None]:
    """Errors inside become a line on standard error and an exit code. `stopped` is what to say
    after Ctrl-C: what is done, and how to go on."""
    try:
        yield
    except CommandError as error:
        raise _end(str(error), error.code, as_json) from error
    except BrokenPipeError:
        raise  # the reader has left, as in `| head`: no failure of ours
    except tuple(kind for kind, _ in CODES) as error:
        text = stopped if isinstance(error, KeyboardInterrupt) else _text(error)
        raise _end(text, code_of(error), as_json) from error


def one_of(argument: str | None, data: str | None) -> str | None:
    """The place of the data, said by the argument or by `--data`."""
    if argument is not None and data is not None:
        raise CommandError("The argument and --data say the same: give one.", EXIT_USAGE)
    return argument if data is None else data


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error)


def code_of(error: BaseException) -> int:
    return next((code for kind, code in CODES if isinstance(error, kind)), EXIT_FAILED)


def as_json_line(text: str, code: int) -> str:
    return orjson.dumps({"error": {"exit_code": code, "message": text}}).decode()


def _end(text: str, code: int, as_json: bool) -> typer.Exit:
    typer.echo(as_json_line(text, code) if as_json else text, err=True)
    return typer.Exit(code)
