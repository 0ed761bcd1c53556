"""Unions written `|` where they are evaluated at once. Python 3.9 cannot import this file."""

from datetime import date
from enum import Enum
from typing import Literal, Optional

from toolcrib import tool

from ._show import show


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@tool
def bar_optional(count: int | None = None, names: list[str] | None = None) -> str:
    """Have optional parameters."""
    return show(count=count, names=names)


@tool
def bar_required(value: int | str, other: str | None) -> str:
    """Have a required parameter and one that is not, though it has no default."""
    return show(value=value, other=other)


@tool
def bar_converts(day: date | None = None, size: Size | int = 1, many: list[Size | None] = []) -> str:
    """Have conversions inside."""
    return show(day=day, size=size, many=many)


@tool
def bar_mixed(value: Optional[int | str] = None, mode: Literal["a"] | Literal["b"] | None = None) -> str:
    """Mix the two spellings."""
    return show(value=value, mode=mode)
