"""A function's signature as a caller sees it, and how arguments reach the function.

`read_signature` is for describing, `Plan` for calling. A plan is made at a tool's first call, so that a worker
that describes nothing pays nothing for the tools nobody calls.
"""

import functools
import inspect
import re
import sys

from ._annotations import evaluate, is_optional, shape_of, without_none
from ._context import Context
from ._values import Page

_PAGE_PARAMETERS = ("page", "limit")
# What a `Context` looks like where the name cannot be evaluated (imported for type checkers only).
_CONTEXT_TEXT = re.compile(r"(?:\w+\.)*(?:Optional\[)?(?:\w+\.)*Context\]?(?:\s*\|\s*None)?")
UNANNOTATED = inspect.Parameter.empty
NO_DEFAULT = inspect.Parameter.empty


class Parameter:
    """One parameter that the caller gives."""

    __slots__ = ("name", "annotation", "default", "positional", "optional", "required")

    def __init__(self, name, annotation, default, positional):
        self.name = name
        self.annotation = annotation
        self.default = default
        self.positional = positional
        # Whether None may be said: by the annotation or by the default.
        self.optional = default is None or (annotation is not UNANNOTATED and is_optional(annotation))
        self.required = default is NO_DEFAULT and not self.optional


class Signature:
    """The parameters a caller gives, and those the worker fills in."""

    def __init__(self):
        self.parameters = []
        self.context = None
        self.page = None
        self.takes_more = False
        self.returns = UNANNOTATED
        self.unreadable = []


def read_signature(function) -> Signature:
    """Take a signature apart; annotations that cannot be evaluated are named in `unreadable`."""
    signature = Signature()
    namespace = _namespace(function)
    raw = _raw_signature(function)
    for parameter in raw.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            signature.takes_more = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            _add(signature, parameter, namespace)
    signature.returns = _evaluated(signature, "return", raw.return_annotation, namespace)
    return signature


def _add(signature, parameter, namespace):
    annotation = _evaluated(signature, parameter.name, parameter.annotation, namespace)
    if _means(annotation, Context):
        signature.context = parameter.name
    elif _means(annotation, Page):
        signature.page = parameter.name
    else:
        positional = parameter.kind is parameter.POSITIONAL_ONLY
        signature.parameters.append(Parameter(parameter.name, annotation, parameter.default, positional))


def _evaluated(signature, name, annotation, namespace):
    if annotation is UNANNOTATED:
        return annotation
    try:
        return evaluate(annotation, namespace)
    except Exception as error:
        text = getattr(annotation, "__forward_arg__", annotation)
        if isinstance(text, str) and _CONTEXT_TEXT.fullmatch(text):
            return Context
        signature.unreadable.append((name, annotation, error))
        return UNANNOTATED


def _means(annotation, cls):
    """Whether an annotation is a class of ours, perhaps in `Optional` or `Annotated`."""
    if annotation is UNANNOTATED:
        return False
    shape = shape_of(annotation)
    members = without_none(shape)[0] if shape.kind == "union" else ()
    return shape.type is cls or len(members) == 1 and _means(members[0], cls)


def _raw_signature(function):
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(function)


