"""Keys inside a space: one kind per byte, so that a scan of one kind is a scan of one prefix.

The high nibble names the kind, the low nibble its version; those of nibble 0 are each a kind of
their own. A released code is never reused; a
change of a key's form takes the next version. docs/formats.md shows every form byte for byte.

    meta  ·                     → fence, LSN, counters, totals            (store/rows/meta.py)
    hold  ·                     → until when `undo` is written, and from which LSN it is whole
    undo  lsn, rid              → the item as it was before that change   (store/rows/undo.py)
    doc   rid                   → header + JSON as it goes out            (store/documents)
    id    epk, id               → rid
    lr    epk, rid              → ""         one logical partition in rid order
    lp    epk                   → key value, items, bytes, LSN of its last change
    ix    path, term, rid       → epk        range index
    cx    index, terms, rid     → epk        composite index
    ux    epk, constraint, hash → rid        unique keys
    tx    expiry, rid           → ""         items with their own ttl
    log   lsn, rid              → operation  change feed
    sh    shape                 → how many items have exactly this set of paths
    floor start of a part       → its end, and the LSN up to which its old versions are forgotten
    sx    path, cell, rid       → epk        spatial index                (store/index/kinds/)
    fx    path, token, rid      → epk        full-text index
    vx    path, rid             → the vector, epk

Keys from F0 on belong to the engine.
"""

from armillary.engine.base import META_KEY
from armillary.engine.base import after as after

META = META_KEY
HOLD = b"\x01"
UNDO = b"\x02"
DOC = b"\x11"
ID = b"\x21"
LR = b"\x31"
LP = b"\x41"
IX = b"\x51"
CX = b"\x61"
UX = b"\x71"
TX = b"\x81"
LOG = b"\x91"
SHAPE = b"\xa1"
FLOOR = b"\xb1"
SX = b"\xc1"
FX = b"\xd1"
VX = b"\xe1"

#: Kinds that an engine may keep in sorted runs: many rows per item, anywhere in the order of keys,
#: and none that a point operation has to find.
PACKED = LR + IX + CX + SX + FX

#: Kinds whose rows carry a checksum where the engine has none of its own.
SEALED = DOC
