"""A small MCP server whose tools ask the client for something: asker.py

It speaks both protocol eras over standard input and output. In the legacy era a tool sends the client
a request of its own while it runs; in the modern era its result says what input it still needs.
"""

import warnings
from typing import Annotated

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    CreateMessageResult,
    EmptyResult,
    ListRootsResult,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
)
from pydantic import BaseModel

warnings.simplefilter("ignore", MCPDeprecationWarning)
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
server = MCPServer("asker", log_level="WARNING")
level = "debug"


class Name(BaseModel):
    name: str


def name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


def said() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text="Say a word."))], max_tokens=16)


def roots() -> ListRoots:
    return ListRoots()


@server.tool(structured_output=False)
def ask_name(answer: Annotated[ElicitationResult[Name], Resolve(name)]) -> str:
    """Asks for a name and greets by it."""
    return f"Hello, {answer.data.name}" if isinstance(answer, AcceptedElicitation) else "Nobody"


@server.tool(structured_output=False)
def ask_model(answer: Annotated[CreateMessageResult, Resolve(said)]) -> str:
    """Asks the client's model for a word."""
    return answer.content.text


@server.tool(structured_output=False)
def list_roots(answer: Annotated[ListRootsResult, Resolve(roots)]) -> str:
    """Says which roots the client has, one a line."""
    return "\n".join(str(root.uri) for root in answer.roots)


@server.tool(structured_output=False)
async def log_three(context: Context) -> str:
    """Sends three log messages."""
    for word in ["one", "two", "three"]:
        if LEVELS.index(level) <= LEVELS.index("info"):
            await context.info(word, logger_name="asker")
    return "logged"


async def set_level(context, params: SetLevelRequestParams) -> EmptyResult:
    global level
    level = params.level
    return EmptyResult()


# The high-level server has no way to say this.
server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
server.run("stdio")
