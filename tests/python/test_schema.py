"""Signatures as JSON schema, in both modes."""

import collections
import datetime
import decimal
import enum
import pathlib
import sys
import typing
import unittest
import uuid
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Literal, Mapping, NamedTuple, NewType, Optional, Sequence, Set, Tuple, TypedDict, TypeVar, Union

import kit  # puts the package on the path
from toolcrib import Context, Page
from toolcrib._annotations import evaluate
from toolcrib._schema import SchemaBuilder, seed_schema
from toolcrib._signature import UNANNOTATED, input_schema, output_schema, read_signature

try:
    import pydantic
except ImportError:
    pydantic = None

Annotated = typing.Annotated
UserId = NewType("UserId", int)
Bound = TypeVar("Bound", bound=int)
Free = TypeVar("Free")
Either = TypeVar("Either", int, str)


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Odd(enum.Enum):
    HERE = (0, 0)
    THERE = (1, 1)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Movie(TypedDict):
    title: str
    year: int


class Loose(TypedDict, total=False):
    title: str


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass
class Task:
    title: str
    due: Optional[datetime.date] = None
    tags: List[str] = field(default_factory=list)
    colour: Colour = Colour.RED


@dataclass
class Node:
    name: str
    children: List["Node"] = field(default_factory=list)


class Stranger:
    pass


class Bounds:
    """Looks like what `annotated_types` has."""

    def __init__(self, **bounds):
        self.__dict__.update(bounds)


SEED = [
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (bool, "boolean"),
    (None, "null"),
    (type(None), "null"),
    (list, "array"),
    (List, "array"),
    (List[int], "array"),
    (Sequence[int], "array"),
    (set, "array"),
    (Set[int], "array"),
    (FrozenSet[int], "array"),
    (tuple, "array"),
    (Tuple[int, str], "array"),
    (collections.deque, "array"),
    (dict, "object"),
    (Dict, "object"),
    (Dict[str, int], "object"),
    (Mapping[str, int], "object"),
    (Movie, "object"),
    (Task, "object"),
    (Point, "object"),
    (Optional[int], "integer"),
    (Optional[List[str]], "array"),
    (Literal["a", "b"], "string"),
    (Literal["a", 1], ["string", "integer"]),
    (Literal["a", None], "string"),
    (Literal[True], "boolean"),
    (Colour, "string"),
    (Level, "integer"),
    (Mixed, ["integer", "string"]),
    (Odd, "string"),
    (Union[int, str], ["integer", "string"]),
    (Union[int, str, None], ["integer", "string"]),
    (Union[int, Literal[3], str], ["integer", "string"]),
    (Union[datetime.date, str], "string"),
    (bytes, "string"),
    (datetime.date, "string"),
    (datetime.datetime, "string"),
    (datetime.time, "string"),
    (datetime.timedelta, "string"),
    (uuid.UUID, "string"),
    (pathlib.Path, "string"),
    (pathlib.PurePosixPath, "string"),
    (decimal.Decimal, "string"),
    (Annotated[int, "how many"], "integer"),
    (UserId, "integer"),
    (Bound, "integer"),
    (Either, ["integer", "string"]),
    (Stranger, "string"),
    (Any, None),
    (object, None),
    (Free, None),
    (Union[int, Any], None),
]

