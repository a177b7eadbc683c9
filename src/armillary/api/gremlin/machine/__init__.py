"""The traversal machine: traversers (`traverser`), values and their order (`values`), predicates,
and how steps are run over batches (`running`). It knows no step and no store."""
