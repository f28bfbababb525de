from pathlib import Path

import pytest

from app.commands.secret_files import with_secret_files
from app.errors import SettingsError


def test_a_secret_comes_from_its_file_without_the_line_break(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-1\n")
    environment = {"PREFIXSCOPE_VLLM_API_KEY_FILE": str(tmp_path / "key"), "OTHER": "1"}
    assert with_secret_files(environment) == {"PREFIXSCOPE_VLLM_API_KEY": "sk-1", "OTHER": "1"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"PREFIXSCOPE_TOKENS_FILE: .*missing can't be read"):
        with_secret_files({"PREFIXSCOPE_TOKENS_FILE": str(tmp_path / "missing")})
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="not text"):
        with_secret_files({"PREFIXSCOPE_TOKENS_FILE": str(tmp_path / "binary")})


def test_both_forms_at_once_are_refused() -> None:
    with pytest.raises(SettingsError, match="both set"):
        with_secret_files({"PREFIXSCOPE_TOKENS": "a" * 20, "PREFIXSCOPE_TOKENS_FILE": "x"})


def test_an_empty_name_is_not_set() -> None:
    assert with_secret_files({"PREFIXSCOPE_TOKENS_FILE": ""}) == {}
