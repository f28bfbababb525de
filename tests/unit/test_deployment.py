"""The files that run the dashboard beside others, compared with each other."""

import itertools
import json
import re
from pathlib import Path

from app.web.origin import is_known_host, known_hosts

ROOT = Path(__file__).parent.parent.parent
COMPOSE = (ROOT / "docker-compose.yml").read_text()
PROMETHEUS = (ROOT / "docker/prometheus/prometheus.yml").read_text()


def test_prometheus_may_ask_every_dashboard_by_its_name() -> None:
    hosts = set(re.findall(r'targets: \["([^"]+)"\]|url: http://([^/]+)/', PROMETHEUS))
    names = {first or second for first, second in hosts}
    allowed = re.findall(r"PREFIXSCOPE_ALLOWED_HOSTS: (.*)", COMPOSE)
    assert names
    assert len(allowed) == 3
    for value in allowed:
        known = known_hosts(re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value))
        assert all(is_known_host(name, known) for name in names)


def test_a_count_of_gpus_is_no_variable() -> None:
    """docker-compose 1.29 ends with a traceback at one, whichever profile is asked for."""
    assert re.findall(r"^ +count: (.*)$", COMPOSE, re.MULTILINE) == ["all"]
    assert "--tensor-parallel-size=${VLLM_GPUS:-1}" in COMPOSE


def test_the_grafana_dashboard_is_whole() -> None:
    dashboard = json.loads((ROOT / "docker/grafana/dashboards/prefixscope.json").read_text())
    provisioned = (ROOT / "docker/grafana/provisioning/datasources/prometheus.yml").read_text()
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24, panel["title"]
        if panel["type"] == "row":
            continue
        assert panel["title"] and panel["description"] and panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for source in (panel["datasource"], *(target["datasource"] for target in panel["targets"])):
            assert source["type"] == "prometheus" and f"uid: {source['uid']}\n" in provisioned
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        apart = (one["x"] + one["w"] <= other["x"], other["x"] + other["w"] <= one["x"],
                 one["y"] + one["h"] <= other["y"], other["y"] + other["h"] <= one["y"])  # fmt: skip
        assert any(apart), (one, other)
