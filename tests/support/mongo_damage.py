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
from armillary.api.mongo.call import GENERIC
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
GENERICS: Final = tuple(sorted(GENERIC))
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
#: Expressions as they are meant, most with a form of arguments of their own.
FORMS: Final[tuple[Document, ...]] = (
    *({one: ["$n", 2]} for one in ("$add", "$subtract", "$multiply", "$divide", "$mod", "$pow")),
    *({one: ["$n", 1]} for one in ("$log", "$round", "$trunc", "$atan2", "$bitAnd", "$bitXor")),
    *({one: ["$n", "$s"]} for one in ("$cmp", "$eq", "$gt", "$and", "$or", "$ifNull", "$concat")),
    *({one: ["$a", [1, 2]]} for one in ("$setUnion", "$setDifference", "$setIsSubset", "$in")),
    *({one: ["$a", "$a"]} for one in ("$concatArrays", "$setEquals", "$setIntersection")),
    *({one: ["$s", "o", 0, 9]} for one in ("$indexOfBytes", "$indexOfCP")),
    *({one: ["$s", 1, 2]} for one in ("$substr", "$substrBytes", "$substrCP")),
    *({one: {"input": "$s", "chars": "f"}} for one in ("$trim", "$ltrim", "$rtrim")),
    *(
        {one: {"input": "$s", "regex": "o", "options": "i"}}
        for one in ("$regexFind", "$regexMatch")
    ),
    *({one: {"input": "$s", "find": "o", "replacement": "0"}} for one in ("$replaceOne",)),
    *({one: {"n": 2, "input": "$a"}} for one in ("$firstN", "$lastN", "$minN", "$maxN")),
    *({one: {"date": "$d", "timezone": "+02:00"}} for one in ("$year", "$isoWeek", "$hour")),
    *(
        {one: "$a"}
        for one in ("$size", "$first", "$last", "$reverseArray", "$arrayToObject", "$max")
    ),
    *(
        {one: "$n"}
        for one in ("$toString", "$toDate", "$toObjectId", "$toDecimal", "$type", "$abs")
    ),
    {"$regexFindAll": {"input": "$s", "regex": Regex("(o)|(x)", "i")}},
    {"$split": ["$s", "o"]},
    {"$arrayElemAt": ["$a", -1]},
    {"$indexOfArray": ["$a", 1, 0, 5]},
    {"$slice": ["$a", 1, 2]},
    {"$range": [0, 10, 3]},
    {"$filter": {"input": "$a", "as": "x", "cond": {"$gt": ["$$x", 1]}, "limit": 1}},
    {"$map": {"input": "$a", "as": "x", "in": {"$toString": "$$x.b"}}},
    {
        "$reduce": {
            "input": "$a",
            "initialValue": [],
            "in": {"$concatArrays": ["$$value", ["$$this"]]},
        }
    },
    {"$sortArray": {"input": "$a", "sortBy": {"b": -1}}},
    {"$zip": {"inputs": ["$a", [1]], "useLongestLength": True, "defaults": [0, 1]}},
    {"$mergeObjects": ["$$ROOT", {"z": 1}]},
    {"$objectToArray": "$$ROOT"},
    {"$dateToString": {"date": "$d", "format": "%Y-%m-%dT%H:%M:%S.%L%z", "onNull": 1}},
    {"$dateFromString": {"dateString": "2024-01-02", "format": "%Y-%m-%d", "onError": 0}},
    {"$dateFromParts": {"year": 2024, "month": 13, "day": -5, "hour": 25, "timezone": "UTC"}},
    {"$dateFromParts": {"isoWeekYear": 2024, "isoWeek": 54, "isoDayOfWeek": 8}},
    {"$dateToParts": {"date": "$d", "timezone": "America/New_York", "iso8601": True}},
    {"$dateAdd": {"startDate": "$d", "unit": "month", "amount": 3, "timezone": "UTC"}},
    {"$dateSubtract": {"startDate": "$d", "unit": "week", "amount": 3}},
    {"$dateDiff": {"startDate": "$d", "endDate": "$d", "unit": "week", "startOfWeek": "mon"}},
    {"$dateTrunc": {"date": "$d", "unit": "quarter", "binSize": 2, "startOfWeek": "sun"}},
    {"$convert": {"input": "$s", "to": "int", "onError": 0, "onNull": 1}},
    {"$cond": {"if": "$n", "then": 1, "else": 2}},
    {"$switch": {"branches": [{"case": {"$gt": ["$n", 3]}, "then": 1}], "default": 0}},
    {"$let": {"vars": {"x": "$n"}, "in": {"$add": ["$$x", 1]}}},
    {"$getField": {"field": "n", "input": "$$ROOT"}},
    {"$setField": {"field": "n", "input": "$$ROOT", "value": 1}},
    {"$unsetField": {"field": "n", "input": "$$ROOT"}},
)
FILTERS: Final[tuple[Document, ...]] = (
    {"a": {"$elemMatch": {"b": {"$gt": 1}}, "$all": [1, {"$elemMatch": {"b": 2}}]}},
    {"s": {"$regex": "^f", "$options": "imsx", "$not": {"$regex": "z"}}},
    {"$nor": [{"n": 1}, {"$and": [{"s": "x"}, {"$or": [{"n": {"$not": {"$gt": 3}}}]}]}]},
    {"$expr": {"$eq": ["$n", "$$v"]}, "$comment": "x"},
    {"n": {"$bitsAllSet": [0, 2], "$mod": [2, 1], "$type": ["int", 16], "$exists": True}},
    {"$jsonSchema": {"required": ["n"], "properties": {"n": {"bsonType": "int", "minimum": 1}}}},
    {"g": {"$near": {"$geometry": {"type": "Point", "coordinates": [1, 2]}, "$maxDistance": 5}}},
    {"g": {"$geoWithin": {"$centerSphere": [[1, 2], 0.5]}}},
    {"g": {"$geoIntersects": {"$geometry": {"type": "Polygon", "coordinates": [[[0, 0]]]}}}},
    {"$text": {"$search": "fox", "$language": "en", "$caseSensitive": False}},
    {"$where": "this.n > 1"},
    {"d": {"$gte": DatetimeMS(0), "$lt": MaxKey(), "$in": [Regex("x"), None], "$nin": []}},
    {"a.0": {"$size": 2, "$ne": None}, "a.b.c": {"$eq": {"x": 1}}},
)
UPDATED: Final[tuple[Any, ...]] = (
    {"$push": {"a": {"$each": [1, 2], "$slice": -3, "$sort": {"b": 1}, "$position": 0}}},
    {"$pull": {"a": {"$gt": 1}}, "$unset": {"x": ""}, "$rename": {"s": "t"}},
    {"$pullAll": {"a": [1]}, "$mul": {"n": 1.5}, "$min": {"m": 1}, "$max": {"d": DatetimeMS(1)}},
    {"$bit": {"n": {"xor": 5}}, "$currentDate": {"d": {"$type": "timestamp"}}, "$setOnInsert": {}},
    {"$addToSet": {"a": {"$each": [1, {"b": 2}]}}, "$pop": {"q": -1}, "$inc": {"o.p.0": Int64(1)}},
    {"$set": {"a.$[].b": 1, "a.$[x]": 2, "a.$": 3, "p.0.q": {"$x": 1}}},
    [{"$set": {"n": {"$add": ["$n", "$$v"]}}}, {"$unset": ["s"]}, {"$replaceWith": "$$ROOT"}],
    {"s": "whole", "a": {"": [1]}},
)
SPECIFIC: Final[tuple[Document, ...]] = (
    {"$lookup": {"from": "c", "localField": "n", "foreignField": "n", "as": "x"}},
    {"$lookup": {"from": "c", "let": {"v": "$n"}, "pipeline": [{"$match": FILTERS[3]}], "as": "x"}},
    {
        "$bucket": {
            "groupBy": "$n",
            "boundaries": [0, 9],
            "default": 1,
            "output": {"c": {"$sum": 1}},
        }
    },
    {"$bucketAuto": {"groupBy": "$n", "buckets": 3, "granularity": "R5", "output": {}}},
    {"$facet": {"x": [{"$count": "n"}], "y": [{"$sortByCount": "$s"}, {"$skip": 1}]}},
    {"$unwind": {"path": "$a", "includeArrayIndex": "i", "preserveNullAndEmptyArrays": True}},
    {"$graphLookup": {"from": "c", "startWith": "$n", "connectFromField": "n", "as": "x"}},
    {"$unionWith": {"coll": "c", "pipeline": [{"$limit": 1}]}},
    {"$redact": {"$cond": [{"$eq": ["$n", 1]}, "$$KEEP", "$$PRUNE"]}},
    {"$geoNear": {"near": {"type": "Point", "coordinates": [1, 2]}, "distanceField": "z"}},
    {"$replaceRoot": {"newRoot": {"$mergeObjects": ["$$ROOT", {"x": "$a"}]}}},
    {"$sample": {"size": 2}},
    {"$project": {"a": {"$slice": ["$a", 1]}, "_id": 0, "x.y": 1, "z": {"w": "$n"}}},
    {"$setWindowFields": {"sortBy": {"n": 1}, "output": {"r": {"$rank": {}}}}},
    {"$fill": {"output": {"n": {"value": 1}}}},
    {"$densify": {"field": "n", "range": {"step": 1, "bounds": "full"}}},
)
PROJECTIONS: Final[tuple[Document, ...]] = (
    {"a": {"$elemMatch": {"b": 1}}, "s": 1},
    {"a": {"$slice": [1, 2]}, "n": 0},
    {"a.$": 1, "x": {"$add": ["$n", 1]}, "y": "$s", "z": {"$meta": "textScore"}},
)
COLLATION: Final[Document] = {
    "locale": "en",
    "caseLevel": False,
    "caseFirst": "off",
    "strength": 2,
    "numericOrdering": True,
    "alternate": "shifted",
    "maxVariable": "punct",
    "backwards": False,
    "normalization": False,
}
WITH_ALL: Final[Document] = {"let": {"v": 1}, "collation": COLLATION, "hint": {"_id": 1}}


