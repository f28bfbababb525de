import pytest

from app.errors import SettingsError
from app.settings import Settings, load_settings
from app.targets import kv_line, server_id, targets_of


def settings(**given: str) -> Settings:
    return load_settings({}, given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("https://gpu.example/models/qwen/", "https://gpu.example/models/qwen"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("  http://gpu-box  ", "http://gpu-box"),
    ],
)
def test_a_server_has_one_name_however_its_url_is_written(given: str, expected: str) -> None:
    assert server_id(given) == expected
    assert [target.server for target in targets_of(settings(vllm=given))] == [expected]


@pytest.mark.parametrize(
    "given",
    ["", "gpu-box:8000", "gpu-box", "ftp://gpu-box", "http://", "http://x:y", "http://[::1", "http://x?a=b",
     "http://x#a", "http://x, gpu-box"],
)  # fmt: skip
def test_what_is_no_url_of_a_server_is_refused_in_words(given: str) -> None:
    with pytest.raises(SettingsError) as refused:
        targets_of(settings(vllm=given))

    assert "http://" in (refused.value.hint or "")


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError) as refused:
        targets_of(settings(vllm="http://operator:hunter2@gpu-box:8000"))

    assert "hunter2" not in refused.value.message
    assert "PREFIXSCOPE_VLLM_API_KEY" in (refused.value.hint or "")


def test_servers_and_addresses_pair_by_position() -> None:
    first, second, third = targets_of(
        settings(vllm="http://a,http://b:1/v1,http://c", kv_events="tcp://a:1,,tcp://c:3", kv_replay=",tcp://b:2")
    )

    assert (first.server, first.kv_events, first.kv_replay) == ("http://a", "tcp://a:1", None)
    assert (second.server, second.kv_events, second.kv_replay) == ("http://b:1", None, "tcp://b:2")
    assert (third.server, third.kv_events, third.kv_replay) == ("http://c", "tcp://c:3", None)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"vllm": "http://a,http://a/v1"}, "twice"),
        ({"vllm": "http://a", "kv_events": "tcp://a:1,tcp://a:2"}, "2 addresses are given for 1 server"),
        ({"vllm": ",".join(f"http://h{number}" for number in range(65))}, "65 servers"),
    ],
)
def test_lists_that_cannot_be_paired_are_refused(given: dict[str, str], word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        targets_of(settings(**given))


def test_ports_are_guessed_only_where_one_server_runs_on_a_host() -> None:
    one, two, alone = targets_of(settings(vllm="http://gpu:8000,http://gpu:8001,http://other:8000"))

    for target in (one, two):
        assert "Several servers run on gpu" in (target.unguessable or "")
        assert "--kv-events" in kv_line(target)
    assert alone.unguessable is None
    assert kv_line(alone).startswith("tcp://other:5557")


def test_the_addresses_of_events_are_guessed_and_said_to_be() -> None:
    (target,) = targets_of(settings(vllm="http://[::1]:8000"))

    assert kv_line(target).startswith("tcp://[::1]:5557, replay tcp://[::1]:5558 (not given")


@pytest.mark.parametrize(
    ("events", "replay", "line"),
    [
        ("tcp://y:100", "tcp://y:200", "tcp://y:100, replay tcp://y:200"),
        ("tcp://y:5557", None, "tcp://y:5557, replay tcp://y:5558"),
        ("tcp://*:5557", None, "tcp://x:5557, replay tcp://x:5558"),
        ("tcp://y:100", None, "tcp://y:100, no replay (see --kv-replay)"),
    ],
)
def test_the_line_names_the_addresses_that_are_used(events: str, replay: str | None, line: str) -> None:
    given = {"vllm": "http://x", "kv_events": events} | ({"kv_replay": replay} if replay else {})
    (target,) = targets_of(settings(**given))

    assert kv_line(target) == line


def test_an_address_of_events_that_cannot_be_used_is_refused() -> None:
    (target,) = targets_of(settings(vllm="http://x", kv_events="y:5557"))

    with pytest.raises(SettingsError, match="tcp://HOST:PORT"):
        kv_line(target)
