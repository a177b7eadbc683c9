"""The embedded engine: one LMDB map per folder, one writer process for all workers."""
