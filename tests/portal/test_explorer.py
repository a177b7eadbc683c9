"""The explorer in a real browser: what is made there is in the account, what is shown is what the
API says, and a change by somebody else is never lost."""

from __future__ import annotations

from contextlib import suppress

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, expect
from tests.support.nosql import pk
from tests.support.portal import Portal
from tests.support.waiting import until

ORDERS = "dbs/shop/colls/orders"


def write(page: Page, text: str) -> None:
    """Into the editor, in the place of what is there."""
    page.locator(".cm-content").first.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def stored(portal: Portal, id: str, key: str) -> dict[str, object]:
    found: dict[str, object] = portal.api.read(ORDERS, id, key).json()
    return found


def test_a_fixed_container_without_a_key_is_made_by_hand(portal: Portal) -> None:
    assert portal.api.ask("POST", "/dbs", {"id": "shop"}).status == 201
    page = portal.open()
    page.get_by_role("button", name="New container").click()
    page.get_by_label("Name").fill("old")
    page.get_by_role("button", name="No key").click()
    expect(portal.see("landing")).to_contain_text("the one partition")
    page.get_by_role("button", name="Create container").click()
    expect(page.get_by_role("heading", name="old")).to_be_visible()
    (container,) = portal.control("account")["databases"][0]["containers"]
    assert container["partition_key"] == ["/_partitionKey"]
    page.get_by_role("button", name="New item").click()
    write(page, '{"id": "1", "total": 42}')
    page.get_by_role("button", name="Save").click()
    expect(portal.see("item-title")).to_have_text("1")
    assert portal.api.ask("GET", "/dbs/shop/colls/old/docs/1").json()["total"] == 42


def test_a_database_a_container_and_an_item_are_made_by_hand(portal: Portal) -> None:
    page = portal.open()
    expect(page.get_by_text("This account is empty")).to_be_visible()
    page.get_by_role("button", name="New database").click()
    page.get_by_label("Name").fill("shop")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("button", name="New container").click()
    # Not without a name, and what was chosen stays.
    page.get_by_label("Path", exact=True).fill("/pk")
    page.get_by_role("button", name="Create container").click()
    expect(portal.see("error")).to_contain_text("needs a name")
    page.get_by_label("Name").fill("orders")
    expect(portal.see("landing")).to_contain_text("1,000 items under 1,000 keys")
    page.get_by_role("button", name="Create container").click()
    expect(page.get_by_role("heading", name="orders")).to_be_visible()
    (database,) = portal.control("account")["databases"]
    (container,) = database["containers"]
    assert (database["id"], container["id"]) == ("shop", "orders")
    assert container["partition_key"] == ["/pk"]
    assert container["throughput"] == {"kind": "manual", "ru": 400}

    page.get_by_role("button", name="New item").click()
    write(page, '{"id": "1", "pk": "ada", }')
    expect(portal.see("invalid")).to_contain_text("line 1")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    write(page, '{"id": "1", "pk": "ada", "total": 42}')
    page.get_by_role("button", name="Save").click()
    expect(portal.see("item-title")).to_have_text("1")
    item = stored(portal, "1", "ada")
    assert item["total"] == 42
    etag = str(item["_etag"]).strip('"')
    expect(portal.see("etag")).to_have_text(f"etag {etag}")
    expect(portal.see("shown")).to_contain_text("1–1")


