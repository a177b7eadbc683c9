"""Run the public suite of an SDK outside the repository, and keep its counts in bench/results/.

    python -m tools.run_suites python                  azure-cosmos of PyPI, marker cosmosEmulator
    python -m tools.run_suites go [--from DIR]         azcosmos of the Go proxy, or of a checkout
    python -m tools.run_suites javascript --from DIR   a checkout of azure-sdk-for-js
    python -m tools.run_suites rust --from DIR         a checkout of azure-sdk-for-rust

Python and Go have their tests in what the registry gives by name; npm and crates.io do not. Each
runs in a temporary folder beside servers of its own (tools/served.py), with the settings that its
own pipeline gives the emulator: no rate limit, tokens of Entra ID, the address 127.0.0.1, and a
second server in place of the emulator's second gateway. Nothing of a suite stays but its line in
the result file; why a test fails is in tools/suite_causes.py.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as Xml
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.suite_causes import cause_of

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "bench" / "results"
#: What the pipelines of the SDKs start the emulator with, in our settings.
SETTINGS: Final = {
    "ARMILLARY_THROUGHPUT_ENFORCE": "report",
    "ARMILLARY_API_ACCEPT_ENTRA": "true",
    "ARMILLARY_SERVER_ADVERTISE": "https://127.0.0.1:8081/",
}
#: The emulator has its two gateways at two ports, and suites expect them there.
PORTS: Final = (
    "8081,ARMILLARY_API_IDS=routing-gateway",
    "8903,ARMILLARY_API_IDS=compute-gateway,ARMILLARY_SERVER_ADVERTISE=https://localhost:8903/",
)
#: `devtools_testutils` of the Python suite is on no registry: whatever is imported is there, and
#: does nothing.
STUB: Final = """
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *values, **named: None
"""
VITEST: Final = """
import { defineConfig } from "vitest/config";
import { resolve } from "node:path";
export default defineConfig({ test: {
  testTimeout: 120000, hookTimeout: 120000, watch: false, fileParallelism: false,
  reporters: ["tap-flat", "json"], outputFile: { json: "results.json" },
  fakeTimers: { toFake: ["setTimeout", "Date"] }, include: ["test/public/**/*.spec.ts"],
  alias: [{ find: "@azure/cosmos", replacement: resolve(process.cwd(), "src/index.ts") },
          { find: /^\\$internal\\/(.*)$/, replacement: resolve(process.cwd(), "src/$1") }],
} });
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    version: str
    passed: int
    failed: tuple[str, ...]
    skipped: int
    settings: tuple[str, ...] = ()


