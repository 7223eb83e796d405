"""The Helm chart: rendered by Helm itself, it is what deploy/replicas holds, and every switch makes valid resources."""

from __future__ import annotations

import copy
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.commands import assert_options_of_serve
from tests.package.environments import surroundings, tool
from tests.shared import ROOT
from truename import __version__
from truename.config import parse

if TYPE_CHECKING:
    from pathlib import Path

CHART = ROOT / "deploy" / "helm" / "truename"
MANIFESTS = ROOT / "deploy" / "replicas" / "kubernetes.yaml"
HELM = tool("helm")
VALIDATE = tool("kubernetes-validate")
VALUES = {
    "TRUENAME_STATE_URL": "postgresql://truename@db.example/truename",
    "TRUENAME_GATEWAY_TOKEN": "t" * 40,
    "TRUENAME_AUDIT_KEY": "k" * 40,
    "DOCS_TOKEN": "d" * 20,
    "REPLICA_HOST": "10.0.0.7",
}
EVERYTHING = {
    "ingress": {"enabled": True, "className": "nginx", "annotations": {"a/b": "c"}, "tlsSecretName": "tls"},
    "autoscaling": {"enabled": True, "minReplicas": 2},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}]},
    "service": {"annotations": {"a/b": "c"}},
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "extraArgs": ["--console"],
    "extraEnv": [{"name": "A", "value": "b"}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "persistence": {"storageClassName": "fast"},
    "serviceAccountName": "truename",
    "podAnnotations": {"a/b": "c"},
    "podLabels": {"team": "tools"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
}
WRONG = {
    "a key that there is not": {"replica": 3},
    "no replica": {"replicas": 0},
    "a digest that is none": {"image": {"digest": "latest"}},
    "no Secret": {"existingSecret": ""},
    "a probe with a key that there is not": {"probes": {"readiness": {"period": 2}}},
    "a port that is none": {"service": {"port": 70000}},
}


pytestmark = pytest.mark.skipif(HELM is None, reason="Helm is not here")


def helm(place: Path, command: str, values: Any, *options: str) -> subprocess.CompletedProcess[str]:
    file = place / "values.yaml"
    file.write_text(yaml.safe_dump(values), "utf-8")
    words = [str(HELM), command, *options, str(CHART), "--values", str(file)]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=surroundings(place))


def rendered(place: Path, values: Any | None = None, name: str = "truename") -> dict[str, Any]:
    done = helm(place, "template", values or {}, name)
    assert done.returncode == 0, done.stderr
    (place / "rendered.yaml").write_text(done.stdout, "utf-8")
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    named = {f"{one['kind']} {one['metadata']['name']}": one for one in found}
    assert len(named) == len(found)
    return named


def written() -> dict[str, Any]:
    return {f"{one['kind']} {one['metadata']['name']}": one for one in yaml.safe_load_all(MANIFESTS.read_text("utf-8"))}


def without_labels(value: Any) -> Any:
    """A resource without what tells releases of one cluster apart, and without what the chart adds for itself."""
    if isinstance(value, dict):
        left_out = ("labels", "matchLabels", "selector", "annotations", "imagePullPolicy", "type")
        return {key: without_labels(one) for key, one in value.items() if key not in left_out}
    return [without_labels(one) for one in value] if isinstance(value, list) else value


def test_the_default_is_what_deploy_replicas_holds(tmp_path: Path) -> None:
    chart, files = rendered(tmp_path), written()

    assert chart.keys() - files.keys() == {"ConfigMap truename"}
    assert files.keys() <= chart.keys()
    stateful = chart["StatefulSet truename"]["spec"]["template"]["spec"]["containers"][0]
    assert stateful["env"].pop()["valueFrom"] == {"secretKeyRef": {"name": "truename", "key": "TRUENAME_STATE_URL"}}
    for name, resource in files.items():
        assert without_labels(chart[name]) == without_labels(resource), name


