"""The path of a request, taken apart: what it names, and what a client signs for it.

    /dbs/my%20db//colls/c/docs/   →   dbs · my db · colls · c · docs
                                      odd: a feed of type docs under dbs/my db/colls/c

Empty segments do not count, so trailing and doubled slashes change nothing. A segment is decoded
alone: an escaped slash stays inside its segment, and `+` is a plus. Facts: nosql-rest 1.1, 2.1.

The service has two gateways, and the older one, the routing gateway, takes the whole address apart
as a URL of Windows. An id that changes on the way is then not the one that was signed: 401.

    docs/Test%20      compute: `Test `     routing: `Test`, signed `Test `
    docs/a%2Fb        compute: `a/b`       routing: two segments
    docs/a%09b        compute: a, tab, b   routing: no URL, 400
"""

from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from armillary.encoding.rids import rid_bytes
from armillary.errors import BadInput, InvalidUrl

DATABASE_RID_CHARACTERS: Final = 8
KEY_DELETE: Final = ("operations", "partitionkeydelete")


class Signed(NamedTuple):
    """The second and third line of the text that a signature covers."""

    type: str
    link: str


@dataclass(frozen=True, slots=True)
class Path:
    segments: tuple[str, ...]
    raw: tuple[str, ...]

    @property
    def shape(self) -> str:
        """`dbs/*/colls/*/docs`: names replaced, so that routes can be looked up."""
        if self.segments[-2:] == KEY_DELETE:
            return "/".join((_starred(self.segments[:-2]), *KEY_DELETE))
        return _starred(self.segments)

    @property
    def names(self) -> tuple[str, ...]:
        """What stands at the stars."""
        if self.segments[-2:] == KEY_DELETE:
            return self.segments[1:-2:2]
        return self.segments[1::2]


ITEM_SEGMENTS: Final = 6


def parse_path(target: str) -> Path:
    head, _, rest = target.partition("?")
    raw = tuple(filter(None, head.split("/")))
    if rest and len(raw) == ITEM_SEGMENTS and raw[4] == "docs":
        # No query belongs there: the JavaScript SDK sends a `?` of an id as it is.
        raw = (*raw[:5], f"{raw[5]}?{rest}")
    if "%" not in target:
        return Path(raw, raw)
    try:
        return Path(tuple(unquote(one, errors="strict") for one in raw), raw)
    except UnicodeDecodeError as error:
        raise BadInput(f"The request path {target} is invalid.") from error


def parse_path_twice(target: str) -> Path:
    """As the routing gateway reads it: decoded, and the result taken as a URL again."""
    once = parse_path(target)
    head = "/".join(once.segments)
    if any(character < " " or character == "\x7f" for character in head):
        raise InvalidUrl
    read = unquote(head.partition("#")[0].replace("\\", "/"), errors="replace").rstrip()
    segments = tuple(filter(None, read.split("/")))
    return once if segments == once.segments else Path(segments, segments)


def signed_forms(path: Path) -> list[Signed]:
    """Every text a client may have signed for this path: decoded, as it was sent, and by rid."""
    forms = [_by_name(path.segments)]
    if path.raw != path.segments:
        forms.append(_by_name(path.raw))
    if is_by_rid(path):
        plain = _by_name(path.segments)
        forms.append(Signed(plain.type, plain.link.rpartition("/")[2].lower()))
    return forms


def is_by_rid(path: Path) -> bool:
    """Whether the second segment could be the rid of a database. It may be a name all the same."""
    return (
        len(path.segments) > 1 and path.segments[0] == "dbs" and is_database_rid(path.segments[1])
    )


def is_database_rid(text: str) -> bool:
    if len(text) != DATABASE_RID_CHARACTERS:
        return False
    try:
        return len(rid_bytes(text)) == 4
    except (BadInput, ValueError):
        return False


def _by_name(segments: tuple[str, ...]) -> Signed:
    if not segments:
        return Signed("", "")
    if segments[-2:] == KEY_DELETE:
        return _by_name(segments[:-2])
    if len(segments) % 2:
        return Signed(segments[-1].lower(), "/".join(segments[:-1]))
    if segments[0] == "offers":
        return Signed("offers", segments[1].lower())
    return Signed(segments[-2].lower(), "/".join(segments))


def _starred(segments: tuple[str, ...]) -> str:
    return "/".join("*" if at % 2 else one for at, one in enumerate(segments))
