"""Types that travel as texts: days, times, paths, numbers with every digit, bytes."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import List, Optional
from uuid import UUID

from toolcrib import tool

from ._show import show


@tool
def takes_date(day: date, until: Optional[date] = None) -> str:
    """Take days."""
    return show(day=day, until=until)


@tool
def takes_datetime(moment: datetime) -> str:
    """Take a moment, with or without a zone."""
    return show(moment=moment.isoformat())


@tool
def takes_time(at: time = time(12, 30)) -> str:
    """Take a time of day."""
    return show(at=at)


@tool
def takes_timedelta(length: timedelta) -> str:
    """Take a length of time."""
    return show(length=length)


@tool
def takes_uuid(id: UUID) -> str:
    """Take an identifier."""
    return show(id=id)


@tool
def takes_path(path: Path, pure: Optional[PurePosixPath] = None) -> str:
    """Take a path; nothing looks whether it is there."""
    return show(is_path=isinstance(path, Path), path=str(path), pure=pure)


@tool
def takes_decimal(amount: Decimal) -> str:
    """Take a number with every digit it was written with."""
    return show(amount=amount)


@tool
def takes_bytes(data: bytes) -> str:
    """Take bytes, as base64."""
    return show(data=data)


@tool
def takes_many(days: List[date], default: date = date(2024, 2, 29)) -> str:
    """Take days, and have one for a default."""
    return show(days=days, default=default)
