"""Unions, Literal and Enum."""

from datetime import date
from enum import Enum, IntEnum
from typing import Dict, List, Literal, Optional, Union

from toolcrib import tool

from ._show import show


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Mixed(Enum):
    ONE = 1
    TWO = "two"


class Word(str, Enum):
    YES = "yes"
    NO = "no"


@tool
def union_of_two(value: Union[int, str]) -> str:
    """Take an integer or a text, and leave it what it is."""
    return show(value=value)


@tool
def union_with_none(value: Union[int, str, None] = None) -> str:
    """Take an integer, a text or nothing."""
    return show(value=value)


@tool
def union_of_containers(value: Union[List[int], Dict[str, int]]) -> str:
    """Take a list or an object."""
    return show(value=value)


@tool
def union_that_converts(value: Union[date, int]) -> str:
    """Take a day or its number."""
    return show(value=value)


@tool
def union_of_numbers(value: Union[float, bool]) -> str:
    """Take a number or a truth value, which Python nearly confuses."""
    return show(value=value)


@tool
def literal_texts(mode: Literal["fast", "slow"] = "fast") -> str:
    """Take one of two texts."""
    return show(mode=mode)


@tool
def literal_mixed(value: Literal[1, "one", True, None]) -> str:
    """Take one of four values of four types."""
    return show(value=value)


@tool
def optional_literal(mode: Optional[Literal["a", "b"]] = None) -> str:
    """Take one of two texts or nothing."""
    return show(mode=mode)


@tool
def enum_text(colour: Colour, other: Colour = Colour.GREEN) -> str:
    """Take a member by its value."""
    return show(colour=colour, other=other)


@tool
def enum_number(level: Level = Level.LOW) -> str:
    """Take a member that is also an integer."""
    return show(level=level.name, plus=level + 1)


@tool
def enum_mixed(value: Mixed, word: Word = Word.YES) -> str:
    """Take a member whose enum holds values of two types."""
    return show(value=value, word=word.name)


@tool
def enums_inside(colours: List[Colour], by_name: Optional[Dict[str, Level]] = None) -> str:
    """Take members in a list and in an object."""
    names = None if by_name is None else {key: level.name for key, level in by_name.items()}
    return show(colours=colours, by_name=names)
