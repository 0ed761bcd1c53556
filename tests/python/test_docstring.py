"""Docstrings in three manners."""

import inspect
import unittest

import kit  # puts the package on the path
from toolcrib._docstring import parse

CASES = {
    "google": (
        """Do it.

        More about it.

        Args:
            q: the query
            n : spaced colon
            long: first line
                goes on
                and on: with a colon
            multi:
                on the next line
            typed (int, optional): in brackets
            nested (Dict[str, Tuple(int)]): brackets in brackets
            **more: the rest

        Returns:
            something: else

        Raises:
            ValueError: if bad

        Note:
            Stays.
        """,
        "Do it.\n\nMore about it.\n\nNote:\n    Stays.",
        {
            "q": "the query",
            "n": "spaced colon",
            "long": "first line goes on and on: with a colon",
            "multi": "on the next line",
            "typed": "in brackets",
            "nested": "brackets in brackets",
            "more": "the rest",
        },
    ),
    "google, no blank line before the next section": (
        """X.

        Arguments:
            a: alpha: with colon
        Yields:
            b: not a parameter
        """,
        "X.",
        {"a": "alpha: with colon"},
    ),
    "google, a section of another kind ends the parameters": (
        """X.

        Args:
            a: alpha

        Example:
            b: not a parameter
        """,
        "X.\n\nExample:\n    b: not a parameter",
        {"a": "alpha"},
    ),
    "google, text after the section": (
        """X.

        Args:
            a: alpha

        The end.
        """,
        "X.\n\nThe end.",
        {"a": "alpha"},
    ),
    "numpy": (
        """Sum.

        Parameters
        ----------
        x : int
            first operand
        y, z : int, optional
            other
            operands

        Returns
        -------
        int
            the sum

        Notes
        -----
        Stays.
        """,
        "Sum.\n\nNotes\n-----\nStays.",
        {"x": "first operand", "y": "other operands", "z": "other operands"},
    ),
    "sphinx": (
        """Sum.

        :param x: first operand
        :param int y: second
            operand
        :type x: int
        :returns: the sum
        :rtype: int
        :raises ValueError: if bad
        """,
        "Sum.",
        {"x": "first operand", "y": "second operand"},
    ),
    "plain": ("Just text: with a colon.\n\nAnd more.", "Just text: with a colon.\n\nAnd more.", {}),
    "a sentence that begins as a section does": ("Args are hard.\n\nReturns nothing.", "Args are hard.\n\nReturns nothing.", {}),
    "nothing but parameters": ("\nArgs:\n    a: alpha", "", {"a": "alpha"}),
}


class Docstrings(unittest.TestCase):
    def test_every_manner(self):
        for name, (text, description, parameters) in CASES.items():
            with self.subTest(name):
                self.assertEqual(parse(inspect.cleandoc(text)), (description, parameters))


if __name__ == "__main__":
    unittest.main()
