"""Imports a, which imports this."""

import a

from toolcrib import tool


@tool
def ask_a() -> str:
    """Ask the other file, imported by another way of writing it."""
    return a.name()


def name() -> str:
    return "b"
