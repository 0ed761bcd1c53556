"""Kinds of parameters, and those that no caller gives."""

from typing import Optional

from toolcrib import Context, Page, tool

from ._show import show


@tool
def keyword_only(*, first: str, second: int = 2) -> str:
    """Take parameters by name alone."""
    return show(first=first, second=second)


@tool
def positional_only(first: int, second: int = 2, /, third: int = 3) -> str:
    """Take parameters by place alone."""
    return show(first=first, second=second, third=third)


@tool
def with_args(first: str, *rest: int) -> str:
    """Have further positions, which JSON has no way to fill."""
    return show(first=first, rest=rest)


@tool
def with_kwargs(first: str, **rest) -> str:
    """Take whatever else is given."""
    return show(first=first, rest=dict(sorted(rest.items())))


@tool
def all_kinds(a: int, /, b: int, *args: int, c: int = 3, **kwargs: int) -> str:
    """Have every kind of parameter at once."""
    return show(a=a, b=b, args=args, c=c, kwargs=dict(sorted(kwargs.items())))


@tool
def awkward_names(class_: str, self: str = "s", args: str = "a", kwargs: str = "k", größe: int = 1) -> str:
    """Have parameters whose names mean something elsewhere."""
    return show(class_=class_, self=self, args=args, kwargs=kwargs, größe=größe)


@tool
def with_context(ctx: Context, value: str) -> str:
    """Be given the call it is part of."""
    ctx.info("seen in the log")
    return show(tool=ctx.tool, value=value)


@tool
async def with_context_last(value: str, ctx: Optional[Context] = None) -> str:
    """Be given a context though it would do without."""
    await ctx.progress(1, 1, "done")
    return show(tool=ctx.tool, value=value)


@tool
def with_context_as_text(value: str, context: "Context") -> str:
    """Have the context's annotation as a text."""
    return show(tool=context.tool, value=value)


@tool
def with_page(page: Page) -> str:
    """Be given a page."""
    return show(page=page.page, limit=page.limit, offset=page.offset)


@tool
def with_page_of_items(word: str, paging: Page) -> list:
    """Be given a page under another name."""
    return paging.slice([f"{word} {number}" for number in range(50)])
