"""The example tools of the guide, as a server made with the official Python SDK: server.py

It speaks over standard input and output. GUIDE_DATA is the folder that `read_file` reads from, GUIDE_API the
one address that `api_call` may call, GUIDE_LOG a file that gets a line for every call.
"""

import asyncio
import json
import os
import re
import urllib.error
import urllib.request
from functools import lru_cache
from pathlib import Path

import mcp_types as types
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

DATA = Path(os.environ.get("GUIDE_DATA") or Path(__file__).parent.parent / "data").resolve()
API = os.environ.get("GUIDE_API", "")
LOG = os.environ.get("GUIDE_LOG", "")
MOST_BYTES = 1024 * 1024
PAGES = [
    ("The Rust book", "https://books.example/rust"),
    ("Rust in the workshop", "https://books.example/workshop"),
    ("Learning Python", "https://books.example/python"),
    ("TypeScript in a week", "https://books.example/typescript"),
]


def item(id, title, category, status, weight, description=""):
    return {"id": id, "title": title, "description": description, "category": category, "status": status, "weight": weight}


SAMPLES = [
    item("item-1", "Claw hammer", "hand", "active", 0.6),
    item("item-2", "Block plane", "hand", "active", 0.9),
    item("item-3", "Hand drill", "hand", "archived", 1.1),
    item("item-4", "Band saw", "machine", "active", 85),
    item("item-5", "Drill press", "machine", "active", 120.5),
    item("item-6", "Belt sander", "machine", "archived", 30),
    item("item-7", "Steel rule", "measure", "active", 0.1),
]
ITEMS = {it["id"]: it for it in SAMPLES}
USERS = {}
SETTINGS = {"mode": "workshop", "pageSize": 20, "apiKey": os.environ.get("GUIDE_API_KEY", "none")}
created = len(SAMPLES)
fetches = 0


class Fault(Exception):
    """Something that could not be done, through no fault of the arguments' form."""


# What the schemas are made of.


def text(description, **rules):
    return {"type": "string", "description": description, **rules}


def whole(description, **rules):
    return {"type": "integer", "description": description, **rules}


def an_object(properties=None, required=(), **rules):
    return {"type": "object", "properties": properties or {}, "required": list(required), "additionalProperties": False, **rules}


def some(description, items, most, **rules):
    return {"type": "array", "description": description, "items": items, "minItems": 1, "maxItems": most, **rules}


def pattern(_validator, rule, value, _schema):
    """In Python `$` stands before a last line end too; in JSON Schema it does not."""
    if isinstance(value, str) and not re.search(rule.replace("$", r"\Z"), value):
        yield ValidationError("the pattern does not fit")


FORMATS = FormatChecker(())
Validator = extend(Draft202012Validator, {"pattern": pattern})


# The package asks for an @ in an email and nothing else, and of addresses it knows nothing unless others are installed.


@FORMATS.checks("uri")
def is_uri(value):
    return not isinstance(value, str) or re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+", value) is not None


@FORMATS.checks("email")
def is_email(value):
    return not isinstance(value, str) or re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None


PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
ID = text("Id of an item, such as item-3", pattern="^item-[0-9]{1,6}$")
TITLE = text("What the item is called", minLength=1, maxLength=100, pattern=PRINTABLE)
ABOUT = text("What to know about it", maxLength=1000)
CATEGORY = text("Kind of item", pattern="^[a-z]{1,20}$")
STATUS = text("Whether it is in use", enum=["active", "archived"])
WEIGHT = {"type": "number", "description": "Kilograms", "minimum": 0, "maximum": 1000}
CHANGES = {"title": TITLE, "description": ABOUT, "status": STATUS, "weight": WEIGHT}
TOOLS = {}


def tool(name, description, schema, *, read_only=False, destructive=False, idempotent=False, open_world=False):
    """Makes a function a tool. It gives a text, and the same as a structure."""

    def register(function):
        hints = types.ToolAnnotations(
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=idempotent or read_only,
            open_world_hint=open_world,
        )
        definition = types.Tool(name=name, description=description, input_schema=schema, annotations=hints)
        TOOLS[name] = (definition, Validator(schema, format_checker=FORMATS), function)
        return function

    return register


# Searching, and a tool made of several steps.


@tool(
    "search_web",
    "Search the stored pages for words of their titles",
    an_object(
        {
            "query": text("What to look for", minLength=1, maxLength=200),
            "limit": whole("How many results to show", minimum=1, maximum=50, default=10),
        },
        ["query"],
    ),
    read_only=True,
)
async def search_web(query, limit=10):
    found = [{"title": title, "url": url} for title, url in PAGES if query.lower() in title.lower()]
    shown = found[:limit]
    lines = [f"Found {len(found)} results for: {query}"] + [it["title"] for it in shown]
    return "\n".join(lines), {"query": query, "total": len(found), "results": shown}


