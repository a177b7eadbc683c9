"""The page is what people decide by. Opened here in a real browser: a plot that is missing, empty
or wider than a laptop, or a page that asks the network for something, is seen only there."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.support.portal import CHROMIUM_OPTIONS, chromium_path

from armillary.advisor.data.sample import sample_of
from armillary.advisor.keys.candidates import parse_candidates
from armillary.advisor.page.build import PageInput, page
from armillary.advisor.page.words import clipped, days, number, percent, ticks
from armillary.advisor.replay.comparison import ReplayOptions, replay_candidates
from armillary.advisor.replay.result import Comparison
from armillary.advisor.replay.verdicts import Verdict, verdicts
from armillary.advisor.workload.model import parse_workload
from armillary.advisor.workload.playing import play_out

LAPTOP = (1366, 768)
PLOTS = (
    "storage-poor", "storage-good", "heat-poor", "heat-good", "top-keys-poor", "top-keys-good",
    "fan-out", "lorenz",
)  # fmt: skip
HOSTILE = '/"<script>alert(1)</script>"'


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    items = [
        {
            "id": str(n),
            "device": f"d{n * 7 % 50}",
            "date": f"2026-04-{1 + n // 60:02d}",
            "x": "y" * 200,
        }
        for n in range(600)
    ]
    workload = parse_workload(
        {
            "operations": [
                {"kind": "create", "rate": 150},
                {"kind": "query", "rate": 9, "text": "SELECT * FROM c WHERE c.device = @d"},
            ]
        }
    )
    sample = sample_of(items, total_items=1e7, total_bytes=3e9)
    played = play_out(workload, sample, seconds=10)
    keys = ["/device", "/date", "/id", '/date+"."+hash(/device,40)', HOSTILE]
    options = ReplayOptions(throughput=20_000)
    return replay_candidates(parse_candidates(keys), played, sample, options)


@pytest.fixture(scope="module")
def written(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    judged = (*verdicts(comparison), Verdict("/status", "rejected", ("4 values only",)))
    file.write_text(page(PageInput(comparison, judged, "Report <b>", "600 items")), "utf-8")
    return file


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium_path()
    if path is None:
        pytest.skip("there is no Chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(CHROMIUM_OPTIONS))
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def opened(request: pytest.FixtureRequest, browser: Browser, written: Path) -> Iterator[Page]:
    window = browser.new_context(
        viewport={"width": LAPTOP[0], "height": LAPTOP[1]}, color_scheme=request.param
    )
    shown = window.new_page()
    problems: list[str] = []
    shown.on("console", lambda message: problems.append(message.text))
    shown.on("pageerror", lambda error: problems.append(str(error)))
    shown.on(
        "request",
        lambda asked: None if asked.url == written.as_uri() else problems.append(asked.url),
    )
    shown.goto(written.as_uri())
    yield shown
    window.close()
    assert [one for one in problems if not one.startswith("data:")] == []


def test_every_plot_is_there_and_fits_a_laptop(opened: Page) -> None:
    assert opened.evaluate("document.documentElement.scrollWidth") <= LAPTOP[0]
    for name in PLOTS:
        plot = opened.locator(f"#{name}")
        assert plot.count() == 1, name
        box = plot.bounding_box()
        assert box is not None
        assert box["width"] > 400, name
        assert box["height"] > 100, name
        assert box["x"] + box["width"] <= LAPTOP[0], name
        assert plot.locator("rect, path, line").count() >= 3, name
        smallest = plot.evaluate(
            "plot => Math.min(...[...plot.querySelectorAll('text')]"
            ".map(text => text.getBoundingClientRect().height))"
        )
        assert smallest >= 8, f"the text of {name} is too small to be read"


def test_text_stays_inside_its_plot(opened: Page) -> None:
    outside = opened.evaluate(
        "() => [...document.querySelectorAll('svg.plot text')].filter(text => {"
        "const box = text.getBoundingClientRect();"
        "const card = text.closest('.card').getBoundingClientRect();"
        "return box.left < card.left || box.right > card.right + 1}).map(text => text.textContent)"
    )
    assert outside == []


def test_colours_of_text_have_contrast(opened: Page) -> None:
    ink, card = opened.evaluate(
        "() => [getComputedStyle(document.body).color,"
        "getComputedStyle(document.querySelector('.card')).backgroundColor]"
    )
    assert abs(_light(ink) - _light(card)) > 0.6


def test_the_table_has_every_candidate_with_its_reasons(
    opened: Page, comparison: Comparison
) -> None:
    text = opened.locator("#candidates").inner_text()
    for one in comparison.replays:
        assert one.key in text
    assert "rejected" in text
    assert "4 values only" in text
    assert "not replayed" in text
    assert opened.locator("script").count() == 0, "a key is text, whatever it says"


def _light(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    return sum(weight * part for weight, part in zip((0.21, 0.72, 0.07), parts, strict=True))


def test_one_candidate_has_nothing_to_be_compared_with(comparison: Comparison) -> None:
    alone = replace(comparison, replays=comparison.replays[:1])
    text = page(PageInput(alone, verdicts(alone)))
    assert "storage-good" in text
    assert "storage-poor" not in text


def test_numbers_are_said_with_their_units() -> None:
    assert [percent(n).replace("\xa0", " ") for n in (0, 0.0001, 0.034, 0.5)] == [
        "0 %", "< 0.1 %", "3.4 %", "50 %",
    ]  # fmt: skip
    assert [number(n) for n in (0, 1.2345, 27_400, 2e7)] == ["0", "1.23", "27,400", "20 M"]
    assert [days(n) for n in (None, 0.01, 0.5, 39, 400, 900)] == [
        "–", "within the hour", "12 hours", "39 days", "13 months", "2.5 years",
    ]  # fmt: skip
    assert clipped("abcdef", 4) == "abc…"


@pytest.mark.parametrize("top", [0.0, 0.3, 1.0, 37e9, 123.0, 9.99, 1e15])
def test_ticks_reach_the_top_with_few_steps(top: float) -> None:
    found = ticks(top)
    assert found[0] == 0
    assert found[-1] >= top
    assert 2 <= len(found) <= 7
