"""Python values as what JSON can carry, and as JSON text.

`plain` walks everything once: json's own encoder would make arrays of named tuples, and cannot say where in a
result the value sits that it refuses.
"""

import enum
import json

_INFINITE = (float("inf"), float("-inf"))
# Made once and kept, so that a tool that patches `json` changes nothing here.
encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode
encode_compact = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
encode_text = json.encoder.encode_basestring


class NotPlain(Exception):
    """A value that JSON cannot carry; the path to it grows as the error travels outwards."""

    def __init__(self, what):
        super().__init__(what)
        self.what = what
        self.path = ""

    def __str__(self):
        place = f"holds {self.what} at {self.path}" if self.path else f"is {self.what}"
        return f"the result {place}, which JSON cannot carry"


def plain(value: object) -> object:
    """The value as dicts, lists, text, numbers, booleans and None; raises `NotPlain`."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return _finite(value)
    if kind is dict:
        return _plain_dict(value)
    if kind is list:
        return _plain_items(value)
    return _plain_other(value)


def json_text(value: object) -> str:
    """JSON text with the separators people are used to; raises `NotPlain`."""
    try:
        return encode(plain(value))
    except ValueError:
        # All that is left after `plain`: Python refuses to spell out very long numbers.
        raise NotPlain("a number of more than 4300 digits") from None
    except RecursionError:
        raise NotPlain("a value that is nested too deeply") from None


def at_least(value: object, enough: int) -> int:
    """What JSON text of the value takes at the least; counting stops past `enough`."""
    size, left = 0, [value]
    while left and size <= enough:
        one = left.pop()
        kind = type(one)
        if kind is str:
            size += len(one) + 2
        elif kind is list or kind is tuple or kind is dict:
            # A comma and a space follow each; what a key takes is not counted.
            size += 2 * len(one)
            if size <= enough:
                left.extend(one.values() if kind is dict else one)
        else:
            size += 1
    return size


def to_bytes(text: str) -> bytes:
    """UTF-8; half characters (lone surrogates), which UTF-8 does not have, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def duration_text(delta):
    """A timedelta as ISO 8601: `P1DT2H3M4.5S`."""
    sign = "-" if delta.days < 0 else ""
    delta = abs(delta)
    hours, rest = divmod(delta.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    fraction = f".{delta.microseconds:06}".rstrip("0") if delta.microseconds else ""
    days = f"{delta.days}D" if delta.days else ""
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    clock += f"{seconds}{fraction}S" if seconds or fraction else ""
    return f"{sign}P{days}{'T' + clock if clock else ''}" if days or clock else "PT0S"


def _finite(value):
    if value != value:
        raise NotPlain("NaN")
    if value in _INFINITE:
        raise NotPlain("Infinity" if value > 0 else "-Infinity")
    return value


def _plain_dict(value):
    result = {}
    for key, item in value.items():
        name = key if type(key) is str else _key(key)
        try:
            result[name] = plain(item)
        except NotPlain as error:
            error.path = f".{name}{error.path}"
            raise
    return result


def _plain_items(items):
    result = []
    for item in items:
        try:
            result.append(plain(item))
        except NotPlain as error:
            error.path = f"[{len(result)}]{error.path}"
            raise
    return result


def _key(key):
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, (bool, int, float)):
        return encode(plain(key))
    text = _text_form(key)
    if text is None:
        raise NotPlain(f"a key of type {type(key).__name__}")
    return text


def _plain_other(value):
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool) or isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _finite(float(value))
    record = as_record(value)
    if record is not None:
        return _plain_dict(record)
    if isinstance(value, (list, tuple, set, frozenset)) or _is_deque(value):
        return _plain_items(value)
    if isinstance(value, dict) or hasattr(type(value), "keys") and hasattr(type(value), "items"):
        return _plain_dict(value)
    text = _text_form(value)
    if text is None:
        raise NotPlain(f"a value of type {type(value).__name__}")
    return text


def as_record(value):
    """A dataclass, NamedTuple or pydantic model as a dict (one level, but for pydantic); else None."""
    cls = type(value)
    if hasattr(cls, "__dataclass_fields__"):
        import dataclasses

        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(cls, "_fields"):
        return dict(zip(cls._fields, value))
    if hasattr(cls, "model_dump") and hasattr(cls, "model_validate"):
        return value.model_dump(mode="json")
    if hasattr(cls, "parse_obj") and hasattr(cls, "__fields__"):
        return json.loads(value.json())
    return None


def _is_deque(value):
    return type(value).__module__ == "collections" and type(value).__name__ == "deque"


def _text_form(value):
    """Dates, UUIDs, decimals, paths; recognised by what they are called, so that nothing need be imported."""
    for cls in type(value).__mro__:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if name in ("datetime.datetime", "datetime.date", "datetime.time"):
            return value.isoformat()
        if name == "datetime.timedelta":
            return duration_text(value)
        if name in ("uuid.UUID", "decimal.Decimal"):
            return str(value)
        if cls.__module__.split(".")[0] == "pathlib":
            return str(value)
    return None
