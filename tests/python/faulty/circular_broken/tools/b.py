"""Needs a name of a, which needs a name of this."""

from toolcrib import tool
from tools.a import first


@tool
def second() -> str:
    """Never be seen."""
    return first()
