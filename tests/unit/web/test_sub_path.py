from typing import Any

import pytest

from app.errors import SettingsError
from app.web.sub_path import checked_root_path, is_root_itself, without_root_path


def scope(path: str, **more: Any) -> dict[str, Any]:
    return {"type": "http", "path": path, "raw_path": path.encode(), **more}


@pytest.mark.parametrize(
    ("given", "used"), [("", ""), ("/", ""), ("/tools", "/tools"), ("/tools/scope/", "/tools/scope")]
)
def test_a_sub_path_has_one_form(given: str, used: str) -> None:
    assert checked_root_path(given) == used


@pytest.mark.parametrize("given", ["tools", "//x", "/a//b", "/a?b", "/a b", "/%2e", "http://x/y"])
def test_what_is_no_path_is_refused(given: str) -> None:
    with pytest.raises(SettingsError, match="root_path"):
        checked_root_path(given)


@pytest.mark.parametrize(
    ("arrives", "root", "inside"),
    [
        ("/tools/live", "/tools", "/live"),
        ("/tools/", "/tools", "/"),
        ("/live", "/tools", "/live"),
        ("/toolshed/live", "/tools", "/toolshed/live"),
        ("/tools/tools/x", "/tools", "/tools/x"),
        ("/live", "", "/live"),
    ],
)
def test_what_arrives_is_shortened_once(arrives: str, root: str, inside: str) -> None:
    by_setting = without_root_path(scope(arrives), root)
    by_server = without_root_path(scope(arrives, root_path=root), "")

    for seen in (by_setting, by_server):
        assert (seen["path"], seen["raw_path"]) == (inside, inside.encode())


def test_the_path_itself_lacks_its_slash() -> None:
    assert is_root_itself(scope("/tools"), "/tools")
    assert not is_root_itself(scope("/tools/"), "/tools")
    assert not is_root_itself(scope("/"), "")
    assert not is_root_itself({**scope("/tools"), "type": "websocket"}, "/tools")
