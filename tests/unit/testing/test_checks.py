"""The marker `armillary_check` in suites of its own. Without these, it could pass over a hot key or
fail without saying which."""

from pathlib import Path

from tests.unit.testing.test_pytest_plugin import suite

HEAD = """
import pytest
pytestmark = pytest.mark.armillary(
    containers={"orders": {"partition_key": "/who", "physical_partitions": 4}}
)
"""


def test_what_holds_passes_and_what_does_not_names_the_culprit(tmp_path: Path) -> None:
    said = suite(
        tmp_path,
        HEAD
        + """
def fill(container):
    for n in range(20):
        container.create_item({"id": str(n), "who": "ada" if n % 2 else f"c{n}"})

@pytest.mark.armillary_check(max_key_share=0.6, max_fanout=1, max_ru=20, max_429_share=0)
def test_fine(cosmos_container):
    fill(cosmos_container)
    list(cosmos_container.query_items("SELECT * FROM c", partition_key="ada"))

@pytest.mark.armillary_check(max_key_share=0.1)
def test_hot(cosmos_container):
    fill(cosmos_container)

@pytest.mark.armillary_check(max_fanout=1)
def test_wide(cosmos_container):
    fill(cosmos_container)
    list(cosmos_container.query_items("SELECT * FROM c WHERE c.x = 1",
                                      enable_cross_partition_query=True))

@pytest.mark.armillary_check(max_ru=5)
def test_dear(cosmos_container):
    fill(cosmos_container)

@pytest.mark.armillary_check(max_key_share=0.1)
def test_years_later(cosmos_container, cosmos_clock):
    fill(cosmos_container)
    cosmos_clock.advance(3 * 365 * 86400)
    cosmos_container.create_item({"id": "x", "who": "x"})

@pytest.mark.armillary_check(max_key_share=0.5, containers=["others"])
def test_elsewhere(cosmos, cosmos_container):
    others = cosmos.account.database("test").create_container("others", "/id")
    others.create_item({"id": "1"})
    others.create_item({"id": "2"})
    fill(cosmos_container)

@pytest.mark.armillary_check(max_key_share=0.1)
def test_that_fails_itself(cosmos_container):
    fill(cosmos_container)
    assert False, "its own reason"

def test_unmarked(cosmos_container):
    fill(cosmos_container)
""",
    )
    assert "5 failed, 3 passed" in said, said
    assert "BAD  test/orders: heaviest key" in said
    assert 'key ["ada"]' in said
    assert "partitions asked by one query 4, at most 1: SELECT * FROM c WHERE c.x = 1" in said
    assert "dearest request" in said
    assert "its own reason" in said
    assert "test_years_later" in said


def test_wrong_marks_are_reported(tmp_path: Path) -> None:
    said = suite(
        tmp_path,
        HEAD
        + """
@pytest.mark.armillary_check(max_heat=3)
def test_unknown(cosmos_container): pass

@pytest.mark.armillary_check(max_fanout="1")
def test_text(cosmos_container): pass

@pytest.mark.armillary_check
def test_nothing(cosmos_container): pass

@pytest.mark.armillary_check(max_fanout=1)
def test_no_account(): pass

@pytest.mark.armillary_check(max_fanout=1, containers=["ordres"])
def test_misspelt(cosmos_container): pass
""",
    )
    assert "5 failed" in said, said
    for text in ("has no 'max_heat'", "has to be a number", "asserts nothing", "cosmos fixtures"):
        assert text in said
    assert "no container ordres" in said


def test_a_test_that_does_nothing_is_reported(tmp_path: Path) -> None:
    said = suite(
        tmp_path,
        HEAD
        + """
@pytest.mark.armillary_check(max_key_share=0.5)
def test_empty(cosmos_container): pass
""",
    )
    assert "1 failed" in said, said
    assert "made no request, so nothing was checked" in said