RULES = [
    (lambda line: "eval(" in line, "eval", "call what is meant directly"),
    (lambda line: "TODO" in line, "todo", "do it, or open an issue"),
    (lambda line: len(line) > 100, "long", "break the line"),
]


async def parse_code(code):
    return list(enumerate(code.split("\n"), 1))


async def find_issues(lines):
    return [(number, rule) for number, line in lines for rule in RULES if rule[0](line)]


async def suggest(issues):
    return [{"line": number, "rule": name, "suggestion": advice} for number, (_, name, advice) in issues]


@tool(
    "analyze_code",
    "Look through source code for doubtful lines; the code is never run",
    an_object({"code": text("The source code", minLength=1, maxLength=10000)}, ["code"]),
    read_only=True,
)
async def analyze_code(code):
    lines = await parse_code(code)
    issues = await suggest(await find_issues(lines))
    said = [f"{len(lines)} lines, {len(issues)} issues"]
    said += [f"line {it['line']}: {it['rule']}: {it['suggestion']}" for it in issues]
    return "\n".join(said), {"lines": len(lines), "issues": issues}


# Items: create, get, update, delete; filters, pages, many at once.


def find_item(id):
    if id not in ITEMS:
        raise Fault(f"there is no item `{id}`; search_items finds what there is")
    return ITEMS[id]


@tool(
    "create_item",
    "Create a new item and give it an id",
    an_object({"title": TITLE, "description": ABOUT, "category": {**CATEGORY, "default": "general"}, "weight": WEIGHT}, ["title"]),
)
async def create_item(title, description="", category="general", weight=0):
    global created
    if len(ITEMS) >= 1000:
        raise Fault("there is room for 1000 items")
    created += 1
    new = item(f"item-{created}", title, category, "active", weight, description)
    ITEMS[new["id"]] = new
    return f"Created {new['id']}", new


@tool("get_item", "Get one item by its id", an_object({"id": ID}, ["id"]), read_only=True)
async def get_item(id):
    found = find_item(id)
    return f"{id}: {found['title']}", found


@tool(
    "update_item",
    "Change an item; what is left out stays as it is",
    an_object({"id": ID, **CHANGES}, ["id"]),
    idempotent=True,
)
async def update_item(id, **changes):
    find_item(id)
    if not changes:
        raise ValueError("name at least one thing to change")
    ITEMS[id] = {**ITEMS[id], **changes}
    return f"Updated {id}", ITEMS[id]


@tool("delete_item", "Delete one item by its id", an_object({"id": ID}, ["id"]), destructive=True)
async def delete_item(id):
    find_item(id)
    del ITEMS[id]
    return f"Deleted {id}", {"deleted": id}


@tool(
    "search_items",
    "Search items by a part of their title, with filters",
    an_object(
        {
            "query": text("Part of the title", maxLength=200),
            "category": CATEGORY,
            "status": STATUS,
            "limit": whole("How many items to show", minimum=1, maximum=100, default=20),
        }
    ),
    read_only=True,
)
async def search_items(query="", category=None, status=None, limit=20):
    found = [
        it
        for it in ITEMS.values()
        if query.lower() in it["title"].lower() and category in (None, it["category"]) and status in (None, it["status"])
    ]
    return f"Found {len(found)} items", {"total": len(found), "items": found[:limit]}


@tool(
    "list_items",
    "List the ids of all items, page by page",
    an_object(
        {
            "page": whole("Which page, from 1", minimum=1, maximum=1000000, default=1),
            "limit": whole("Items per page", minimum=1, maximum=100, default=20),
        }
    ),
    read_only=True,
)
async def list_items(page=1, limit=20):
    begin = (page - 1) * limit
    shown = list(ITEMS)[begin : begin + limit]
    said = f"Items {begin + 1} to {begin + len(shown)} of {len(ITEMS)}" if shown else f"No items on page {page} of {len(ITEMS)} items"
    return said, {"items": shown, "page": page, "limit": limit, "total": len(ITEMS)}


@tool(
    "batch_update",
    "Update several items: all of them, or none",
    an_object(
        {"items": some("Ids, each with what to change", an_object({"id": ID, "changes": an_object(CHANGES, minProperties=1)}, ["id", "changes"]), 50)},
        ["items"],
    ),
    idempotent=True,
)
async def batch_update(items):
    for it in items:
        find_item(it["id"])
    for it in items:
        ITEMS[it["id"]] = {**ITEMS[it["id"]], **it["changes"]}
    return f"Updated {len(items)} items", {"updated": [it["id"] for it in items]}


