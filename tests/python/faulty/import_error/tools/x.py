"""Needs a module that is not installed."""

import a_module_that_nobody_has

from toolcrib import tool


@tool
def never() -> str:
    """Never be seen."""
    return a_module_that_nobody_has.answer()
