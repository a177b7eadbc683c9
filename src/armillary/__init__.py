"""Armillary: a partitioned, multi-model database that speaks the Azure Cosmos DB protocols."""

from armillary.version import VERSION

__version__ = VERSION
