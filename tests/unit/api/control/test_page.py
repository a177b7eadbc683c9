"""The examples of docs/controls.md, run: else a reader could paste what never worked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.server_process import ServerProcess

from armillary.api.control.metrics import FAMILIES
from armillary.api.control.routes import ROUTES
from armillary.api.core.faults import OPERATIONS

PAGE = (Path(__file__).parents[4] / "docs" / "controls.md").read_text("utf-8")
BLOCK = re.compile(r"```(toml|sh|json)\n(.*?)```", re.DOTALL)


def shape(value: Any) -> Any:
    """Names and kinds, without what differs from server to server."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return float if isinstance(value, int | float) else type(value)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_examples_answer_as_shown(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE)
    config = tmp_path / "armillary.toml"
    config.write_text(blocks.pop(0)[1], "utf-8")
    items, serve, *others = blocks.pop(0)[1].splitlines()
    assert serve == "armillary serve &"
    subprocess.run(["sh", "-ec", items], cwd=tmp_path, check=True, timeout=120)
    server = ServerProcess(tmp_path / "data", real=True, options=["--config", str(config)])
    try:
        server.wait_until_ready()
        first = "\n".join(others).replace("localhost:8081", f"localhost:{server.port}") + "\n"
        shown = 0
        for (kind, script), (next_kind, answer) in zip(blocks[::2], blocks[1::2], strict=True):
            assert (kind, next_kind) == ("sh", "json")
            done = subprocess.run(
                ["sh", "-ec", first + script],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, (script, done.stdout, done.stderr)
            last = done.stdout[max(0, done.stdout.rfind("}{") + 1) :]
            assert shape(json.loads(last)) == shape(json.loads(answer)), script
            shown += 1
        assert shown > 5
    finally:
        server.close()


def test_every_control_effect_and_metric_is_on_the_page() -> None:
    words = [one.pattern.rsplit("/", 1)[-1] for one in ROUTES if "{" not in one.pattern[-1:]]
    missing = [one for one in (*words, *OPERATIONS, *FAMILIES) if one.strip("{}") not in PAGE]
    assert missing == []
