"""Pictures of the portal, for the README and the documents: `make screenshots`.

    make screenshots              all of them, to docs/images/
    make screenshots ONLY=query   those whose name begins so

A shot is a name, a page, and what has to be there first. Each gets a server of its own, so that one
picture does not show what another left behind. The data is made from a seed: pictures change only
when the pages do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright
from tests.support.portal import CHROMIUM_OPTIONS, Portal, chromium_path
from tools import partition_scenes, portal_scenes

from armillary.testing.process import start_server

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
SIZE: Final = (1280, 800)
TALL: Final = (1280, 1180)

#: Partitions so small that a few hundred items fill several.
SMALL: Final = ("--partition-ru", "1000")

#: Prepares the account and the page. The picture is taken inside of what it returns, if anything.
Scene = Callable[[Portal], AbstractContextManager[None] | None]


@dataclass(frozen=True, slots=True)
class Shot:
    name: str
    scene: Scene
    size: tuple[int, int] = SIZE
    dark: bool = False
    enforce: bool = False
    """Whether budgets refuse, as `serve` has it."""
    options: Sequence[str] = field(default=SMALL)
    """Of `armillary serve`."""


SHOTS: Final[tuple[Shot, ...]] = (
    Shot("portal-explorer", portal_scenes.explorer),
    Shot("portal-new-container", portal_scenes.new_container),
    Shot("portal-query", portal_scenes.query),
    Shot("portal-query-plan", portal_scenes.query_plan, dark=True),
    Shot("portal-advisor", portal_scenes.advisor),
    Shot("portal-graph", portal_scenes.graph, TALL),
    Shot(
        "portal-partitions",
        partition_scenes.skewed,
        TALL,
        enforce=True,
        options=partition_scenes.SMALL,
    ),
    Shot(
        "portal-partitions-even",
        partition_scenes.even,
        TALL,
        enforce=True,
        options=partition_scenes.SMALL,
    ),
    Shot("portal-partitions-one", partition_scenes.single, TALL, dark=True),
    Shot("portal-partitions-many", partition_scenes.many, TALL, options=partition_scenes.MANY),
    Shot(
        "portal-load",
        partition_scenes.hot_load,
        (1280, 900),
        dark=True,
        enforce=True,
        options=partition_scenes.LOADED,
    ),
)


def take(shot: Shot, folder: Path) -> Path:
    path = folder / f"{shot.name}.png"
    chromium = chromium_path()
    assert chromium is not None, "there is no Chromium; see tools/browser.sh"
    with (
        start_server(enforce=shot.enforce, options=shot.options) as server,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=chromium, args=list(CHROMIUM_OPTIONS))
        scheme = "dark" if shot.dark else "light"
        portal = Portal(
            server,
            browser,
            shot.size,
            color_scheme=scheme,
            reduced_motion="reduce",
            device_scale_factor=1.5,
        )
        with shot.scene(portal) or nullcontext():
            portal.page.screenshot(path=path, animations="disabled")
        portal.close()
        browser.close()
    if portal.problems:
        raise SystemExit("\n".join([f"{shot.name} shows problems:", *portal.problems]))
    return path


def main(wanted: Sequence[str]) -> None:
    folder = IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in SHOTS if not wanted or one.name.startswith(tuple(wanted))]
    if not chosen:
        raise SystemExit(
            f"There is no picture {' '.join(wanted)}: {', '.join(s.name for s in SHOTS)}."
        )
    for shot in chosen:
        path = take(shot, folder)
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:,.0f} KB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
