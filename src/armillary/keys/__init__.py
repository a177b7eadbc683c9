"""Synthetic partition keys: keys made from other properties, so that a hot value spreads.

text, buckets   how values become text
spec            the JSON that is stored with a container
synthetic       the key of an item; the keys a read has to ask
growth          several specifications at once, while k grows
sizing          how large k must be
views           items completed by what is known or possible
keyring         where a client has to look for an item
cosmos          the same for clients of any server, around azure-cosmos containers
"""

from armillary.keys.growth import candidates_over, check_successor, fits_any, group_over
from armillary.keys.sizing import suffixes_for
from armillary.keys.spec import Part, Spec, Suffix
from armillary.keys.synthetic import Interval, SyntheticKey, computed_suffix
from armillary.keys.views import Among

__all__ = [
    "Among",
    "Interval",
    "Part",
    "Spec",
    "Suffix",
    "SyntheticKey",
    "candidates_over",
    "check_successor",
    "computed_suffix",
    "fits_any",
    "group_over",
    "suffixes_for",
]