FULL = [
    (str, {"type": "string"}),
    (Any, {}),
    (List[int], {"type": "array", "items": {"type": "integer"}}),
    (List[Any], {"type": "array"}),
    (List[Optional[int]], {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}),
    (Set[str], {"type": "array", "uniqueItems": True, "items": {"type": "string"}}),
    (Tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
    (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (Tuple[()], {"type": "array", "maxItems": 0}),
    (tuple, {"type": "array"}),
    (Tuple, {"type": "array"}),
    (List[Tuple[()]], {"type": "array", "items": {"type": "array", "maxItems": 0}}),
    (Dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Optional[int], {"type": "integer"}),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Union[int, str, None], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a"], {"type": "string", "const": "a"}),
    (Colour, {"type": "string", "enum": ["red", "green"]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (Odd, {"type": "string", "enum": ["HERE", "THERE"]}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (datetime.date, {"type": "string", "format": "date"}),
    (datetime.time, {"type": "string", "format": "time"}),
    (datetime.timedelta, {"type": "string", "format": "duration"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (decimal.Decimal, {"type": "string", "format": "decimal"}),
    (pathlib.Path, {"type": "string", "format": "path"}),
    (Movie, {"type": "object", "properties": {"title": {"type": "string"}, "year": {"type": "integer"}}, "required": ["title", "year"]}),
    (Loose, {"type": "object", "properties": {"title": {"type": "string"}}, "required": []}),
    (Point, {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}}, "required": ["x"]}),
    (
        Task,
        {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "due": {"type": "string", "format": "date"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
            },
            "required": ["title"],
        },
    ),
    (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
    (Annotated[int, Bounds(ge=1, lt=9)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}),
    (Annotated[float, Bounds(gt=0, le=1, multiple_of=0.5)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.5}),
    (Annotated[str, Bounds(min_length=1, max_length=9, pattern="^a")], {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"}),
    (Annotated[List[int], Bounds(min_length=1)], {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
    (Annotated[str, {"format": "email"}], {"type": "string", "format": "email"}),
    (Annotated[str, Bounds(documentation="as in Doc")], {"type": "string", "description": "as in Doc"}),
    (Annotated[int, Bounds(description="d", metadata=[Bounds(ge=2)], examples=[3])], {"type": "integer", "description": "d", "minimum": 2, "examples": [3]}),
    (List[Annotated[int, Bounds(ge=1)]], {"type": "array", "items": {"type": "integer", "minimum": 1}}),
]


def full(annotation):
    builder = SchemaBuilder()
    return builder.finish(builder.of_parameter(annotation))


def schema(function, mode="seed", descriptions=None):
    return input_schema(read_signature(function), mode, descriptions or {})


class Types(unittest.TestCase):
    def test_seed(self):
        for annotation, expected in SEED:
            with self.subTest(annotation=annotation):
                self.assertEqual(seed_schema(annotation), {} if expected is None else {"type": expected})

    def test_full(self):
        for annotation, expected in FULL:
            with self.subTest(annotation=annotation):
                self.assertEqual(full(annotation), expected)

    def test_text_is_evaluated_on_every_interpreter(self):
        names = {"Optional": Optional, "Task": Task, "List": List, "Union": Union}
        for text, expected in [
            ("int", "integer"),
            ("int | None", "integer"),
            ("int | str", ["integer", "string"]),
            ("list[int | str] | None", "array"),
            ("dict[str, int]", "object"),
            ("Optional[Task]", "object"),
            ("List['Task']", "array"),
            ("Optional['int']", "integer"),
        ]:
            with self.subTest(text=text):
                self.assertEqual(seed_schema(evaluate(text, names)), {"type": expected})

    def test_a_record_that_holds_itself_gets_a_name(self):
        node = {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["name"],
        }
        self.assertEqual(full(Node), {**node, "$defs": {"Node": node}})
        self.assertEqual(full(List[Node]), {"type": "array", "items": {"$ref": "#/$defs/Node"}, "$defs": {"Node": node}})

    def test_required_and_not_required_fields(self):
        if not hasattr(typing, "NotRequired"):
            self.skipTest("typing.NotRequired came with Python 3.11")
        cls = TypedDict("cls", {"a": str, "b": typing.NotRequired[int]})
        part = TypedDict("part", {"a": typing.Required[str], "b": int}, total=False)
        self.assertEqual(full(cls)["required"], ["a"])
        self.assertEqual(full(cls)["properties"]["b"], {"type": "integer"})
        self.assertEqual(full(part)["required"], ["a"])

    def test_type_statements_even_those_that_hold_themselves(self):
        if sys.version_info < (3, 12):
            self.skipTest("`type X = ...` came with Python 3.12")
        names = {}
        exec("type Ids = list[int]\ntype Tree = dict[str, Tree] | int", names)
        self.assertEqual(seed_schema(names["Ids"]), {"type": "array"})
        self.assertEqual(full(names["Ids"]), {"type": "array", "items": {"type": "integer"}})
        tree = {"anyOf": [{"type": "object", "additionalProperties": {"$ref": "#/$defs/Tree"}}, {"type": "integer"}]}
        self.assertEqual(full(names["Tree"]), {**tree, "$defs": {"Tree": tree}})

    def test_names_that_look_like_other_types(self):
        playlist = type("Playlist", (), {})
        self.assertEqual(seed_schema(playlist), {"type": "string"})


class Functions(unittest.TestCase):
    def test_the_example_of_the_guide(self):
        def create_task(title: str, priority: int = 1, tags: Optional[List[str]] = None) -> dict:
            """Create a new task."""

        expected = {
            "type": "object",
            "properties": {"title": {"type": "string"}, "priority": {"type": "integer"}, "tags": {"type": "array"}},
            "required": ["title"],
        }
        self.assertEqual(schema(create_task), expected)
        self.assertEqual(list(schema(create_task)), ["type", "properties", "required"])

    def test_optional_without_default_is_not_required(self):
        def f(a: Optional[int], b: int): ...

        self.assertEqual(schema(f)["required"], ["b"])

    def test_no_parameters(self):
        self.assertEqual(schema(lambda: None), {"type": "object", "properties": {}, "required": []})

    def test_kinds_of_parameters(self):
        def f(a: int, /, b: int, *args: int, c: int, d: int = 3, **more: int): ...

        expected = {name: {"type": "integer"} for name in "abcd"}
        self.assertEqual(schema(f), {"type": "object", "properties": expected, "required": ["a", "b", "c"]})
        self.assertIs(schema(f, "full")["additionalProperties"], True)
        self.assertIs(schema(lambda a: a, "full")["additionalProperties"], False)

    def test_defaults_in_full_mode(self):
        def f(a: int = 1, b: Optional[int] = None, c: Colour = Colour.GREEN, d: object = object(), e=2, g="x", h=None): ...

        properties = schema(f, "full")["properties"]
        self.assertEqual(properties["a"], {"type": "integer", "default": 1})
        self.assertEqual(properties["b"], {"type": "integer"})
        self.assertEqual(properties["c"], {"type": "string", "enum": ["red", "green"], "default": "green"})
        self.assertEqual(properties["d"], {})
        self.assertEqual(properties["e"], {"type": "integer", "default": 2})
        self.assertEqual(properties["g"], {"type": "string", "default": "x"})
        self.assertEqual(properties["h"], {"type": "string"})
        self.assertEqual(schema(f)["properties"]["e"], {"type": "string"})

    def test_a_default_that_does_not_fit_is_left_out(self):
        for annotation, default in [
            (bool, 1),
            (int, True),
            (int, "1"),
            (int, 1.5),
            (str, 5),
            (List[int], [1, "2"]),
            (List[int], (None,)),
            (Tuple[int, str], (1,)),
            (Dict[str, int], {"a": "b"}),
            (Literal[1, 2], True),
            (Literal["a"], "b"),
            (Optional[int], "x"),
            (Union[int, str], 2.5),
            (Movie, {"title": "t"}),
            (Task, Task("t", due=None)),
            (Point, Point(1, None)),
            (Node, Node("a", [Node(5)])),
            (List[Node], [Node("a", [Node(None)])]),
        ]:
            def f(a: annotation = default): ...
            def none(a: annotation = None): ...

            with self.subTest(annotation=annotation, default=default):
                self.assertEqual(schema(f, "full"), schema(none, "full"))

    def test_a_default_that_fits_stays(self):
        for annotation, default, shown in [
            (float, 1, 1),
            (int, 2.0, 2.0),
            (Any, [None], [None]),
            (List[Optional[int]], [1, None], [1, None]),
            (Tuple[int, str], (1, "a"), [1, "a"]),
            (Tuple[()], (), []),
            (Dict[str, List[int]], {"a": [1]}, {"a": [1]}),
            (Union[int, str], "a", "a"),
            (Optional[Colour], Colour.RED, "red"),
            (Literal[1, "a"], "a", "a"),
            (Point, Point(1), {"x": 1, "y": 0}),
            (Node, Node("a", [Node("b")]), {"name": "a", "children": [{"name": "b", "children": []}]}),
            (datetime.date, datetime.date(2024, 5, 6), "2024-05-06"),
        ]:
            def f(a: annotation = default): ...

            with self.subTest(annotation=annotation, default=default):
                self.assertEqual(schema(f, "full")["properties"]["a"]["default"], shown)

    def test_a_field_whose_default_does_not_fit(self):
        @dataclass
        class Careless:
            name: str = 5
            count: int = 3

        properties = full(Careless)["properties"]
        self.assertEqual(properties, {"name": {"type": "string"}, "count": {"type": "integer", "default": 3}})

    def test_optional_keeps_its_type_in_both_modes(self):
        def f(a: Optional[int], b: Optional[int] = None, c: Optional[int] = 3): ...

        seed = {"type": "object", "properties": {name: {"type": "integer"} for name in "abc"}, "required": []}
        self.assertEqual(schema(f), seed)
        properties = {**seed["properties"], "c": {"type": "integer", "default": 3}}
        self.assertEqual(schema(f, "full"), {**seed, "properties": properties, "additionalProperties": False})

    def test_descriptions_inside_optional(self):
        def f(a: Optional[Annotated[int, "inside"]], b: Annotated[Optional[Annotated[int, "inside"]], "outside"]): ...

        for mode in ("seed", "full"):
            properties = schema(f, mode, {"a": "from the text"})["properties"]
            self.assertEqual(properties["a"], {"type": "integer", "description": "inside"})
            self.assertEqual(properties["b"], {"type": "integer", "description": "outside"})

    def test_descriptions_from_the_annotation_win(self):
        def f(a: Annotated[int, "from the annotation"], b: int): ...

        for mode in ("seed", "full"):
            properties = schema(f, mode, {"a": "from the text", "b": "from the text"})["properties"]
            self.assertEqual(properties["a"], {"type": "integer", "description": "from the annotation"})
            self.assertEqual(properties["b"], {"type": "integer", "description": "from the text"})

    def test_context_is_not_a_parameter(self):
        def f(a: int, ctx: Context): ...
        def g(a: int, ctx: Optional[Context] = None): ...
        def h(a: int, ctx: "Context"): ...
        def only_for_checkers(a: int, ctx: "toolcrib.Context"): ...
        def modern(a: int, ctx: "Context | None" = None): ...

        def annotated(a: int, ctx: Annotated[Context, "for the log"]): ...
        def inside(a: int, ctx: Optional[Annotated[Context, "for the log"]] = None): ...
        def outside(a: int, ctx: Annotated[Optional[Context], "for the log"] = None): ...

        for function in (f, g, h, only_for_checkers, modern, annotated, inside, outside):
            with self.subTest(function=function.__name__):
                signature = read_signature(function)
                self.assertEqual(signature.context, "ctx")
                self.assertEqual([p.name for p in signature.parameters], ["a"])
                self.assertEqual(signature.unreadable, [])

    def test_page_is_two_parameters(self):
        def f(q: str, page_wanted: Page): ...

        def annotated(page_wanted: Annotated[Page, "which"]): ...

        self.assertEqual(read_signature(annotated).page, "page_wanted")
        seed = schema(f)
        self.assertEqual(seed["required"], ["q"])
        self.assertEqual(seed["properties"]["page"], {"type": "integer", "description": "Page number (1-based)"})
        limit = schema(f, "full")["properties"]["limit"]
        self.assertEqual(limit, {"type": "integer", "minimum": 1, "maximum": 100, "default": 20, "description": "Items per page"})

    def test_what_cannot_be_evaluated_is_named_and_counts_as_unannotated(self):
        def f(a: "Nowhere", b: "int"): ...

        signature = read_signature(f)
        self.assertEqual([(name, text) for name, text, _ in signature.unreadable], [("a", "Nowhere")])
        self.assertIs(signature.parameters[0].annotation, UNANNOTATED)
        self.assertEqual(input_schema(signature, "seed", {})["properties"], {"a": {"type": "string"}, "b": {"type": "integer"}})

    def test_output_schemas_are_for_objects(self):
        def task() -> Task: ...
        def counts() -> Dict[str, int]: ...
        def anything() -> dict: ...
        def text() -> str: ...
        def perhaps() -> Optional[Task]: ...

        schema = output_schema(read_signature(task))
        self.assertEqual(schema["required"], ["title", "due", "tags", "colour"])
        self.assertEqual(schema["properties"]["due"], {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], })
        self.assertEqual(output_schema(read_signature(counts)), {"type": "object", "additionalProperties": {"type": "integer"}})
        for function in (anything, text, perhaps):
            self.assertIsNone(output_schema(read_signature(function)))


@unittest.skipIf(pydantic is None, "pydantic is not installed for this interpreter")
class Pydantic(unittest.TestCase):
    def test_models_and_their_definitions(self):
        class Inner(pydantic.BaseModel):
            n: int

        class Outer(pydantic.BaseModel):
            inner: Inner
            note: str = pydantic.Field("", description="a note", max_length=5)

        def f(a: Outer, b: Inner): ...

        self.assertEqual(schema(f)["properties"], {"a": {"type": "object"}, "b": {"type": "object"}})
        root = schema(f, "full")
        self.assertEqual(root["properties"]["a"]["properties"]["inner"], {"$ref": "#/$defs/Inner"})
        self.assertEqual(root["properties"]["a"]["properties"]["note"]["maxLength"], 5)
        self.assertEqual(set(root["$defs"]), {"Inner"})
        self.assertNotIn("$defs", root["properties"]["a"])

    def test_two_models_of_one_name(self):
        def family(kind):
            class Inner(pydantic.BaseModel):
                n: kind

            class Outer(pydantic.BaseModel):
                inner: Inner

            return Outer

        first, second = family(int), family(str)

        def f(a: first, b: second): ...

        root = schema(f, "full")
        self.assertEqual(set(root["$defs"]), {"Inner", "Inner2"})
        self.assertEqual(root["properties"]["b"]["properties"]["inner"], {"$ref": "#/$defs/Inner2"})

    def test_a_model_that_holds_itself(self):
        class Tree(pydantic.BaseModel):
            children: List["Tree"] = []

        Tree.model_rebuild(_types_namespace={"Tree": Tree})

        def f(tree: Tree) -> Tree: ...

        root = schema(f, "full")
        self.assertEqual(root["properties"]["tree"]["$ref"], "#/$defs/Tree")
        self.assertEqual(output_schema(read_signature(f))["type"], "object")

    def test_field_in_annotated(self):
        annotation = Annotated[int, pydantic.Field(ge=1, description="how many", examples=[3])]
        self.assertEqual(full(annotation), {"type": "integer", "minimum": 1, "description": "how many", "examples": [3]})
        self.assertEqual(full(pydantic.PositiveInt), {"type": "integer", "exclusiveMinimum": 0})


if __name__ == "__main__":
    unittest.main()
