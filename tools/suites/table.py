"""The suite of `azure-data-tables`, its files for Cosmos DB, at the names of the cloud.

Its tests speak to `https://<account>.table.cosmos.azure.com` and, for what differs, to the host of
Storage and to a secondary host. In a network of its own those names are ours: the first is a server
as it is, the others one with `[table] flavour = "storage"`.
"""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from dataclasses import replace
from pathlib import Path
from typing import Final

from tools.suites.outcome import Outcome, of_junit, said
from tools.suites.running import beside, environment_with, source_package

VERSION: Final = "12.7.0"
ACCOUNT: Final = "armillary"
#: The public key of the emulator.
KEY: Final = (
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)
COSMOS: Final = (
    f"{ACCOUNT}.table.cosmos.azure.com",
    f"{ACCOUNT}-secondary.table.cosmos.azure.com",
)
STORAGE: Final = (
    f"{ACCOUNT}.table.core.windows.net",
    f"{ACCOUNT}-secondary.table.core.windows.net",
)
SETTINGS: Final = {
    "ARMILLARY_THROUGHPUT_ENFORCE": "off",
    "ARMILLARY_SERVER_ACCOUNT": ACCOUNT,
    "ARMILLARY_SERVER_ALLOW_HOSTS": ",".join((*COSMOS, *STORAGE)),
    "ARMILLARY_TABLE_PORT": "443",
}
SERVERS: Final = (
    "8081",
    "8082,ARMILLARY_SERVER_HOST=127.0.0.2,ARMILLARY_TABLE_FLAVOUR=storage",
    *(f"{name}=127.0.0.1" for name in COSMOS),
    *(f"{name}=127.0.0.2" for name in STORAGE),
)
#: `devtools_testutils` is on no registry. Every test runs live, with the account given; the ten
#: seconds that the suite waits for the cloud to delete its tables are left out.
STUB: Final = """
import inspect
import os
import uuid

import pytest


def is_live():
    return True


def get_credential(is_async=False, **named):
    if is_async:
        from azure.identity.aio import DefaultAzureCredential
    else:
        from azure.identity import DefaultAzureCredential
    return DefaultAzureCredential()


def recorded_by_proxy(test):
    return test


recorded_by_proxy_async = recorded_by_proxy


@pytest.fixture(scope="session")
def test_proxy():
    pass


class AzureRecordedTestCase:
    is_live = True

    def get_resource_name(self, prefix):
        return prefix + uuid.uuid4().hex[:8]

    def sleep(self, seconds):
        pass

    def generate_sas(self, make, *values, **named):
        return make(*values, **named)


class PowerShellPreparer:
    def __init__(self, _prefix, **names):
        self.given = {name: os.environ[name.upper()] for name in names}

    def __call__(self, test):
        def run(*values):
            return test(*values, **self.given)

        async def run_async(*values):
            return await test(*values, **self.given)

        return run_async if inspect.iscoroutinefunction(test) else run


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *values, **named: None
"""


def table(folder: Path, _source: Path | None) -> Outcome:
    root, version = source_package(folder, "azure-data-tables", VERSION)
    runner = environment_with(
        folder, f"azure-data-tables=={version}", "aiohttp", "azure-identity", "python-dateutil"
    )
    stub = folder / "stub" / "devtools_testutils"
    stub.mkdir(parents=True)
    (stub / "__init__.py").write_text(STUB)
    (stub / "aio.py").write_text("from devtools_testutils import recorded_by_proxy_async\n")
    given = {
        "PYTHONPATH": str(folder / "stub"),
        "TABLES_COSMOS_ACCOUNT_NAME": ACCOUNT,
        "TABLES_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "TABLES_PRIMARY_COSMOS_ACCOUNT_KEY": KEY,
        "TABLES_PRIMARY_STORAGE_ACCOUNT_KEY": KEY,
    }
    tests = root / "tests"
    files = sorted(file.name for file in tests.glob("test_*_cosmos*.py"))
    beside(
        SERVERS, tests, {**SETTINGS, **given},
        runner, "-W", "ignore", "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "--timeout=300",
        "-p", "no:cacheprovider", "--junitxml=results.xml", *files,
    )  # fmt: skip
    outcome = of_junit(
        Xml.parse(tests / "results.xml").getroot(), f"azure-data-tables {version}, cosmos files"
    )
    return replace(outcome, settings=said(SETTINGS), servers=SERVERS)
