"""Numbers that JSON does not have."""

from toolcrib import tool


@tool
def alone() -> float:
    """Return NaN."""
    return float("nan")


@tool
def inside() -> dict:
    """Return NaN deep in an object."""
    return {"a": [1, 2, float("nan")]}


@tool
def endless() -> list:
    """Return infinity."""
    return [float("inf")]


@tool
def long_integer() -> int:
    """Return an integer of 5000 digits."""
    return 10**5000
