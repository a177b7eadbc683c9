"""String functions (reference 6.5), except regular expressions and conversions, which have modules
of their own. Positions and lengths count UTF-16 units (see `units.py`); comparison is ordinal.
"""

import math
from collections.abc import Callable

from armillary.limits import REPLICATE_CHARACTERS_MAX
from armillary.query.expr.units import count, gather, lower, spread, upper
from armillary.query.functions.base import (
    Function,
    Logic,
    all_of,
    any_of,
    check_array,
    check_string,
    integer,
    is_number,
    strings,
)
from armillary.values import JSON, UNDEFINED


def _of_text(compute: Callable[[str], JSON]) -> Callable[[JSON], JSON]:
    return lambda text: compute(text) if type(text) is str else UNDEFINED


# --- tests ----------------------------------------------------------------------------------------


def _test(compare: Callable[[str, str], bool]) -> Callable[..., Logic]:
    def run(text: JSON, other: JSON, ignore_case: JSON = False) -> Logic:
        if type(text) is not str or type(other) is not str or type(ignore_case) is not bool:
            return UNDEFINED
        return compare(upper(text), upper(other)) if ignore_case else compare(text, other)

    return run


contains = _test(lambda text, other: other in text)
starts_with = _test(str.startswith)
ends_with = _test(str.endswith)
equals = _test(lambda text, other: text == other)


def _many(combine: Callable[..., Logic], ignore_case: bool) -> Callable[..., Logic]:
    def run(text: JSON, *others: JSON) -> Logic:
        return combine(contains(text, other, ignore_case) for other in others)

    return run


# --- positions ------------------------------------------------------------------------------------


def index_of(text: JSON, other: JSON, start: JSON = 0) -> JSON:
    """A negative start counts as 0 (unverified)."""
    first = integer(start)
    if type(text) is not str or type(other) is not str or first is None:
        return UNDEFINED
    return spread(text).find(spread(other), max(0, first))


def last_index_of(text: JSON, other: JSON, *position: JSON) -> JSON:
    """The last match that lies wholly inside `text[0..position]`, the position included."""
    if type(text) is not str or type(other) is not str:
        return UNDEFINED
    whole, part = spread(text), spread(other)
    if not position:
        return whole.rfind(part)
    last = integer(position[0])
    if last is None:
        return UNDEFINED
    return whole.rfind(part, 0, last + 1) if last >= 0 else -1


def left(text: JSON, size: JSON) -> JSON:
    length = integer(size)
    if type(text) is not str or length is None:
        return UNDEFINED
    return gather(spread(text)[: max(0, length)])


def right(text: JSON, size: JSON) -> JSON:
    length = integer(size)
    if type(text) is not str or length is None:
        return UNDEFINED
    return gather(spread(text)[-length:]) if length > 0 else ""


def substring(text: JSON, start: JSON, size: JSON) -> JSON:
    first, length = integer(start), integer(size)
    if type(text) is not str or first is None or length is None:
        return UNDEFINED
    if first < 0 or length <= 0:
        return ""
    return gather(spread(text)[first : first + length])


def _around(after: bool, last: bool) -> Callable[[JSON, JSON], JSON]:
    def run(text: JSON, mark: JSON) -> JSON:
        """The part before or after a mark, "" without one. Named by the engine's token list only;
        the meaning is ours (unverified).
        """
        if type(text) is not str or type(mark) is not str:
            return UNDEFINED
        found = text.rfind(mark) if last else text.find(mark)
        if found < 0:
            return ""
        return text[found + len(mark) :] if after else text[:found]

    return run


# --- making strings -------------------------------------------------------------------------------


def concat(*texts: JSON) -> JSON:
    if not strings(texts):
        return UNDEFINED
    check_string(sum(map(len, texts)))
    return gather("".join(texts))


def _strip(sides: Callable[[str, str | None], str]) -> Callable[..., JSON]:
    def run(text: JSON, *characters: JSON) -> JSON:
        """The second argument is a set of characters, not a prefix."""
        if type(text) is not str or not strings(characters):
            return UNDEFINED
        return sides(text, characters[0]) if characters else sides(text, None)

    return run


def replace(text: JSON, old: JSON, new: JSON) -> JSON:
    if not strings((text, old, new)) or not old:
        return UNDEFINED
    if len(new) > len(old):
        check_string(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def replicate(text: JSON, times: JSON) -> JSON:
    if type(text) is not str or not is_number(times) or not math.isfinite(times) or times < 0:
        return UNDEFINED
    if count(text) * int(times) > REPLICATE_CHARACTERS_MAX:
        return UNDEFINED
    return text * int(times) if text else ""  # nothing may be repeated 1e300 times


def split(text: JSON, delimiter: JSON) -> JSON:
    if type(text) is not str or type(delimiter) is not str:
        return UNDEFINED
    if not delimiter:
        return [text]
    check_array(text.count(delimiter) + 1)
    return text.split(delimiter)


def join(array: JSON, separator: JSON) -> JSON:
    if type(array) is not list or type(separator) is not str or not strings(array):
        return UNDEFINED
    check_string(sum(map(len, array)) + len(separator) * len(array))
    return gather(separator.join(array))


FUNCTIONS = (
    Function("CONCAT", 2, None, concat),
    Function("CONTAINS", 2, 3, contains),
    Function("CONTAINS_ALL_CI", 2, None, _many(all_of, True)),
    Function("CONTAINS_ALL_CS", 2, None, _many(all_of, False)),
    Function("CONTAINS_ANY_CI", 2, None, _many(any_of, True)),
    Function("CONTAINS_ANY_CS", 2, None, _many(any_of, False)),
    Function("ENDSWITH", 2, 3, ends_with),
    Function("INDEX_OF", 2, 3, index_of),
    Function("LASTINDEXOF", 2, 3, last_index_of),
    Function("LASTSUBSTRINGAFTER", 2, 2, _around(after=True, last=True)),
    Function("LASTSUBSTRINGBEFORE", 2, 2, _around(after=False, last=True)),
    Function("LEFT", 2, 2, left),
    Function("LENGTH", 1, 1, _of_text(count)),
    Function("LOWER", 1, 1, _of_text(lower)),
    Function("LTRIM", 1, 2, _strip(str.lstrip)),
    Function("REPLACE", 3, 3, replace),
    Function("REPLICATE", 2, 2, replicate),
    Function("REVERSE", 1, 1, _of_text(lambda text: text[::-1])),
    Function("RIGHT", 2, 2, right),
    Function("RTRIM", 1, 2, _strip(str.rstrip)),
    Function("STARTSWITH", 2, 3, starts_with),
    Function("StringEquals", 2, 3, equals),
    Function("StringJoin", 2, 2, join),
    Function("StringSplit", 2, 2, split),
    Function("SUBSTRING", 3, 3, substring),
    Function("SUBSTRINGAFTER", 2, 2, _around(after=True, last=False)),
    Function("SUBSTRINGBEFORE", 2, 2, _around(after=False, last=False)),
    Function("TRIM", 1, 2, _strip(str.strip)),
    Function("UPPER", 1, 1, _of_text(upper)),
)
