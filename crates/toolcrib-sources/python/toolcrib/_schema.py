"""Annotations -> JSON schema, in two modes.

*seed* says one thing about each parameter, its type. *full* says all that the annotation says. The rule one would
get wrong: an optional parameter keeps the type it has without `None`, since leaving it out is how a caller says
None; but inside lists and in results, where nothing can be left out, `null` is a type of its own.
"""

from ._annotations import EMPTY, enum_choices, is_optional, json_type, shape_of, without_none
from ._plain import NotPlain, plain
from ._records import is_typed_dict, record_fields

_TYPES = {
    "null": "null", "string": "string", "integer": "integer", "number": "number", "boolean": "boolean",
    "list": "array", "set": "array", "tuple": "array", "deque": "array",
    "dict": "object", "record": "object", "model": "object",
}  # fmt: skip
_FORMATS = {
    "datetime": {"format": "date-time"},
    "date": {"format": "date"},
    "time": {"format": "time"},
    "timedelta": {"format": "duration"},
    "uuid": {"format": "uuid"},
    "bytes": {"contentEncoding": "base64"},
    "decimal": {"format": "decimal"},
    "path": {"format": "path"},
}
_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


def seed_schema(annotation) -> dict:
    """`{"type": ...}`, or `{}` where anything goes."""
    types = _seed_types(annotation, set())
    if types is None:
        return {}
    return {"type": types[0] if len(types) == 1 else types}


def description_of(annotation):
    """What `Annotated[T, "..."]` says, also inside `Optional`; or None."""
    shape = shape_of(annotation)
    found = None
    for item in shape.metadata:
        found = _words(item) or found
    members = without_none(shape)[0] if shape.kind == "union" else ()
    return description_of(members[0]) if found is None and len(members) == 1 else found


def _seed_types(annotation, seen):
    """The types in order, each once; None for anything. `seen` holds the aliases being looked into."""
    shape = shape_of(annotation)
    if shape.kind == "any" or (shape.kind == "alias" and shape.type in seen):
        return None
    if shape.kind == "alias":
        return _seed_types(shape.args[0], seen | {shape.type})
    if shape.kind == "union":
        members = [_seed_types(member, seen) for member in without_none(shape)[0]]
        if None in members:
            return None
        return _each_once(name for member in members for name in member)
    if shape.kind in ("literal", "enum"):
        return _each_once(json_type(value) for value in _choices(shape))
    return [_TYPES.get(shape.kind, "string")]


def _each_once(names):
    names = list(dict.fromkeys(names))
    return [name for name in names if name != "null"] or names


def _choices(shape):
    if shape.kind == "enum":
        return list(enum_choices(shape.type))
    return [plain(value) if not isinstance(value, bytes) else value.decode("latin-1") for value in shape.args]


