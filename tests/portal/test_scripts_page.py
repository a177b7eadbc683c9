"""The scripts page in a real browser: a procedure is run and watched, and an error is shown."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.support.portal import Portal

CONTAINER = "dbs/shop/colls/orders"
PROCEDURE = """function add(n) {
  console.log('adding %s', n);
  __.createDocument(__.getSelfLink(), {id: 'made', pk: 'ada', n: n}, (e, doc) => {
    if (e) throw e;
    __.response.setBody({n: doc.n});
  });
}"""


def test_a_procedure_is_written_run_and_watched(portal: Portal) -> None:
    portal.make_container("shop", "orders")
    body = {"id": "add", "body": PROCEDURE}
    assert portal.api.ask("POST", f"/{CONTAINER}/sprocs", body).status == 201
    portal.open("/scripts?db=shop&c=orders")
    page = portal.page
    page.get_by_role("button", name="add procedure").click()
    page.get_by_label("Partition key").fill("ada")
    page.get_by_label("Arguments").fill("[5]")
    page.get_by_role("button", name="Run").click()
    expect(portal.see("s-result")).to_contain_text('"n": 5')
    expect(portal.see("s-log")).to_have_text("adding 5")
    expect(portal.see("s-changes")).to_have_text("created  made")
    assert portal.number("s-charge") > 0
    # Again: the item is there, so the procedure throws and the page says how.
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("400 BadRequest, number 409")).to_be_visible()
    expect(portal.see("s-log")).to_have_text("adding 5")
