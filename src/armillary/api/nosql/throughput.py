"""The headers and bodies that ask for throughput. Facts: nosql-rest 8.2."""

from armillary.api.nosql.options import Options
from armillary.partition.offers import requested
from armillary.store.catalog import Throughput


def asked_throughput(options: Options) -> Throughput | None:
    """None: whatever is usual."""
    return requested(
        options.throughput, options.autoscale_max, options.headers.get("x-ms-offer-type")
    )
