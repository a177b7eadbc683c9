"""The headers and bodies that ask for throughput. Facts: nosql-rest 8.2."""

from armillary.api.nosql.call import Call
from armillary.api.nosql.options import Options
from armillary.partition.provisioning.offers import requested
from armillary.store.catalog.records import Throughput
from armillary.store.throughput.increment import increment_in, set_increment


def asked_throughput(options: Options) -> Throughput | None:
    """None: whatever is usual."""
    settings = options.autoscale
    increment_in(settings)  # refused before anything is made
    autoscale_max = None if settings is None else settings["maxThroughput"]
    return requested(options.throughput, autoscale_max, options.headers.get("x-ms-offer-type"))


def keep_increment(call: Call, owner_rid: str) -> None:
    """For a database or container that was just made."""
    if percent := increment_in(call.options.autoscale):
        set_increment(call.gateway.engine, owner_rid, percent)
