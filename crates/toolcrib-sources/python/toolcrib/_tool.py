"""The `@tool` decorator, and `AgentTool` for mods.

`@tool` hands back the very function it was given, with a mark on it. So it can stand above or below other
decorators: `functools.wraps` copies the mark, and what is called is whatever the module's name ends up holding.
"""

from __future__ import annotations

MARK = "__toolcrib_tool__"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, TypeVar, Union, overload

    Function = TypeVar("Function", bound=Callable[..., Any])
    Schema = Dict[str, Any]
    Timeout = Union[int, float, str]

_HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


class ToolOptions:
    """What the author said about a tool; `None` where nothing was said."""

    __slots__ = ("name", "description", "input_schema", "output_schema", "annotations", "title", "timeout_ms")

    def __init__(self, name, description, input_schema, output_schema, annotations, title, timeout):
        self.name = _expect("name", name, str, "text")
        self.description = _expect("description", description, str, "text")
        self.input_schema = _expect("input_schema", input_schema, dict, "a dict with a JSON schema")
        self.output_schema = _expect("output_schema", output_schema, dict, "a dict with a JSON schema")
        self.annotations = _expect_annotations(annotations)
        self.title = _expect("title", title, str, "text")
        self.timeout_ms = None if timeout is None else _milliseconds(timeout)


if TYPE_CHECKING:

    @overload
    def tool(function: Function, /) -> Function: ...
    @overload
    def tool(
        *,
        name: Optional[str] = ...,
        description: Optional[str] = ...,
        input_schema: Optional[Schema] = ...,
        output_schema: Optional[Schema] = ...,
        annotations: Optional[Dict[str, Any]] = ...,
        title: Optional[str] = ...,
        timeout: Optional[Timeout] = ...,
        idempotent: Optional[bool] = ...,
        read_only: Optional[bool] = ...,
        destructive: Optional[bool] = ...,
        open_world: Optional[bool] = ...,
    ) -> Callable[[Function], Function]: ...


def tool(
    function=None,
    /,
    *,
    name=None,
    description=None,
    input_schema=None,
    output_schema=None,
    annotations=None,
    title=None,
    timeout=None,
    idempotent=None,
    read_only=None,
    destructive=None,
    open_world=None,
):
    """Make a function a tool: `@tool`, `@tool()` or `@tool(name="...", ...)`."""
    shortcuts = {"idempotent": idempotent, "read_only": read_only, "destructive": destructive, "open_world": open_world}
    annotations = _merge_hints(annotations, shortcuts)
    options = ToolOptions(name, description, input_schema, output_schema, annotations, title, timeout)
    if function is None:
        return lambda decorated: _mark(decorated, options)
    return _mark(function, options)


class AgentTool:
    """A tool that a mod's `get_tools()` hands out."""

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: Optional[Schema],
        func: Callable[..., Any],
        *,
        output_schema: Optional[Schema] = None,
        annotations: Optional[Dict[str, Any]] = None,
        title: Optional[str] = None,
        timeout: Optional[Timeout] = None,
    ):
        self.name = name
        self.description = description
        self.input_schema = input_schema
        self.func = func
        self.output_schema = output_schema
        self.annotations = annotations
        self.title = title
        self.timeout = timeout

    async def execute(self, **kwargs: Any) -> Any:
        """Call the function, whether it is `async` or not."""
        for required in (self.input_schema or {}).get("required", ()):
            if required not in kwargs:
                raise ValueError(f"Missing required parameter: {required}")
        value = self.func(**kwargs)
        return await value if hasattr(value, "__await__") else value

    def __repr__(self):
        return f"AgentTool(name={self.name!r})"


def _mark(function, options):
    if not callable(function):
        raise TypeError(f"@tool expects a function and takes its options by keyword, got {function!r}")
    if options.name is None and not hasattr(function, "__name__"):
        raise TypeError(f"@tool expects a function with a name, or @tool(name=...), got {function!r}")
    try:
        setattr(function, MARK, options)
    except AttributeError:
        raise TypeError(f"@tool cannot mark {function!r}; write a function that calls it") from None
    return function


def _expect(option, value, kind, what):
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"@tool({option}=...) expects {what}, got {value!r}")
    return value


def _expect_annotations(annotations):
    _expect("annotations", annotations, dict, "a dict of MCP annotations")
    for key, value in (annotations or {}).items():
        if not isinstance(key, str):
            raise TypeError(f"@tool(annotations=...) expects text as keys, got {key!r}")
        if key.endswith("Hint"):
            _expect(f"annotations={{{key!r}: ...}}", value, bool, "True or False")
    return annotations


def _merge_hints(annotations, shortcuts):
    hints = {}
    for option, value in shortcuts.items():
        if value is not None:
            hints[_HINTS[option]] = _expect(option, value, bool, "True or False")
    if not hints:
        return annotations
    return {**(_expect_annotations(annotations) or {}), **hints}


def _milliseconds(timeout):
    what = 'seconds or text like "30s", "2m" or "500ms"'
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float, str)):
        raise TypeError(f"@tool(timeout=...) expects {what}, got {timeout!r}")
    number, unit = timeout, "s"
    if isinstance(timeout, str):
        text = timeout.strip()
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
        number, unit = digits.strip(), text[len(digits):] or "s"
    try:
        milliseconds = float(number) * _UNITS[unit]
    except (KeyError, ValueError):
        raise ValueError(f"@tool(timeout=...) expects {what}, got {timeout!r}") from None
    if not 0 < milliseconds < float("inf"):
        raise ValueError(f"@tool(timeout=...) expects a time above zero, got {timeout!r}")
    return max(1, round(milliseconds))
