"""Fields of request bodies: values of one kind each, and errors as vLLM words them. Pure."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

Body: TypeAlias = dict[str, Any]

_INPUT_CHARS = 200


class ApiError(Exception):
    """An answer with an error status, in vLLM's shape."""

    def __init__(self, message: str, *, status: int = 400, kind: str = "BadRequestError", param: str | None = None):
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param

    def body(self) -> Body:
        """`{"error": {"message", "type", "param", "code"}}`."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}}


def invalid(param: str, message: str, value: object = None, *, show_value: bool = False) -> ApiError:
    """A value that can't be used; vLLM repeats the parameter, and sometimes the value, in the text."""
    shown = f", value={value}" if show_value else ""
    return ApiError(f"{message} (parameter={param}{shown})", param=param)


def mistyped(kind: str, where: str, message: str, value: object, context: str | None = None) -> ApiError:
    """A value of another kind than the field's, in the words of FastAPI's validation."""
    location = f"body.{where}" if where else "body"
    entry: Body = {"type": kind, "loc": location, "msg": message, "input": _shown(value)}
    if context is not None:
        entry["ctx"] = {"error": context}
    return ApiError(f"1 validation error:\n  {entry}", kind=HTTPStatus(400).phrase, param=location)


def _shown(value: object) -> object:
    if isinstance(value, (list, dict)):
        return f"<{type(value).__name__} of {len(value)} items>"
    shown = value if isinstance(value, str) else str(value)
    return shown if len(shown) <= _INPUT_CHARS else shown[:_INPUT_CHARS] + "...[truncated]"


def flag(body: Mapping[str, Any], name: str) -> bool:
    """A boolean that may be missing. Raises ApiError."""
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise mistyped("bool_type", name, "Input should be a valid boolean", value)


def integer(body: Body, name: str) -> int | None:
    """A 64-bit integer that may be missing. Raises ApiError."""
    value = body.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (type(value) is int and -(2**63) <= value < 2**63):
        return value
    raise mistyped("int_type", name, "Input should be a valid integer", value)


def integers(body: Body, name: str) -> list[int]:
    """A list of integers that may be missing. Raises ApiError."""
    value = body.get(name) or []
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise mistyped("list_type", name, "Input should be a valid list of integers", value)
    return value


def text(body: Body, name: str) -> str | None:
    """A text that may be missing. Raises ApiError."""
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise mistyped("string_type", name, "Input should be a valid string", value)


def mapping(body: Body, name: str) -> Body | None:
    """An object that may be missing. Raises ApiError."""
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise mistyped("dict_type", name, "Input should be a valid dictionary", value)
