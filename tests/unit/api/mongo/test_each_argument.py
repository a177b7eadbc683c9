"""Every argument of every command, stage, expression, filter and update in turn, left out or of
another kind. What is wrong is said; none is a mistake of the server (code 1)."""

from __future__ import annotations

from typing import Any, Final

import pytest
from bson import Code, Decimal128, Int64, MinKey, Regex
from tests.support import mongo_damage as damage
from tests.support.arguments import LEFT_OUT, changed, paths
from tests.support.mongo import PEER, Wire

from armillary.encoding.bson.values import Document

INTERNAL_ERROR: Final = 1
WRONG: Final[tuple[Any, ...]] = (
    *(LEFT_OUT, None, True, -1, 2**40, 1.5, float("nan"), "", "$", "$$x", "x.y", b"\0", [], {}),
    *([1], ["$n", "x"], {"a": 1}, {"$x": 1}, [{}], [[]], Code("c"), Regex("["), MinKey()),
    *(Decimal128("sNaN"), Int64(2**62), {"$or": [1]}, {"$and": {}}, [{"$or": [{"$nor": [[]]}]}]),
    *(
        {"$not": 1},
        {"$elemMatch": []},
        {"x": {"$in": 5}},
        [{"x": {"$not": [1]}}],
        {"$expr": {"$let": 1}},
    ),
)
DATABASE: Final = "d_mongo"


def piped(stage: Document) -> Document:
    return {"aggregate": "c", "pipeline": [stage], "cursor": {}}


GROUPS: Final[dict[str, list[Document]]] = {
    "commands": [*damage.VALID, *damage.OTHERS, {"find": "c", "filter": {}, **damage.WITH_ALL}],
    "stages": [
        *map(piped, damage.SPECIFIC),
        piped({"$group": {"_id": "$s", "a": {"$avg": "$n"}, "b": {"$push": {"x": "$s"}}}}),
        piped({"$sortByCount": "$s"}),
        piped({"$unset": ["n", "s"]}),
        piped({"$collStats": {"count": {}, "storageStats": {"scale": 1}}}),
    ],
    "expressions": [piped({"$project": {"y": one}}) for one in damage.FORMS],
    "filters": [{"find": "c", "filter": one} for one in damage.FILTERS],
    "projections": [
        {"find": "c", "filter": {"_id": 1}, "projection": one} for one in damage.PROJECTIONS
    ],
    "updates": [
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": one}]} for one in damage.UPDATED
    ],
}


def is_defect(reply: Document) -> bool:
    told = [reply, *reply.get("writeErrors", ())]
    return any(one.get("code") == INTERNAL_ERROR for one in told)


@pytest.mark.parametrize("group", GROUPS)
def test_no_argument_is_a_mistake_of_the_server(group: str) -> None:
    defects = []
    for command in GROUPS[group]:
        wire = Wire()
        wire.run({"insert": "c", "documents": [damage.ITEM, {"_id": 2, "g": [1, 2]}]}, DATABASE)
        for path in paths(command):
            for new in WRONG:
                asked = changed(command, path, new)
                if not asked or path[0] == "$db":
                    continue
                wire.session.close()  # a command may have ended it
                wire.session = wire.service.open(PEER)
                if is_defect(wire.run(asked, DATABASE)):
                    defects.append(asked)
    assert not defects, "\n".join(map(str, defects[:60]))
