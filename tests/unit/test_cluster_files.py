"""The files of examples/cluster have the form that Docker Compose and Kubernetes expect, and agree
with the settings of the server. They are not run here."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from tests.support.schemas import problems

from armillary.config import VARIABLES

yaml = pytest.importorskip("yaml")
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cluster"
OURS_ELSEWHERE = {"ARMILLARY_KEY"}


def _documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text("utf-8")))


def _variables(value: Any) -> set[str]:
    if isinstance(value, dict):
        named = {value["name"]} if isinstance(value.get("name"), str) else set()
        return named.union({str(key) for key in value}, *map(_variables, value.values()))
    if isinstance(value, list):
        return set().union(*map(_variables, value)) if value else set()
    return set()


@pytest.mark.parametrize("name", ["compose.yaml", "citus.yaml", "kubernetes.yaml"])
def test_every_setting_they_name_exists(name: str) -> None:
    named = {one for document in _documents(name) for one in _variables(document)}
    ours = {one for one in named if one.startswith("ARMILLARY_")}
    assert "ARMILLARY_ENGINE_URL" in ours
    assert ours - OURS_ELSEWHERE <= set(VARIABLES)


@pytest.mark.parametrize("name", ["compose.yaml", "citus.yaml"])
def test_compose_files_refer_to_what_they_have(name: str) -> None:
    (document,) = _documents(name)
    services = document["services"]
    for service in services.values():
        assert "image" in service or "build" in service
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in document.get("volumes", {}) or (FOLDER / source).is_file(), volume


# --- Kubernetes ---------------------------------------------------------------------------------

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
TEXTS = {"type": "object"}


def _closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _many(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _kind(version: str, kind: str, rest: dict[str, Any]) -> dict[str, Any]:
    named = _closed({"name": TEXT, "labels": TEXTS}, "name")
    own = {"apiVersion": {"enum": [version]}, "kind": {"enum": [kind]}, "metadata": named, **rest}
    return _closed(own, "apiVersion", "kind", "metadata", *(one for one in rest if one != "type"))


SELECTOR = _closed({"matchLabels": TEXTS}, "matchLabels")
PROBE = _closed(
    {
        "httpGet": _closed(
            {
                "path": TEXT,
                "port": {"anyOf": [TEXT, NUMBER]},
                "httpHeaders": _many(_closed({"name": TEXT, "value": TEXT}, "name", "value")),
            },
            "port",
        ),
        "periodSeconds": NUMBER,
        "failureThreshold": NUMBER,
    },
    "httpGet",
)
SECRET_KEY = _closed({"secretKeyRef": _closed({"name": TEXT, "key": TEXT}, "key")})
CONTAINER = _closed(
    {
        "name": TEXT,
        "image": TEXT,
        "args": _many(TEXT),
        "ports": _many(_closed({"name": TEXT, "containerPort": NUMBER}, "containerPort")),
        "env": _many(_closed({"name": TEXT, "value": TEXT, "valueFrom": SECRET_KEY}, "name")),
        "readinessProbe": PROBE,
        "livenessProbe": PROBE,
        "resources": _closed({"requests": TEXTS, "limits": TEXTS}),
        "volumeMounts": _many(_closed({"name": TEXT, "mountPath": TEXT}, "name", "mountPath")),
    },
    "name",
)
POD = _closed(
    {
        "terminationGracePeriodSeconds": NUMBER,
        "containers": _many(CONTAINER),
        "volumes": _many(_closed({"name": TEXT, "emptyDir": TEXTS}, "name")),
    },
    "containers",
)
ROLLING = _closed({"maxUnavailable": NUMBER, "maxSurge": NUMBER})
#: What of the API of Kubernetes (1.30, its reference) is used. Names are exact: a misspelt one is
#: ignored by a cluster without `--validate=strict`.
MANIFESTS = {
    "Secret": _kind("v1", "Secret", {"type": TEXT, "stringData": TEXTS}),
    "Deployment": _kind(
        "apps/v1",
        "Deployment",
        {
            "spec": _closed(
                {
                    "replicas": NUMBER,
                    "strategy": _closed({"type": TEXT, "rollingUpdate": ROLLING}),
                    "selector": SELECTOR,
                    "template": _closed({"metadata": _closed({"labels": TEXTS}), "spec": POD}),
                },
                *("selector", "template"),
            )
        },
    ),
    "Service": _kind(
        "v1",
        "Service",
        {
            "spec": _closed(
                {
                    "selector": TEXTS,
                    "ports": _many(
                        _closed({"name": TEXT, "port": NUMBER, "targetPort": TEXT}, "port")
                    ),
                }
            )
        },
    ),
    "PodDisruptionBudget": _kind(
        "policy/v1",
        "PodDisruptionBudget",
        {"spec": _closed({"minAvailable": NUMBER, "selector": SELECTOR})},
    ),
}


def test_manifests_have_the_members_that_kubernetes_knows() -> None:
    for document in _documents("kubernetes.yaml"):
        assert problems(document, MANIFESTS[document["kind"]]) == []
    (deployment,) = (one for one in _documents("kubernetes.yaml") if one["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    assert problems(deployment, MANIFESTS["Deployment"])


def test_the_manifests_are_a_deployment_with_probes_and_what_belongs_to_it() -> None:
    by_kind = {one["kind"]: one for one in _documents("kubernetes.yaml")}
    assert set(by_kind) == set(MANIFESTS)
    deployment = by_kind["Deployment"]["spec"]
    labels = deployment["selector"]["matchLabels"]
    assert deployment["template"]["metadata"]["labels"] == labels
    assert by_kind["Service"]["spec"]["selector"] == labels
    assert by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert by_kind["PodDisruptionBudget"]["spec"]["minAvailable"] < deployment["replicas"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/alive"
    environment = {one["name"]: one for one in container["env"]}
    leave_s = int(environment["ARMILLARY_SERVER_LEAVE_MS"]["value"]) / 1000
    assert leave_s < pod["terminationGracePeriodSeconds"]
    secret = by_kind["Secret"]
    for one in environment.values():
        if "valueFrom" in one:
            asked = one["valueFrom"]["secretKeyRef"]
            assert asked["name"] == secret["metadata"]["name"]
            assert asked["key"] in secret["stringData"]
    assert {"ARMILLARY_KEY", "PGPASSWORD"} <= {
        name for name, one in environment.items() if "valueFrom" in one
    }
    with pytest.raises(ValueError, match="base64"):  # so nobody serves with the example's key
        b64decode(secret["stringData"]["key"], validate=True)
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["volumes"]}
