"""Annotations that are all texts, with unions written `|`: to be understood on Python 3.9 as well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal, Optional

from toolcrib import Context, tool

from ._show import show

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Entry:
    day: date
    note: str | None = None
    parts: list[Entry] | None = None


@tool
def future_plain(text: str, count: int = 1, ratio: float = 0.5, flag: bool = False) -> str:
    """Have plain types."""
    return show(text=text, count=count, ratio=ratio, flag=flag)


@tool
def future_optional(count: Optional[int] = None, mode: Literal["a", "b"] = "a") -> str:
    """Have the older spelling."""
    return show(count=count, mode=mode)


@tool
def future_union(count: int | None = None, value: int | str = 0, names: list[str] | None = None) -> str:
    """Have unions with a bar."""
    return show(count=count, value=value, names=names)


@tool
def future_converts(day: date | None, days: list[date | int] | None = None) -> str:
    """Have conversions inside such unions."""
    return show(day=day, days=days)


@tool
def future_structure(entry: Entry) -> str:
    """Have a structure whose fields are texts as well."""
    return show(entry=entry)


@tool
async def future_context(value: str, ctx: Context | None = None) -> str:
    """Have the context in such a union."""
    return show(tool=ctx.tool, value=value)


@tool
def future_checker_only(values: Sequence[int]) -> str:
    """Name a type that was imported for the type checker alone."""
    return show(values=values)
