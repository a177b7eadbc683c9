"""A small order service over Azure Cosmos DB."""
