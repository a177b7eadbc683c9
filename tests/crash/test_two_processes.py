"""Without these, two processes on one store could lose each other's writes or break on each other.

Both are real processes that write and read at the same time, on one LMDB folder and on one
PostgreSQL.
"""

from collections.abc import Iterator

import pytest
from tests.support import sharing
from tests.support.crash_check import recounted
from tests.support.postgres import fresh_url
from tests.support.sharing import DATABASE, ITEMS, THREADS, Neighbour
from tests.support.workload_actions import mark_of

from armillary.account import Account, open_account
from armillary.container import Container

ENGINES = ["lmdb", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=ENGINES, scope="module")
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("store")
    address = fresh_url() if request.param == "postgres" else str(folder / "data")
    with open_account(address, housekeeping=False) as account:
        sharing.set_up(account)
    return address


@pytest.fixture(scope="module")
def pair(address: str) -> Iterator[tuple[Neighbour, Neighbour]]:
    both = Neighbour(address), Neighbour(address)
    for one in both:
        one.ask("listed")  # both are there before anything begins
    yield both
    for one in both:
        one.close()


@pytest.fixture
def account(address: str) -> Iterator[Account]:
    """A third process on the same store, to look at the end."""
    with open_account(address, housekeeping=False) as account:
        yield account


def items_of(account: Account) -> Container:
    return account.database(DATABASE).container(ITEMS)


def assert_sound(account: Account) -> None:
    database = account.database(DATABASE)
    for name in database.containers():
        found = recounted(account, database.container(name), DATABASE)
        assert list(found) == []


Pair = tuple[Neighbour, Neighbour]


def test_increments_of_both_are_counted(pair: Pair, account: Account) -> None:
    for one in pair:
        one.tell("increment", 25)
    assert [one.answer() for one in pair] == [25 * THREADS] * 2
    assert items_of(account).read_item("counter", "hot")["value"] == 50 * THREADS
    assert_sound(account)


def test_an_etag_admits_one_of_two(pair: Pair, account: Account) -> None:
    # Both have read it before either writes: one of them comes too late, on any machine.
    assert len({str(one.ask("look")) for one in pair}) == 1
    for one in pair:
        one.tell("compare_and_set", 40)
    lost = sum(one.answer() for one in pair)
    assert items_of(account).read_item("agreed", "hot")["value"] == 80
    assert lost > 0, "they never met, so nothing was shown"


def test_own_and_common_items_of_both_are_there(pair: Pair, account: Account) -> None:
    for name, one in zip("ab", pair, strict=True):
        one.tell("fill", name, "common", 25)
    won = [id for one in pair for id in one.answer()]
    # A create of the same id succeeds in exactly one thread of one process.
    assert sorted(won) == sorted(f"once{number}" for number in range(25))
    items = list(items_of(account).read_all_items())
    own = {item["id"] for item in items if str(item["pk"])[0] in "ab"}
    assert own == {f"{who}-{t}-{n}" for who in "ab" for t in range(THREADS) for n in range(25)}
    assert sum(item["pk"] == "common" for item in items) == 50
    assert_sound(account)


def test_what_one_was_acknowledged_the_other_reads(pair: Pair, account: Account) -> None:
    for number in range(30):
        writer, reader = pair if number % 2 else pair[::-1]
        written = writer.ask("write", ITEMS, {"id": "ping", "pk": "p", "number": number})
        assert reader.ask("read", ITEMS, "ping", "p") == written


def test_containers_come_and_go_for_both(pair: Pair, account: Account) -> None:
    one, other = pair
    assert one.ask("make", "new") == [ITEMS, "new"]
    assert other.ask("listed") == [ITEMS, "new"]
    written = other.ask("write", "new", {"id": "1", "pk": "p"})
    assert one.ask("read", "new", "1", "p") == written
    assert other.ask("remove", "new") == [ITEMS]
    assert one.ask("read", "new", "1", "p") == "OwnerNotFound"
    # The same name again is another container: the reader must not see the old one's items.
    other.ask("make", "new")
    assert one.ask("read", "new", "1", "p") == "NotFound"


def test_one_changes_the_policy_while_the_other_writes(pair: Pair, account: Account) -> None:
    changer, writer = pair
    writer.tell("fill", "w", "lonely", 40)
    changer.tell("change_policy", 6)
    assert changer.answer() == 6
    assert len(writer.answer()) == 40
    assert mark_of(items_of(account)) == 5
    assert_sound(account)


def test_one_makes_the_container_again_while_the_other_writes(pair: Pair, account: Account) -> None:
    maker, writer = pair
    database = account.database(DATABASE)
    database.create_container("fleeting", "/pk")
    writer.tell("write_anyway", "fleeting", "w", 150)
    maker.tell("recreate", "fleeting", 8)
    assert maker.answer() == 8
    told, written = writer.answer()
    assert told.keys() <= {"written", "NotFound", "OwnerNotFound"}
    last = database.container("fleeting")
    link = str(last.properties()["_self"]).rstrip("/")
    there = {str(item["id"]) for item in last.read_all_items()}
    # Whatever was acknowledged by the container that is still there is in it, and nothing else.
    assert there == set(written.get(link, []))
    assert_sound(account)
