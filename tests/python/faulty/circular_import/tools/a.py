"""Imports b, which imports this; nothing is needed before both are there."""

from toolcrib import tool

from . import b


@tool
def ask_b() -> str:
    """Ask the other file."""
    return b.name()


def name() -> str:
    return "a"
