"""What a task carries and what it leaves behind: JSON, or bytes that only its handler understands."""

from __future__ import annotations

import json
from typing import TypeAlias

from windlass.errors import InvalidError
from windlass.v1 import task_pb2

#: Whatever ``json`` can write and read.
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def encode(value: object) -> task_pb2.Payload:
    """``bytes`` as they are, anything else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return task_pb2.Payload(encoding=task_pb2.ENCODING_BYTES, data=bytes(value))
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return task_pb2.Payload(encoding=task_pb2.ENCODING_JSON, data=text.encode())
    except (TypeError, ValueError) as error:
        # A TypeError of `json` names a type; a ValueError may hold a piece of the value, which gets into no error text.
        why = str(error) if isinstance(error, TypeError) else "it holds NaN, itself, or text that is not Unicode"
        raise InvalidError(f"the value has no JSON form: {why}", hint="use JSON values, or bytes") from None


def decode(payload: task_pb2.Payload) -> object:
    """What :func:`encode` was given."""
    if payload.encoding == task_pb2.ENCODING_BYTES:
        return payload.data
    try:
        return json.loads(payload.data)
    except ValueError:
        raise InvalidError("the payload is not JSON") from None
