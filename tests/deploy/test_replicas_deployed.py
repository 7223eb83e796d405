"""The files with which several replicas are deployed: their containers, probes and times fit this program."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.commands import assert_options_of_serve
from tests.shared import ROOT
from truename.config import Config, parse

REPLICAS = ROOT / "deploy" / "replicas"
BALANCER = ROOT / "examples" / "replicas" / "haproxy.cfg"
NAMES = ("TRUENAME_GATEWAY_TOKEN", "TRUENAME_AUDIT_KEY", "POSTGRES_PASSWORD", "DOCS_TOKEN")
VALUES = {**{name: name.lower() * 3 for name in NAMES}, "POSTGRES_HOST": "db.example", "REPLICA_HOST": "10.0.0.7"}


def manifests() -> dict[str, Any]:
    found = yaml.safe_load_all((REPLICAS / "kubernetes.yaml").read_text("utf-8"))
    return {f"{one['kind']} {one['metadata']['name']}": one for one in found}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((REPLICAS / "compose.yaml").read_text("utf-8"))
    return found


def config() -> Config:
    return parse((REPLICAS / "truename.toml").read_text("utf-8"), REPLICAS / "truename.toml", VALUES)


def test_the_configuration_has_no_secret_and_names_all_it_needs() -> None:
    settings = config().settings
    assert (
        settings.state
        == "postgresql://truename:postgres_passwordpostgres_passwordpostgres_password@db.example/truename"
    )
    assert settings.replica_address == "10.0.0.7:8751"
    assert settings.audit.required
    for name in VALUES:
        assert f"${{{name}}}" in (REPLICAS / "truename.toml").read_text("utf-8")


def test_a_replica_that_ends_is_taken_out_before_it_refuses_calls_and_killed_after_they_have_ended() -> None:
    settings = config().settings
    ending = settings.drain_delay + settings.drain_timeout
    pod = manifests()["StatefulSet truename"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ready = container["readinessProbe"]
    assert ready["httpGet"]["path"] == "/readyz"
    assert ready["periodSeconds"] * ready["failureThreshold"] < settings.drain_delay
    assert pod["terminationGracePeriodSeconds"] > ending
    assert all(
        int(service["stop_grace_period"].removesuffix("s")) > ending
        for name, service in compose()["services"].items()
        if name.startswith("gateway")
    )


def test_the_pods_may_do_no_more_than_they_need_and_only_replicas_reach_their_internal_port() -> None:
    found = manifests()
    pod = found["StatefulSet truename"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert_options_of_serve(container["args"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": 8750, "replicas": int(str(config().settings.replica_address).rpartition(":")[2])}
    public, internal = found["NetworkPolicy truename"]["spec"]["ingress"]
    assert public == {"ports": [{"port": "http"}]}
    assert internal["from"] == [{"podSelector": found["NetworkPolicy truename"]["spec"]["podSelector"]}]
    assert [port["name"] for port in found["Service truename"]["spec"]["ports"]] == ["http"]


def test_the_containers_of_compose_run_this_program_and_the_balancer_knows_them() -> None:
    services = compose()["services"]
    gateways = {name: service for name, service in services.items() if name.startswith("gateway")}
    assert len(gateways) == 3
    for name, service in gateways.items():
        assert_options_of_serve(service["command"])
        assert service["environment"] == {"POSTGRES_HOST": "postgres", "REPLICA_HOST": name}
        assert "ports" not in service
    balanced = services["haproxy"]["environment"]
    assert [balanced[f"REPLICA_{number}"] for number in (1, 2, 3)] == [f"{name}:8750" for name in gateways]
    assert {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]} == {
        *compose()["volumes"],
        "./truename.toml",
        "../../examples/replicas/haproxy.cfg",
    }


def test_the_balancer_repeats_no_call() -> None:
    lines = [line.strip() for line in BALANCER.read_text("utf-8").splitlines()]
    assert "http-request disable-l7-retry if METH_POST" in lines
    assert [line for line in lines if line.startswith("retry-on")] == ["retry-on conn-failure"]


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not here")
def test_the_balancer_s_configuration_is_one_for_haproxy() -> None:
    addresses = {"BALANCER": "127.0.0.1:8750", **{f"REPLICA_{number}": "127.0.0.1:9" for number in (1, 2, 3)}}
    command = [str(shutil.which("haproxy")), "-c", "-f", str(BALANCER)]
    done = subprocess.run(command, env=addresses, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