def test_what_selects_pods_is_what_the_pods_are_labelled_with(tmp_path: Path) -> None:
    chart = rendered(tmp_path, name="blue")
    stateful = chart["StatefulSet blue-truename"]["spec"]
    labels = stateful["template"]["metadata"]["labels"].items()
    policy = chart["NetworkPolicy blue-truename"]["spec"]
    selectors = [
        stateful["selector"]["matchLabels"],
        stateful["template"]["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
        chart["Service blue-truename"]["spec"]["selector"],
        chart["Service blue-truename-replicas"]["spec"]["selector"],
        chart["PodDisruptionBudget blue-truename"]["spec"]["selector"]["matchLabels"],
        policy["podSelector"]["matchLabels"],
        policy["ingress"][1]["from"][0]["podSelector"]["matchLabels"],
    ]

    for selector in selectors:
        assert selector == {"app.kubernetes.io/name": "truename", "app.kubernetes.io/instance": "blue"}
        assert selector.items() <= labels
    assert stateful["serviceName"] == "blue-truename-replicas"


def test_the_configuration_can_be_used_and_holds_no_secret(tmp_path: Path) -> None:
    text = rendered(tmp_path)["ConfigMap truename"]["data"]["truename.toml"]
    settings = parse(text, ROOT / "truename.toml", VALUES).settings
    pod = rendered(tmp_path)["StatefulSet truename"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ready = container["readinessProbe"]

    assert (settings.state, settings.replica_address) == (VALUES["TRUENAME_STATE_URL"], "10.0.0.7:8751")
    assert settings.audit.required
    assert pod["terminationGracePeriodSeconds"] > settings.drain_delay + settings.drain_timeout
    assert ready["periodSeconds"] * ready["failureThreshold"] < settings.drain_delay
    assert_options_of_serve(container["args"])
    for value in VALUES.values():
        assert value not in text
    assert not [one for one in rendered(tmp_path).values() if one["kind"] == "Secret"]


def test_every_switch_shows_and_nothing_less_is_secured(tmp_path: Path) -> None:
    chart = rendered(tmp_path, EVERYTHING)
    pod = chart["StatefulSet truename"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert {"Ingress truename", "HorizontalPodAutoscaler truename", "ServiceMonitor truename"} <= chart.keys()
    assert "replicas" not in chart["StatefulSet truename"]["spec"]
    assert container["image"] == "truename@sha256:" + "0" * 64
    assert container["args"][-1] == "--console"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert chart["Ingress truename"]["spec"]["rules"][0]["host"] == "mcp.example.com"
    assert chart["NetworkPolicy truename"]["spec"]["ingress"][1]["ports"] == [{"port": "replicas"}]
    own = rendered(tmp_path, {"stateUrl": {"secretName": ""}})["StatefulSet truename"]["spec"]["template"]["spec"]
    assert [one["name"] for one in own["containers"][0]["env"]] == ["XDG_STATE_HOME", "REPLICA_HOST"]
    off = rendered(tmp_path, {"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False},
                              "existingConfigMap": "mine"})  # fmt: skip
    assert {name.partition(" ")[0] for name in off} == {"Service", "StatefulSet"}


@pytest.mark.skipif(VALIDATE is None, reason="kubernetes-validate is not here")
@pytest.mark.parametrize("version", ["1.27", "1.32", "1.37"])
@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["default", "everything"])
def test_the_resources_are_kubernetes_own(version: str, values: Any, tmp_path: Path) -> None:
    given = copy.deepcopy(values)
    # A resource of the Prometheus operator, which Kubernetes knows nothing of.
    given.pop("serviceMonitor", None)
    count = len(rendered(tmp_path, given))
    command = [str(VALIDATE), "--strict", "--kubernetes-version", version, str(tmp_path / "rendered.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count(" passed for resource ") == count


@pytest.mark.skipif(VALIDATE is None, reason="kubernetes-validate is not here")
@pytest.mark.parametrize("name", ["kubernetes.yaml", "replicas/kubernetes.yaml"])
def test_the_manifests_are_kubernetes_own(name: str) -> None:
    command = [str(VALIDATE), "--strict", str(ROOT / "deploy" / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", WRONG.values(), ids=WRONG)
def test_values_that_can_not_be_meant_are_refused(values: Any, tmp_path: Path) -> None:
    assert "values don't meet the specifications of the schema" in helm(tmp_path, "template", values, "t").stderr


def test_helm_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    done = helm(tmp_path, "lint", {}, "--strict")

    assert done.returncode == 0, done.stdout + done.stderr
    assert yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))["appVersion"] == __version__
