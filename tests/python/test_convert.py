"""JSON values as what a parameter promises, and arguments on their way to a function."""

import collections
import datetime
import decimal
import enum
import pathlib
import sys
import unittest
import uuid
from dataclasses import InitVar, dataclass, field
from typing import Any, Dict, FrozenSet, List, Literal, NamedTuple, Optional, Set, Tuple, TypedDict, Union

import kit  # puts the package on the path
from toolcrib import Context, Page
from toolcrib._convert import converter
from toolcrib._signature import Plan

try:
    import pydantic
except ImportError:
    pydantic = None

UTC = datetime.timezone.utc
ID = "12345678-1234-5678-1234-567812345678"


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Point(NamedTuple):
    x: int
    y: int = 0


class Movie(TypedDict):
    title: str
    seen: datetime.date


@dataclass
class Task:
    title: str
    due: Optional[datetime.date] = None
    colour: Colour = Colour.RED
    born: datetime.date = field(default=None, init=False)


@dataclass
class Positive:
    n: int
    scale: InitVar[float] = 1

    def __post_init__(self, scale):
        if self.n < 1:
            raise ValueError("n must be positive")


@dataclass
class Node:
    day: datetime.date
    children: List["Node"] = field(default_factory=list)


DAY = datetime.date(2024, 5, 6)
GOOD = [
    (str, "x", "x"),
    (str, 5, 5),
    (int, "x", "x"),
    (int, 3.0, 3),
    (int, 3.5, 3.5),
    (float, 3, 3.0),
    (float, True, True),
    (bool, 1, 1),
    (Any, [1], [1]),
    (Colour, "red", Colour.RED),
    (Literal["a", Colour.GREEN], "green", Colour.GREEN),
    (Literal["a"], "zzz", "zzz"),
    (datetime.date, "2024-05-06", DAY),
    (datetime.datetime, "2024-05-06T07:08:09Z", datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
    (datetime.datetime, "2024-05-06T07:08:09.5+00:00", datetime.datetime(2024, 5, 6, 7, 8, 9, 500000, UTC)),
    (datetime.datetime, "2024-05-06T07:08:09.123456789Z", datetime.datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)),
    (datetime.time, "07:08", datetime.time(7, 8)),
    (datetime.timedelta, "P1DT2H3M4.5S", datetime.timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    (datetime.timedelta, "-PT1M", datetime.timedelta(minutes=-1)),
    (datetime.timedelta, 90, datetime.timedelta(seconds=90)),
    (uuid.UUID, ID, uuid.UUID(ID)),
    (pathlib.Path, "a/b", pathlib.Path("a/b")),
    (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
    (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
    (bytes, "AAH/", b"\x00\x01\xff"),
    (Set[int], [1, 1, 2.0], {1, 2}),
    (FrozenSet[str], ["a"], frozenset("a")),
    (set, [1, 2], {1, 2}),
    (Tuple[int, datetime.date], [1, "2024-05-06"], (1, DAY)),
    (Tuple[datetime.date, ...], ["2024-05-06"], (DAY,)),
    (tuple, [1, "a"], (1, "a")),
    (collections.deque, [1, 2], collections.deque([1, 2])),
    (List[datetime.date], ["2024-05-06"], [DAY]),
    (List[int], "not a list", "not a list"),
    (Dict[str, datetime.date], {"a": "2024-05-06"}, {"a": DAY}),
    (Dict[int, str], {"1": "a"}, {1: "a"}),
    (Dict[Colour, int], {"red": 1.0}, {Colour.RED: 1}),
    (Optional[datetime.date], None, None),
    (Optional[datetime.date], "2024-05-06", DAY),
    (Union[int, str], "5", "5"),
    (Union[int, str], 3.0, 3),
    (Union[int, str], [1], [1]),
    (Union[float, int], 3, 3),
    (Union[datetime.date, str], "2024-05-06", DAY),
    (Union[datetime.date, str], "soon", "soon"),
    (Union[str, datetime.date], "2024-05-06", "2024-05-06"),
    (Union[Task, List[Task]], [{"title": "a"}], [Task("a")]),
    (Task, {"title": "a", "due": "2024-05-06", "colour": "green"}, Task("a", DAY, Colour.GREEN)),
    (Task, {"title": "a", "due": None}, Task("a")),
    (Positive, {"n": 2.0, "scale": 3}, Positive(2)),
    (Point, {"x": 1}, Point(1, 0)),
    (Point, [1, 2], Point(1, 2)),
    (Movie, {"title": "a", "seen": "2024-05-06", "more": 1}, {"title": "a", "seen": DAY, "more": 1}),
    (Node, {"day": "2024-05-06", "children": [{"day": "2024-05-06"}]}, Node(DAY, [Node(DAY)])),
]

BAD = [
    (datetime.date, "x", "expected a date, got 'x'"),
    (datetime.date, 5, "expected a date, got 5"),
    (datetime.datetime, "", "expected a date and time, got ''"),
    (datetime.timedelta, "P", "expected a duration, got 'P'"),
    (datetime.timedelta, "1 hour", "expected a duration, got '1 hour'"),
    (uuid.UUID, "x", "expected a UUID, got 'x'"),
    (pathlib.Path, 5, "expected a path, got 5"),
    (decimal.Decimal, "x", "expected a decimal number, got 'x'"),
    (decimal.Decimal, "NaN", "expected a decimal number, got 'NaN'"),
    (bytes, "%%", "expected base64 text, got '%%'"),
    (Colour, "blue", "expected one of 'red', 'green', got 'blue'"),
    (Colour, [], "expected one of 'red', 'green', got []"),
    (Set[int], "ab", "expected an array, got 'ab'"),
    (set, [[]], "expected an array of plain values, got [[]]"),
    (Tuple[int, int], [1], "expected an array of 2, got [1]"),
    (List[datetime.date], ["2024-05-06", "x"], "[1]: expected a date, got 'x'"),
    (Dict[str, List[datetime.date]], {"a": ["x"]}, "a[0]: expected a date, got 'x'"),
    (Dict[int, str], {"one": "a"}, "one: expected a whole number as key, got 'one'"),
    (List[Task], [{"title": "a", "due": "x"}], "[0].due: expected a date, got 'x'"),
    (Task, "x", "expected an object, got 'x'"),
    (Task, {"title": "a", "born": "x"}, "born: unknown field; fields are title, due, colour"),
    (Positive, {"n": 0}, "n must be positive"),
    (Union[int, datetime.date], [1], "expected a whole number or a date, got [1]"),
    (Union[int, datetime.date], "x", "expected a whole number or a date, got 'x'"),
    (datetime.date, "x" * 200, "expected a date, got '" + "x" * 76 + "..."),
]


def convert(annotation, value):
    made = converter(annotation)
    return value if made is None else made(value)


class Conversion(unittest.TestCase):
    def test_what_converts(self):
        for annotation, value, expected in GOOD:
            with self.subTest(annotation=annotation, value=value):
                got = convert(annotation, value)
                self.assertEqual(got, expected)
                self.assertIs(type(got), type(expected))

    def test_what_does_not(self):
        for annotation, value, message in BAD:
            with self.subTest(annotation=annotation, value=value):
                with self.assertRaises(ValueError) as raised:
                    convert(annotation, value)
                self.assertEqual(str(raised.exception), message)

    def test_a_field_that_is_missing(self):
        with self.assertRaisesRegex(ValueError, "missing 1 required positional argument: 'title'"):
            convert(Task, {})

    @unittest.skipIf(pydantic is None, "pydantic is not installed for this interpreter")
    def test_pydantic(self):
        class User(pydantic.BaseModel):
            name: str
            ages: List[int] = []

        self.assertEqual(convert(List[User], [{"name": "a", "ages": ["3"]}]), [User(name="a", ages=[3])])
        with self.assertRaises(ValueError) as raised:
            convert(List[User], [{"name": "a", "ages": ["x"]}])
        self.assertTrue(str(raised.exception).startswith("[0].ages[0]: Input should be a valid integer"))
        with self.assertRaisesRegex(ValueError, "name: .*; ages: "):
            convert(User, {"ages": 1})

    def test_a_type_statement_that_holds_itself(self):
        if sys.version_info < (3, 12):
            self.skipTest("`type X = ...` came with Python 3.12")
        names = {"date": datetime.date}
        exec("type Tree = dict[str, Tree] | date", names)
        self.assertEqual(convert(names["Tree"], {"a": {"b": "2024-05-06"}}), {"a": {"b": DAY}})


def bind(function, arguments, schema_given=False):
    positional, keywords = Plan(function, schema_given).bind(arguments, "the context")
    return function(*positional, **keywords)


class Binding(unittest.TestCase):
    def refused(self, function, arguments):
        with self.assertRaises(ValueError) as raised:
            bind(function, arguments)
        return str(raised.exception)

    def test_only_plain_signatures_are_simple(self):
        self.assertTrue(Plan(lambda a, b=1: a, False).simple)

        def plain(a: str, b: bool, c: dict, d: list = ()): ...
        def number(a: int): ...
        def context(c: Context): ...
        def more(**more): ...
        def optional(a: Optional[str]): ...

        self.assertTrue(Plan(plain, False).simple)
        for function in (number, context, more, optional):
            self.assertFalse(Plan(function, False).simple, function.__name__)
        self.assertFalse(Plan(plain, True).simple)

    def test_all_kinds_of_parameters(self):
        def f(a, b=2, /, c=3, *, d: Optional[int], **more):
            return (a, b, c, d, more)

        self.assertEqual(bind(f, {"a": 1}), (1, 2, 3, None, {}))
        self.assertEqual(bind(f, {"a": 1, "b": 5, "d": 4.0, "e": 6}), (1, 5, 3, 4, {"e": 6}))

    def test_a_later_positional_without_the_earlier(self):
        def f(a=1, b=2, /):
            return (a, b)

        self.assertEqual(bind(f, {"b": 5}), (1, 5))

    def test_missing_and_unknown(self):
        def f(query: str, limit: int = 1): ...

        self.assertEqual(self.refused(f, {}), "Missing required parameter: query")
        self.assertEqual(self.refused(f, {"query": "", "zzz": 1}), "Unknown parameter: zzz; parameters are query, limit")
        unknown = "Unknown parameter: limi; parameters are query, limit; did you mean 'limit'?"
        self.assertEqual(self.refused(f, {"query": "", "limi": 1}), unknown)
        self.assertEqual(self.refused(lambda: None, {"x": 1}), "Unknown parameter: x; there are no parameters")

    def test_the_path_begins_with_the_parameter(self):
        def f(items: List[Task]): ...

        items = [{"title": "a"}, {"title": "b"}, {"title": "c", "due": "x"}]
        self.assertEqual(self.refused(f, {"items": items}), "items[2].due: expected a date, got 'x'")

    def test_null_for_what_may_be_none(self):
        def f(a: datetime.date = None, b: Optional[Colour] = Colour.RED):
            return (a, b)

        self.assertEqual(bind(f, {"a": None, "b": None}), (None, None))

    def test_context_and_its_name_is_nobodys_argument(self):
        def f(a, ctx: Context):
            return (a, ctx)

        self.assertEqual(bind(f, {"a": 1}), (1, "the context"))
        self.assertIn("Unknown parameter: ctx", self.refused(f, {"a": 1, "ctx": "forged"}))

    def test_page(self):
        def f(items: list, page: Page):
            return (page.offset, page.slice(items))

        def g(wanted: Page):
            return wanted

        self.assertEqual(bind(f, {"items": list(range(50)), "page": 2, "limit": 3.0}), (3, [3, 4, 5]))
        self.assertEqual(repr(bind(g, {})), "Page(page=1, limit=20)")
        self.assertEqual(self.refused(g, {"page": 0}), "page: expected 1 or more, got 0")
        self.assertEqual(self.refused(g, {"limit": 101}), "limit: expected 1 to 100, got 101")
        self.assertEqual(self.refused(g, {"limit": "x"}), "limit: expected a whole number, got 'x'")

    def test_a_schema_of_the_authors_own_leaves_names_alone(self):
        def f(day: datetime.date):
            return day

        self.assertEqual(bind(f, {"day": "2024-05-06"}, schema_given=True), DAY)
        with self.assertRaises(TypeError):
            bind(f, {"other": 1}, schema_given=True)


if __name__ == "__main__":
    unittest.main()