def _namespace(function):
    """The globals of the function the author wrote, beneath all that was put around it."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__globals__"):
        function = getattr(type(function), "__call__", function)
    return getattr(function, "__globals__", {})


class Plan:
    """How one tool is called: worked out once, used for every call."""

    def __init__(self, function, schema_given):
        signature = read_signature(function)
        self._names = [parameter.name for parameter in signature.parameters]
        if signature.page:
            self._names.extend(_PAGE_PARAMETERS)
        # With a schema of the author's own, the names in it are between him and his function.
        self._checked = not schema_given
        self._takes_more = signature.takes_more
        self.names = frozenset(self._names)
        self.required = frozenset(p.name for p in signature.parameters if p.required)
        self._absent_is_none = [
            p.name for p in signature.parameters if p.default is NO_DEFAULT and not p.required and not p.positional
        ]
        self._converters = {}
        for parameter in signature.parameters:
            convert = _converter(parameter)
            if convert:
                self._converters[parameter.name] = convert
        self._positional = [p for p in signature.parameters if p.positional]
        self._context = signature.context
        self._page = signature.page
        # Then a call needs no more than `function(**arguments)`.
        self.simple = self._checked and not any((
            self._absent_is_none, self._converters, self._positional, self._context, self._page, self._takes_more,
        ))  # fmt: skip

    def bind(self, given: dict, context) -> tuple:
        """`(positional, keywords)` for the function; raises ValueError for arguments that do not fit."""
        arguments = dict(given)
        if self._checked:
            self._check(arguments)
        for name in self._absent_is_none:
            arguments.setdefault(name, None)
        for name, convert in self._converters.items():
            if name in arguments:
                arguments[name] = convert(arguments[name])
        if self._page:
            paging = {name: arguments.pop(name) for name in _PAGE_PARAMETERS if arguments.get(name) is not None}
            arguments[self._page] = Page(**paging)
        if self._context:
            arguments[self._context] = context
        return self._take_positional(arguments), arguments

    def _take_positional(self, arguments):
        values = []
        for parameter in self._positional:
            if parameter.name in arguments:
                values.append(arguments.pop(parameter.name))
            elif parameter.default is not NO_DEFAULT:
                values.append(parameter.default)
            elif parameter.optional:
                values.append(None)
        return values

    def _check(self, arguments):
        for name in self._names:
            if name in self.required and name not in arguments:
                raise ValueError(f"Missing required parameter: {name}")
        if self._takes_more:
            return
        for name in arguments:
            if name not in self.names:
                raise ValueError(_unknown(name, self._names))


def _converter(parameter):
    """The conversion of one argument, with its name in the error."""
    if parameter.annotation in (UNANNOTATED, str, bool, dict, list):
        return None
    from ._convert import Unfit, converter

    convert = converter(parameter.annotation)
    if convert is None:
        return None

    def named(value):
        if value is None and parameter.optional:
            return None
        try:
            return convert(value)
        except Unfit as error:
            error.path = parameter.name + error.path
            raise

    return named


def _unknown(name, names):
    if not names:
        return f"Unknown parameter: {name}; there are no parameters"
    from difflib import get_close_matches

    near = get_close_matches(name, names, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"Unknown parameter: {name}; parameters are {', '.join(names)}{hint}"


def input_schema(signature: Signature, mode: str, descriptions: dict) -> dict:
    """The tool's `inputSchema`; parameter descriptions come from the annotation, else from the docstring.

    In the mode `check` it is what arguments are held against, whatever clients are shown: all that the annotations
    say, nothing of a parameter without one, and of texts that are converted here not how they are written.
    """
    from ._schema import SchemaBuilder, description_of, seed_schema

    builder = SchemaBuilder(nullable=mode == "check")
    properties = {}
    for parameter in signature.parameters:
        if mode == "check" and parameter.annotation is UNANNOTATED:
            schema = {}
        elif mode != "seed":
            schema = _full(parameter, builder)
            if mode == "check" and parameter.default is None:
                schema = {"anyOf": [schema, {"type": "null"}]}
        else:
            schema = {"type": "string"} if parameter.annotation is UNANNOTATED else seed_schema(parameter.annotation)
        words = None if parameter.annotation is UNANNOTATED else description_of(parameter.annotation)
        words = words or descriptions.get(parameter.name)
        properties[parameter.name] = {**schema, "description": words} if words else schema
    if signature.page:
        properties.update(_page_properties(mode))
    required = [parameter.name for parameter in signature.parameters if parameter.required]
    root = {"type": "object", "properties": properties, "required": required}
    if mode != "seed":
        root["additionalProperties"] = signature.takes_more
    whole = builder.finish(root)
    return _without_converted(whole) if mode == "check" else whole


_CONVERTED = ("date-time", "date", "time", "duration", "uuid")


def _without_converted(schema):
    """The schema without formats of texts that become other things here, which says better what is wrong with them."""
    if isinstance(schema, list):
        return [_without_converted(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_converted(value) for key, value in schema.items()}
    return {key: value for key, value in kept.items() if key != "format" or value not in _CONVERTED}


def output_schema(signature):
    """The `outputSchema` that the return annotation promises, or None where it promises no object of known form."""
    from ._schema import SchemaBuilder

    if signature.returns is UNANNOTATED:
        return None
    shape = shape_of(signature.returns)
    if shape.kind not in ("record", "model") and not (shape.kind == "dict" and len(shape.args) == 2):
        return None
    builder = SchemaBuilder(output=True)
    return builder.finish(builder.of_parameter(signature.returns))


def _full(parameter, builder):
    default = None if parameter.default is NO_DEFAULT else parameter.default
    if parameter.annotation is not UNANNOTATED:
        return builder.with_default(builder.of_parameter(parameter.annotation), default)
    # Nothing is said of the type; a plain default shows what is meant.
    plain = isinstance(default, (bool, int, float, list, dict))
    schema = builder.of_parameter(type(default)) if plain else {"type": "string"}
    return builder.with_default(schema, default)


def _page_properties(mode):
    page = {"type": "integer", "description": "Page number (1-based)"}
    limit = {"type": "integer", "description": "Items per page"}
    if mode == "full":
        page = {"type": "integer", "minimum": 1, "default": 1, "description": "Page number (1-based)"}
        limit = {
            "type": "integer", "minimum": 1, "maximum": Page.MAXIMUM, "default": 20, "description": "Items per page",
        }  # fmt: skip
    return {"page": page, "limit": limit}
