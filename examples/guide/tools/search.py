"""Searching: a plain tool, one with the decorator's options, one with camelCase parameters.

The import is the one that OpenAgents' guide shows; `from toolcrib import tool` is the same function.
"""

from typing import Annotated

from openagents import tool

PAGES = {
    "The Rust book": "Rust is a language for reliable and fast software.",
    "Rust by example": "Small programs that show how Rust works.",
    "Python tutorial": "Python is easy to learn, and its standard library is large.",
    "SQLite in a nutshell": "SQLite is a database in one file.",
    "Model Context Protocol": "How tools, resources and prompts reach a model.",
}

ISSUES = [
    {"number": 1, "title": "Drill press stops under load", "deleted": False},
    {"number": 2, "title": "Drill bits are blunt", "deleted": False},
    {"number": 3, "title": "Drill is missing its chuck key", "deleted": True},
]


def matches(query):
    word = query.strip().lower()
    return [f"{title}: {text}" for title, text in PAGES.items() if word in f"{title} {text}".lower()]


@tool
async def search_web(
    query: Annotated[str, {"minLength": 1, "maxLength": 200}],
    max_results: Annotated[int, {"minimum": 1, "maximum": 50}] = 5,
) -> str:
    """Search a handful of stored pages, as one would search the web.

    Args:
        query: Words to look for; capitals do not matter
        max_results: How many pages to return at most

    Returns:
        One line per page
    """
    found = matches(query)
    return "\n".join([f"Found {len(found)} results for: {query}", *found[:max_results]])


@tool(
    name="web_search",
    description="Search the stored pages and count what was found",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words to look for", "minLength": 1, "maxLength": 200},
            "limit": {"type": "number", "description": "Most results", "minimum": 1, "maximum": 50, "default": 10},
        },
        "required": ["query"],
    },
)
async def search(query: str, limit: float = 10) -> dict:
    # A result that is already in MCP's form is handed on as it is.
    found = matches(query)[: int(limit)]
    return {"content": [{"type": "text", "text": f"Found {len(found)} results"}], "isError": False}


@tool(read_only=True)
def search_issues(searchQuery: str, maxResults: int = 10, includeDeleted: bool = False) -> list:
    """Search issues by their title.

    Args:
        searchQuery: A part of the title
        maxResults: How many issues to return at most
        includeDeleted: Whether deleted issues count
    """
    seen = [issue for issue in ISSUES if includeDeleted or not issue["deleted"]]
    return [issue for issue in seen if searchQuery.lower() in issue["title"].lower()][:maxResults]
