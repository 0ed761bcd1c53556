"""Annotations: evaluated, and taken apart into shapes that both the schema and the conversion go by.

An annotation may be text (`from __future__ import annotations`), hold forward references, or use the newer
spellings (`int | None`) on an interpreter too old to evaluate them.
"""

import collections
import collections.abc as abc
import enum
import sys
import types
import typing

UNIONS = {typing.Union, getattr(types, "UnionType", typing.Union)}

_LISTS = {
    list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection, abc.Container, abc.Iterator, abc.Reversible,
}  # fmt: skip
_SETS = {set: set, frozenset: frozenset, abc.Set: frozenset, abc.MutableSet: set}
_DICTS = {dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict, collections.defaultdict}
_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
_SPECIAL = {
    "datetime.date": "date",
    "datetime.datetime": "datetime",
    "datetime.time": "time",
    "datetime.timedelta": "timedelta",
    "uuid.UUID": "uuid",
    "decimal.Decimal": "decimal",
}
# The arguments of `Tuple[()]`, as Python up to 3.10 tells them; later ones give none at all.
EMPTY = ((),)
_WRAPPERS = {"Required", "NotRequired", "ReadOnly", "Final", "ClassVar"}


class Shape:
    """What an annotation means.

    `kind` is one of: any null string integer number boolean bytes date datetime time timedelta uuid decimal path,
    list set tuple deque dict union literal enum, record (dataclass, TypedDict, NamedTuple), model (pydantic),
    alias (a `type X = ...`), unknown. `args` are annotations, or for a literal its values.
    """

    __slots__ = ("kind", "type", "args", "metadata")

    def __init__(self, kind, type=None, args=(), metadata=()):
        self.kind = kind
        self.type = type
        self.args = args
        self.metadata = metadata


_PLAIN_SHAPES = {cls: Shape(kind, cls) for cls, kind in _PLAIN.items()}


def evaluate(annotation, namespace: dict):
    """The annotation with all text in it evaluated; raises whatever evaluating raises."""
    if type(annotation) is type or annotation is typing.Any:
        return annotation

    def holder():
        """Stands in for the function, so that one bad annotation does not spoil the others."""

    holder.__annotations__ = {"it": annotation}
    try:
        return typing.get_type_hints(holder, namespace, include_extras=True)["it"]
    except TypeError:
        if sys.version_info >= (3, 10) or not isinstance(annotation, str):
            raise
    holder.__annotations__ = {"it": _without_bars(annotation)}
    return typing.get_type_hints(holder, {**namespace, "__union__": typing.Union}, include_extras=True)["it"]


def shape_of(annotation) -> Shape:
    """Take one level of an annotation apart."""
    if type(annotation) is type and annotation in _PLAIN_SHAPES:
        return _PLAIN_SHAPES[annotation]
    annotation, metadata = _unwrap(annotation)
    if annotation is None:
        return Shape("null", metadata=metadata)
    origin = typing.get_origin(annotation)
    args = typing.get_args(annotation)
    if origin in UNIONS:
        shape = Shape("union", args=args)
    elif origin is typing.Literal:
        shape = Shape("literal", args=args)
    elif isinstance(annotation, typing.TypeVar):
        shape = _shape_of_variable(annotation)
    elif type(annotation).__name__ == "TypeAliasType":
        shape = Shape("alias", annotation, (annotation.__value__,))
    elif type(origin).__name__ == "TypeAliasType":
        shape = Shape("alias", annotation, (origin.__value__[args],))
    else:
        if origin is tuple and not args and hasattr(annotation, "__args__"):
            args = EMPTY
        shape = _shape_of_class(origin or annotation, args)
    shape.metadata = metadata
    return shape


def without_none(shape):
    """The members of a union but `None`, and whether `None` was one."""
    members = [member for member in shape.args if member is not None and member is not type(None)]
    return members, len(members) < len(shape.args)


def is_optional(annotation):
    """Whether `None` is among what the annotation allows by name."""
    shape = shape_of(annotation)
    if shape.kind == "alias":
        return is_optional(shape.args[0])
    if shape.kind == "literal":
        return None in shape.args
    return shape.kind == "union" and without_none(shape)[1]


def is_record(cls):
    """Whether a class is a TypedDict, NamedTuple or dataclass; `_records` tells what is in it."""
    return (
        (issubclass(cls, dict) and hasattr(cls, "__total__"))
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
        or hasattr(cls, "__dataclass_fields__")
    )


def enum_choices(cls):
    """`{JSON value: member}`; by name where the values are not plain."""
    members = list(cls)
    if all(isinstance(member.value, (str, int, float)) for member in members):
        return {member.value: member for member in members}
    return {member.name: member for member in members}


def json_type(value):
    """The JSON schema type of a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, (list, tuple)):
        return "array"
    return "object" if isinstance(value, dict) else "string"


def wrapper_name(origin):
    """The name of `Required` and its like, from `typing` or `typing_extensions`."""
    name = getattr(origin, "_name", None)
    return name if name in _WRAPPERS else None


def _unwrap(annotation):
    metadata = []
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            metadata = [*annotation.__metadata__, *metadata]
            annotation = annotation.__origin__
        elif wrapper_name(origin):
            annotation = typing.get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "InitVar":
            annotation = annotation.type
        else:
            return annotation, metadata


def _shape_of_variable(variable):
    if variable.__bound__ is not None:
        return shape_of(variable.__bound__)
    if variable.__constraints__:
        return Shape("union", args=variable.__constraints__)
    return Shape("any")


def _shape_of_class(cls, args):
    if cls is typing.Any or cls is object:
        return Shape("any")
    if not isinstance(cls, type):
        return Shape("unknown", cls)
    if cls in _PLAIN:
        return Shape(_PLAIN[cls], cls)
    if issubclass(cls, enum.Enum):
        return Shape("enum", cls)
    if is_record(cls):
        return Shape("record", cls, args)
    if hasattr(cls, "model_json_schema") or hasattr(cls, "parse_obj"):
        return Shape("model", cls)
    return _shape_of_container(cls, args) or Shape(_special(cls), cls)


def _shape_of_container(cls, args):
    if cls in _LISTS:
        return Shape("list", list, args)
    if cls in _SETS:
        return Shape("set", _SETS[cls], args)
    if cls is tuple:
        return Shape("tuple", tuple, args)
    if cls is collections.deque:
        return Shape("deque", cls, args)
    if cls in _DICTS:
        return Shape("dict", dict, args)
    return None


def _special(cls):
    special = _SPECIAL.get(f"{cls.__module__}.{cls.__qualname__}")
    if special:
        return special
    if issubclass(cls, (bytes, bytearray)):
        return "bytes"
    if cls.__module__.split(".")[0] == "pathlib":
        return "path"
    for base, kind in ((str, "string"), (int, "integer"), (float, "number"), (list, "list"), (dict, "dict")):
        if issubclass(cls, base):
            return kind
    return "unknown"


def _without_bars(text):
    """`int | None` as `__union__[int, None]`, for Python 3.9."""
    import ast

    class Rewrite(ast.NodeTransformer):
        def visit_BinOp(self, node):
            self.generic_visit(node)
            if not isinstance(node.op, ast.BitOr):
                return node
            members = ast.Tuple(elts=[node.left, node.right], ctx=ast.Load())
            return ast.Subscript(value=ast.Name(id="__union__", ctx=ast.Load()), slice=members, ctx=ast.Load())

    tree = Rewrite().visit(ast.parse(text, mode="eval"))
    return ast.unparse(ast.fix_missing_locations(tree))
