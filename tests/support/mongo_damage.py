"""Commands of the MongoDB API that are nearly right: every command and every operator there is,
with arguments of every kind. `attack/mongo.py` sends them to a server, `test_mongo_fuzz.py` to a
session in process. All chance comes from the `Random` given."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.datetime_ms import DatetimeMS
from tests.support import fuzz_mutations as damage

from armillary.api.mongo.aggregate import documents, joins, stages
from armillary.api.mongo.aggregate.accumulators import ACCUMULATORS
from armillary.api.mongo.commands.table import COMMANDS
from armillary.api.mongo.expressions.compiled import OPERATORS as EXPRESSIONS
from armillary.api.mongo.match.operators import OPERATORS as CONDITIONS
from armillary.api.mongo.update.apply import OPERATORS as UPDATES

Document = dict[str, Any]

SPECIAL: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2, 1.5, -0.0, float("inf"), float("-inf"), float("nan")),
    *(2**31, Int64(2**63 - 1), Int64(-(2**63)), Int64(2**62), Decimal128("1E+6144")),
    *(Decimal128("NaN"), Decimal128("sNaN"), Decimal128("-Infinity"), Decimal128("1E-6176")),
    *(MinKey(), MaxKey(), Timestamp(0, 0), Timestamp(2**32 - 1, 2**32 - 1), ObjectId("0" * 24)),
    *(Binary(b"x", 4), Binary(b"x" * 16, 3), b"", Regex("(a+)+$", "i"), Regex("[", "z")),
    *(Code("c"), Code("c", {"a": 1}), DatetimeMS(0), DatetimeMS(2**63 - 1), DatetimeMS(-(2**63))),
    *("", "\0", "$", "$$", "$a", "$$a", "$$ROOT", "$$REMOVE", ".", "a.", "a..b", "a.$", "a.$[]"),
    *("a.$[x]", "a.0", "a.-1", "a" * 300, "é", "system.x", "$cmd", "a/b", "_id", "UTC", "+99:99"),
    *("%Y%", "1e999", "9" * 40, [], {}, [[]], [{}], {"": 1}, {"$x": 1}, ["a"] * 120, [None] * 3),
)
TEXTS: Final = tuple(one for one in SPECIAL if type(one) is str)
#: What expressions and stages call their arguments.
WORDS: Final = """
input as in cond initialValue date timezone format unit amount startDate endDate dateString onNull
onError to regex options find replacement chars field value vars if then else branches default
sortBy n output p method inputs useLongestLength defaults binSize startOfWeek year month day hour k
v case limit iso8601 path preserveNullAndEmptyArrays includeArrayIndex groupBy boundaries buckets
granularity size newRoot into on whenMatched from let pipeline localField foreignField coll near
distanceField maxDistance key query by units bounds step range $each $slice $position $sort
$geometry type coordinates
"""
ARGUMENTS: Final = tuple(WORDS.split())
ITEM: Final[Document] = {
    "_id": 1,
    "a": [1, {"b": 2}],
    "s": "fox",
    "n": 5,
    "d": DatetimeMS(1_700_000_000_000),
}
SESSION: Final[Document] = {"lsid": {"id": Binary(b"0" * 16, 4)}, "txnNumber": Int64(1)}
INDEX: Final[Document] = {
    "key": {"n": 1},
    "name": "n_1",
    "unique": False,
    "sparse": True,
    "expireAfterSeconds": 3600,
    "partialFilterExpression": {"n": {"$gt": 1}},
    "collation": {"locale": "en"},
}
GROUPING: Final[list[Document]] = [
    {"$match": {"n": {"$gte": 1}}},
    {"$unwind": "$a"},
    {"$group": {"_id": "$s", "t": {"$sum": "$n"}}},
    {"$project": {"t": {"$concat": ["$_id", {"$toString": "$t"}]}}},
    {"$sort": {"t": 1}},
    {"$limit": 3},
]
#: Right as they are, on a collection `c` that has `ITEM`.
VALID: Final[tuple[Document, ...]] = (
    {"find": "c", "filter": {"n": {"$gt": 3}, "a.b": 2}, "sort": {"n": -1}, "limit": 5},
    {"find": "c", "filter": {"$or": [{"s": {"$regex": "^f"}}, {"a": {"$elemMatch": {"b": 2}}}]}},
    {"find": "c", "filter": {"$expr": {"$gt": ["$n", {"$add": [1, 2]}]}}, "projection": {"a": 1}},
    {"find": "c", "filter": {"a": {"$all": [1], "$size": 2}, "n": {"$in": [1, 5], "$type": "int"}}},
    {"insert": "c", "documents": [ITEM]},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a.0": 3}, "$inc": {"n": 1}}}]},
    {"update": "c", "updates": [{"q": {"n": 5}, "u": {"$push": {"a": {"$each": [1]}}}}]},
    {"update": "c", "updates": [{"q": {}, "u": [{"$set": {"x": "$n"}}], "multi": True}]},
    {"delete": "c", "deletes": [{"q": {"_id": 7}, "limit": 1}]},
    {"findAndModify": "c", "query": {"_id": 1}, "update": {"$unset": {"x": 1}}, "new": True},
    {"aggregate": "c", "pipeline": GROUPING, "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$facet": {"x": [{"$count": "n"}]}}], "cursor": {}},
    {"count": "c", "query": {"n": 5}},
    {"distinct": "c", "key": "a", "query": {}},
    {"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n_1"}]},
    {"listIndexes": "c"},
    {"listCollections": 1},
    {"hello": 1},
    {"collStats": "c"},
    {"explain": {"find": "c", "filter": {"n": 1}}},
)
#: These ask for what is not there, change what the others need, or are refused as they are.
OTHERS: Final[tuple[Document, ...]] = (
    {"getMore": Int64(7), "collection": "c", "batchSize": 1},
    {"killCursors": "c", "cursors": [Int64(7)]},
    {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,n=localhost,r=abc"},
    {"saslContinue": 1, "conversationId": 1, "payload": b"c=biws,r=abc,p=AAAA"},
    {"hello": 1, "client": {"application": {"name": "x"}}, "compression": ["zlib"]},
    {"insert": "c", "documents": [{"a": 1}], "ordered": False, "stmtIds": [0], **SESSION},
    {"insert": "c", "documents": [{"a": 1}], "startTransaction": True, "autocommit": False}
    | SESSION,
    {"commitTransaction": 1, "autocommit": False, "$db": "admin", **SESSION},
    {"abortTransaction": 1, "autocommit": False, "$db": "admin", **SESSION},
    {"createIndexes": "c", "indexes": [INDEX]},
    {"createIndexes": "x", "indexes": [INDEX | {"unique": True}]},
    {"dropIndexes": "c", "index": "n_1"},
    {"create": "x", "capped": True, "size": 100, "max": 10, "validationLevel": "off"},
    {"drop": "x"},
    {"listIndexes": "c", "cursor": {"batchSize": 1}},
    {"listCollections": 1, "filter": {"name": "c"}, "cursor": {"batchSize": 1}, "nameOnly": True},
    {"listDatabases": 1, "filter": {"name": "c"}, "nameOnly": True, "$db": "admin"},
    {"shardCollection": "d_mongo.x", "key": {"a": "hashed"}, "offerThroughput": 400},
    {"customAction": "CreateCollection", "collection": "x", "shardKey": "a", "indexes": [INDEX]},
    {"customAction": "UpdateCollection", "collection": "c", "offerThroughput": 500},
    {"customAction": "CreateDatabase", "autoScaleSettings": {"maxThroughput": 4000}},
    {"customAction": "UpdateDatabase", "offerThroughput": 500},
    {"customAction": "GetDatabase"},
    {"customAction": "GetCollection", "collection": "c", "showIndexes": True},
    {
        "customAction": "GetChangeStreamTokens",
        "collection": "c",
        "startAtOperationTime": Timestamp(1, 1),
    },
    {
        "aggregate": "c",
        "pipeline": [
            {
                "$merge": {
                    "into": {"db": "d_mongo", "coll": "x"},
                    "on": ["_id"],
                    "whenMatched": [{"$set": {"a": 1}}],
                    "whenNotMatched": "insert",
                    "let": {"y": "$a"},
                }
            }
        ],
        "cursor": {},
    },
    {"aggregate": "c", "pipeline": [{"$out": {"db": "d_mongo", "coll": "x"}}], "cursor": {}},
    {
        "aggregate": "c",
        "pipeline": [
            {"$changeStream": {"fullDocument": "updateLookup", "resumeAfter": {"_data": b"{}"}}}
        ],
        "cursor": {"batchSize": 1},
    },
    {"aggregate": 1, "pipeline": [{"$documents": [{"a": 1}]}, {"$sort": {"a": 1}}], "cursor": {}},
    {
        "find": "c",
        "filter": {},
        "min": {"n": 1},
        "max": {"n": 9},
        "hint": {"n": 1},
        "collation": {"locale": "en", "strength": 2},
        "let": {"x": 1},
        "skip": 1,
        "batchSize": 1,
    },
    {
        "update": "c",
        "updates": [
            {
                "q": {"_id": 1},
                "u": {"$set": {"a.$[x]": 1}},
                "arrayFilters": [{"x": 1}],
                "upsert": True,
                "collation": {"locale": "en"},
                "hint": "n_1",
            }
        ],
        "let": {"x": 1},
    },
    {
        "explain": {"aggregate": "c", "pipeline": [{"$match": {"n": 1}}], "cursor": {}},
        "verbosity": "executionStats",
    },
    {"filemd5": ObjectId("0" * 24), "root": "fs"},
    {"getParameter": "*", "x": 1},
    {"usersInfo": [{"user": "localhost", "db": "admin"}]},
    *({one: "c"} for one in COMMANDS if one != "dropDatabase"),
)
STAGES: Final = (*stages.STAGES, *documents.STAGES, *joins.STAGES)


class Damaged:
    """One command after the other."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def command(self) -> Document:
        random = self._random
        chance = random.random()
        if chance < 0.35:
            command = random.choice(VALID)
        elif chance < 0.6:
            command = random.choice(OTHERS)
        else:
            command = self._operator()
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            command = self._changed(command, top=True)
        return command if "$db" in command else command | {"$db": "d_mongo"}

    def _operator(self) -> Document:
        """One of the language, with an argument that may be anything."""
        random = self._random
        match random.randrange(5):
            case 0:
                condition = {random.choice(list(CONDITIONS)): self._argument()}
                return {"find": "c", "filter": {random.choice(("n", "a", "s", "a.b")): condition}}
            case 1:
                change = {random.choice(list(UPDATES)): {random.choice("nasx"): self._argument()}}
                return {"update": "c", "updates": [{"q": {"_id": 1}, "u": change}]}
            case 2:
                stage = {random.choice(STAGES): self._argument()}
                return {"aggregate": "c", "pipeline": [stage], "cursor": {}}
            case 3:
                fold = {random.choice(list(ACCUMULATORS)): self._argument()}
                stage = {"$group": {"_id": None, "x": fold}}
                return {"aggregate": "c", "pipeline": [stage], "cursor": {}}
            case _:
                stage = {"$set": {"x": self._expression()}}
                return {"aggregate": "c", "pipeline": [stage], "cursor": {}}

    def _expression(self, depth: int = 2) -> Document:
        return {self._random.choice(list(EXPRESSIONS)): self._argument(depth)}

    def _argument(self, depth: int = 2) -> Any:
        random = self._random
        if random.random() < 0.35:
            return self._value(depth)
        if random.random() < 0.6:
            return [self._value(depth) for _ in range(random.randint(1, 3))]
        names = random.sample(ARGUMENTS, random.randint(1, 5))
        return {one: self._value(depth) for one in names}

    def _value(self, depth: int = 2) -> Any:
        random = self._random
        chance = random.random()
        if depth and chance < 0.2:
            return self._expression(depth - 1)
        if depth and chance < 0.3:
            return self._argument(depth - 1)
        if chance < 0.5:
            return random.choice(("$n", "$a", "$s", "$d", "$x", "$$this", 1, "n", [1, 2, 3]))
        if chance < 0.53:
            return self._deep()
        return random.choice(SPECIAL)

    def _deep(self) -> Any:
        random = self._random
        value: Any = random.choice(SPECIAL)
        name = random.choice(("a", "$and", "$not", "$add", "$let", "$elemMatch", "$concat"))
        for _ in range(random.choice((5, 40, 90, 180))):
            value = {name: [value]} if random.random() < 0.5 else {name: value}
        return value

    def _changed(self, whole: Any, *, top: bool = False) -> Any:
        """One place in it is another. The name of a command stays first."""
        random = self._random
        if isinstance(whole, dict) and whole and (top or random.random() < 0.9):
            names = list(whole)
            name = random.choice(names)
            if top and name in (names[0], "$db") and random.random() < 0.6:
                name = random.choice(names)
            chance = random.random()
            if chance < 0.08:
                if top and name == names[0]:
                    return whole
                return {key: one for key, one in whole.items() if key != name}
            if chance < 0.15:
                return whole | {self._name(): self._value()}
            if chance < 0.2 and not (top and name == names[0]):
                other = self._name()
                return {other if key == name else key: one for key, one in whole.items()}
            return whole | {name: self._changed(whole[name])}
        if isinstance(whole, list) and whole and random.random() < 0.9:
            at = random.randrange(len(whole))
            chance = random.random()
            if chance < 0.1:
                return whole[:at] + whole[at + 1 :]
            if chance < 0.2:
                return [*whole[:at], self._value(), *whole[at:]]
            if chance < 0.25:
                return whole + whole
            return [*whole[:at], self._changed(whole[at]), *whole[at + 1 :]]
        return damage.changed(random, whole) if random.random() < 0.3 else self._value()

    def _name(self) -> str:
        random = self._random
        return random.choice((random.choice(ARGUMENTS), random.choice(TEXTS), damage.text(random)))
