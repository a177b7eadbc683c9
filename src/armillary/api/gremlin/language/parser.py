"""One expression that begins with `g`, as calls: by recursive descent, with bounded depth.

chain     = ("g" | "__") {"." call} | call {"." call}
call      = name "(" [argument {"," argument}] ")"
argument  = literal | list | map | chain | predicate | enum | strategy | binding
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from armillary.api.gremlin.errors import Position, ScriptError, no_symbol
from armillary.api.gremlin.language.lexer import Token, position_of, tokenize, unexpected
from armillary.api.gremlin.language.names import (
    ENUMS,
    PREDICATES,
    SAME,
    STRATEGIES,
    TEXT_PREDICATES,
)
from armillary.api.gremlin.language.nodes import (
    Argument,
    Binding,
    Call,
    Chain,
    Enum,
    ListOf,
    MapOf,
    Predicate,
    Strategy,
)
from armillary.limits import (
    GREMLIN_DEPTH_MAX,
    GREMLIN_SCRIPT_BYTES_MAX,
    GREMLIN_SCRIPTS_KEPT_MAX,
    GREMLIN_STEPS_MAX,
)

#: Asked for their results, not steps; the drivers of some languages leave them in the text.
TERMINALS: Final = frozenset({"toList", "next", "iterate", "toSet", "toBulkSet"})
LITERALS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
KEPT_CHARACTERS_MAX: Final = 4096


def parse(text: str) -> Chain:
    """The calls after `g`, without a terminal at the end."""
    return _kept(text) if len(text) <= KEPT_CHARACTERS_MAX else _parse(text)


@lru_cache(maxsize=GREMLIN_SCRIPTS_KEPT_MAX)
def _kept(text: str) -> Chain:
    return _parse(text)


def _parse(text: str) -> Chain:
    if len(text) > GREMLIN_SCRIPT_BYTES_MAX or len(text.encode()) > GREMLIN_SCRIPT_BYTES_MAX:
        raise ScriptError(f"The script is longer than {GREMLIN_SCRIPT_BYTES_MAX} bytes.", "limit")
    return _Parser(text).script()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0
        self.depth = 0
        self.calls = 0

    # --- tokens ---------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def at(self, token: Token) -> Position:
        return position_of(self.text, token.start)

    def sign(self, text: str) -> bool:
        """Whether the next token is this sign; then it is taken."""
        if self.token.kind == "sign" and self.token.text == text:
            self.index += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.sign(text):
            raise self.unexpected()

    def name(self) -> Token:
        token = self.token
        if token.kind != "name":
            raise self.unexpected()
        self.index += 1
        return token

    def unexpected(self) -> ScriptError:
        token = self.token
        if token.text == "{":
            closing = self.text.find("}", token.start)
            text = self.text[token.start : closing + 1 if closing > 0 else None]
            return ScriptError(
                f"Unsupported groovy language rule: 'closure' text: '{text}'",
                "syntax",
                self.at(token),
            )
        return unexpected(self.text, token.start, token.text)

    def ahead(self, text: str) -> bool:
        following = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        return following.kind == "sign" and following.text == text

    # --- the whole ------------------------------------------------------------------------------

    def script(self) -> Chain:
        token = self.token
        if token.kind != "name":
            raise self.unexpected()
        if token.text != "g":
            raise no_symbol(token.text, self.at(token))
        chain = self.rooted()
        self.sign(";")
        if self.token.kind != "end":
            raise self.unexpected()
        calls = list(chain.calls)
        while calls and calls[-1].name in TERMINALS and not calls[-1].args:
            calls.pop()
        if not calls:
            raise ScriptError("A traversal needs a step after 'g'.", "parse", chain.at)
        return Chain(tuple(calls), True, chain.at)

    def rooted(self) -> Chain:
        token = self.name()
        return Chain(tuple(self.following()), True, self.at(token))

    def following(self) -> list[Call]:
        calls: list[Call] = []
        while self.sign("."):
            calls.append(self.call())
        return calls

    def call(self) -> Call:
        token = self.name()
        if not self.sign("("):
            raise self.unexpected()
        self.calls += 1
        if self.calls > GREMLIN_STEPS_MAX:
            raise ScriptError(f"A script may have {GREMLIN_STEPS_MAX} steps.", "limit")
        self.depth += 1
        if self.depth > GREMLIN_DEPTH_MAX:
            raise ScriptError(f"Steps may be nested {GREMLIN_DEPTH_MAX} deep.", "limit")
        args = self.arguments(")")
        self.depth -= 1
        return Call(token.text, tuple(args), self.at(token))

    def arguments(self, end: str) -> list[Argument]:
        if self.sign(end):
            return []
        args = [self.argument()]
        while self.sign(","):
            args.append(self.argument())
        self.expect(end)
        return args

    # --- arguments ------------------------------------------------------------------------------

    def argument(self) -> Argument:
        self.depth += 1
        if self.depth > GREMLIN_DEPTH_MAX:
            raise ScriptError(f"Steps may be nested {GREMLIN_DEPTH_MAX} deep.", "limit")
        try:
            return self._argument()
        finally:
            self.depth -= 1

    def _argument(self) -> Argument:
        token = self.token
        if token.kind in ("string", "number"):
            self.index += 1
            return self._range(token.value)
        if self.sign("-") or self.sign("+"):
            number = self.token
            if number.kind != "number" or isinstance(number.value, str | None):
                raise self.unexpected()
            self.index += 1
            return self._range(-number.value if token.text == "-" else number.value)
        if self.sign("["):
            return self.collection()
        if self.sign("("):
            inner = self.argument()
            self.expect(")")
            return inner
        if token.kind == "name":
            return self.named(token)
        raise self.unexpected()

    def _range(self, low: Argument) -> Argument:
        """`1..3` is [1, 2, 3]."""
        if not (isinstance(low, int) and self.sign("..")):
            return low
        high = self.argument()
        if not isinstance(high, int) or not 0 <= high - low < GREMLIN_STEPS_MAX:
            raise self.unexpected()
        return ListOf(tuple(range(low, high + 1)))

    def collection(self) -> Argument:
        if self.sign("]"):
            return ListOf(())
        if self.sign(":"):
            self.expect("]")
            return MapOf(())
        first = self.entry_key()
        if not self.sign(":"):
            items = [first]
            while self.sign(","):
                items.append(self.argument())
            self.expect("]")
            return ListOf(tuple(items))
        entries = [(first, self.argument())]
        while self.sign(","):
            key = self.entry_key()
            self.expect(":")
            entries.append((key, self.argument()))
        self.expect("]")
        return MapOf(tuple(entries))

    def entry_key(self) -> Argument:
        """A bare name before a colon is a string; anything else is an argument."""
        if self.token.kind == "name" and self.ahead(":"):
            return self.name().text
        return self.argument()

    def named(self, token: Token) -> Argument:
        word = token.text
        if word == "g" and self.ahead("."):
            return self.rooted()
        if word == "__" and self.ahead("."):
            self.index += 1
            return Chain(tuple(self.following()), False, self.at(token))
        if word == "new":
            self.index += 1
            return self.new_strategy()
        if self.ahead("("):
            if word in PREDICATES or word in TEXT_PREDICATES:
                return self.test()
            return self.bare_chain(token)
        self.index += 1
        if word in LITERALS:
            return LITERALS[word]
        if self.token.kind == "sign" and self.token.text == ".":
            return self.qualified(token)
        return Binding(word, self.at(token))

    def bare_chain(self, token: Token) -> Argument:
        first = self.call()
        if first.name == "not" and len(first.args) == 1 and isinstance(first.args[0], Predicate):
            return self.connected(Predicate("negate", first.args, first.at))
        return Chain((first, *self.following()), False, self.at(token))

    def qualified(self, token: Token) -> Argument:
        """`T.id`, `VertexProperty.Cardinality.list`, `P.gt(3)`, `PartitionStrategy.build()…`"""
        word = token.text
        if word in ("P", "TextP"):
            self.expect(".")
            return self.test()
        if word in STRATEGIES:
            return self.strategy(token)
        if word == "VertexProperty" and self.ahead_name() == "Cardinality":
            self.expect(".")
            word = self.name().text
        if word in ENUMS:
            self.expect(".")
            name = self.name()
            if name.text not in ENUMS[word]:
                raise no_symbol(name.text, self.at(name))
            return Enum(word, SAME.get(name.text, name.text))
        raise no_symbol(word, self.at(token))

    def ahead_name(self) -> str:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)].text

    def test(self) -> Predicate:
        call = self.call()
        name = "negate" if call.name == "not" else call.name
        if name not in PREDICATES | TEXT_PREDICATES | {"negate"}:
            raise no_symbol(call.name, call.at)
        return self.connected(Predicate(name, call.args, call.at))

    def connected(self, test: Predicate) -> Predicate:
        """`gt(1).and(lt(5)).negate()`"""
        while self.sign("."):
            call = self.call()
            if call.name not in ("and", "or", "negate"):
                raise ScriptError(f"Unable to find any method '{call.name}'", "binding", call.at)
            test = Predicate(call.name, (test, *call.args), call.at)
        return test

    def strategy(self, token: Token) -> Strategy:
        calls = self.following()
        if not calls or calls[0].name != "build" or calls[-1].name != "create":
            raise no_symbol(token.text, self.at(token))
        settings = tuple((call.name, call.args) for call in calls[1:-1])
        return Strategy(token.text, settings, self.at(token))

    def new_strategy(self) -> Strategy:
        """`new PartitionStrategy(partitionKey: "pk", readPartitions: ["a"])`"""
        token = self.name()
        if token.text not in STRATEGIES:
            raise no_symbol(token.text, self.at(token))
        self.expect("(")
        settings: list[tuple[str, tuple[Argument, ...]]] = []
        while not self.sign(")"):
            if settings:
                self.expect(",")
            key = self.name().text
            self.expect(":")
            value = self.argument()
            settings.append((key, value.items if isinstance(value, ListOf) else (value,)))
        return Strategy(token.text, tuple(settings), self.at(token))
