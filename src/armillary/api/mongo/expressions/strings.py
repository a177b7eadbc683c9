"""Strings: by code point (CP) or by UTF-8 byte, and regular expressions."""

from __future__ import annotations

from typing import Any, Final

from bson.datetime_ms import DatetimeMS
from bson.regex import Regex

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.operators import (
    ELEMENT_BYTES,
    TEXT_BYTES,
    Expression,
    Inner,
    Operator,
    Simple,
    named,
    steps_of,
)
from armillary.api.mongo.expressions.values import is_nothing, whole
from armillary.api.mongo.language import MISSING, Scratch
from armillary.encoding.bson.values import is_number, is_text, type_name

CHARACTERS_MAX: Final = 64  # that are looked for one by one
BLANK: Final = (
    "\0 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
)


def _text(value: Any) -> str:
    """What string operators make of other types."""
    if is_nothing(value):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, DatetimeMS) or is_number(value):
        from armillary.api.mongo.expressions.conversions import to_text

        return to_text(value)
    raise MongoError(16007, f"can't convert from BSON type {type_name(value)} to String")


def _concat(*values: Any) -> Any:
    for one in values:
        if is_nothing(one):  # decides, unless a wrong type stands before it
            return None
        if not isinstance(one, str):
            raise MongoError(16702, f"$concat only supports strings, not {type_name(one)}")
    return "".join(values)


def _texts_bytes(*values: Any) -> int:
    return sum(len(one) for one in values if isinstance(one, str))


def _pieces_bytes(text: Any, separator: Any) -> int:
    if not (is_text(text) and is_text(separator) and separator):
        return 0
    return len(text) + TEXT_BYTES * text.count(separator)


def _case(upper: bool) -> Simple:
    def run(value: Any) -> Any:
        data = _text(value).encode("utf-8", "surrogatepass")
        # Of bytes: ASCII only, as the reference says.
        return (data.upper() if upper else data.lower()).decode("utf-8", "surrogatepass")

    return Simple(run, nothing=False)


def _index_of(name: str, as_bytes: bool) -> Simple:
    def run(text: Any, wanted: Any, *bounds: Any) -> Any:
        if is_nothing(text):
            return None
        if not is_text(text):
            raise MongoError(
                40091, f"{name} requires a string as the first argument, found: {type_name(text)}"
            )
        if not is_text(wanted):
            raise MongoError(
                40092,
                f"{name} requires a string as the second argument, "
                "found: "
                f"{'missing' if wanted is MISSING else type_name(wanted)}",
            )
        start, end = 0, None
        if bounds:
            start = _bound(name, bounds[0])
        if len(bounds) > 1:
            end = _bound(name, bounds[1])
        if as_bytes:
            return text.encode().find(wanted.encode(), start, end)
        return text.find(wanted, start, end)

    return Simple(run, 2, 4, nothing=False)


def _bound(name: str, value: Any) -> int:
    found = whole(
        value,
        MongoError(
            40096, f"{name} requires an integral index, found a value of type: {type_name(value)}"
        ),
    )
    if found < 0:
        raise MongoError(40097, f"{name} requires a nonnegative index, found: {found}")
    return found


def _trim(name: str, argument: Any, inner: Inner) -> Expression:
    parts = named(name, argument, inner, ("input",), ("chars",), 50694)
    strip = {"$trim": str.strip, "$ltrim": str.lstrip, "$rtrim": str.rstrip}[name]
    scratch = inner.scratch

    def run(document: Any, variables: Any) -> Any:
        text = parts["input"](document, variables)
        if is_nothing(text):
            return None
        if not is_text(text):
            raise MongoError(
                50699,
                f"{name} requires its input to be a string, got {text} "
                f"(of type {type_name(text)}) instead.",
            )
        characters: Any = BLANK
        if "chars" in parts:
            characters = parts["chars"](document, variables)
            if is_nothing(characters):
                return None
            if not is_text(characters):
                raise MongoError(
                    50700, f"{name} requires 'chars' to be a string, got {characters} instead."
                )
            if len(characters) > CHARACTERS_MAX:
                return _stripped(name, text, frozenset(characters), scratch)
        return strip(text, characters)

    return run


def _stripped(name: str, text: str, characters: frozenset[str], scratch: Scratch) -> str:
    """The same where there are many: Python would look through all of them at each character."""
    low, high = 0, len(text)
    while name != "$rtrim" and low < high and text[low] in characters:
        scratch.spend(1)
        low += 1
    while name != "$ltrim" and low < high and text[high - 1] in characters:
        scratch.spend(1)
        high -= 1
    return text[low:high]


def _split(text: Any, separator: Any) -> Any:
    if not is_text(text):
        raise MongoError(
            40085,
            "$split requires an expression that evaluates to a "
            f"string as a first argument, found: {type_name(text)}",
        )
    if not is_text(separator):
        raise MongoError(
            40086,
            "$split requires an expression that evaluates to a "
            "string as a second argument, found: "
            f"{type_name(separator)}",
        )
    if not separator:
        raise MongoError(40087, "$split requires a non-empty separator")
    return text.split(separator)


