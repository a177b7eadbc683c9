"""What a run reads and writes: a snapshot of its partition, its own writes over it, one commit.

operations    what a script asks for, a table of functions on the transaction
transaction   snapshot, own writes, what was read; one command at the end
overlay_store the same as a container, for queries and pages
reservations  rids and etags set aside, a block per physical partition
numbers       the error numbers that scripts know
"""
