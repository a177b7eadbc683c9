"""The Table API: OData requests in, entities of the shared store out.

    Request ──▶ targets (path) ──▶ authentication ──▶ routes ──▶ tables, entities, queries, batches
                                                                    │
                                          AccountStore, ContainerStore, run_plan (no store of ours)

A table is a container of database `TablesDB`; an entity is an item in the stored form of
`wire/forms.py`. Facts: the table reference; differences between Cosmos DB and Storage are in
`flavours.py`.
"""