def _length(name: str, as_bytes: bool) -> Simple:
    def run(value: Any) -> Any:
        if not is_text(value):
            raise MongoError(
                34473 if as_bytes else 34471,
                f"{name} requires a string argument, found: "
                f"{'missing' if value is MISSING else type_name(value)}",
            )
        return len(value.encode()) if as_bytes else len(value)

    return Simple(run, nothing=False)


def _casecmp(one: Any, other: Any) -> Any:
    left, right = _text(one).upper(), _text(other).upper()
    return (left > right) - (left < right)


def _substr_cp(value: Any, start: Any, length: Any) -> Any:
    text = _text(value)
    error = MongoError(34450, "$substrCP: starting index must be a numeric type")
    low = whole(start, error)
    count = whole(length, MongoError(34452, "$substrCP: length must be a numeric type"))
    if low < 0:
        raise MongoError(34455, "$substrCP: the starting index must be a non-negative integer")
    if count < 0:
        raise MongoError(34454, "$substrCP: length must be a non-negative integer")
    return text[low : low + count]


def _substr_bytes(value: Any, start: Any, length: Any) -> Any:
    data = _text(value).encode()
    low = whole(start, MongoError(16034, "$substrBytes: starting index must be a numeric type"))
    count = whole(length, MongoError(16035, "$substrBytes: length must be a numeric type"))
    if low < 0:
        raise MongoError(50752, "$substrBytes: starting index must be non-negative")
    end = len(data) if count < 0 else min(len(data), low + count)
    for at, code in ((low, 28656), (end, 28657)):
        if at < len(data) and data[at] & 0xC0 == 0x80:
            raise MongoError(
                code, "$substrBytes: Invalid range, in the middle of a UTF-8 character."
            )
    return data[low:end].decode()


def _regex(name: str, argument: Any, inner: Inner) -> Expression:
    from armillary.api.mongo.match import regexes

    parts = named(name, argument, inner, ("input", "regex"), ("options",), 51103)
    scratch = inner.scratch
    budget = scratch.budget

    def run(document: Any, variables: Any) -> Any:
        text = parts["input"](document, variables)
        pattern = parts["regex"](document, variables)
        options = parts["options"](document, variables) if "options" in parts else None
        if is_nothing(text) or is_nothing(pattern):
            return {"$regexMatch": False, "$regexFind": None, "$regexFindAll": []}[name]
        if not is_text(text):
            raise MongoError(51104, f"{name} needs 'input' to be of type string")
        if not isinstance(pattern, str | Regex):
            raise MongoError(51105, f"{name} needs 'regex' to be of type string or regex")
        made = regexes.parse(pattern, None if is_nothing(options) else options)
        if name == "$regexMatch":
            return regexes.search(made, text, budget) is not None
        found, at = [], 0
        while at <= len(text):
            match = regexes.search(made, text, budget, at)
            if match is None:
                break
            scratch.hold(8 * ELEMENT_BYTES)
            found.append(
                {"match": match.group(), "idx": match.start(), "captures": list(match.groups())}
            )
            if name == "$regexFind":
                return found[0]
            at = match.end() if match.end() > match.start() else match.end() + 1
        return found if name == "$regexFindAll" else None

    return run


def _replace(name: str, argument: Any, inner: Inner) -> Expression:
    parts = named(name, argument, inner, ("input", "find", "replacement"), (), 51750)
    scratch = inner.scratch

    def run(document: Any, variables: Any) -> Any:
        values = {one: part(document, variables) for one, part in parts.items()}
        for one, value in values.items():
            if not is_nothing(value) and not is_text(value):
                raise MongoError(51746, f"{name} requires that '{one}' be a string, found: {value}")
        if any(map(is_nothing, values.values())):
            return None
        count = 1 if name == "$replaceOne" else -1
        text, wanted, put = values["input"], values["find"], values["replacement"]
        times = 1 if count == 1 else text.count(wanted)
        scratch.spend(steps_of(text))
        scratch.hold(len(text) + times * max(0, len(put) - len(wanted)))
        return text.replace(wanted, put, count)

    return run


OPERATORS: Final[dict[str, Operator]] = {
    "$concat": Simple(_concat, 0, None, nothing=False, weigh=_texts_bytes),
    "$indexOfBytes": _index_of("$indexOfBytes", True),
    "$indexOfCP": _index_of("$indexOfCP", False),
    "$trim": _trim,
    "$ltrim": _trim,
    "$rtrim": _trim,
    "$split": Simple(_split, 2, 2, weigh=_pieces_bytes),
    "$strLenBytes": _length("$strLenBytes", True),
    "$strLenCP": _length("$strLenCP", False),
    "$strcasecmp": Simple(_casecmp, 2, 2, nothing=False),
    "$substr": Simple(_substr_bytes, 3, 3, nothing=False),
    "$substrBytes": Simple(_substr_bytes, 3, 3, nothing=False),
    "$substrCP": Simple(_substr_cp, 3, 3, nothing=False),
    "$toLower": _case(False),
    "$toUpper": _case(True),
    "$regexFind": _regex,
    "$regexFindAll": _regex,
    "$regexMatch": _regex,
    "$replaceOne": _replace,
    "$replaceAll": _replace,
}
