"""Every option of the decorator."""

from toolcrib import tool

from ._show import show


@tool()
def empty_call(value: str) -> str:
    """Have the decorator called without options."""
    return show(value=value)


@tool(name="renamed.tool-1/x")
def has_another_name(value: str) -> str:
    """Have a name that no function could have."""
    return show(value=value)


@tool(description="Said by the option")
def described_by_option(value: str) -> str:
    """Said by the docstring."""
    return show(value=value)


@tool(description="")
def described_by_nothing(value: str) -> str:
    """Not said, since the option is empty."""
    return show(value=value)


@tool(
    input_schema={
        "type": "object",
        "properties": {"value": {"type": "integer", "minimum": 1}, "more": {"type": "string"}},
        "required": ["value"],
    }
)
def own_schema(value, **rest) -> str:
    """Have a schema that the signature does not show."""
    return show(value=value, rest=rest)


@tool(input_schema={})
def empty_schema(**anything) -> str:
    """Take any object."""
    return show(anything=dict(sorted(anything.items())))


@tool(
    output_schema={
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    }
)
def own_output(a: int, b: int) -> dict:
    """Promise the form of its result."""
    return {"sum": a + b}


@tool(title="A title to show", annotations={"title": "Another title", "readOnlyHint": True, "openWorldHint": True})
def titled(value: str) -> str:
    """Have a title and annotations."""
    return show(value=value)


@tool(annotations={"readOnlyHint": True, "idempotentHint": False}, read_only=False, idempotent=True, destructive=False)
def hinted(value: str) -> str:
    """Have shortcuts that win over the annotations."""
    return show(value=value)


@tool(timeout="500ms")
def timed_text(value: str) -> str:
    """Have a time limit as a text."""
    return show(value=value)


@tool(timeout=2.5)
async def timed_number(value: str) -> str:
    """Have a time limit in seconds."""
    return show(value=value)


@tool(name="not a name")
def badly_named(value: str) -> str:
    """Be left out, with a problem: a name has no spaces."""
    return show(value=value)
