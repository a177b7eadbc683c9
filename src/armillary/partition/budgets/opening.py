"""Choose a ledger by the address of the store whose budgets it keeps."""

from pathlib import Path

from armillary.engine.address import Address
from armillary.partition.budgets.admission import Enforce
from armillary.partition.budgets.ledger import Ledger, LocalLedger

LEDGER_NAME = "ledger.bin"


def open_ledger(address: Address, enforce: Enforce) -> Ledger:
    """Shared by everyone who opens the same folder or database; nothing to share when off."""
    if enforce == "off" or address.kind == "memory":
        return LocalLedger(enforce)
    if address.kind == "postgres":
        from armillary.partition.budgets.postgres import PostgresLedger

        return PostgresLedger(address.text, enforce)
    from armillary.partition.budgets.file import FileLedger

    return FileLedger(Path(address.text) / LEDGER_NAME, enforce)
