"""How many suffixes a hot key needs.

Three demands, the largest wins (partitioning reference, 6.3):

    ceil(D / (u·r))          the RU/s of one natural key, shared by keys that each stay within the
                             usable part u of one physical partition's r RU/s
    ceil(2·N·ln N / ε²)      k keys thrown at N partitions: the fullest has about
                             1 + sqrt(2·N·ln N / k) times the mean; ε is the excess one accepts
    ceil(GB / (u·20))        the bytes of one natural key, within logical partitions of 20 GB
"""

import math
from fractions import Fraction

from armillary.errors import BadInput
from armillary.limits import LOGICAL_BYTES_MAX

_LOGICAL_GIGABYTES = LOGICAL_BYTES_MAX // 1000**3


def suffixes_for(
    demand_ru: float,
    *,
    ranges: int,
    overload: float,
    range_ru: float = 10_000,
    gigabytes_per_key: float = 0,
    usable: float = 0.7,
) -> int:
    """k for `demand_ru` RU/s on one natural key over `ranges` physical partitions of `range_ru`
    RU/s each, when the fullest may get `1 + overload` times the mean.
    """
    if not (math.isfinite(demand_ru) and math.isfinite(gigabytes_per_key)):
        raise BadInput("The demand and the gigabytes per key must be finite.")
    if demand_ru < 0 or gigabytes_per_key < 0:
        raise BadInput("The demand and the gigabytes per key can't be negative.")
    if not 0 < range_ru < math.inf or not 0 < overload < math.inf or not 0 < usable <= 1:
        raise BadInput("range_ru and overload must be above 0, and usable above 0 and at most 1.")
    if ranges < 1:
        raise BadInput("There is at least one range.")
    share = _exact(usable)
    return max(
        1,
        math.ceil(_exact(demand_ru) / (share * _exact(range_ru))),
        math.ceil(2 * ranges * math.log(ranges) / overload**2),
        math.ceil(_exact(gigabytes_per_key) / (share * _LOGICAL_GIGABYTES)),
    )


def _exact(number: float) -> Fraction:
    """The decimal the caller wrote: with the double next to 0.7, exactly 7,000 RU/s of demand
    could need two keys.
    """
    return Fraction(repr(number))
