"""Requests from JSON lines: a chat request a line, or one of a batch file with a "body". Imports its package only."""

import json

from .request_text import Body

NO_REQUESTS = "no line of the file is a request"


def read_requests(lines: bytes) -> tuple[list[Body], list[tuple[int, str]]]:
    """(requests, (line, what is wrong with it) of each line that is none); empty lines count for neither."""
    requests: list[Body] = []
    unreadable: list[tuple[int, str]] = []
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            unreadable.append((number, str(error)[:120]))
            continue
        body = value.get("body", value) if isinstance(value, dict) else value
        if isinstance(body, dict) and (isinstance(body.get("messages"), list) or "prompt" in body):
            requests.append(body)
        else:
            unreadable.append((number, "it has neither messages nor a prompt"))
    return requests, unreadable