def python(folder: Path, _source: Path | None) -> Outcome:
    _do(folder, sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary",
        "azure-cosmos", "azure-cosmos")  # fmt: skip
    archive = next(folder.glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    root = folder / archive.name.removesuffix(".tar.gz")
    version = root.name.rsplit("-", 1)[1]
    _do(folder, sys.executable, "-m", "venv", "env")
    runner = folder / "env" / "bin" / "python"
    _do(folder, str(runner), "-m", "pip", "install", "--quiet", f"azure-cosmos=={version}",
        "pytest", "pytest-asyncio", "pytest-timeout", "aiohttp", "azure-identity", "psutil",
        "packaging")  # fmt: skip
    stub = folder / "stub" / "devtools_testutils"
    stub.mkdir(parents=True)
    for name in ("__init__", "azure_recorded_testcase", "helpers"):
        (stub / f"{name}.py").write_text(STUB)
    given = {"PYTHONPATH": str(folder / "stub"), "ACCOUNT_HOST": "https://localhost:8081/"}
    _beside_servers(
        root / "tests", given,
        str(runner), "-W", "ignore", "-m", "pytest", "-q", "-m", "cosmosEmulator",
        "--timeout=120", "-p", "no:cacheprovider", "--junitxml=results.xml", ".",
    )  # fmt: skip
    return of_junit(Xml.parse(root / "tests" / "results.xml").getroot(), f"azure-cosmos {version}")


def of_junit(report: Xml.Element, version: str) -> Outcome:
    """Subtests count, as in the number of tests that the report says; they have no line."""
    failed, skipped = [], 0
    for one in report.iter("testcase"):
        if one.find("failure") is not None or one.find("error") is not None:
            failed.append(f"{one.get('classname', '').rsplit('.', 2)[-2]}::{one.get('name')}")
        elif one.find("skipped") is not None:
            skipped += 1
    tests = sum(int(one.get("tests", "0")) for one in report.iter("testsuite"))
    return Outcome(version, tests - len(failed) - skipped, tuple(failed), skipped)


def go(folder: Path, source: Path | None) -> Outcome:
    if source is not None:
        place, commit = _of_checkout(folder, source, "sdk/data/azcosmos")
        version = f"azcosmos of checkout {commit}"
    else:
        place, version = _of_go_proxy(folder)
    _do(place, "go", "test", "-c", "-o", "suite", ".")
    settings = {"ARMILLARY_API_CONSISTENCY": "Strong"}
    names = "|".join(
        f"^{name}$"
        for file in sorted(place.glob("emulator_*_test.go"))
        for name in re.findall(r"^func (Test\w+)", file.read_text("utf-8"), re.MULTILINE)
    )
    text = _beside_servers(
        place, {"EMULATOR": "true", **settings}, "./suite", "-test.v", "-test.run", names
    )
    return of_go(text, version, settings)


def _of_go_proxy(folder: Path) -> tuple[Path, str]:
    """In the version that our own tests with the Go SDK use."""
    module = "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
    pinned = (ROOT / "tests" / "conformance" / "nosql" / "go" / "go.mod").read_text("utf-8")
    version = re.findall(rf"{module} (\S+)", pinned)[0]
    found = json.loads(_out(folder, "go", "mod", "download", "-json", f"{module}@{version}"))
    place = folder / "azcosmos"
    shutil.copytree(found["Dir"], place, copy_function=shutil.copy)
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return place, f"azcosmos {version}"


def of_go(text: str, version: str, settings: dict[str, str]) -> Outcome:
    found = re.findall(r"^--- (PASS|FAIL|SKIP): (\w+)", text, re.MULTILINE)
    failed = tuple(name for what, name in found if what == "FAIL")
    passed = sum(what == "PASS" for what, _ in found)
    return Outcome(version, passed, failed, len(found) - passed - len(failed), said(settings))


def javascript(folder: Path, source: Path | None) -> Outcome:
    place, version = _of_checkout(folder, source, "sdk/cosmosdb/cosmos")
    package = json.loads((place / "package.json").read_text("utf-8"))
    package["devDependencies"] = {
        "vitest": "^3.2.0", "@azure/identity": "4.13.0", "nock": "^13.5.6", "@types/node": "^22",
        "dotenv": "^16.6.1", "assertion-error": "^2.0.1",
    }  # fmt: skip
    for name in ("scripts", "engines"):
        package.pop(name, None)
    (place / "package.json").write_text(json.dumps(package))
    for config in place.glob("tsconfig*.json"):
        config.unlink()  # they extend files of the whole repository
    options = {"target": "ES2022", "module": "NodeNext", "moduleResolution": "NodeNext"}
    (place / "tsconfig.json").write_text(json.dumps({"compilerOptions": options}))
    (place / "vitest.suite.config.ts").write_text(VITEST)
    _do(place, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
    settings = {"ARMILLARY_PARTITION_BYTES": "10GiB", "ARMILLARY_SERVER_ADVERTISE": ""}
    given = {"ACCOUNT_HOST": "https://localhost:8081/", **settings}
    _beside_servers(place, given, "npx", "vitest", "run", "-c", "vitest.suite.config.ts")
    report = json.loads((place / "results.json").read_text("utf-8"))
    return of_vitest(report, f"@azure/cosmos {package['version']} of checkout {version}", settings)


def of_vitest(report: dict[str, object], version: str, settings: dict[str, str]) -> Outcome:
    tests = [one for file in report["testResults"] for one in file["assertionResults"]]  # type: ignore[attr-defined]
    failed = tuple(one["fullName"] for one in tests if one["status"] == "failed")
    passed = sum(one["status"] == "passed" for one in tests)
    return Outcome(version, passed, failed, len(tests) - passed - len(failed), said(settings))


def rust(folder: Path, source: Path | None) -> Outcome:
    place, version = _of_checkout(folder, source, "")
    (place / "rust-toolchain.toml").unlink(missing_ok=True)
    build = {
        "RUSTFLAGS": '--cfg test_category="emulator"',
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(folder / "target")),
    }
    command = ("cargo", "test", "-p", "azure_data_cosmos", "--all-features", "--test", "emulator")
    _do(place, *command, "--no-run", environment=build)
    given = {
        **build,
        "CARGO_NET_OFFLINE": "true",
        "AZURE_COSMOS_CONNECTION_STRING": "emulator",
        "AZURE_COSMOS_TEST_MODE": "required",
    }
    text = _beside_servers(place, given, *command, "--", "--test-threads=1")
    return of_cargo(text, f"azure_data_cosmos of checkout {version}")


def of_cargo(text: str, version: str) -> Outcome:
    found = re.findall(r"^test (\S+) \.\.\. (?:[^\n]*?)(ok|FAILED|ignored)", text, re.MULTILINE)
    failed = tuple(name for name, what in found if what == "FAILED")
    passed = sum(what == "ok" for _, what in found)
    return Outcome(version, passed, failed, len(found) - passed - len(failed))


SUITES: Final[dict[str, Callable[[Path, Path | None], Outcome]]] = {
    "python": python,
    "go": go,
    "javascript": javascript,
    "rust": rust,
}


def run(name: str, results: Path, source: Path | None = None) -> Path:
    """`source`: a checkout; without one the suite is fetched by its name."""
    commit = _commit()
    with tempfile.TemporaryDirectory(prefix="suite-") as folder:
        outcome = SUITES[name](Path(folder), source)
    now = datetime.now(UTC)
    file = results / f"sdk-{name}-{now:%Y-%m-%d}.txt"
    given = "" if source is None else " --from CHECKOUT"
    file.write_text(report_of(name, outcome, now, commit, given), "utf-8")
    return file


def _commit() -> str:
    """What runs; the result of another suite, just written, is no change of it."""
    changed = _out(ROOT, "git", "status", "--porcelain", "-uno", "--", ":!bench/results")
    return _out(ROOT, "git", "rev-parse", "--short", "HEAD") + (", with changes" if changed else "")


def report_of(name: str, outcome: Outcome, now: datetime, commit: str, given: str = "") -> str:
    settings = " ".join(dict.fromkeys((*said(SETTINGS), *outcome.settings)))
    lines = [
        f"{outcome.version}, its tests, run from outside this repository.",
        "",
        f"    python -m tools.run_suites {name}{given}",
        f"    {settings}",
        f"    servers: {' '.join(PORTS)}",
        "",
        f"{now:%Y-%m-%d}, at {commit}, all in one run, load {os.getloadavg()[0]:.0f}",
        "",
        f"In all {outcome.passed:,} passed, {len(outcome.failed):,} failed, "
        f"{outcome.skipped:,} skipped",
        "",
        *(f"  {one}: {cause_of(name, one)}" for one in outcome.failed),
    ]
    return "\n".join(lines).rstrip() + "\n"


def said(settings: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in settings.items())


def _of_checkout(folder: Path, source: Path | None, part: str) -> tuple[Path, str]:
    """(a copy of a part of it, its commit)."""
    if source is None:
        raise SystemExit("This suite is on no registry: give a checkout with --from DIR.")
    shutil.copytree(source / part, folder / "suite", ignore=shutil.ignore_patterns(".git"))
    return folder / "suite", _out(source, "git", "rev-parse", "--short=11", "HEAD")


def _beside_servers(place: Path, given: dict[str, str], *command: str) -> str:
    """What it printed; whether its tests passed, its report says."""
    path = os.pathsep.join(filter(None, (str(ROOT), given.get("PYTHONPATH"))))
    environment = {**os.environ, **SETTINGS, **given, "PYTHONPATH": path}
    environment = {
        name: value
        for name, value in environment.items()
        if value and not name.lower().endswith("_proxy")  # a suite sets its own
    }
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-m", "tools.served", *PORTS, "--", *command],
        cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    return done.stdout


def _do(place: Path, *command: str, environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=place, env={**os.environ, **(environment or {})}, check=True)


def _out(place: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the public suite of an SDK.")
    parser.add_argument("suite", choices=tuple(SUITES))
    parser.add_argument("--from", dest="source", type=Path, help="a checkout of its repository")
    asked = parser.parse_args()
    print(run(asked.suite, RESULTS, asked.source).read_text("utf-8"))
