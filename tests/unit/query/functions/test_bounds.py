"""Nothing a stranger writes may run for ever, fill the memory, or slow the start."""

import subprocess
import sys
import time
from typing import Any

import pytest

from armillary.errors import BadInput
from armillary.limits import REGEX_SECONDS_MAX
from armillary.query.functions import FUNCTIONS
from armillary.values import UNDEFINED


def call(key: str, *arguments: Any) -> Any:
    run = FUNCTIONS[key].run
    assert run is not None
    return run(*arguments)


@pytest.mark.parametrize("key", ["REGEXMATCH", "REGEXEXTRACT", "REGEXEXTRACTALL"])
def test_a_pattern_that_backtracks_for_ever_is_stopped(key: str) -> None:
    """Without the stop this takes hours; the message comes from the stop and nowhere else. The
    bound is on work done, because a busy machine may make anything wait.
    """
    started = time.process_time()
    with pytest.raises(BadInput, match=f"took longer than {REGEX_SECONDS_MAX}"):
        call(key, "1" * 30, r"^(?:(1+)\1*)+x|(11+?)\2+y")
    assert time.process_time() - started < 100 * REGEX_SECONDS_MAX


def test_a_very_long_pattern_is_refused() -> None:
    with pytest.raises(BadInput, match="characters"):
        call("REGEXMATCH", "a", "a" * 5000)


def test_deeply_nested_patterns_are_undefined_not_a_crash() -> None:
    assert call("REGEXMATCH", "a", "(" * 2000 + "a" + ")" * 2000) in (True, UNDEFINED)


def test_results_are_bounded() -> None:
    """REPLACE of each letter by ten thousand, twice, would be a terabyte."""
    text = "a" * 10_000
    with pytest.raises(BadInput, match="at most"):
        call("REPLACE", text, "a", text)
    with pytest.raises(BadInput, match="at most"):
        call("CONCAT", *[text * 100] * 5)
    with pytest.raises(BadInput, match="at most"):
        call("STRINGJOIN", [text] * 500, "")
    with pytest.raises(BadInput, match="at most"):
        call("ARRAYCONCAT", *[[0] * 300_000] * 4)


def test_deep_json_text_is_undefined() -> None:
    """Everything that walks values relies on the depth an item may have."""
    assert call("STRINGTOARRAY", "[" * 128 + "]" * 128) is not UNDEFINED
    assert call("STRINGTOARRAY", "[" * 129 + "]" * 129) is UNDEFINED
    assert call("STRINGTOARRAY", "[" * 100_000 + "]" * 100_000) is UNDEFINED


def test_heavy_packages_load_on_first_use() -> None:
    """Starting a server must not wait for geometry."""
    code = (
        "import sys, armillary.query.functions\n"
        "heavy = {'shapely', 'numpy', 'regex', 'snowballstemmer', 'geographiclib'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["CEILING", "FLOOR", "TRUNC", "ROUND"])
def test_rounding_large_numbers_stays_a_double(name: str) -> None:
    """An integer beyond 64 bits can't be written as JSON: the query would end in an error."""
    run = FUNCTIONS[name].run
    assert run is not None
    for value in (1e20, -1e300):
        found = run(value)
        assert type(found) is float
        assert found == value
