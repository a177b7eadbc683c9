"""Suites of the SDKs for NoSQL: Python, Go, JavaScript, Rust.

Each runs with the settings that its own pipeline gives the emulator: no rate limit, tokens of Entra
ID, the address 127.0.0.1, and a second server in place of the emulator's second gateway.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import xml.etree.ElementTree as Xml
from dataclasses import replace
from pathlib import Path
from typing import Final

from tools.suites.outcome import Outcome, of_cargo, of_go, of_junit, of_vitest, said
from tools.suites.running import (
    ROOT,
    beside,
    do,
    environment_with,
    of_checkout,
    out,
    source_package,
)

#: What the pipelines of the SDKs start the emulator with, in our settings.
SETTINGS: Final = {
    "ARMILLARY_THROUGHPUT_ENFORCE": "report",
    "ARMILLARY_API_ACCEPT_ENTRA": "true",
    "ARMILLARY_SERVER_ADVERTISE": "https://127.0.0.1:8081/",
}
#: The emulator has its two gateways at two ports, and suites expect them there.
SERVERS: Final = (
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


#: Against a test that hangs. The longest, 3,100 creates at once under asyncio's debug mode, takes
#: 20 s of processor time, and ten times that on a machine with much else to do.
TEST_SECONDS_MAX: Final = 600
#: Tests that run stored procedures, triggers and functions; no marker has them.
SCRIPTS_PYTHON: Final = (
    "-k", "(sproc or stored_procedure or trigger or udf) and not clear_cache and not etag_stored",
    "test_crud.py", "test_crud_async.py", "test_crud_container.py", "test_crud_container_async.py",
    "test_crud_response_payload_on_write_disabled.py",
    "test_crud_response_payload_on_write_disabled_async.py", "test_encoding.py",
)  # fmt: skip
SCRIPTS_JAVASCRIPT: Final = tuple(
    f"test/public/functional/{name}.spec.ts" for name in ("sproc", "trigger", "udf")
)


def python(folder: Path, _source: Path | None) -> Outcome:
    return _python(folder, "-m", "cosmosEmulator", ".")


def split(folder: Path, _source: Path | None) -> Outcome:
    """Its tests wait until ranges have split."""
    return _python(folder, "-m", "cosmosSplit", ".")


def scripts_python(folder: Path, _source: Path | None) -> Outcome:
    return _python(folder, *SCRIPTS_PYTHON)


def _python(folder: Path, *which: str) -> Outcome:
    root, version = source_package(folder, "azure-cosmos")
    runner = environment_with(
        folder, f"azure-cosmos=={version}", "aiohttp", "azure-identity", "psutil", "packaging"
    )
    stub = folder / "stub" / "devtools_testutils"
    stub.mkdir(parents=True)
    for name in ("__init__", "azure_recorded_testcase", "helpers"):
        (stub / f"{name}.py").write_text(STUB)
    given = {"PYTHONPATH": str(folder / "stub"), "ACCOUNT_HOST": "https://localhost:8081/"}
    _beside(
        root / "tests", given,
        runner, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider",
        f"--timeout={TEST_SECONDS_MAX}", "--junitxml=results.xml", *which,
    )  # fmt: skip
    report = Xml.parse(root / "tests" / "results.xml").getroot()
    return _with_settings(of_junit(report, f"azure-cosmos {version}"))


def go(folder: Path, source: Path | None) -> Outcome:
    if source is not None:
        place, commit = of_checkout(folder, source, "sdk/data/azcosmos")
        version = f"azcosmos of checkout {commit}"
    else:
        place, version = _of_go_proxy(folder)
    do(place, "go", "test", "-c", "-o", "suite", ".")
    settings = {"ARMILLARY_API_CONSISTENCY": "Strong"}
    names = "|".join(
        f"^{name}$"
        for file in sorted(place.glob("emulator_*_test.go"))
        for name in re.findall(r"^func (Test\w+)", file.read_text("utf-8"), re.MULTILINE)
    )
    text = _beside(
        place, {"EMULATOR": "true", **settings}, "./suite", "-test.v", "-test.run", names
    )
    return _with_settings(of_go(text, version, settings))


def _of_go_proxy(folder: Path) -> tuple[Path, str]:
    """In the version that our own tests with the Go SDK use."""
    module = "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
    pinned = (ROOT / "tests" / "conformance" / "nosql" / "go" / "go.mod").read_text("utf-8")
    version = re.findall(rf"{module} (\S+)", pinned)[0]
    found = json.loads(out(folder, "go", "mod", "download", "-json", f"{module}@{version}"))
    place = folder / "azcosmos"
    shutil.copytree(found["Dir"], place, copy_function=shutil.copy)
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return place, f"azcosmos {version}"


def javascript(folder: Path, source: Path | None) -> Outcome:
    return _javascript(folder, source)


def scripts_javascript(folder: Path, source: Path | None) -> Outcome:
    return _javascript(folder, source, *SCRIPTS_JAVASCRIPT)


def _javascript(folder: Path, source: Path | None, *which: str) -> Outcome:
    place, version = of_checkout(folder, source, "sdk/cosmosdb/cosmos")
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
    do(place, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
    settings = {"ARMILLARY_PARTITION_BYTES": "10GiB", "ARMILLARY_SERVER_ADVERTISE": ""}
    given = {"ACCOUNT_HOST": "https://localhost:8081/", **settings}
    _beside(place, given, "npx", "vitest", "run", "-c", "vitest.suite.config.ts", *which)
    report = json.loads((place / "results.json").read_text("utf-8"))
    version = f"@azure/cosmos {package['version']} of checkout {version}"
    return _with_settings(of_vitest(report, version, settings))


def rust(folder: Path, source: Path | None) -> Outcome:
    place, version = of_checkout(folder, source, "")
    (place / "rust-toolchain.toml").unlink(missing_ok=True)
    build = {
        "RUSTFLAGS": '--cfg test_category="emulator"',
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(folder / "target")),
    }
    command = ("cargo", "test", "-p", "azure_data_cosmos", "--all-features", "--test", "emulator")
    do(place, *command, "--no-run", environment=build)
    given = {
        **build,
        "CARGO_NET_OFFLINE": "true",
        "AZURE_COSMOS_CONNECTION_STRING": "emulator",
        "AZURE_COSMOS_TEST_MODE": "required",
    }
    text = _beside(place, given, *command, "--", "--test-threads=1")
    return _with_settings(of_cargo(text, f"azure_data_cosmos of checkout {version}"))


def _beside(place: Path, given: dict[str, str], *command: str) -> str:
    return beside(SERVERS, place, {**SETTINGS, **given}, *command)


def _with_settings(outcome: Outcome) -> Outcome:
    settings = tuple(dict.fromkeys((*said(SETTINGS), *outcome.settings)))
    return replace(outcome, settings=settings, servers=SERVERS)
