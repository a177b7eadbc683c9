"""What all pages have in common, in a real browser."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from playwright.sync_api import Browser, TimeoutError, expect
from tests.support.portal import Portal

from armillary.portal.pages import PAGES
from armillary.testing.process import Server

#: Controls that a screen reader would read as nothing.
NAMELESS = """() => [...document.querySelectorAll(
    'button, a[href], input, textarea, select, iframe, [role=button], [role=tab], [role=textbox]')]
  .filter(one => one.offsetParent !== null && one.type !== 'file')
  .filter(one => !(one.getAttribute('aria-label') || one.innerText || one.title ||
                   (one.labels && [...one.labels].some(label => label.innerText)) ||
                   one.closest('label')?.innerText))
  .map(one => one.outerHTML.slice(0, 200))"""


def test_the_link_opens_the_portal_and_the_token_leaves_the_address(portal: Portal) -> None:
    page = portal.open()
    assert "token" not in page.url
    assert portal.text("endpoint") == portal.server.endpoint.rstrip("/")
    current = page.get_by_role("navigation").locator("[aria-current=page]")
    expect(current).to_have_text("Explorer")


def test_the_theme_is_kept_over_pages(portal: Portal) -> None:
    page = portal.open()
    button = page.get_by_role("button", name="Theme: as the system")
    button.click()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    expect(page.locator("body.body--dark")).to_have_count(1)
    page.reload()
    portal.settle()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()


@pytest.mark.parametrize("path", [one.path for one in PAGES])
def test_every_control_has_a_name_and_every_page_its_heading(portal: Portal, path: str) -> None:
    """Without names, people who do not see the page can't use it."""
    portal.make_container("shop", "orders")
    page = portal.open(f"{path}?db=shop&c=orders")
    expect(page.get_by_role("main")).to_be_visible()
    expect(page.get_by_role("heading").first).to_be_visible()
    with suppress(TimeoutError):  # then the next line says which
        page.wait_for_function(f"() => ({NAMELESS})().length === 0", timeout=60_000)
    assert page.evaluate(NAMELESS) == []
    title = next(one.title for one in PAGES if one.path == path)
    assert page.title() == f"{title} · Armillary"


@pytest.mark.parametrize("path", [one.path for one in PAGES])
def test_every_page_says_what_is_missing_in_an_empty_account(portal: Portal, path: str) -> None:
    page = portal.open(path)
    expect(page.get_by_role("main")).to_have_text(re.compile(".{20,}", re.DOTALL))
    expect(portal.see("error")).to_have_count(0)


#: What is wider than the screen, without the means to scroll to its rest.
TOO_WIDE = """() => [...document.querySelectorAll('main *, header *')]
  .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && one.offsetParent !== null)
  .filter(one => { for (let up = one; up; up = up.parentElement)
      if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(up).overflowX) &&
          up !== document.body && up !== document.documentElement) return false;
    return true; })
  .map(one => one.outerHTML.slice(0, 120))"""
UNSEEN = """() => { const one = document.activeElement, style = getComputedStyle(one);
  const inside = one.closest('.q-field, .cm-editor, .q-toggle, .q-checkbox, .q-radio, .q-slider');
  const seen = style.boxShadow.includes('rgb(61, 143, 209)');
  return one === document.body || seen || inside ? '' : one.outerHTML.slice(0, 200); }"""


@pytest.mark.parametrize("path", ["/", "/query", "/partitions"])
def test_a_phone_shows_every_page_without_scrolling_sideways(portal: Portal, path: str) -> None:
    portal.make_container("shop", "orders")
    portal.page.set_viewport_size({"width": 390, "height": 800})
    page = portal.open(f"{path}?db=shop&c=orders")
    expect(page.get_by_role("heading").first).to_be_visible()
    with suppress(TimeoutError):
        page.wait_for_function(f"() => ({TOO_WIDE})().length === 0", timeout=60_000)
    assert page.evaluate(TOO_WIDE) == []


#: What a phone has no room for: cards beside each other, and navigation that leaves its header.
NARROW = """() => [...document.querySelectorAll('.a-main .a-card, .a-main .row > .q-field')]
  .filter(one => one.offsetParent !== null && !one.matches('.a-faint'))
  .filter(one => one.getBoundingClientRect().width < 300).map(one => one.outerHTML.slice(0, 120))
  .concat(document.querySelector('[role=navigation]').getBoundingClientRect().bottom >
          document.querySelector('header').getBoundingClientRect().bottom ? ['navigation'] : [])
  .concat(document.scrollingElement.scrollWidth > innerWidth ? ['the page'] : [])"""


@pytest.mark.parametrize("path", ["/", "/query", "/partitions"])
def test_a_phone_shows_one_thing_below_the_other(portal: Portal, path: str) -> None:
    portal.make_container("shop", "orders")
    item = {"id": "1", "pk": "ada", "note": "long " * 30}
    assert portal.api.create("dbs/shop/colls/orders", item).status == 201
    portal.page.set_viewport_size({"width": 390, "height": 800})
    page = portal.open(f"{path}?db=shop&c=orders")
    if path == "/":
        page.get_by_role("link", name="1", exact=True).click()
        expect(portal.see("etag")).to_contain_text("etag")
    for wrong in (TOO_WIDE, NARROW):
        with suppress(TimeoutError):
            page.wait_for_function(f"() => ({wrong})().length === 0", timeout=60_000)
        assert page.evaluate(wrong) == []


def test_the_keyboard_focus_is_seen_wherever_it_goes(portal: Portal) -> None:
    portal.make_container("shop", "orders")
    page = portal.open("/?db=shop&c=orders")
    expect(page.get_by_role("heading").first).to_be_visible()
    for _ in range(25):
        page.keyboard.press("Tab")
        assert page.evaluate(UNSEEN) == ""


def test_nothing_moves_for_who_does_not_want_it(server: Server, browser: Browser) -> None:
    taken = []
    for wish in ("reduce", "no-preference"):
        portal = Portal(server, browser, reduced_motion=wish)
        moving = portal.open().locator(".q-focus-helper").first  # inside of every button
        taken.append(moving.evaluate("one => getComputedStyle(one).transitionDuration"))
        portal.close()
    assert taken[0] == "0s" != taken[1]


def test_one_partition_is_not_told_in_the_plural(portal: Portal) -> None:
    portal.make_container("shop", "orders")
    page = portal.open("/?db=shop&c=orders")
    expect(page.get_by_text("physical partition", exact=True)).to_be_visible()
