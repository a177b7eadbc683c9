"""What all pages have in common, in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.support.portal import Portal


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