def test_a_database_with_throughput_shows_its_one_budget(portal: Portal) -> None:
    portal.api.ask("POST", "/dbs", {"id": "shared"}, {"x-ms-offer-throughput": "600"})
    body = {"id": "a", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    portal.api.ask("POST", "/dbs/shared/colls", body)
    portal.open("/?db=shared&c=a")
    expect(portal.see("throughput")).to_have_text("600 RU/s")
    expect(portal.page.get_by_text("shared by the database")).to_be_visible()


def press_until_gone(page: Page, name: str) -> None:
    """A click on a dialog that is still being opened was seen to get lost, once in many runs."""
    button = page.get_by_role("button", name=name)

    def gone() -> bool:
        if button.is_visible():
            with suppress(PlaywrightError):
                button.click(timeout=1_000)
        return not button.is_visible()

    until(gone)


def test_a_conflicting_change_is_shown_and_nothing_is_lost(portal: Portal) -> None:
    portal.make_container("shop", "orders")
    assert portal.api.create(ORDERS, {"id": "1", "pk": "ada", "total": 1}).status == 201
    page = portal.open("/?db=shop&c=orders")
    page.get_by_role("link", name="1", exact=True).click()
    expect(portal.see("item-title")).to_have_text("1")
    write(page, '{"id": "1", "pk": "ada", "total": 2, "mine": true}')
    changed = {"id": "1", "pk": "ada", "total": 3, "theirs": True}
    assert portal.api.ask("PUT", f"/{ORDERS}/docs/1", changed, pk("ada")).status == 200
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("This item was changed meanwhile")).to_be_visible()
    expect(page.get_by_text('"theirs": true')).to_be_visible()
    press_until_gone(page, "Go on editing")
    assert stored(portal, "1", "ada")["total"] == 3
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Overwrite it").click()
    expect(page.get_by_text("Saved for")).to_be_visible()
    assert stored(portal, "1", "ada")["mine"] is True
    # The same again; this time theirs is taken.
    write(page, '{"id": "1", "pk": "ada", "total": 5}')
    assert portal.api.ask("PUT", f"/{ORDERS}/docs/1", changed, pk("ada")).status == 200
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Take the stored one").click()
    etag = str(stored(portal, "1", "ada")["_etag"]).strip('"')
    expect(portal.see("etag")).to_have_text(f"etag {etag}")


def test_pages_show_every_item_once_and_the_counts_of_the_account(portal: Portal) -> None:
    portal.make_container("shop", "orders")
    for number in range(120):
        item = {"id": f"i{number:03}", "pk": f"k{number % 7}", "n": number}
        assert portal.api.create(ORDERS, item).status == 201
    page = portal.open("/?db=shop&c=orders")
    about = portal.control("account")["databases"][0]["containers"][0]
    assert about["items"] == 120
    until(lambda: portal.number("items") == 120)
    until(lambda: portal.number("partitions") == about["partitions"])
    links = page.locator(".a-item-link")
    seen: list[str] = []
    for shown, count in (("1–50 ", 50), ("51–100 ", 50), ("101–120 ", 20)):
        expect(portal.see("shown")).to_contain_text(shown)
        expect(links).to_have_count(count)
        if seen:  # fifty links may still be those of the page before
            expect(links.first).not_to_have_text(seen[-50])
        seen += links.all_inner_texts()
        if count == 50:
            page.get_by_role("button", name="Next page").click()
    assert sorted(seen) == [f"i{number:03}" for number in range(120)]
    page.get_by_role("button", name="Page before").click()
    expect(portal.see("shown")).to_contain_text("51–100 ")
    page.get_by_label("Filter").fill("c.n < 3")
    page.get_by_role("button", name="Find").click()
    expect(links).to_have_count(3)
    page.get_by_label("Filter").fill("c.n <")
    page.get_by_role("button", name="Find").click()
    expect(portal.see("error")).to_contain_text("Syntax error")


def test_deleting_asks_first(portal: Portal) -> None:
    portal.make_container("shop", "orders")
    assert portal.api.create(ORDERS, {"id": "1", "pk": "ada"}).status == 201
    page = portal.open("/?db=shop&c=orders")
    page.get_by_role("link", name="1", exact=True).click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No items yet")).to_be_visible()
    assert portal.api.read(ORDERS, "1", "ada").status == 404
    page.get_by_role("button", name="Delete container").click()
    button = page.get_by_role("dialog").get_by_role("button", name="Delete")
    expect(button).to_be_disabled()
    page.get_by_role("dialog").get_by_label("Name").fill("orders")
    button.click()
    expect(page.get_by_role("button", name="New container")).to_be_visible()
    assert portal.control("account")["databases"][0]["containers"] == []


def test_an_item_is_saved_as_it_was_typed(portal: Portal) -> None:
    """Half a document is invalid at every key, and marked: the marks must not move the text."""
    portal.make_container("shop", "orders")
    assert portal.api.create(ORDERS, {"id": "1", "pk": "ada", "total": 1}).status == 201
    page = portal.open("/?db=shop&c=orders")
    page.get_by_role("link", name="1", exact=True).click()
    expect(portal.see("item-title")).to_have_text("1")
    page.locator(".cm-content").first.click()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"id": "1", "pk": "ada", "total": 1234567890, "note": "abcdefgh', delay=20)
    page.keyboard.press("Control+Delete")  # what the editor has closed by itself
    page.keyboard.press("Control+Shift+End")
    page.keyboard.insert_text('"}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved for")).to_be_visible()
    found = stored(portal, "1", "ada")
    assert (found["total"], found["note"]) == (1234567890, "abcdefgh")
