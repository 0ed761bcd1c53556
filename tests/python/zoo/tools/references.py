"""Names that are looked up late, stand for another type, or for nothing in particular."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Generic, List, NewType, Optional, TypeVar, Union

from toolcrib import tool

from ._show import show

if TYPE_CHECKING:
    from nowhere import Missing

UserId = NewType("UserId", int)
UserIds = List[UserId]
Anything = TypeVar("Anything")
Number = TypeVar("Number", bound=float)
OneOf = TypeVar("OneOf", int, str)


class Opaque:
    """A class that says nothing about its form."""


class Playlist:
    """A class whose name holds that of another type."""


@tool
def forward_reference(later: "Later", many: List["Later"] = []) -> str:
    """Name a class that is defined further down."""
    return show(later=later, many=many)


@tool
def annotation_as_text(numbers: "List[int]", text: "Optional[str]" = None) -> str:
    """Have annotations written as texts."""
    return show(numbers=numbers, text=text)


@tool
def unresolvable(value: "Missing", other: int = 1) -> str:
    """Name a class that is there for the type checker alone."""
    return show(value=value, other=other)


@tool
def new_type(id: UserId, ids: Optional[UserIds] = None) -> str:
    """Take a type that is an integer by another name."""
    return show(id=id, ids=ids)


@tool
def type_variables(free: Anything, bound: Number, one: OneOf) -> str:
    """Take what type variables stand for."""
    return show(free=free, bound=bound, one=one)


@tool
def takes_any(value: Any, other: Any = None) -> str:
    """Take anything at all."""
    return show(value=value, other=other)


@tool
def takes_object(value: object) -> str:
    """Take an object, which in Python is anything."""
    return show(value=value)


@tool
def unknown_classes(opaque: Opaque = None, songs: Playlist = None, call: Optional[Callable[[int], str]] = None) -> str:
    """Take classes that have no JSON form."""
    return show(opaque=opaque, songs=songs, call=call)


@tool
def returns_unresolvable(value: str) -> "Missing":
    """Promise a type that is not there."""
    return show(value=value)


@dataclass
class Later:
    name: str


Boxed = TypeVar("Boxed")


class Box(Generic[Boxed]):
    """A generic class of somebody's own."""


@tool
def generic_class(box: Optional[Box[int]] = None, other: Union[Box[str], int] = 1) -> str:
    """Take a generic class of somebody's own."""
    return show(box=box, other=other)


if sys.version_info >= (3, 12):
    from typing import TypeAliasType

    Names = TypeAliasType("Names", List[str])

    @tool
    def type_alias(names: Names) -> str:
        """Take a list by the name that a `type` statement gave it."""
        return show(names=names)
