"""What holds of a run before and without a server."""

import asyncio
import sys

import pytest

from app.lab.bench import Order, run
from app.lab.errors import LabError
from app.lab.registry import chosen, experiments, parameters_of
from app.lab.runner import Run
from app.lab.sample import Sample
from app.lab.server import LabServer, cache_flags


async def test_a_local_experiment_can_be_stopped_and_keeps_what_it_measured() -> None:
    experiment = chosen("hash")
    task = asyncio.current_task()
    assert task is not None

    def stop(made: Run, sample: Sample) -> None:
        if len(made.samples) == 6:
            task.cancel()

    order = Order(experiment=experiment, url="", parameters=parameters_of(experiment, ["blocks=10"]))
    report = await run(order, lambda made, total: None, stop)
    assert (report["state"], len(report["samples"])) == ("cancelled", 6)


async def test_a_password_in_an_address_goes_into_no_report() -> None:
    async with LabServer("http://user:secret@127.0.0.1:8000/") as server:
        assert server.url == "http://127.0.0.1:8000"
    with pytest.raises(LabError):
        LabServer("http://127.0.0.1:port")


def test_without_scipy_the_lab_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("app.lab.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(Exception, match="calculates with scipy"):
        experiments()


def test_flags_are_the_labels_of_the_caches_configuration() -> None:
    page = (
        "# TYPE vllm:cache_config_info gauge\n"
        'vllm:cache_config_info{block_size="16",enable_prefix_caching="True",num_gpu_blocks="5306"} 1.0\n'
    )
    assert cache_flags(page) == {"block_size": "16", "enable_prefix_caching": "True", "num_gpu_blocks": "5306"}
    assert cache_flags("") == {}
