"""What tools return and raise, as MCP results."""

import collections
import contextlib
import datetime
import decimal
import enum
import io
import json
import os
import pathlib
import tempfile
import unittest
import uuid
from dataclasses import dataclass, field
from typing import List, NamedTuple

import kit  # puts the package on the path
from toolcrib import Audio, File, Image
from toolcrib._results import CpuTimeSpent, Results, failure, text_result
from toolcrib._plain import at_least, duration_text, to_bytes

try:
    import pydantic
except ImportError:
    pydantic = None
try:
    import PIL.Image
except ImportError:
    PIL = None

PNG = b"\x89PNG\r\n\x1a\n...."


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Task:
    title: str
    at: Point
    tags: List[str] = field(default_factory=list)


def result(value, **limits):
    return json.loads(Results(**limits).of_value(value))


def text(value):
    got = result(value)
    return ("!" if got["isError"] else "") + got["content"][0]["text"]


class Values(unittest.TestCase):
    def test_scalars_are_text(self):
        for value, expected in [
            ("héllo\n", "héllo\n"),
            ("", ""),
            (True, "true"),
            (3, "3"),
            (2.5, "2.5"),
            (10**30, str(10**30)),
            (Colour.RED, "red"),
            (datetime.date(2024, 5, 6), "2024-05-06"),
            (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (decimal.Decimal("1.10"), "1.10"),
            (pathlib.PurePosixPath("/a"), "/a"),
            (datetime.timedelta(minutes=90), "PT1H30M"),
        ]:
            with self.subTest(value=value):
                self.assertEqual(result(value), {"content": [{"type": "text", "text": expected}], "isError": False})

    def test_nothing_is_no_part(self):
        self.assertEqual(result(None), {"content": [], "isError": False})

    def test_objects_are_text_and_structure(self):
        for value, expected in [
            ({"a": [1, None, "é"]}, {"a": [1, None, "é"]}),
            ({1: "a", None: "b", True: "c", 2.5: "d", Colour.RED: "e"}, {"1": "c", "null": "b", "2.5": "d", "red": "e"}),
            (Task("t", Point(1, 2)), {"title": "t", "at": {"x": 1, "y": 2}, "tags": []}),
            (Point(1, 2), {"x": 1, "y": 2}),
            ({"p": Point(1, 2), "s": {3}, "q": collections.deque([1])}, {"p": {"x": 1, "y": 2}, "s": [3], "q": [1]}),
            ({"d": datetime.datetime(2024, 5, 6), "c": Colour.RED}, {"d": "2024-05-06T00:00:00", "c": "red"}),
            (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        ]:
            with self.subTest(value=value):
                got = result(value)
                self.assertEqual(got["structuredContent"], expected)
                self.assertEqual(got["content"], [{"type": "text", "text": json.dumps(expected, ensure_ascii=False)}])

    def test_lists_are_text_and_a_wrapped_structure(self):
        got = result([1, {"a": (2, 3)}])
        self.assertEqual(got["structuredContent"], {"result": [1, {"a": [2, 3]}]})
        self.assertEqual(got["content"][0]["text"], '[1, {"a": [2, 3]}]')
        self.assertEqual(result([])["structuredContent"], {"result": []})
        self.assertEqual(result(frozenset({1}))["structuredContent"], {"result": [1]})

    def test_a_result_that_is_one_already(self):
        ready = {"content": [{"type": "text", "text": "x"}], "isError": True, "_meta": {"a": 1}}
        self.assertEqual(result(ready), ready)
        for ready in ({"content": []}, {"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}):
            self.assertEqual(result(ready), {**ready, "isError": False})
        for other in ({"content": "text"}, {"content": [1]}, {"content": [], "more": 1}):
            self.assertEqual(result(other)["structuredContent"], other)

    def test_media(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a b.csv")
            with open(path, "w") as file:
                file.write("x,y\n")
            file = result(File(path))["content"][0]
        self.assertEqual(file, {"type": "resource", "resource": {"uri": "toolcrib://result/1/a%20b.csv", "mimeType": "text/csv", "text": "x,y\n"}})
        for value, mime in [
            (Image(PNG), "image/png"),
            (Image(b"\xff\xd8\xff"), "image/jpeg"),
            (Image(b"GIF89a"), "image/gif"),
            (Image(b"RIFF....WEBP"), "image/webp"),
            (Image(b"?", "jpg"), "image/jpeg"),
            (Image(b"?", "image/avif"), "image/avif"),
            (Audio(b"RIFF....WAVE"), "audio/wav"),
            (Audio(b"ID3"), "audio/mpeg"),
            (Audio(b"OggS"), "audio/ogg"),
            (Audio(b"fLaC"), "audio/flac"),
            (Audio(b"?", "mp3"), "audio/mpeg"),
        ]:
            with self.subTest(mime=mime):
                part = result(value)["content"][0]
                self.assertEqual((part["type"], part["mimeType"]), (mime.split("/")[0], mime))
        blob = {"uri": "toolcrib://result/1", "mimeType": "application/octet-stream", "blob": "AP8="}
        self.assertEqual(result(b"\0\xff")["content"], [{"type": "resource", "resource": blob}])
        self.assertEqual(result(File(data=b"{}", mime="application/json"))["content"][0]["resource"]["text"], "{}")
        self.assertEqual(result(File(data=b"\xff", mime="text/plain"))["content"][0]["resource"]["blob"], "/w==")
        self.assertIn("say mime=", text(Image(b"?")))

    def test_media_among_others_makes_parts(self):
        got = result(["look", Image(PNG), {"a": 1}, b"x"])
        self.assertEqual([part["type"] for part in got["content"]], ["text", "image", "text", "resource"])
        self.assertEqual(got["content"][2]["text"], '{"a": 1}')
        self.assertEqual(got["content"][3]["resource"]["uri"], "toolcrib://result/4")
        self.assertNotIn("structuredContent", got)

    @unittest.skipIf(PIL is None, "Pillow is not installed for this interpreter")
    def test_pictures(self):
        part = result(PIL.Image.new("CMYK", (2, 2)))["content"][0]
        self.assertEqual((part["type"], part["mimeType"]), ("image", "image/png"))

    @unittest.skipIf(pydantic is None, "pydantic is not installed for this interpreter")
    def test_pydantic(self):
        class User(pydantic.BaseModel):
            day: datetime.date

        user = User(day="2024-05-06")
        self.assertEqual(result(user)["structuredContent"], {"day": "2024-05-06"})
        self.assertEqual(result([user])["structuredContent"], {"result": [{"day": "2024-05-06"}]})

    def test_durations(self):
        for delta, expected in [
            ({}, "PT0S"),
            ({"days": 1}, "P1D"),
            ({"seconds": 1.5}, "PT1.5S"),
            ({"days": -1, "hours": 23}, "-PT1H"),
            ({"days": 1, "hours": 2, "minutes": 3, "seconds": 4}, "P1DT2H3M4S"),
        ]:
            self.assertEqual(duration_text(datetime.timedelta(**delta)), expected)


class Refusals(unittest.TestCase):
    def test_what_json_cannot_carry_is_named_with_its_place(self):
        nan, inf = float("nan"), float("inf")
        ring = []
        ring.append(ring)
        for value, message in [
            ({"a": [1, 2, nan]}, "holds NaN at .a[2]"),
            ([-inf], "holds -Infinity at [0]"),
            (nan, "is NaN"),
            (Task("t", Point(1, inf)), "holds Infinity at .at.y"),
            ({"a": object()}, "holds a value of type object at .a"),
            (object(), "is a value of type object"),
            (1j, "is a value of type complex"),
            ({(1, 2): 1}, "is a key of type tuple"),
            ({"a": 10**5000}, "is a number of more than 4300 digits"),
            (ring, "is a value that is nested too deeply"),
        ]:
            with self.subTest(message):
                self.assertEqual(text(value), f"!Error: the result {message}, which JSON cannot carry")

    def test_half_characters_are_replaced(self):
        self.assertEqual(to_bytes("a\udc80b").decode(), "a\ufffdb")
        self.assertEqual(to_bytes("\ud83d\ude00").decode(), "\U0001f600")

    def test_too_large(self):
        limit = {"max_result": 1000}
        self.assertFalse(result("x" * 900, **limit)["isError"])
        for value in ("é" * 600, {"a": "x" * 800}, [b"x" * 900], "x" * 2000, b"x" * 1001):
            with self.subTest(value=value):
                whole = len(Results().of_value(value).encode())
                size = len(value) if len(value) > 1000 else whole
                said = result(value, **limit)["content"][0]["text"]
                self.assertEqual(said, f"Error: the result is too large: {size} bytes, the limit is 1000 bytes")


    def test_what_is_too_large_by_far_is_refused_before_it_is_written(self):
        class Row(dict):
            """Would take its time."""

            def items(self):
                raise AssertionError("this was not to be written")

        rows, texts = [Row()] * 500_000, ["x" * 1024] * 20_000
        for value in (rows, [rows] * 2000, {"a": 1, "rows": rows}, [Row(), *texts], tuple(rows)):
            said = result(value, max_result=1 << 20)["content"][0]["text"]
            self.assertRegex(said, r"^Error: the result is too large: at least \d+ bytes, the limit is 1048576 bytes$")
        self.assertFalse(result(["x"] * 100_000, max_result=2 << 20)["isError"])

    def test_the_least_size_is_never_more_than_the_size(self):
        for value in ([], {}, "", 0, [[]] * 3, [""] * 2, {"": 0, "a": [{}, (1,), None, True, 1.5]}, [{"a": "é"}] * 9):
            with self.subTest(value=value):
                self.assertLessEqual(at_least(value, 1 << 20), len(json.dumps(value)))


class Errors(unittest.TestCase):
    def said(self, raiser, **limits):
        printed = io.StringIO()
        try:
            raiser()
        except BaseException as error:
            with contextlib.redirect_stderr(printed):
                got = json.loads(Results(**limits).of_error(error))
        self.printed = printed.getvalue()
        self.assertIs(got["isError"], True)
        return got["content"][0]["text"]

    def test_every_kind(self):
        def raising(error):
            def raiser():
                raise error

            return raiser

        class Silent(Exception):
            def __str__(self):
                raise RuntimeError

        for error, expected in [
            (ValueError("bad value"), "Invalid input: bad value"),
            (RuntimeError("boom"), "Error: boom"),
            (RuntimeError(), "Error: RuntimeError"),
            (KeyError("k"), "Error: 'k'"),
            (Silent(), "Error: Silent"),
            (SystemExit(1), "Error: the tool called sys.exit(1)"),
            (SystemExit(), "Error: the tool called sys.exit()"),
            (KeyboardInterrupt(), "Error: the tool raised KeyboardInterrupt"),
            (CpuTimeSpent(), "Error: used more than 60 s of CPU time"),
            (MemoryError(), "Error: out of memory (limit 1 GB)"),
        ]:
            with self.subTest(expected):
                self.assertEqual(self.said(raising(error), memory=1 << 30, cpu=60), expected)
        self.assertEqual(self.said(raising(MemoryError()), memory=512_000_000), "Error: out of memory (limit 512 MB)")

    def test_the_environment_has_its_own_hint(self):
        hint = "Error: 'NO_SUCH'; tools see only the variables named under python.env in network.yaml"
        self.assertEqual(self.said(lambda: os.environ["NO_SUCH"]), hint)

    def test_the_traceback_is_printed(self):
        self.said(lambda: 1 / 0)
        self.assertIn("test_results.py", self.printed)
        self.assertIn("ZeroDivisionError", self.printed)

    def test_a_long_error_is_under_the_limit_too(self):
        def raiser():
            raise RuntimeError("x" * 5000)

        self.assertIn("too large", self.said(raiser, max_result=1000))

    def test_text_is_quoted(self):
        self.assertEqual(json.loads(text_result('a"\\\n'))["content"][0]["text"], 'a"\\\n')
        self.assertEqual(json.loads(failure('a"'))["content"][0]["text"], 'a"')


if __name__ == "__main__":
    unittest.main()
