"""The embedded engine: one LMDB map per folder.

environment, folder, format, place, spaces     the map, its folder, where a space lies in it
access, write, commit, compaction, turnstile   snapshots, group commit, copies, who may write
redo_log, tail                                 what a group has written before LMDB has it
engine                                         `Engine` alone
process/                                       with one writer process for all workers
"""
