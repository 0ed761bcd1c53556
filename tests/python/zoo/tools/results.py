"""What functions return, and what becomes of it."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Dict, List, NamedTuple, TypedDict
from uuid import UUID

from toolcrib import Audio, File, Image, tool

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
WAV = b"RIFF\x00\x00\x00\x00WAVE"


class Kind(Enum):
    FIRST = "first"


@dataclass
class Row:
    name: str
    day: date
    kind: Kind = Kind.FIRST


class Pair(NamedTuple):
    left: int
    right: int


class Total(TypedDict):
    total: int


@tool
def returns_none() -> None:
    """Return nothing."""


@tool
def returns_bool() -> bool:
    """Return a truth value."""
    return True


@tool
def returns_int(digits: int = 3) -> int:
    """Return an integer of so many digits."""
    return 10 ** (digits - 1)


@tool
def returns_float() -> float:
    """Return a number."""
    return 0.1


@tool
def returns_dict() -> dict:
    """Return an object."""
    return {"a": 1, "b": [True, None], "ü": "ß"}


@tool
def returns_typed_dict() -> Total:
    """Return an object whose form is known."""
    return {"total": 3}


@tool
def returns_dict_of() -> Dict[str, int]:
    """Return an object of integers."""
    return {"a": 1}


@tool
def returns_dataclass() -> Row:
    """Return a structure."""
    return Row("r", date(2024, 1, 2))


@tool
def returns_named_tuple() -> Pair:
    """Return a tuple with names."""
    return Pair(1, 2)


@tool
def returns_list() -> List[int]:
    """Return a list."""
    return [1, 2, 3]


@tool
def returns_tuple() -> tuple:
    """Return a tuple."""
    return (1, "two")


@tool
def returns_set() -> set:
    """Return a set."""
    return {7}


@tool
def returns_values() -> dict:
    """Return values that have a JSON form of ours."""
    return {
        "kind": Kind.FIRST,
        "day": date(2024, 1, 2),
        "moment": datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
        "id": UUID("12345678-1234-5678-1234-567812345678"),
        "amount": Decimal("1.10"),
        "path": PurePosixPath("a/b"),
        "rows": [Row("r", date(2024, 1, 2))],
    }


@tool
def returns_timedelta() -> dict:
    """Return a length of time."""
    return {"length": timedelta(seconds=90)}


@tool
def returns_bytes() -> bytes:
    """Return bytes."""
    return b"\x00\xff"


@tool
def returns_image() -> Image:
    """Return an image."""
    return Image(data=PNG)


@tool
def returns_audio() -> Audio:
    """Return a sound."""
    return Audio(data=WAV)


@tool
def returns_file() -> File:
    """Return a text file."""
    return File(data=b"a,b\n1,2\n", name="table.csv", mime="text/csv")


@tool
def returns_parts() -> list:
    """Return a text and an image."""
    return ["Look:", Image(data=PNG)]


@tool
def returns_mcp_result() -> dict:
    """Return what is already a result."""
    return {"content": [{"type": "text", "text": "ready"}], "structuredContent": {"a": 1}, "_meta": {"k": "v"}}


@tool
def returns_mcp_error() -> dict:
    """Return a result that says it failed."""
    return {"content": [{"type": "text", "text": "not ready"}], "isError": True}


@tool
def returns_content_dict() -> dict:
    """Return an object that only looks like a result."""
    return {"content": ["a", "b"]}


@tool
def returns_surrogate() -> str:
    """Return half a character."""
    return "a\ud800b"


@tool
def returns_object() -> dict:
    """Return what has no JSON form."""
    return {"a": [1, object()]}


@tool
def returns_int_keys() -> dict:
    """Return an object whose keys are no texts."""
    return {1: "one"}


@tool
def returns_itself() -> list:
    """Return a list that holds itself."""
    values = [1]
    values.append(values)
    return values
