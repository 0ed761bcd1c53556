"""Annotated: limits from objects with the usual attributes, from a dict, and texts as descriptions.

A dict cannot be hashed, so Python before 3.13 refuses `Optional[Annotated[int, {...}]]`; the other way round,
`Annotated[Optional[int], {...}]`, works everywhere.
"""

from typing import Annotated, Dict, List, Optional

from toolcrib import tool

from ._show import show


class Limit:
    """Looks like the classes of the annotated_types package, which need not be installed."""

    def __init__(self, **limits):
        self.__dict__.update(limits)


class Doc:
    """Looks like typing_extensions.Doc."""

    def __init__(self, documentation):
        self.documentation = documentation


Percent = Annotated[int, Limit(ge=0, le=100)]


@tool
def limited_numbers(
    percent: Percent,
    above: Annotated[float, Limit(gt=0, lt=1)] = 0.5,
    even: Annotated[int, Limit(multiple_of=2)] = 2,
) -> str:
    """Take numbers within limits."""
    return show(percent=percent, above=above, even=even)


@tool
def limited_texts(
    name: Annotated[str, Limit(min_length=1, max_length=5)],
    code: Annotated[str, Limit(pattern="^[A-Z]{2}$")] = "AB",
    address: Annotated[str, {"format": "email", "examples": ["a@example.org"]}] = "a@example.org",
) -> str:
    """Take texts of a certain form."""
    return show(name=name, code=code, address=address)


@tool
def limited_lists(
    values: Annotated[List[Percent], Limit(min_length=1, max_length=3)],
    table: Annotated[Optional[Dict[str, Annotated[int, Limit(ge=1)]]], "Counts by name"] = None,
    inside: Optional[Annotated[int, Limit(ge=1), "Said inside Optional"]] = None,
) -> str:
    """Take a short list of limited numbers."""
    return show(values=values, table=table, inside=inside)


@tool
def described(
    first: Annotated[str, "Said in the annotation"],
    second: Annotated[str, Doc("Said by an object")],
    third: Annotated[str, {"description": "Said in a dict", "minLength": 1}],
    fourth: Annotated[str, "Said twice"],
) -> str:
    """Describe parameters in four ways.

    Args:
        fourth: Said in the docstring
    """
    return show(first=first, second=second, third=third, fourth=fourth)


@tool
def unknown_metadata(value: Annotated[int, object(), 42, ("a", "b")] = 1) -> str:
    """Carry metadata that is nobody's business."""
    return show(value=value)
