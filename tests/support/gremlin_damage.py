"""Traversals that are nearly right: every step there is, with arguments of every kind, and texts
with damage in them. `attack/gremlin.py` sends them to a server, `test_gremlin_fuzz.py` to a session
in process. All chance comes from the `Random` given."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.support import fuzz_mutations as damage

from armillary.api.gremlin.language.names import ENUMS, PREDICATES, TEXT_PREDICATES
from armillary.api.gremlin.steps.table import MODULATORS, REFUSED, STEPS

SCRIPTS: Final = (
    "g.addV('person').property('pk', 'a').property('id', 'x1').property('age', 5)",
    "g.V('x1').property('age', 6)",
    "g.V().has('age', gt(3)).order().by('age', decr).limit(5).values('age')",
    "g.V().hasLabel('person').out('knows').in('knows').dedup().count()",
    "g.V().as('a').out().as('b').select('a', 'b').by('age')",
    "g.V('x1').addE('knows').to(g.V('x1'))",
    "g.V().repeat(out()).times(3).emit().path().by('age')",
    "g.V().group().by(label).by(count())",
    "g.V().project('a', 'b').by('age').by(coalesce(values('x'), constant(1)))",
    "g.V().union(values('age'), id()).fold()",
    "g.E().bothV().choose(has('age'), values('age'), constant('none'))",
    "g.V().valueMap(true).unfold().range(0, 2)",
    "g.V().sideEffect(out().aggregate('x')).cap('x')",
    "g.V(ids).drop()",
    "g.inject(1, 2, 3).sum()",
    "g.V().executionProfile()",
)
SOURCES: Final = ("V", "V", "V", "E", "inject", "addV", "addE", "withStrategies")
LITERALS: Final = (
    *("0", "1", "-1", "2", "1.5", "-0.0", "1e308", "1e400", "9223372036854775808", "5L", "2.5f"),
    *("9" * 40, "'a'", "'x1'", "'pk'", "'id'", "'label'", "'age'", "''", "'\\u0000'", "'~id'"),
    *("'" + "a" * 300 + "'", '"q"', "null", "true", "false", "[]", "[1, 'a']", "[a: 1]", "ids"),
    *("[['a', 'x1']]", "['a', 'x1']", "nope", "T.id", "Order.decr", "2147483648", "0x10", "NaN"),
)
OPENERS: Final = ("__.", "", "", "g.")
#: Every step as it is meant. `@`: a child traversal, `~`: a predicate, `^`: a key, `%`: a label of
#: a step, `#`: a count, `!`: any literal. What flows into it may still be anything.
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "addV": ("addV('person').property('pk', 'a')", "addV(^).property('pk', 'b').property(^, !)"),
    "addE": ("addE('knows').to(g.V('x1'))", "addE(^).from(%).to(%)", "addE('k').to(@).from(@)"),
    "property": ("property(^, !)", "property(list, ^, !, ^, !)", "property(single, 'age', !)"),
    "drop": ("drop()", "drop().count()"),
    "V": ("V('x1', 'x2')", "V(['a', 'x1'])", "V(ids)", "V(!)"),
    "E": ("E()", "E(['a', 'e1'])", "E(!)"),
    **{name: (f"{name}()", f"{name}('knows')") for name in ("out", "in", "both")},
    **{name: (f"{name}()", f"{name}('knows')") for name in ("outE", "inE", "bothE")},
    **{name: (f"{name}()",) for name in ("outV", "inV", "bothV", "otherV")},
    "has": ("has(^)", "has(^, ~)", "has('person', ^, ~)", "has(T.label, 'person')", "has(id, ~)"),
    "hasLabel": ("hasLabel('person')", "hasLabel(~)"),
    "hasId": ("hasId('x1')", "hasId(~)", "hasId(ids)"),
    "hasNot": ("hasNot(^)",),
    "hasKey": ("hasKey(^)", "hasKey(~)"),
    "hasValue": ("hasValue(5)", "hasValue(~)"),
    "is": ("is(~)", "is(!)"),
    **{name: (f"{name}(@)",) for name in ("filter", "not", "map", "flatMap", "local", "optional")},
    **{name: (f"{name}(@, @)", f"{name}(@)") for name in ("and", "or", "union", "coalesce")},
    "simplePath": ("simplePath()",),
    "cyclicPath": ("cyclicPath()",),
    "coin": ("coin(0.5)", "coin(!)"),
    "select": ("select(%)", "select(%, %).by(^).by(@)", "select(last, %)", "select(values)"),
    "where": ("where(@)", "where(neq(%))", "where(%, gt(%)).by(^)", "where(@.as(%))"),
    "values": ("values()", "values(^)", "values(^, ^)"),
    "properties": ("properties()", "properties(^)"),
    "valueMap": ("valueMap()", "valueMap(true, ^)"),
    "propertyMap": ("propertyMap()", "propertyMap(^)"),
    "elementMap": ("elementMap()", "elementMap(^)"),
    **{name: (f"{name}()",) for name in ("id", "label", "key", "value", "identity", "loops")},
    "constant": ("constant(!)",),
    "unfold": ("unfold()",),
    "path": ("path()", "path().by(^).by(@)", "path().from(%).to(%)"),
    "project": ("project(%, 'z').by(^).by(@)", "project(%)"),
    "as": ("as(%)", "as('a', 'b')"),
    **{name: (f"{name}()", f"{name}(local)") for name in ("count", "sum", "min", "max", "mean")},
    "fold": ("fold()",),
    "order": (
        "order()",
        "order().by(^, decr)",
        "order(local).by(values)",
        "order().by(@, shuffle)",
    ),
    "dedup": ("dedup()", "dedup(%).by(^)", "dedup().by(@)"),
    "limit": ("limit(#)", "limit(local, #)"),
    "range": ("range(#, #)", "range(local, #, #)"),
    "skip": ("skip(#)", "skip(local, #)"),
    "tail": ("tail(#)", "tail(local, #)", "tail()"),
    "sample": ("sample(#)", "sample(#).by(^)", "sample(local, #)"),
    "barrier": ("barrier()",),
    "group": ("group()", "group().by(^).by(@)", "group(%).by(label)", "group().by(@).by(fold())"),
    "groupCount": ("groupCount()", "groupCount().by(^)", "groupCount(%).by(@)"),
    "tree": ("tree()", "tree().by(^)", "tree().by(@)"),
    "choose": ("choose(@, @, @)", "choose(~, @)", "choose(@).option(!, @).option(none, @)"),
    "repeat": ("repeat(@).times(2)", "emit().repeat(@).times(#)", "until(@).repeat(@).emit(@)"),
    "store": ("store(%)", "store(%).by(^)"),
    "aggregate": ("aggregate(%)", "aggregate(%).by(@)"),
    "cap": ("cap(%)", "cap('a', 'b')"),
    "sideEffect": ("sideEffect(@)",),
    "inject": ("inject(!, !)", "inject()"),
}
KEYS: Final = ("'age'", "'pk'", "'id'", "'label'", "'w'", "'x'", "T.id", "id", "label", "''")
BEGINNINGS: Final = (
    *("V()", "V()", "V('x1')", "E()", "V().as('a')", "V().as('a').outE().as('b')", "addV('x')"),
    *("inject(1, 2)", "inject('a', null, 1.5)", "inject([1, 2], [a: 1])", "V().values('age')"),
    *("V().properties()", "V().valueMap()", "V().out().path()", "V().fold()", "V().group()"),
    *("V().tree()", "V().as('a').out().as('b').select('a', 'b')", "V().count()", "V().store('a')"),
)
BINDINGS: Final[dict[str, Any]] = {"ids": ["x1"]}
NAMES: Final = (*STEPS, *STEPS, *STEPS, *MODULATORS, *REFUSED)
#: Of the same kind as what it is put into: not all is refused at the door.
WORDS: Final = tuple(one for names in ENUMS.values() for one in names)


class Damaged:
    def __init__(self, random: Random) -> None:
        self._random = random

    def script(self) -> str:
        random = self._random
        make = random.choice((self._whole, self._mixed, self._meant))
        script = make()
        if random.random() < (0.25 if make != self._meant else 0.02):
            script = damage.cut_text(random, script)
        if random.random() < 0.01:
            script += random.choice((".out()", ".identity()", ".by('a')", ".as('a')")) * 2_000
        if random.random() < 0.01:
            deep = random.choice((20, 200, 3_000))
            script = "g.V()" + ".where(__.out()" * deep + ")" * deep
        return script

    def bindings(self) -> dict[str, Any]:
        random = self._random
        return BINDINGS if random.random() < 0.7 else {"ids": damage.value(random)}

    def _whole(self) -> str:
        """Of steps and arguments of every kind."""
        random = self._random
        name = random.choice(SOURCES)
        return f"g.{name}({self._arguments()})" + self._steps(random.randint(0, 5), 2)

    def _mixed(self) -> str:
        """Of the steps of scripts that are right."""
        random = self._random
        steps = random.choice(SCRIPTS).split(".")
        for _ in range(random.choice((0, 1, 1, 2))):
            others = random.choice(SCRIPTS).split(".")
            steps.insert(random.randint(1, len(steps)), random.choice(others[1:]))
        return ".".join(steps)

    def _meant(self) -> str:
        """Of steps that are right, each after any other."""
        random = self._random
        return f"g.{random.choice(BEGINNINGS)}" + self._parts(random.randint(1, 4), 2)

    def _parts(self, count: int, depth: int) -> str:
        return "".join(f".{self._part(depth)}" for _ in range(count))

    def _part(self, depth: int) -> str:
        random = self._random
        form = random.choice(PARTS[random.choice(tuple(PARTS))])
        return "".join(self._place(one, depth) if one in "@~^%#!" else one for one in form)

    def _place(self, sign: str, depth: int) -> str:
        random = self._random
        if random.random() < 0.03:
            return self._argument(depth)
        match sign:
            case "@":
                inner = self._parts(random.randint(1, 2), depth - 1)[1:] if depth else "identity()"
                return random.choice(("__.", "", "")) + inner
            case "~":
                name = random.choice((*PREDICATES, *TEXT_PREDICATES))
                given = ", ".join(random.choice(LITERALS) for _ in range(random.choice((1, 1, 2))))
                return f"{name}({given})"
            case "^":
                return random.choice(KEYS)
            case "%":
                return random.choice(("'a'", "'b'", "'c'"))
            case "#":
                return random.choice(("0", "1", "2", "2", "5", "-1", "2147483648", "1L"))
            case _:
                return random.choice(LITERALS)

    def _steps(self, count: int, depth: int) -> str:
        found = ""
        for _ in range(count):
            name = self._random.choice(NAMES)
            found += f".{name}({self._arguments(depth)})"
        return found

    def _arguments(self, depth: int = 2) -> str:
        count = self._random.choice((0, 0, 1, 1, 1, 2, 2, 3))
        return ", ".join(self._argument(depth) for _ in range(count))

    def _argument(self, depth: int) -> str:
        random = self._random
        chance = random.random()
        if depth and chance < 0.35:
            inner = self._steps(random.randint(1, 2), depth - 1)
            return random.choice(OPENERS) + inner[1:]
        if chance < 0.5:
            name = random.choice((*PREDICATES, *TEXT_PREDICATES))
            inner = self._arguments(0)
            return f"{random.choice(('', 'P.'))}{name}({inner})"
        if chance < 0.6:
            return random.choice(WORDS)
        return random.choice(LITERALS)
