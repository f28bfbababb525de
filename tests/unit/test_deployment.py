"""The files that run the dashboard beside others, compared with each other."""

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
