"""The engine's command line: what flags give, what is left to the defaults, what the help says."""

import argparse

import pytest

from app.engine.config import ConfigError, EngineConfig, core_config, imitation_in
from app.engine.flags import EPILOG, FLAGS, add_flags, config_from
from app.engine.imitation import SWITCHES, VERSIONS


def parsed(*words: str) -> EngineConfig:
    parser = argparse.ArgumentParser(epilog=EPILOG)
    add_flags(parser)
    return config_from(parser.parse_args(words))


def test_nothing_given_is_the_default() -> None:
    assert parsed() == EngineConfig()


def test_every_flag_is_a_field() -> None:
    words = [word for name, (kind, _) in FLAGS.items() for word in (f"--{name.replace('_', '-')}", str(kind(7)))]
    config = parsed(*words)
    assert {name: getattr(config, name) for name in FLAGS} == {name: kind(7) for name, (kind, _) in FLAGS.items()}


def test_what_may_be_given_several_times() -> None:
    config = parsed(
        *("--imitate", "vllm-0.18.0,no-replay", "--imitate", "no-tokenize"),
        *("--lora", "a", "--lora", "b=/b", "--imitate-images", "--no-enable-prefix-caching"),
    )
    assert config.imitate == ("vllm-0.18.0", "no-replay", "no-tokenize")
    assert (config.lora, config.imitate_images, config.enable_prefix_caching) == (("a", "b=/b"), True, False)
    imitation = imitation_in(config)
    assert (imitation.version, imitation.replay, "/tokenize" in imitation.absent_paths) == ("0.18.0", False, True)


def test_the_help_tells_of_everything_that_can_be_imitated() -> None:
    assert [name for name in (*VERSIONS, *SWITCHES) if f"  {name} " not in EPILOG] == []


def test_replay_comes_after_the_events_of_all_ranks() -> None:
    assert parsed().first_replay_port == 5558
    assert parsed("--data-parallel-size", "4", "--events-port", "7000").first_replay_port == 7004
    assert parsed("--events-port", "0").first_replay_port == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--imitate", "vllm-1"), "'vllm-1' can't be imitated"),
        (("--data-parallel-size", "0"), "there are 1 to 64 data-parallel ranks, not 0"),
        (("--prefix-caching-hash-algo", "md5"), "there is no hash algorithm 'md5'"),
        (("--lora", "a", "--lora", "a=/x"), "the model and its adapters have different names"),
        (("--lora", "=/x"), "a model has a name"),
    ],
)
def test_what_can_not_run_is_one_clear_line(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        core_config(parsed(*words))
