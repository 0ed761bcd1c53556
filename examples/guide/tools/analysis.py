"""Composition: one tool made of two others, called as any caller would call them."""

import ast
from typing import Any, Dict, List

from toolcrib import Context, tool


@tool(read_only=True)
def parse_code(code: str) -> dict:
    """Parse Python and list its functions and bare excepts. The code is never run."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise ValueError(f"code: line {error.lineno}: {error.msg}") from None
    functions = [
        {"name": node.name, "line": node.lineno, "documented": ast.get_docstring(node) is not None}
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    return {"functions": functions, "bare_excepts": [node.lineno for node in handlers if node.type is None]}


@tool(read_only=True)
def find_issues(functions: List[Dict[str, Any]], bare_excepts: List[int]) -> list:
    """Turn what parse_code found into issues."""
    undocumented = [f"line {it['line']}: {it['name']} has no docstring" for it in functions if not it["documented"]]
    return undocumented + [f"line {line}: except without a class" for line in bare_excepts]


@tool(read_only=True)
async def analyze_code(code: str, ctx: Context) -> dict:
    """Parse Python, look for issues, and say what to do first.

    Args:
        code: The text of a Python module
    """
    ctx.progress(0, 2, "parsing")
    parsed = await ctx.call("parse_code", code=code)
    ctx.progress(1, 2, "looking for issues")
    issues = (await ctx.call("find_issues", parsed))["result"]
    ctx.progress(2, 2)
    return {"issues": issues, "suggestion": f"begin with {issues[0]}" if issues else "nothing to do"}
