"""What a tool returned or raised -> the JSON text of an MCP result.

Results are JSON text from here on: the frame is put together around it, so that a large result is encoded once.
"""

import sys

from ._plain import NotPlain, as_record, at_least, encode_compact, encode_text, json_text, to_bytes

_MCP_KEYS = {"content", "structuredContent", "isError", "_meta"}
_MANY = 1000
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_FORMATS = {"jpg": "image/jpeg", "mp3": "audio/mpeg", "svg": "image/svg+xml"}
_TEXT_TYPES = {"application/json", "application/xml", "application/yaml", "application/javascript", "image/svg+xml"}


class Results:
    """Makes results under one worker's limits."""

    def __init__(self, max_result=None, memory=None, cpu=None):
        self._max = max_result or sys.maxsize
        self._memory = memory
        self._cpu = cpu

    def of_value(self, value: object) -> str:
        """The result for what a tool returned."""
        try:
            # Looking at the length first spares the work on what is too large by far.
            if isinstance(value, (str, bytes)) and len(value) > self._max:
                return self._too_large(len(value))
            if isinstance(value, (dict, list, tuple)) and _has_many(value):
                _check(at_least(value, self._max), self._max)
            return self.within_limit(_result_text(value, self._max))
        except _TooLarge as error:
            return self._too_large(f"at least {error.size}")
        except NotPlain as error:
            return failure(f"Error: {error}")

    def within_limit(self, text: str) -> str:
        size = len(text)
        if size * 4 > self._max and (size > self._max or len(to_bytes(text)) > self._max):
            return self._too_large(size if size > self._max else len(to_bytes(text)))
        return text

    def of_error(self, error: BaseException) -> str:
        """The result for what a tool raised; the traceback goes to the log."""
        report(error)
        return self.within_limit(failure(self._say(error)))

    def _say(self, error):
        if isinstance(error, ValueError):
            return f"Invalid input: {_message(error)}"
        if isinstance(error, SystemExit):
            return f"Error: the tool called sys.exit({'' if error.code is None else repr(error.code)})"
        if isinstance(error, MemoryError):
            return "Error: out of memory" + (f" (limit {_amount(self._memory)})" if self._memory else "")
        if isinstance(error, CpuTimeSpent):
            return f"Error: used more than {self._cpu} s of CPU time"
        if not isinstance(error, Exception):
            return f"Error: the tool raised {type(error).__name__}"
        if isinstance(error, KeyError) and from_environ(error):
            return f"Error: {_message(error)}; tools see only the variables named under python.env in network.yaml"
        return f"Error: {_message(error)}"

    def _too_large(self, size):
        return failure(f"Error: the result is too large: {size} bytes, the limit is {self._max} bytes")


class _TooLarge(Exception):
    """A result that was seen to be too large before it was complete."""

    def __init__(self, size):
        super().__init__(size)
        self.size = size


class Cancelled(BaseException):
    """Raised into a tool whose call was cancelled.

    Not made from KeyboardInterrupt, which asyncio lets out of the loop, nor from its CancelledError, which a
    TaskGroup takes from its tasks without a word.
    """


class CpuTimeSpent(BaseException):
    """Raised into a tool that has used up its CPU time."""


def text_result(text: str) -> str:
    """The result for plain text: the case that has to be quick."""
    return f'{{"content":[{{"type":"text","text":{encode_text(text)}}}],"isError":false}}'


def failure(text: str) -> str:
    """A result that says no."""
    return f'{{"content":[{{"type":"text","text":{encode_text(text)}}}],"isError":true}}'


def report(error):
    """Print the traceback, from the tool's first line on; what never reached the tool has none."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_globals.get("__package__") == __package__:
        place = place.tb_next
    if place is None:
        return
    import traceback

    try:
        lines = traceback.format_exception(type(error), error, place)
        sys.stderr.write("".join(lines))
    except Exception:
        # An exception that cannot be printed, or a `sys.stderr` that the tool broke, must not cost the answer.
        return


def from_environ(error):
    """Whether a KeyError came out of `os.environ[...]`."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") == "os"


def _message(error):
    try:
        text = str(error)
    except Exception:
        text = ""
    inner = getattr(error, "exceptions", None)
    if isinstance(inner, (list, tuple)) and inner:
        # A TaskGroup's own words say only that something failed.
        text = "; ".join(_message(one) for one in inner)
    return text or type(error).__name__


