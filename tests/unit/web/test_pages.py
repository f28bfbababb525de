import json

import pytest

from app.web.pages import json_for_script


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "a & b > c", "\u2028\u2029", "好的🙂", "'\"\\"])
def test_no_text_can_leave_the_script_tag(text: str) -> None:
    shown = json_for_script({"text": text})

    assert not {"<", ">", "&", "\u2028", "\u2029"} & set(shown)
    assert json.loads(shown) == {"text": text}
