"""The names under which an engine serves: its model, and adapters. Pure."""

import time
from collections.abc import Sequence
from secrets import token_hex

from .cache_events import Lora
from .fields import ApiError, Body, text
from .responses import Json


class Models:
    """`adapters` are `name` or `name=path`; they are numbered from 1 on, as vLLM does."""

    def __init__(self, name: str, adapters: Sequence[str] = ()) -> None:
        self.name = name
        parts = (adapter.partition("=") for adapter in adapters)
        self.loras = {lora: Lora(lora, path or lora, number) for number, (lora, _, path) in enumerate(parts, start=1)}
        self._started_s = int(time.time())

    def chosen_by(self, body: Body) -> Lora | None:
        """The adapter that a body names; None for the model itself. Raises ApiError (404) for any other name."""
        asked = text(body, "model")
        if not asked or asked == self.name:
            return None
        if asked not in self.loras:
            message = f"The model `{asked}` does not exist. Valid aliases: {self.name}."
            raise ApiError(message, status=404, kind="NotFoundError", param="model")
        return self.loras[asked]

    def listed(self, max_model_len: int) -> Json:
        """The body of /v1/models."""
        cards = [self._card(self.name, self.name, None, max_model_len)]
        cards += [self._card(lora.name, lora.path, self.name, None) for lora in self.loras.values()]
        return {"object": "list", "data": cards}

    def _card(self, name: str, root: str, parent: str | None, max_model_len: int | None) -> Json:
        permission = {
            "id": f"modelperm-{token_hex(8)}",
            "object": "model_permission",
            "created": self._started_s,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        return {
            "id": name,
            "object": "model",
            "created": self._started_s,
            "owned_by": "vllm",
            "root": root,
            "parent": parent,
            "max_model_len": max_model_len,
            "permission": [permission],
        }