def _amount(size):
    for unit, name in ((1 << 30, "GB"), (10**9, "GB"), (1 << 20, "MB"), (10**6, "MB"), (1 << 10, "kB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} bytes"


def _result_text(value, limit):
    kind = type(value)
    if kind is str:
        return text_result(value)
    if value is None:
        return '{"content":[],"isError":false}'
    if kind is dict or isinstance(value, dict):
        if _is_mcp_result(value):
            return json_text({"isError": False, **value})
        return _structured(_json_within(value, limit))
    if isinstance(value, (list, tuple, set, frozenset)) and not hasattr(kind, "_fields"):
        if any(_is_media(item) for item in value):
            return _of_parts([_part(item, number) for number, item in enumerate(value, 1)])
        text = _json_within(value, limit)
        return _structured(text, f'{{"result": {text}}}')
    if _is_media(value):
        return _of_parts([_part(value, 1)])
    record = as_record(value)
    if record is not None:
        return _structured(_json_within(record, limit))
    return text_result(_scalar_text(value))


def _json_within(value, limit):
    """JSON text, before it is quoted and repeated; raises `_TooLarge`."""
    text = json_text(value)
    _check(len(text), limit)
    return text


def _check(size, limit):
    if size > limit:
        raise _TooLarge(size)


def _has_many(value):
    """Whether counting first is worth its while; small results are not to pay for it."""
    if len(value) > _MANY:
        return True
    if type(value) is dict:
        for item in value.values():
            if (type(item) is list or type(item) is dict) and len(item) > _MANY:
                return True
    return False


def _structured(text, structured=None):
    return (
        f'{{"content":[{{"type":"text","text":{encode_text(text)}}}],'
        f'"structuredContent":{structured or text},"isError":false}}'
    )


def _of_parts(parts):
    return f'{{"content":{encode_compact(parts)},"isError":false}}'


def _scalar_text(value):
    """JSON text, but for what JSON writes as text: that stands without quotes."""
    from ._plain import plain

    flat = plain(value)
    return flat if isinstance(flat, str) else json_text(flat)


def _is_mcp_result(value):
    content = value.get("content")
    return (
        isinstance(content, list)
        and value.keys() <= _MCP_KEYS
        and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in content)
    )


def _is_media(value):
    return isinstance(value, (bytes, bytearray, memoryview)) or _is_own_media(value) or _is_picture(value)


def _is_own_media(value):
    """Without the module no tool can have made one."""
    values = sys.modules.get(f"{__package__}._values")
    return values is not None and isinstance(value, (values.Image, values.Audio, values.File, values.Artifact))


def _is_picture(value):
    return type(value).__module__.startswith("PIL.") and hasattr(value, "save")


def _part(value, number):
    if _is_own_media(value):
        if hasattr(value, "uri"):
            return _link_part(value)
        return _file_part(value, number) if not hasattr(value, "family") else _media_part(value)
    if _is_picture(value):
        return {"type": "image", "data": _base64(_png(value)), "mimeType": "image/png"}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _resource(number, "application/octet-stream", blob=_base64(bytes(value)))
    return {"type": "text", "text": value if type(value) is str else _scalar_text(value)}


def _media_part(media):
    data = media.read()
    mime = media.mime or _sniff(data) or _guess(media.path)
    if mime and "/" not in mime:
        mime = _FORMATS.get(mime.lower(), f"{media.family}/{mime.lower()}")
    if not mime:
        raise NotPlain(f"{media.family} data of a kind that cannot be told (say mime=...)")
    return {"type": media.family, "data": _base64(data), "mimeType": mime}


def _link_part(artifact):
    name = artifact.label or artifact.id
    link = {"type": "resource_link", "uri": artifact.uri, "name": name}
    return {**link, "mimeType": artifact.media_type, "size": artifact.size}


def _file_part(file, number):
    data = file.read()
    mime = file.mime or _guess(file.name) or _sniff(data)
    if mime is None:
        mime = "text/plain" if _as_text(data) is not None else "application/octet-stream"
    text = _as_text(data) if mime.startswith("text/") or mime.split(";")[0] in _TEXT_TYPES else None
    if text is not None:
        return _resource(number, mime, file.name, text=text)
    return _resource(number, mime, file.name, blob=_base64(data))


def _resource(number, mime, name=None, **data):
    from urllib.parse import quote

    uri = f"toolcrib://result/{number}" + (f"/{quote(name)}" if name else "")
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, **data}}


def _as_text(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _sniff(data):
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12])
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), None)


def _guess(name):
    if not name:
        return None
    import mimetypes

    return mimetypes.guess_type(name)[0]


def _png(picture):
    import io

    file = io.BytesIO()
    if picture.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16"):
        picture = picture.convert("RGB")
    picture.save(file, format="PNG")
    return file.getvalue()


def _base64(data):
    import base64

    return base64.b64encode(data).decode("ascii")