class SchemaBuilder:
    """Full schemas that share one `$defs`.

    A record is written out where it is used, unless it holds itself: only then does it get a name.
    """

    def __init__(self, output=False, nullable=False):
        self.definitions = {}
        self._output = output
        self._nullable = output or nullable
        self._open = []
        self._names = {}

    def of_parameter(self, annotation) -> dict:
        """The schema of a parameter or field, where None is said by leaving it out."""
        return self._of(annotation, nullable=self._nullable)

    def finish(self, schema: dict) -> dict:
        """The schema as a root: an object with `$defs` where there are any."""
        if set(schema) == {"$ref"} and schema["$ref"].startswith("#/$defs/"):
            schema = dict(self.definitions[schema["$ref"][len("#/$defs/"):]])
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def with_default(self, schema: dict, default) -> dict:
        """The schema with its `default`, if JSON can carry it, it says something, and the schema allows it."""
        if default is None:
            return schema
        try:
            value = plain(default)
            return {**schema, "default": value} if _fits(value, schema, self.definitions) else schema
        except (NotPlain, RecursionError):
            return schema

    def _of(self, annotation, nullable=True):
        shape = shape_of(annotation)
        schema = self._of_shape(shape, nullable)
        for item in shape.metadata:
            schema = _with_metadata(schema, item)
        return schema

    def _of_shape(self, shape, nullable):
        kind = shape.kind
        if kind in ("any", "unknown"):
            return {} if kind == "any" else {"type": "string"}
        if kind in _FORMATS:
            return {"type": "string", **_FORMATS[kind]}
        if kind == "union":
            return self._of_union(shape, nullable)
        if kind in ("literal", "enum"):
            return _of_choices([value for value in _choices(shape) if nullable or value is not None])
        if kind == "model":
            return self._of_model(shape.type)
        if kind in ("record", "alias"):
            return self._of_named(shape, nullable)
        return self._of_container(shape)

    def _of_container(self, shape):
        schema = {"type": _TYPES[shape.kind]}
        args = shape.args
        if shape.kind == "tuple" and args == EMPTY:
            return {**schema, "maxItems": 0}
        if shape.kind == "tuple" and args and args[-1] is not Ellipsis:
            items = [self._of(item) for item in args]
            return {**schema, "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if shape.kind == "dict" and len(args) == 2:
            values = self._of(args[1])
            return {**schema, "additionalProperties": values} if values else schema
        if shape.kind == "set":
            schema["uniqueItems"] = True
        if shape.kind in ("list", "set", "tuple", "deque") and args:
            items = self._of(args[0])
            return {**schema, "items": items} if items else schema
        return schema

    def _of_union(self, shape, nullable):
        members, had_none = without_none(shape)
        schemas = [self._of(member) for member in members]
        if had_none and nullable:
            schemas.append({"type": "null"})
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _of_named(self, shape, nullable):
        """A record or alias; by `$ref` if it is met again inside itself."""
        if shape.type in self._open:
            name = self._names.setdefault(shape.type, self._free_name(shape.type.__name__))
            self.definitions.setdefault(name, {})
            return {"$ref": f"#/$defs/{name}"}
        self._open.append(shape.type)
        schema = self._of_record(shape.type) if shape.kind == "record" else self._of(shape.args[0], nullable)
        self._open.pop()
        if shape.type not in self._names:
            return schema
        name = self._names[shape.type]
        self.definitions[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def _of_record(self, cls):
        properties, required = {}, []
        for field in record_fields(cls):
            schema = self.of_parameter(field.annotation)
            if field.required and (self._output or not is_optional(field.annotation)) or self._always_there(cls):
                required.append(field.name)
            properties[field.name] = schema if field.required else self.with_default(schema, field.default)
        return {"type": "object", "properties": properties, "required": required}

    def _always_there(self, cls):
        """A result carries every field of a dataclass or NamedTuple, defaults or not."""
        return self._output and not is_typed_dict(cls)

    def _of_model(self, cls):
        if not hasattr(cls, "model_json_schema"):
            schema = cls.schema(ref_template="#/$defs/{model}")
            schema["$defs"] = schema.pop("definitions", {})
        else:
            schema = cls.model_json_schema(mode="serialization" if self._output else "validation")
        renamed = {}
        definitions = schema.pop("$defs", {})
        for name, definition in definitions.items():
            known = self.definitions.get(name)
            renamed[name] = name if known is None or known == definition else self._free_name(name)
        for name, definition in definitions.items():
            self.definitions[renamed[name]] = _renamed(definition, renamed)
        return _renamed(schema, renamed)

    def _free_name(self, name):
        number, free = 1, name
        while free in self.definitions:
            number += 1
            free = f"{name}{number}"
        return free


def _fits(value, schema, definitions):
    """Whether a plain value is of the types that a schema names, all the way down."""
    if "$ref" in schema:
        return _fits(value, definitions.get(schema["$ref"].rpartition("/")[2], {}), definitions)
    if "anyOf" in schema:
        return any(_fits(value, one, definitions) for one in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        choices = schema.get("enum", [schema.get("const")])
        return any(value == choice and type(value) is type(choice) for choice in choices)
    if not _is_of_type(value, schema.get("type")):
        return False
    if isinstance(value, list):
        return _items_fit(value, schema, definitions)
    return not isinstance(value, dict) or _members_fit(value, schema, definitions)


def _is_of_type(value, wanted):
    if wanted is None:
        return True
    names = {json_type(value)}
    if isinstance(value, float) and value.is_integer():
        names.add("integer")
    if "integer" in names:
        names.add("number")
    return not names.isdisjoint([wanted] if isinstance(wanted, str) else wanted)


def _items_fit(items, schema, definitions):
    if not schema.get("minItems", 0) <= len(items) <= schema.get("maxItems", len(items)):
        return False
    first = schema.get("prefixItems", [])
    each = [*first, *[schema.get("items", {})] * (len(items) - len(first))]
    return all(_fits(item, one, definitions) for item, one in zip(items, each) if isinstance(one, dict))


def _members_fit(members, schema, definitions):
    if not members.keys() >= set(schema.get("required", ())):
        return False
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    each = ((value, properties.get(name, others)) for name, value in members.items())
    return all(_fits(value, one, definitions) for value, one in each if isinstance(one, dict))


def _of_choices(values):
    types = _each_once(json_type(value) for value in values)
    if None in values and "null" not in types:
        types.append("null")
    schema = {"type": types[0] if len(types) == 1 else types} if types else {}
    return {**schema, "const": values[0]} if len(values) == 1 else {**schema, "enum": values}


def _words(item):
    """The description in one piece of `Annotated` metadata: text, pydantic's `Field`, or `Doc`."""
    if isinstance(item, str):
        return item
    for attribute in ("documentation", "description"):
        words = getattr(item, attribute, None)
        if isinstance(words, str):
            return words
    return item.get("description") if isinstance(item, dict) else None


def _with_metadata(schema, item):
    if isinstance(item, dict):
        return {**schema, **item}
    schema = {**schema, **_constraints(schema, item)}
    words = _words(item)
    if words:
        schema["description"] = words
    if isinstance(item, str):
        return schema
    for inner in getattr(item, "metadata", None) or ():
        schema = _with_metadata(schema, inner)
    examples = getattr(item, "examples", None)
    if isinstance(examples, (list, tuple)):
        schema["examples"] = plain(list(examples))
    return schema


def _constraints(schema, item):
    """Bounds by attribute, as `annotated_types` and pydantic have them; nothing of either need be installed."""
    if isinstance(item, str):
        return {}
    found = {}
    for attribute, keyword in _BOUNDS.items():
        bound = getattr(item, attribute, None)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool):
            found[keyword] = bound
    noun = _LENGTHS.get(schema.get("type"))
    for attribute in ("min_length", "max_length"):
        length = getattr(item, attribute, None)
        if noun and isinstance(length, int):
            found[attribute[:3] + noun] = length
    pattern = getattr(item, "pattern", None)
    pattern = getattr(pattern, "pattern", pattern)
    if isinstance(pattern, str):
        found["pattern"] = pattern
    return found


def _renamed(schema, names):
    """A copy whose `$ref`s follow the definitions to their new names."""
    if isinstance(schema, list):
        return [_renamed(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _renamed(value, names) for key, value in schema.items()}
    prefix, _, name = str(copy.get("$ref", "")).rpartition("/")
    if prefix == "#/$defs":
        copy["$ref"] = f"#/$defs/{names.get(name, name)}"
    return copy
