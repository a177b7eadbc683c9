"""Named steps of work that must survive being cut short.

Code that commits, splits or copies calls `reached("commit.synced")` as it goes. Normally nothing
listens and the call costs one comparison. A crash test listens and kills the process at the n-th
pass of a step; the simulator listens to choose what runs next. The names are a promise: `STEPS`
lists all of them.
"""

from collections.abc import Callable

STEPS: dict[str, str] = {
    "group.begin": "the group has its turn to write, nothing has run",
    "group.applied": "every command of the group has run, nothing is durable",
    "group.committed": "the engine says the group is durable, no caller has its answer",
    "group.acknowledged": "every caller of the group has its answer",
    "redo.applied": "what the redo log has is in a transaction of LMDB, which is not over",
    "redo.committed": "it is in LMDB, and the log still has it",
    "redo.flushed": "the log is empty, and others may write",
    "runs.piece": "a piece of a merge is in the transaction of a commit, which is not over",
    "runs.applied": "a piece of merging runs, or of moving rows into them, is not committed yet",
    "runs.merged": "a piece of merging runs, or of moving rows into them, is durable",
    "drop.piece": "some rows of a space that goes are gone, its fence first",
    "move.begin": "the catalog names the children of a split or merge",
    "move.claim": "the parents keep every change from now on",
    "move.build": "the children's spaces exist, empty",
    "move.copy": "a piece of items has been copied",
    "move.load": "a piece of their other rows, or the totals, are in a child",
    "move.history": "a piece of old versions has been copied",
    "move.replay": "a piece of changes since the claim has been replayed",
    "move.freeze": "the parents are frozen",
    "move.drain": "the last changes are in the children",
    "move.finish": "the children are open, nothing routes to them yet",
    "move.switch": "the catalog routes to the children",
    "move.drop": "the parents' spaces are gone",
    "rekey.create": "the target of a change of partition key exists, empty",
    "rekey.copy": "a page of items has been copied to the target",
    "rekey.follow": "a page of changes has been brought to the target",
    "rekey.compare": "a page of the target has been compared with the source",
    "rekey.close": "the source of a change of partition key takes no more writes",
    "rekey.verify": "the items of both have been counted",
    "rekey.finish": "the record of a change of partition key is gone",
    "batch.operation": "one operation of a batch has been written inside its transaction",
}

_listener: Callable[[str], None] | None = None


def listen(listener: Callable[[str], None] | None) -> None:
    global _listener
    _listener = listener


def reached(name: str) -> None:
    if _listener is not None:
        _listener(name)