@tool(
    "batch_get_items",
    "Get several items with one call",
    an_object({"itemIds": some("Ids of the items", ID, 50, uniqueItems=True)}, ["itemIds"]),
    read_only=True,
)
async def batch_get_items(itemIds):
    found = [ITEMS[id] for id in itemIds if id in ITEMS]
    missing = [id for id in itemIds if id not in ITEMS]
    return f"Got {len(found)} of {len(itemIds)} items", {"items": found, "missing": missing}


# Tools that need care: settings, everything at once, users.


@tool("get_config", "Get the settings; secrets are masked", an_object(), read_only=True)
async def get_config():
    shown = {**SETTINGS, "apiKey": "****"}
    return "mode: {mode}, page size: {pageSize}, api key: {apiKey}".format(**shown), shown


@tool(
    "delete_database",
    "Delete every item for good",
    an_object(
        {"name": text("Which database", enum=["guide"]), "confirm": {"type": "boolean", "description": "That this is really meant"}},
        ["name", "confirm"],
    ),
    destructive=True,
)
async def delete_database(name, confirm):
    if not confirm:
        raise ValueError("confirm must be true, since every item is deleted")
    gone = len(ITEMS)
    ITEMS.clear()
    return f"Deleted {gone} items of {name}", {"deleted": gone}


@tool(
    "ensure_user_exists",
    "Create a user unless there is one of that name",
    an_object(
        {"username": text("Name to sign in with", pattern="^[a-z][a-z0-9_]{2,30}$"), "email": text("Where to write to", format="email", maxLength=254)},
        ["username", "email"],
    ),
    idempotent=True,
)
async def ensure_user_exists(username, email):
    is_new = username not in USERS
    if is_new and len(USERS) >= 1000:
        raise Fault("there is room for 1000 users")
    USERS.setdefault(username, email)
    return f"{'Created' if is_new else 'Found'} user {username}", {"username": username, "created": is_new}


# Reaching outside: an address, a query, a file. Each within a fence.


class StayHere(urllib.request.HTTPRedirectHandler):
    """A redirect could lead anywhere, so it is an answer like any other."""

    def redirect_request(self, *_):
        return None


# A proxy of the environment would carry the request elsewhere.
OPENER = urllib.request.build_opener(StayHere, urllib.request.ProxyHandler({}))


def fetch(endpoint, method, body):
    data = None if body is None else json.dumps(body).encode()
    headers = {} if data is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(endpoint, data, headers, method=method)
    try:
        response = OPENER.open(request, timeout=5)
    except urllib.error.HTTPError as error:
        response = error
    except OSError as error:
        raise Fault("the endpoint cannot be reached") from error
    with response:
        return {"status": response.status, "body": response.read(MOST_BYTES).decode("utf-8", "replace")}


@tool(
    "api_call",
    "Call an endpoint of the one HTTP address that is allowed",
    an_object(
        {
            "endpoint": text("Address to call", format="uri", maxLength=2000),
            "method": text("What to do there", enum=["GET", "POST", "PUT", "DELETE"], default="GET"),
            "body": {"type": "object", "description": "Sent as JSON"},
        },
        ["endpoint"],
    ),
    destructive=True,
    open_world=True,
)
async def api_call(endpoint, method="GET", body=None):
    # Compared as text, up to the slash that ends the host: two programs may read an odd address in two ways.
    if not API or not endpoint.startswith(f"{API}/"):
        raise ValueError("endpoint is not at the address that is allowed")
    if method == "GET" and body is not None:
        raise ValueError("body: a GET has none")
    answer = await asyncio.to_thread(fetch, endpoint, method, body)
    return f"{method} gave {answer['status']}", answer


COLUMNS = ["id", "title", "category", "status", "weight"]
COMPARE = {"=": lambda a, b: a == b, "<": lambda a, b: a < b, ">": lambda a, b: a > b}


def read_query(query):
    """Reads SELECT … FROM items [WHERE column = ? AND …]. A value can only be a `?`."""
    words = re.findall(r"[A-Za-z_]+|[^ \t\r\n]", query)
    at = 0

    def take(*allowed):
        nonlocal at
        word = words[at].lower() if at < len(words) else "the end"
        if word not in allowed:
            raise ValueError(f"query: expected {' or '.join(allowed)} at word {at + 1}")
        at += 1
        return word

    take("select")
    columns = [take("*", *COLUMNS)]
    while columns != ["*"] and words[at : at + 1] == [","]:
        take(",")
        columns.append(take(*COLUMNS))
    take("from")
    take("items")
    conditions = []
    if at < len(words):
        take("where")
        conditions.append((take(*COLUMNS), take(*COMPARE), take("?")))
        while at < len(words):
            take("and")
            conditions.append((take(*COLUMNS), take(*COMPARE), take("?")))
    return (COLUMNS if columns == ["*"] else columns), conditions


