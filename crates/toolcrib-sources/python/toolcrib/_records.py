"""Records: dataclasses, TypedDicts and NamedTuples, and the fields that a caller may give."""

import sys
import types
import typing

from ._annotations import evaluate, wrapper_name


class Field:
    """A field of a record. `default` is meaningful only where it is not `required`."""

    __slots__ = ("name", "annotation", "required", "default")

    def __init__(self, name, annotation, required, default=None):
        self.name = name
        self.annotation = annotation
        self.required = required
        self.default = default


def record_fields(cls):
    """The fields of a dataclass, TypedDict or NamedTuple that a caller may give."""
    annotations = _fields_of(cls)
    if is_typed_dict(cls):
        return [Field(name, one, _typed_dict_requires(cls, name, one)) for name, one in annotations.items()]
    if is_named_tuple(cls):
        return [
            Field(name, annotations.get(name, str), name not in cls._field_defaults, cls._field_defaults.get(name))
            for name in cls._fields
        ]
    return _dataclass_fields(cls, annotations)


def is_typed_dict(cls):
    return issubclass(cls, dict) and hasattr(cls, "__total__")


def is_named_tuple(cls):
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _fields_of(cls):
    """`{name: annotation}` of a class, evaluated; one that cannot be evaluated counts as `Any`."""
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception:
        fields = {}
    for base in reversed(cls.__mro__):
        namespace = {**vars(sys.modules.get(base.__module__, types)), base.__name__: base}
        for name, annotation in _own_annotations(base).items():
            try:
                fields[name] = evaluate(annotation, namespace)
            except Exception:
                fields[name] = typing.Any
    return fields


def _own_annotations(cls):
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    return cls.__dict__.get("__annotations__", {})


def _typed_dict_requires(cls, name, annotation):
    marks = _marks_of(annotation)
    if "NotRequired" in marks:
        return False
    return "Required" in marks or name in cls.__required_keys__


def _dataclass_fields(cls, annotations):
    import dataclasses

    fields = []
    for field in cls.__dataclass_fields__.values():
        if field._field_type is dataclasses._FIELD_CLASSVAR or not field.init:
            continue
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = None if field.default is dataclasses.MISSING else field.default
        fields.append(Field(field.name, annotations.get(field.name, str), required, default))
    return fields


def _marks_of(annotation):
    """The names of the `Required`, `NotRequired` wrappers around a TypedDict field."""
    marks = set()
    while True:
        origin = typing.get_origin(annotation)
        if wrapper_name(origin):
            marks.add(wrapper_name(origin))
            annotation = typing.get_args(annotation)[0]
        elif origin is typing.Annotated:
            annotation = annotation.__origin__
        else:
            return marks
