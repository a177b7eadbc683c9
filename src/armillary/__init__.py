"""Armillary: a partitioned, multi-model database that speaks the Azure Cosmos DB protocols."""

from armillary.account import Account, Database
from armillary.account import open_account as open
from armillary.container import Container
from armillary.values import UNDEFINED
from armillary.version import VERSION

__version__ = VERSION

__all__ = ["UNDEFINED", "Account", "Container", "Database", "__version__", "open"]
