"""Needs a name of b, which needs a name of this: neither can be first."""

from toolcrib import tool
from tools.b import second


@tool
def first() -> str:
    """Never be seen."""
    return second()
