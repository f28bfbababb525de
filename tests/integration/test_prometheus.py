"""A real Prometheus with the configuration that is shipped, in front of the running demo: what it gets, and whether
every question of the Grafana dashboard can be asked of it and has an answer."""

import json
import math
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes import ROOT, Process, app_process, free_ports

CONFIGURATION = ROOT / "docker/prometheus/prometheus.yml"
DASHBOARD = json.loads((ROOT / "docker/grafana/dashboards/prefixscope.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
PATIENCE_S = 90.0
SHARED_PROMPT = "Answer briefly and kindly, as the house does. " * 30


@dataclass
class Prometheus:
    """A running Prometheus, and the demo that it scrapes."""

    url: str
    demo_url: str
    engine_url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The instant vector of an expression. AssertionError where Prometheus can't read it."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=30).json()
        assert answer["status"] == "success", (expression, answer)
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def until_told(self, expression: str) -> list[dict[str, Any]]:
        """Its instant vector once there is a number in it, while requests come in."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = [each for each in self.query(expression) if not math.isnan(float(each["value"][1]))]
            if found:
                return found
            self.chat()
            time.sleep(0.5)
        raise AssertionError(f"Prometheus has no data for {expression}")

    def chat(self) -> None:
        """One request through the dashboard, like those before it up to its last words."""
        [model] = httpx.get(f"{self.demo_url}/v1/models").json()["data"]
        question = {"role": "user", "content": f"{SHARED_PROMPT} It is {time.monotonic()}."}
        body = {"model": model["id"], "messages": [question], "max_tokens": 2, "stream": True}
        httpx.post(f"{self.demo_url}/v1/chat/completions", json=body, timeout=30).raise_for_status()


def rewritten(demo_url: str) -> str:
    """The shipped configuration with the demo's address in it, and in a test's hurry."""
    text = CONFIGURATION.read_text()
    assert text.count("dashboard:8080") == 2
    text = text.replace("dashboard:8080", demo_url.removeprefix("http://"))
    return text.replace("scrape_interval: 5s", "scrape_interval: 1s").replace(
        "refresh_interval: 30s", "refresh_interval: 1s"
    )


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    demo_port, port = free_ports(2)
    url, demo_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{demo_port}"
    demo = app_process(folder / "demo.log", "demo", "--port", str(demo_port), "--profile", "instant")
    (folder / "prometheus.yml").write_text(rewritten(demo_url))
    server = Process(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{port}"],
        folder / "prometheus.log", folder=folder,
    )  # fmt: skip
    try:
        demo.start()
        demo.wait_for(f"{demo_url}/readyz", 60)
        server.start()
        server.wait_for(f"{url}/-/ready", 60)
        engine_url = httpx.get(f"{demo_url}/readyz").json()["server"]
        yield Prometheus(url, demo_url, engine_url)
    finally:
        server.stop()
        demo.stop()


def test_the_shipped_configuration_is_valid() -> None:
    said = subprocess.run(["promtool", "check", "config", CONFIGURATION], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stdout + said.stderr


def test_both_jobs_are_scraped(prometheus: Prometheus) -> None:
    [own] = prometheus.until_told('up{job="prefixscope"} == 1')
    assert own["metric"]["instance"] == prometheus.demo_url.removeprefix("http://")
    [server] = prometheus.until_told('up{job="vllm"} == 1')
    assert server["metric"]["instance"] == prometheus.engine_url.removeprefix("http://")


def test_our_figures_and_the_servers_arrive(prometheus: Prometheus) -> None:
    [queries] = prometheus.until_told("sum(vllm:prefix_cache_queries_total) > 0")
    [hits] = prometheus.until_told("sum(vllm:prefix_cache_hits_total) > 0")
    assert float(hits["value"][1]) < float(queries["value"][1])
    prometheus.until_told('sum(prefixscope_requests_total{outcome="ok"}) > 0')
    prometheus.until_told("prefixscope_server_up == 1")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_question_of_the_grafana_dashboard_has_an_answer(prometheus: Prometheus, expression: str) -> None:
    assert prometheus.until_told(expression)


def test_our_page_of_metrics_has_no_fault(prometheus: Prometheus, tmp_path: Path) -> None:
    page = httpx.get(f"{prometheus.demo_url}/metrics").content
    said = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, timeout=60)
    assert said.returncode == 0, (said.stdout + said.stderr).decode()
