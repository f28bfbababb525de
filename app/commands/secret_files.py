"""Secrets from files, as container platforms mount them: PREFIXSCOPE_<NAME>_FILE names the file."""

from collections.abc import Mapping
from pathlib import Path

from ..errors import SettingsError
from ..settings import ENVIRONMENT_PREFIX

SECRETS = ("vllm_api_key", "tokens", "viewer_tokens")
MAX_SECRET_CHARACTERS = 64 * 1024


def with_secret_files(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with each `..._FILE` replaced by what the file holds, white space at its ends left out.

    Raises SettingsError for a file that can't be read, and where both forms are set.
    """
    result = dict(environment)
    for name in (f"{ENVIRONMENT_PREFIX}{secret.upper()}" for secret in SECRETS):
        path = result.pop(f"{name}_FILE", "")
        if not path:
            continue
        if result.get(name):
            raise SettingsError(f"{name} and {name}_FILE are both set", hint="Set one of them.")
        try:
            with Path(path).open(encoding="utf-8") as file:
                result[name] = file.read(MAX_SECRET_CHARACTERS).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise SettingsError(f"{name}_FILE: {path} can't be read: {reason}") from None
    return result
