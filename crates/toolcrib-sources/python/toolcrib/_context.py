"""`Context`: what a tool may ask of the gateway while it runs.

Saying something (`log`, `progress`) never waits, so it may be awaited or not. Asking something (`ask`, `call`,
`emit`, `store`) waits for the answer: an `async` tool awaits it, a plain one gets it back at once. Hence two classes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Awaitable, Dict, Optional, Union

    from ._values import Artifact

    Number = Union[int, float]
    Arguments = Dict[str, Any]


class ToolError(Exception):
    """Another tool said no, or the gateway did. `result` is the tool's whole result, where there is one."""

    def __init__(self, message: str, result: Optional[Dict[str, Any]] = None):
        super().__init__(message)
        self.result = result


class Answer:
    """What a person answered: `action` is accept, decline or cancel; `content` goes with accept."""

    def __init__(self, action: str, content: Any = None):
        self.action = action
        self.content = content

    def __repr__(self):
        return f"Answer(action={self.action!r}, content={self.content!r})"


class _Done:
    """May be awaited, need not be."""

    def __await__(self):
        return iter(())


_DONE = _Done()


class Context:
    """What both kinds have. Annotate a parameter with this class to get one.

    `worker` is what sends: `tell(call_id, op, fields)` and `ask(call_id, method, params)`.
    """

    def __init__(self, worker, call_id, tool, group, wants_progress):
        self._worker = worker
        self._wants_progress = wants_progress
        self.call_id = call_id
        self.tool = tool
        self.group = group

    def log(self, level: str, data: Any, logger: Optional[str] = None) -> Awaitable[None]:
        """Send a log message to the client; `level` is one of MCP's (debug ... emergency)."""
        self._worker.tell(self.call_id, "log", {"level": level, "data": _sendable(data), "logger": logger})
        return _DONE

    def debug(self, text: Any) -> Awaitable[None]:
        return self.log("debug", text)

    def info(self, text: Any) -> Awaitable[None]:
        return self.log("info", text)

    def warning(self, text: Any) -> Awaitable[None]:
        return self.log("warning", text)

    def error(self, text: Any) -> Awaitable[None]:
        return self.log("error", text)

    def progress(self, done: Number, total: Optional[Number] = None, message: Any = None) -> Awaitable[None]:
        """Say how far the call is; nothing is sent if nobody listens."""
        if self._wants_progress:
            message = None if message is None else str(message)
            self._worker.tell(self.call_id, "progress", {"progress": done, "total": total, "message": message})
        return _DONE


class SyncContext(Context):
    """For a plain function: questions wait for their answer."""

    def ask(self, message: str, schema: Any = None) -> Answer:
        """Ask the person at the client; returns an `Answer`."""
        return _read_answer(self._ask("elicitation/create", _question(message, schema)), schema)

    def call(self, name: str, arguments: Optional[Arguments] = None, /, **kwargs: Any) -> Any:
        """Call another tool under the caller's rules."""
        return _read_result(name, self._ask("tools/call", _tool_call(name, arguments, kwargs)))

    def emit(self, name: str, data: Any = None) -> Any:
        """Publish an event."""
        return self._ask("events/emit", {"name": name, "data": _sendable(data)})

    def store(self, data: Any, media_type: Optional[str] = None, *, label: Optional[str] = None) -> Artifact:
        """Keep something that is too large to show; returns an `Artifact`, which a tool may return."""
        return _read_artifact(self._ask("artifacts/store", _to_store(data, media_type, label)))

    def _ask(self, method, params):
        return self._worker.ask(self.call_id, method, params)


class AsyncContext(Context):
    """For an `async` function: questions are awaited."""

    async def ask(self, message: str, schema: Any = None) -> Answer:
        """Ask the person at the client; returns an `Answer`."""
        return _read_answer(await self._ask("elicitation/create", _question(message, schema)), schema)

    async def call(self, name: str, arguments: Optional[Arguments] = None, /, **kwargs: Any) -> Any:
        """Call another tool under the caller's rules."""
        return _read_result(name, await self._ask("tools/call", _tool_call(name, arguments, kwargs)))

    async def emit(self, name: str, data: Any = None) -> Any:
        """Publish an event."""
        return await self._ask("events/emit", {"name": name, "data": _sendable(data)})

    async def store(self, data: Any, media_type: Optional[str] = None, *, label: Optional[str] = None) -> Artifact:
        """Keep something that is too large to show; returns an `Artifact`, which a tool may return."""
        return _read_artifact(await self._ask("artifacts/store", _to_store(data, media_type, label)))

    async def _ask(self, method, params):
        reply = self._worker.ask(self.call_id, method, params)
        # An `async` function behind a plain decorator runs in a worker whose questions wait by themselves.
        return await reply if hasattr(reply, "__await__") else reply


def read_reply(reply):
    """The result in a `reply` frame; raises `ToolError` for an error."""
    if "error" in reply:
        raise ToolError((reply["error"] or {}).get("message") or "the gateway refused without a reason")
    return reply.get("result")


def _sendable(data):
    from ._plain import NotPlain, plain

    try:
        return plain(data)
    except NotPlain:
        return str(data)


def _to_store(data, media_type, label):
    """Bytes and files as they are, text as text, anything else as JSON."""
    if media_type is not None and not isinstance(media_type, str):
        raise TypeError(f"media_type: expected text such as 'text/csv', got {media_type!r}")
    params = {"mediaType": media_type, "label": None if label is None else str(label)}
    if hasattr(data, "__fspath__"):
        params["label"] = params["label"] or data.__fspath__()
        with open(data, "rb") as file:
            data = file.read()
    if isinstance(data, (bytes, bytearray, memoryview)):
        import base64

        params["data"] = base64.b64encode(data).decode("ascii")
    elif isinstance(data, str):
        params["text"] = data
    else:
        from ._plain import json_text

        params["text"] = json_text(data)
        params["mediaType"] = media_type or "application/json"
    return params


def _read_artifact(reply):
    from ._values import Artifact

    return Artifact(**reply)


def _question(message, schema):
    if schema is None:
        schema = {"type": "object", "properties": {}}
    elif not isinstance(schema, dict):
        from ._schema import SchemaBuilder

        builder = SchemaBuilder()
        schema = builder.finish(builder.of_parameter(schema))
    return {"message": message, "requestedSchema": schema}


def _read_answer(result, schema):
    answer = Answer((result or {}).get("action", "cancel"), (result or {}).get("content"))
    if answer.action == "accept" and schema is not None and not isinstance(schema, dict):
        from ._convert import converter

        convert = converter(schema)
        answer.content = convert(answer.content or {}) if convert else answer.content
    return answer


def _tool_call(name, arguments, kwargs):
    from ._plain import plain

    return {"name": name, "arguments": plain({**(arguments or {}), **kwargs})}


def _read_result(name, result):
    result = result or {}
    text = "\n".join(part["text"] for part in result.get("content") or () if part.get("type") == "text")
    if result.get("isError"):
        raise ToolError(text or f"{name} failed without a reason", result)
    structured = result.get("structuredContent")
    return text if structured is None else structured
