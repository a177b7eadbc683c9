"""The files of examples/cluster have the form that Docker Compose and Kubernetes expect, and agree
with the settings of the server. They are not run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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


def test_the_manifests_are_a_deployment_with_probes_and_what_belongs_to_it() -> None:
    by_kind = {one["kind"]: one for one in _documents("kubernetes.yaml")}
    assert set(by_kind) == {"Deployment", "Service", "PodDisruptionBudget"}
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
    assert "secretKeyRef" in environment["ARMILLARY_KEY"]["valueFrom"]
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["volumes"]}
