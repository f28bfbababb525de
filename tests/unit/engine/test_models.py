"""The names of a served model and its adapters."""

import pytest

from app.engine.fields import ApiError
from app.engine.models import Models


def test_the_model_has_one_name_or_none() -> None:
    models = Models("m")
    assert models.chosen_by({}) is None
    assert models.chosen_by({"model": "m"}) is None
    with pytest.raises(ApiError, match=r"The model `x` does not exist\. Valid aliases: m\.") as caught:
        models.chosen_by({"model": "x"})
    assert caught.value.body()["error"]["code"] == 404


def test_adapters_are_numbered_and_listed_under_the_model() -> None:
    models = Models("m", ("poet", "coder=/adapters/coder"))
    poet, coder = models.chosen_by({"model": "poet"}), models.chosen_by({"model": "coder"})
    assert poet is not None and coder is not None
    assert (poet.path, poet.number, coder.path, coder.number) == ("poet", 1, "/adapters/coder", 2)
    cards = models.listed(4096)["data"]
    assert [(card["id"], card["parent"], card["root"]) for card in cards] == [
        ("m", None, "m"),
        ("poet", "m", "poet"),
        ("coder", "m", "/adapters/coder"),
    ]
