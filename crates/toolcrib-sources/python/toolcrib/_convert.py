"""JSON values -> what a parameter's annotation promises.

`converter` compiles an annotation once; None means that the value goes in as it is. Plain types are not checked
here (the gateway checks arguments against the schema); only what cannot become the promised type is refused, with
the path to it.
"""

from ._annotations import enum_choices, is_optional, json_type, shape_of, without_none
from ._records import is_named_tuple, is_typed_dict, record_fields

_NAMES = {
    "date": "a date",
    "datetime": "a date and time",
    "time": "a time",
    "timedelta": "a duration",
    "uuid": "a UUID",
    "decimal": "a decimal number",
    "path": "a path",
    "bytes": "base64 text",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_TEXTUAL = {"string", "bytes", "date", "datetime", "time", "uuid", "path", "unknown"}


class Unfit(ValueError):
    """A value that does not become what was promised; the path grows as the error travels outwards."""

    def __init__(self, message):
        super().__init__(message)
        self.message = message
        self.path = ""

    def __str__(self):
        path = self.path[1:] if self.path.startswith(".") else self.path
        return f"{path}: {self.message}" if path else self.message


def converter(annotation, open_types=None):
    """A function from the JSON value to the promised one, or None where there is nothing to do."""
    shape = shape_of(annotation)
    make = _MAKERS.get(shape.kind)
    return make(shape, open_types or {}) if make else None


def unfit(expected, value):
    """The error for a value that is not what was expected; long values are cut."""
    shown = repr(value)
    return Unfit(f"expected {expected}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


def _scalar(parse):
    """A maker for what is made of one JSON value."""

    def make(shape, open_types):
        expected = _NAMES[shape.kind]

        def convert(value):
            try:
                return parse(shape.type, value)
            except (ValueError, TypeError, ArithmeticError, AttributeError):
                raise unfit(expected, value) from None

        return convert

    return make


def _make_integer(shape, open_types):
    return lambda value: int(value) if type(value) is float and value.is_integer() else value


def _make_number(shape, open_types):
    return lambda value: float(value) if type(value) is int else value


def _parse_date(cls, value):
    return cls.fromisoformat(value)


def _parse_moment(cls, value):
    """Before 3.11 Python reads neither `Z` nor fractions of other than 3 or 6 digits."""
    import re

    text = re.sub(r"\.(\d+)", lambda found: "." + found[1][:6].ljust(6, "0"), value, count=1)
    if text[-1:] in ("Z", "z"):
        text = text[:-1] + "+00:00"
    return cls.fromisoformat(text)


def _parse_duration(cls, value):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return cls(seconds=value)
    import re

    pattern = r"([+-]?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?"
    found = re.fullmatch(pattern, value)
    if not found or value[-1] in "PT":
        raise ValueError(value)
    weeks, days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in found.groups()[1:])
    delta = cls(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -delta if found[1] == "-" else delta


def _parse_text(cls, value):
    if not isinstance(value, str):
        raise TypeError(value)
    return cls(value)


def _parse_decimal(cls, value):
    """By way of its text, so that 0.1 stays 0.1."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError(value)
    number = cls(str(value))
    if not number.is_finite():
        raise ValueError(value)
    return number


def _parse_bytes(cls, value):
    import base64

    if not isinstance(value, str):
        raise TypeError(value)
    return cls(base64.b64decode(value, validate=True))


def _make_enum(shape, open_types):
    choices = enum_choices(shape.type)
    expected = "one of " + ", ".join(repr(choice) for choice in choices)

    def convert(value):
        try:
            return choices[value]
        except (KeyError, TypeError):
            raise unfit(expected, value) from None

    return convert


def _make_literal(shape, open_types):
    """Only members of an Enum need converting; the rest is JSON already."""
    members = {member.value: member for member in shape.args if hasattr(type(member), "__members__")}
    return (lambda value: members.get(value, value)) if members else None


def _make_list(shape, open_types):
    item = converter(shape.args[0], open_types) if shape.args else None
    if item is None:
        return None
    return lambda value: _each(item, value) if isinstance(value, list) else value


def _make_collection(shape, open_types):
    item = converter(shape.args[0], open_types) if shape.args else None

    def convert(value):
        if not isinstance(value, list):
            raise unfit("an array", value)
        try:
            return shape.type(_each(item, value) if item else value)
        except TypeError:
            raise unfit("an array of plain values", value) from None

    return convert


def _make_tuple(shape, open_types):
    args = shape.args
    if not args or args[-1] is Ellipsis:
        return _make_collection(shape, open_types)
    items = [converter(item, open_types) for item in args if item != ()]

    def convert(value):
        if not isinstance(value, list) or len(value) != len(items):
            raise unfit(f"an array of {len(items)}", value)
        return tuple(_at(f"[{index}]", item, value[index]) for index, item in enumerate(items))

    return convert


def _make_dict(shape, open_types):
    if len(shape.args) != 2:
        return None
    key, item = (converter(part, open_types) for part in shape.args)
    key = _number_key(shape.args[0]) or key
    if key is None and item is None:
        return None

    def convert(value):
        if not isinstance(value, dict):
            return value
        return {
            (_at(f".{name}", key, name) if key else name): _at(f".{name}", item, one) for name, one in value.items()
        }

    return convert


def _number_key(annotation):
    """JSON has only text as keys; `Dict[int, T]` means the numbers in it."""
    kind = shape_of(annotation).kind
    if kind not in ("integer", "number"):
        return None
    number = int if kind == "integer" else float

    def convert(name):
        try:
            return number(name)
        except ValueError:
            raise unfit(f"{_NAMES[kind]} as key", name) from None

    return convert


def _make_union(shape, open_types):
    members, had_none = without_none(shape)
    converters = [(member, converter(member, open_types)) for member in members]
    if all(convert is None for _, convert in converters):
        return None
    if len(converters) == 1:
        only = converters[0][1]
        return lambda value: None if value is None else only(value)
    kinds = [shape_of(member).kind for member in members]
    strict = any(kind not in ("integer", "number") for kind, (_, convert) in zip(kinds, converters) if convert)
    expected = " or ".join(dict.fromkeys(_NAMES.get(kind, f"a {kind}") for kind in kinds))

    def convert(value):
        if value is None and had_none or type(value) is int and "integer" in kinds:
            return value
        refusal = None
        for kind, (_, convert_member) in zip(kinds, converters):
            if not _may_be(kind, value):
                continue
            try:
                return convert_member(value) if convert_member else value
            except ValueError as error:
                refusal = error
        if refusal is None and not strict:
            return value
        if isinstance(refusal, Unfit) and refusal.path:
            raise refusal
        raise unfit(expected, value)

    return convert


def _may_be(kind, value):
    """Whether a JSON value of this type is worth trying for a member of a union."""
    given = json_type(value)
    if kind in ("any", "literal", "enum", "union", "alias"):
        return True
    if kind in _TEXTUAL:
        return given == "string"
    if kind in ("decimal", "timedelta"):
        return given in ("string", "integer", "number")
    if kind == "integer":
        return given == "integer" or given == "number" and value.is_integer()
    if kind == "number":
        return given in ("integer", "number")
    if kind in ("list", "set", "tuple", "deque"):
        return given == "array"
    return given == "object" if kind in ("dict", "record", "model") else given == kind


def _make_named(shape, open_types):
    """A record or alias. One that holds itself finds its own converter when it is called."""
    if shape.type in open_types:
        cell = open_types[shape.type]
        return lambda value: cell[0](value) if cell[0] else value
    cell = [None]
    open_types = {**open_types, shape.type: cell}
    cell[0] = _record(shape.type, open_types) if shape.kind == "record" else converter(shape.args[0], open_types)
    return cell[0]


def _record(cls, open_types):
    fields = record_fields(cls)
    converters = {}
    for field in fields:
        convert = converter(field.annotation, open_types)
        nullable = is_optional(field.annotation) or (not field.required and field.default is None)
        converters[field.name] = _or_none(convert) if convert and nullable else convert
    build = _build_typed_dict if is_typed_dict(cls) else _build_object
    optional = [field.name for field in fields if field.required and is_optional(field.annotation)]

    def convert(value):
        if is_named_tuple(cls) and isinstance(value, list) and len(value) <= len(fields):
            value = dict(zip(converters, value))
        if not isinstance(value, dict):
            raise unfit("an object", value)
        return build(cls, value, converters, optional)

    return convert


def _build_typed_dict(cls, value, converters, optional):
    return {name: _at(f".{name}", converters.get(name), item) for name, item in value.items()}


def _build_object(cls, value, converters, optional):
    for name in value:
        if name not in converters:
            error = Unfit(f"unknown field; fields are {', '.join(converters)}")
            error.path = f".{name}"
            raise error
    given = {name: _at(f".{name}", converters[name], item) for name, item in value.items()}
    for name in optional:
        given.setdefault(name, None)
    try:
        return cls(**given)
    except Unfit:
        raise
    except (TypeError, ValueError) as error:
        raise Unfit(str(error).replace("__init__()", cls.__name__).replace("__new__()", cls.__name__)) from None


def _make_model(shape, open_types):
    validate = getattr(shape.type, "model_validate", None) or shape.type.parse_obj

    def convert(value):
        try:
            return validate(value)
        except ValueError as error:
            raise _model_error(error) from None

    return convert


def _model_error(error):
    """pydantic's many lines as one; a single fault keeps its path."""
    faults = [("".join(_segment(step) for step in fault["loc"]), fault["msg"]) for fault in error.errors()]
    if len(faults) != 1:
        return Unfit("; ".join(f"{path.lstrip('.')}: {message}" if path else message for path, message in faults))
    single = Unfit(faults[0][1])
    single.path = faults[0][0]
    return single


def _segment(step):
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def _or_none(convert):
    return lambda value: None if value is None else convert(value)


def _each(convert, items):
    return [_at(f"[{index}]", convert, item) for index, item in enumerate(items)]


def _at(segment, convert, value):
    if convert is None:
        return value
    try:
        return convert(value)
    except Unfit as error:
        error.path = segment + error.path
        raise


_MAKERS = {
    "integer": _make_integer,
    "number": _make_number,
    "date": _scalar(_parse_date),
    "datetime": _scalar(_parse_moment),
    "time": _scalar(_parse_moment),
    "timedelta": _scalar(_parse_duration),
    "uuid": _scalar(_parse_text),
    "path": _scalar(_parse_text),
    "decimal": _scalar(_parse_decimal),
    "bytes": _scalar(_parse_bytes),
    "enum": _make_enum,
    "literal": _make_literal,
    "list": _make_list,
    "set": _make_collection,
    "deque": _make_collection,
    "tuple": _make_tuple,
    "dict": _make_dict,
    "union": _make_union,
    "record": _make_named,
    "alias": _make_named,
    "model": _make_model,
}
