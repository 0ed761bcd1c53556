"""TypedDict, dataclass and NamedTuple, nested, with defaults, and holding themselves."""

import sys
from dataclasses import dataclass, field
from datetime import date
from typing import Dict, List, NamedTuple, Optional, TypedDict

from toolcrib import tool

from ._show import show


class Place(TypedDict):
    name: str
    height: float


class Options(TypedDict, total=False):
    colour: str
    size: int


class Journey(Place):
    """Needs what Place needs, and a day."""

    day: date


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass
class Step:
    text: str
    due: Optional[date] = None


@dataclass
class Plan:
    title: str
    steps: List[Step]
    tags: List[str] = field(default_factory=list)
    limits: Dict[str, int] = field(default_factory=lambda: {"days": 7})
    done: bool = False
    serial: int = field(default=5, init=False)


@dataclass
class Tree:
    name: str
    children: List["Tree"] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    point: Point
    place: Place


@tool
def typed_dict(place: Place) -> str:
    """Take a place."""
    return show(place=place)


@tool
def typed_dict_loose(options: Options) -> str:
    """Take options, none of which is needed."""
    return show(options=options)


@tool
def typed_dict_derived(journey: Journey) -> str:
    """Take a place and a day, which is converted."""
    return show(journey=journey)


@tool
def named_tuple(point: Point, path: Optional[List[Point]] = None) -> str:
    """Take a point as an object."""
    return show(point=point, path=path)


@tool
def data_class(step: Step) -> str:
    """Take a step."""
    return show(step=step)


@tool
def data_class_nested(plan: Plan) -> str:
    """Take a plan with its steps."""
    return show(plan=plan)


@tool
def data_class_recursive(tree: Tree) -> str:
    """Take a tree."""
    return show(tree=tree)


@tool
def data_class_frozen(value: Frozen) -> str:
    """Take a frozen pair of other structures."""
    return show(value=value)


@tool
def data_class_default(step: Step = Step("wait")) -> str:
    """Have a structure for a default."""
    return show(step=step)


if sys.version_info >= (3, 11):
    from typing import NotRequired, Required

    class Partly(TypedDict, total=False):
        name: Required[str]
        size: int

    class Mostly(TypedDict):
        name: str
        size: NotRequired[int]

    @tool
    def typed_dict_required(partly: Partly, mostly: Mostly) -> str:
        """Take objects whose keys say one by one whether they are needed."""
        return show(partly=partly, mostly=mostly)
