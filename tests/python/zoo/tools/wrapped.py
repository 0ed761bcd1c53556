"""Other decorators above and below: what is called is the outermost, and it keeps working."""

import functools
from contextlib import contextmanager

from toolcrib import tool

from ._show import show


def loudly(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs).upper()

    return wrapper


def in_brackets(function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        return f"[{await function(*args, **kwargs)}]"

    return wrapper


def refusing(word):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(value):
            if value == word:
                raise ValueError(f"value: {word} is refused")
            return function(value)

        return wrapper

    return decorate


@contextmanager
def block():
    yield


@loudly
@tool
def decorated_above(value: str) -> str:
    """Have a decorator above the tool's."""
    return show(value=value)


@tool
@loudly
def decorated_below(value: str) -> str:
    """Have a decorator below the tool's."""
    return show(value=value)


@refusing("no")
@tool(name="decorated_both")
@loudly
def both(value: str) -> str:
    """Have decorators on both sides."""
    return show(value=value)


@in_brackets
@tool
async def decorated_async(value: str) -> str:
    """Have an async decorator above an async tool."""
    return show(value=value)


@tool
@functools.lru_cache(maxsize=2)
def decorated_cached(value: str) -> str:
    """Have a cache, which is no plain function."""
    return show(value=value)


@tool
@block()
def decorated_by_context_manager(value: str) -> str:
    """Run inside a context manager."""
    return show(value=value)


alias_of_plain = decorated_cached  # One tool by two names is still one tool.
