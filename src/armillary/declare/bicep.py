"""Declarations as Bicep: the same databases and containers for the cloud.

Names of resources follow Microsoft.DocumentDB; the account is a parameter. A synthetic key has no
place in the cloud: the application computes it, so it becomes a comment.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from armillary.declare.declared import DeclaredContainer, DeclaredDatabase

API_VERSION = "2024-11-15"
_SCRIPT_KINDS = {
    "procedure": "storedProcedures",
    "trigger": "triggers",
    "function": "userDefinedFunctions",
}
_HEAD = f"""\
@description('The name of an Azure Cosmos DB account for NoSQL.')
param accountName string

resource account 'Microsoft.DocumentDB/databaseAccounts@{API_VERSION}' existing = {{
  name: accountName
}}
"""


def bicep_text(databases: Iterable[DeclaredDatabase]) -> str:
    parts = [_HEAD]
    for number, database in enumerate(databases):
        name = f"database{number}"
        kind = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases"
        parts.append(_resource(name, kind, "account", database.id, {"id": database.id}, database))
        for order, container in enumerate(database.containers):
            parts.append(_container(f"{name}container{order}", name, container))
    return "\n".join(parts)


def _container(name: str, parent: str, container: DeclaredContainer) -> str:
    body = {key: value for key, value in container.body.items() if key != "syntheticKey"}
    kind = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers"
    text = _resource(name, kind, parent, container.id, body, container)
    if "syntheticKey" in container.body:
        text = f"// The application computes its key: {container.body['syntheticKey']}\n{text}"
    scripts = [
        _script(f"{name}script{order}", name, f"{kind}/{_SCRIPT_KINDS[script.kind]}", script.body)
        for order, script in enumerate(container.scripts)
    ]
    return "\n".join([text, *scripts])


def _script(name: str, parent: str, kind: str, body: Mapping[str, Any]) -> str:
    return _resource(name, kind, parent, body["id"], body, None)


def _resource(
    name: str,
    kind: str,
    parent: str,
    id: str,
    resource: Mapping[str, Any],
    throughput: DeclaredDatabase | DeclaredContainer | None,
) -> str:
    options: dict[str, Any] = {}
    if throughput is None:
        pass
    elif throughput.autoscale_max is not None:
        options = {"autoscaleSettings": {"maxThroughput": throughput.autoscale_max}}
    elif throughput.throughput is not None:
        options = {"throughput": throughput.throughput}
    properties: dict[str, Any] = {"resource": resource}
    if options:
        properties["options"] = options
    return (
        f"resource {name} '{kind}@{API_VERSION}' = {{\n"
        f"  parent: {parent}\n"
        f"  name: {_value(id, 1)}\n"
        f"  properties: {_value(properties, 1)}\n"
        "}\n"
    )


def _value(value: Any, depth: int) -> str:
    inside, around = "  " * (depth + 1), "  " * depth
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${")
        return "'" + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + "'"
    if isinstance(value, Mapping):
        lines = [f"{inside}{_key(key)}: {_value(one, depth + 1)}" for key, one in value.items()]
        return "{\n" + "\n".join(lines) + f"\n{around}}}" if lines else "{}"
    if isinstance(value, list | tuple):
        lines = [f"{inside}{_value(one, depth + 1)}" for one in value]
        return "[\n" + "\n".join(lines) + f"\n{around}]" if lines else "[]"
    if isinstance(value, float):
        return f"json('{value!r}')"  # Bicep has no fractions
    return str(value)


def _key(name: str) -> str:
    return name if name.isidentifier() else _value(name, 0)
