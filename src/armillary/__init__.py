"""Armillary: a partitioned, multi-model database that speaks the Azure Cosmos DB protocols."""

__version__ = "0.1.0"
