"""Traces for OpenTelemetry: a span per request, under the caller's, sent by OTLP. An extra.

The only module that knows the packages. Where spans go is said by the usual variables of
OpenTelemetry, such as OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_SERVICE_NAME.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from armillary.api.core.request_log import Facts
from armillary.api.http.messages import Request
from armillary.errors import NotSupported
from armillary.server.http.observing import Tracer
from armillary.version import VERSION, install_hint

#: Ours → the name that OpenTelemetry has for it.
ATTRIBUTES = {
    "Method": "http.request.method",
    "Path": "url.path",
    "StatusCode": "http.response.status_code",
    "RequestLength": "http.request.body.size",
    "ResponseLength": "http.response.body.size",
    "UserAgent": "user_agent.original",
    "RequestCharge": "azure.cosmosdb.operation.request_charge",
    "ActivityId": "azure.cosmosdb.activity_id",
    "PartitionId": "azure.cosmosdb.partition_id",
}


def open_tracer() -> tuple[Tracer, Callable[[], None]]:
    """A tracer, and what ends it: spans that wait are sent then."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.propagate import extract
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind
    except ModuleNotFoundError as error:
        raise NotSupported(f"Traces need their packages: {install_hint('otel')}.") from error
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("armillary", VERSION)

    @contextmanager
    def trace(request: Request) -> Iterator[Callable[[Facts], None]]:
        context = extract(request.headers)
        with tracer.start_as_current_span(
            request.method, context=context, kind=SpanKind.SERVER
        ) as span:

            def end(facts: Facts) -> None:
                span.set_attribute("db.system.name", "azure.cosmosdb")
                for name, value in facts.items():
                    if name in ATTRIBUTES:
                        span.set_attribute(ATTRIBUTES[name], value)

            yield end

    return trace, provider.shutdown
