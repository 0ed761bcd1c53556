"""A secret in places where it should not be seen."""

import os

from toolcrib import tool


@tool
def tell() -> str:
    """Raise with the secret in the message."""
    raise RuntimeError(f"cannot log in with {os.environ['TOOL_SECRET']}")


@tool
def print_it() -> str:
    """Print the secret."""
    print("logging in with", os.environ["TOOL_SECRET"])
    return "printed"


@tool
def return_it() -> dict:
    """Return the secret."""
    return {"token": os.environ["TOOL_SECRET"]}


@tool
def all_variables() -> list:
    """Return the names of all variables that it sees."""
    return sorted(os.environ)