def fits(column, value):
    return isinstance(value, str) if column != "weight" else isinstance(value, (int, float)) and not isinstance(value, bool)


@tool(
    "execute_query",
    "Read from the table items with a small part of SQL: SELECT columns FROM items WHERE column = ? AND column < ?",
    an_object(
        {
            "query": text("The SELECT; a ? stands for each value", minLength=1, maxLength=1000),
            "params": {
                "type": "array",
                "description": "The values, in order",
                "items": {"type": ["string", "number", "boolean"]},
                "maxItems": 20,
            },
        },
        ["query"],
    ),
    read_only=True,
)
async def execute_query(query, params=()):
    columns, conditions = read_query(query)
    if len(conditions) != len(params):
        raise ValueError(f"params: the query has {len(conditions)} ?, and there are {len(params)} values")
    for (column, _, _), value in zip(conditions, params):
        if not fits(column, value):
            raise ValueError(f"params: that is no value for {column}")
    rows = [
        [it[column] for column in columns]
        for it in ITEMS.values()
        if all(COMPARE[sign](it[column], value) for (column, sign, _), value in zip(conditions, params))
    ]
    return f"{len(rows)} rows", {"columns": columns, "rows": rows[:100]}


def read_inside(path, encoding):
    """Reads a file of the data folder. What is outside and what is not there get the same answer."""
    try:
        # resolve() follows `..` and links, so what is compared is the file that would be opened.
        file = (DATA / path).resolve(strict=True)
        if DATA in file.parents and file.is_file() and file.stat().st_size <= MOST_BYTES:
            return file.read_text(encoding=encoding)
    except UnicodeDecodeError:
        raise Fault(f"the file is not {encoding}") from None
    except (OSError, ValueError):
        pass
    raise ValueError("path: the data folder has no such file")


@tool(
    "read_file",
    "Read a text file of the data folder",
    an_object(
        {
            "path": text("Where it is in that folder", minLength=1, maxLength=255),
            "encoding": text("How its bytes are to be read", enum=["utf-8", "latin1"], default="utf-8"),
        },
        ["path"],
    ),
    read_only=True,
)
async def read_file(path, encoding="utf-8"):
    said = read_inside(path, encoding)
    return said, {"path": path, "text": said}


@lru_cache(maxsize=128)
def fetch_resource(key):
    global fetches
    said = read_inside(f"{key}.txt", "utf-8")
    fetches += 1
    return said


@tool(
    "get_cached_resource",
    "Get a text by its key; it is read once and then remembered",
    an_object({"key": text("Name of the text", pattern="^[a-z]{1,20}$")}, ["key"]),
    read_only=True,
)
async def get_cached_resource(key):
    said = fetch_resource(key)
    return said, {"key": key, "text": said, "fetches": fetches}


# The server.


def log(line):
    if LOG:
        with open(LOG, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def check(name, arguments):
    """Whoever calls without a gateway is held to the schema too."""
    error = next(TOOLS[name][1].iter_errors(arguments), None)
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "arguments"
        # The message would repeat the value, however large.
        raise ValueError(f"{place}: {error.validator} does not hold")


def whole_numbers(value):
    """2.0 is an integer in JSON Schema, and none in Python."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e9:
        return int(value)
    return value


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=[definition for definition, _, _ in TOOLS.values()])


async def call_tool(_context, params):
    arguments = params.arguments or {}
    log(f"call {params.name}" if params.name in TOOLS else "unknown tool")
    try:
        if params.name not in TOOLS:
            raise ValueError("there is no such tool")
        check(params.name, arguments)
        arguments = {key: whole_numbers(value) for key, value in arguments.items()}
        said, structure = await TOOLS[params.name][2](**arguments)
        return types.CallToolResult(content=[types.TextContent(text=said)], structured_content=structure)
    except ValueError as error:
        said = f"Invalid input: {error}"
    except Fault as error:
        said = f"Error: {error}"
    except Exception as error:
        # What it says may hold anything; its kind does not.
        said = f"Error: {type(error).__name__}"
    log(f"failed {params.name}" if params.name in TOOLS else "failed")
    return types.CallToolResult(content=[types.TextContent(text=said)], is_error=True)


async def main():
    server = Server("guide-python", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
