"""The guide's table of types, defaults of all kinds, and parameters that say nothing about themselves."""

from typing import Dict, List, Optional

from openagents import tool

from ._show import show


@tool
def takes_str(value: str) -> str:
    """Take a text."""
    return show(value=value)


@tool
def takes_int(value: int) -> str:
    """Take an integer."""
    return show(value=value)


@tool
def takes_float(value: float) -> str:
    """Take a number."""
    return show(value=value)


@tool
def takes_bool(value: bool) -> str:
    """Take a truth value."""
    return show(value=value)


@tool
def takes_list(value: list) -> str:
    """Take a list of anything."""
    return show(value=value)


@tool
def takes_list_of(value: List[str]) -> str:
    """Take a list of texts."""
    return show(value=value)


@tool
def takes_dict(value: dict) -> str:
    """Take an object."""
    return show(value=value)


@tool
def takes_dict_of(value: Dict[str, int]) -> str:
    """Take an object of integers."""
    return show(value=value)


@tool
def takes_optional(value: Optional[int]) -> str:
    """Take an integer or nothing; not required though it has no default."""
    return show(value=value)


@tool
def takes_optional_list(value: Optional[List[str]] = None) -> str:
    """Take a list or nothing."""
    return show(value=value)


@tool
def takes_nothing() -> str:
    """Take nothing."""
    return show()


@tool
def takes_none(value: None) -> str:
    """Take null, the only value there is."""
    return show(value=value)


@tool
def without_annotations(first, second="two", third=3):
    return show(first=first, second=second, third=third)


@tool
def without_optional(number: int = None, text: str = None, names: list = None) -> str:
    """Say None without saying Optional."""
    return show(number=number, text=text, names=names)


@tool
def with_defaults(
    text: str = "a",
    empty: str = "",
    zero: int = 0,
    minus: int = -1,
    half: float = 0.5,
    whole: float = 1,
    yes: bool = True,
    no: bool = False,
    names: List[str] = ["x"],
    table: Dict[str, int] = {"k": 1},
) -> str:
    """Have a default of every JSON kind."""
    return show(
        text=text, empty=empty, zero=zero, minus=minus, half=half,
        whole=whole, yes=yes, no=no, names=names, table=table,
    )


MISSING = object()


@tool
def with_odd_defaults(
    marker: str = MISSING,
    endless: float = float("inf"),
    nothing: float = float("nan"),
    kind: type = int,
    call=print,
    deep: list = [{"a": (1, 2)}],
) -> str:
    """Have defaults that JSON cannot carry."""
    return show(
        marker=marker is MISSING, endless=endless, nothing=nothing,
        kind=kind, call=call is print, deep=deep,
    )


@tool
def bool_and_int(flag: bool = 1, count: int = True, zero: int = False) -> str:
    """Have a default whose type is nearly the annotation's."""
    return show(flag=flag, count=count, zero=zero)
