"""What tools print, without a worker around it."""

import os
import time
import unittest
from unittest import mock

import kit  # puts the package on the path
from toolcrib import _output


class Writing(unittest.TestCase):
    def setUp(self):
        self.reading, writing = os.pipe()
        self.addCleanup(os.close, self.reading)
        self.addCleanup(os.close, writing)
        patch = mock.patch.object(_output, "_STDERR", writing)
        patch.start()
        self.addCleanup(patch.stop)
        self.writer = _output.LineWriter("<stdout>", mock.MagicMock(), lambda: 7)

    def lengths(self):
        """Of the lines written since, without their marks."""
        lines = os.read(self.reading, 1 << 16).decode().split("\n")[:-1]
        return [len(line) - len("\x1e7\x1f") for line in lines]

    def test_a_line_without_an_end_is_cut_where_a_line_with_one_is(self):
        for length, expected in [(8193, [8192, 1]), (16384, [8192, 8192]), (20000, [8192, 8192, 3616])]:
            with self.subTest(length=length):
                self.writer.write("x" * length)
                self.writer.finish(7)
                self.assertEqual(self.lengths(), expected)
        self.writer.write("x" * 8192)
        self.assertEqual([len(rest) for rest in self.writer.unfinished.values()], [8192])

    def test_a_huge_line_without_an_end_takes_no_longer_than_one_with_an_end(self):
        def seconds(text):
            begun = time.process_time()
            self.writer.write(text)
            return time.process_time() - begun

        with open(os.devnull, "wb") as nothing, mock.patch.object(_output, "_STDERR", nothing.fileno()):
            text = "x" * 30_000_000
            ended = seconds(text + "\n")
            self.assertLess(seconds(text), 5 * ended + 0.5)


if __name__ == "__main__":
    unittest.main()
