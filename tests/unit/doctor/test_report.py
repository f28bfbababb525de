from dataclasses import replace

from app.doctor.findings import diagnose
from app.doctor.report import as_json, as_text

from .test_findings import ALL_ON


def test_each_missing_thing_has_its_flag_on_a_line_of_its_own_and_its_panels() -> None:
    text = as_text(diagnose(replace(ALL_ON, usage_details=False)), asked=True)

    assert "\n              --enable-prompt-tokens-details\n" in text
    assert "turns on: Hit rate by the requests' own usage" in text
    assert text.endswith("\n1 thing missing.")


def test_what_is_unknown_leads_to_the_question() -> None:
    diagnosis = diagnose(replace(ALL_ON, usage_details=None, request_metrics=None))

    assert as_text(diagnosis, asked=False).endswith(
        "Nothing is missing. 2 things can't be told yet; without --no-ask one small request is sent to find out."
    )
    assert as_text(diagnosis, asked=True).endswith("Nothing is missing. 2 things can't be told yet.")


def test_flags_of_what_is_on_are_not_printed() -> None:
    assert "add to vllm serve" not in as_text(diagnose(ALL_ON), asked=True)


def test_of_a_server_out_of_reach_nothing_else_is_said() -> None:
    assert as_text(diagnose(replace(ALL_ON, state="down", message="It is down.")), asked=True).count("\n") == 4


def test_json_has_every_field() -> None:
    value = as_json(diagnose(ALL_ON))

    assert set(value) == {"server", "status", "version", "findings"}
    assert set(value["findings"][0]) == {"code", "status", "title", "text", "flag", "panels", "reason", "params"}