class Damaged:
    """One command after the other."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def command(self) -> Document:
        random = self._random
        chance = random.random()
        if chance < 0.35:
            command = random.choice(VALID)
        elif chance < 0.5:
            command = random.choice(OTHERS)
        elif chance < 0.65:
            command = self._operator()
        elif chance < 0.8:
            command = self._confused()
        else:
            command = self._meant()
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            command = self._changed(command, top=True)
        return command if "$db" in command else command | {"$db": "d_mongo"}

    def _confused(self) -> Document:
        """Any command, with some of its arguments and of those that all have, of any type."""
        random = self._random
        name = random.choice([one for one in COMMANDS if one != "dropDatabase"])
        own = COMMANDS[name].fields.split()
        own = list(ARGUMENTS) if own == ["*"] else own
        names = random.sample(own, min(len(own), random.randint(0, 3)))
        names += random.sample(GENERICS, random.choice((0, 0, 1)))
        whole: Document = {name: "c" if random.random() < 0.8 else self._value()}
        return whole | {one: self._value() for one in names}

    def _meant(self) -> Document:
        """The language as it is meant, with every option there is."""
        random = self._random
        given = {one: WITH_ALL[one] for one in WITH_ALL if random.random() < 0.3}
        filtered: Document = random.choice((*FILTERS, {}, {"_id": 1}))
        match random.randrange(6):
            case 0:
                command = {"find": "c", "filter": filtered, "sort": {"n": 1, "a.b": -1}, "limit": 2}
                return command | {"projection": random.choice(PROJECTIONS)} | given
            case 1:
                change = {"q": filtered, "u": random.choice(UPDATED), "arrayFilters": [{"x": 1}]}
                change |= {"multi": random.random() < 0.3, "upsert": random.random() < 0.5}
                return {"update": "c", "updates": [change | given], "let": {"v": 1}}
            case 2:
                deleted = {"q": filtered, "limit": random.choice((0, 1))} | given
                return {"delete": "c", "deletes": [deleted], "let": {"v": 1}}
            case 3:
                changed = {"query": filtered, "update": random.choice(UPDATED), "upsert": True}
                wanted = {"fields": random.choice(PROJECTIONS), "sort": {"n": -1}, "new": True}
                return {"findAndModify": "c"} | changed | wanted | given
            case 4:
                stages = random.sample(SPECIFIC, random.randint(1, 2))
                return {"aggregate": "c", "pipeline": stages, "cursor": {}} | given
            case _:
                formed = {"$set": {"x": random.choice(FORMS)}}
                if random.random() < 0.3:
                    formed = {"$group": {"_id": random.choice(FORMS), "x": {"$push": "$$ROOT"}}}
                return {"aggregate": "c", "pipeline": [formed], "cursor": {}} | given

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
