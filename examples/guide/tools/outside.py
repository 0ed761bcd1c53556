"""Reaching outside the process: files, a database, an HTTP address. Each within a fence."""

import ipaddress
import json
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing
from typing import Annotated, Any, Dict, List, Literal, Optional, Union
from urllib.parse import urlsplit

from toolcrib import tool

from . import _store

FOLDER = _store.WORKSPACE / "data"
MOST_BYTES = 1024 * 1024
MOST_ROWS = 100
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}


@tool(read_only=True)
def read_file(path: str, encoding: str = "utf-8") -> str:
    """Read a text file of the data folder.

    Args:
        path: Where it is, seen from that folder
        encoding: How its bytes are to be read
    """
    # resolve() follows `..` and links, so what is compared is the file that would be opened.
    file = (FOLDER / path).resolve()
    if FOLDER not in file.parents:
        raise ValueError(f"path: '{path}' is outside the data folder")
    if not file.is_file():
        raise ValueError(f"path: there is no file '{path}'")
    if file.stat().st_size > MOST_BYTES:
        raise ValueError(f"path: '{path}' is larger than {MOST_BYTES} bytes")
    return file.read_text(encoding=encoding)


def only_reading(action, *_):
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


@tool(read_only=True, timeout="5s")
def execute_query(query: str, params: Optional[List[Union[str, int, float, bool]]] = None) -> dict:
    """Read from the items database with SQL.

    Args:
        query: One SELECT; a `?` stands for each value
        params: The values, in order. Never write them into the query
    """
    with _store.database():
        pass  # The file must be there before it can be opened for reading alone.
    with closing(sqlite3.connect(f"{_store.DATABASE.as_uri()}?mode=ro", uri=True)) as db:
        db.set_authorizer(only_reading)
        cursor = db.execute(query, params or [])
        columns = [column[0] for column in cursor.description or []]
        return {"columns": columns, "rows": [list(row) for row in cursor.fetchmany(MOST_ROWS)]}


class StayHere(urllib.request.HTTPRedirectHandler):
    """A redirect could lead off this machine, so it is an answer like any other."""

    def redirect_request(self, *_):
        return None


def loopback(endpoint):
    parts = urlsplit(endpoint)
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    try:
        allowed = parts.scheme == "http" and ipaddress.ip_address(host).is_loopback
    except ValueError:
        allowed = False
    if not allowed:
        raise ValueError("endpoint: this example calls http://127.0.0.1, [::1] and localhost only")
    return endpoint


@tool(open_world=True, timeout="10s")
def api_call(
    endpoint: Annotated[str, {"format": "uri"}],
    method: Literal["GET", "POST", "PUT", "DELETE"] = "GET",
    body: Optional[Dict[str, Any]] = None,
) -> dict:
    """Call an HTTP endpoint of this machine and return its status and answer.

    Args:
        endpoint: An http address on this machine
        method: What to do there
        body: Sent as JSON
    """
    data = None if body is None else json.dumps(body).encode()
    headers = {} if data is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(loopback(endpoint), data, headers, method=method)
    # A proxy from the environment would carry the request elsewhere.
    opener = urllib.request.build_opener(StayHere, urllib.request.ProxyHandler({}))
    try:
        response = opener.open(request, timeout=5)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return {"status": response.status, "body": response.read(MOST_BYTES).decode("utf-8", "replace")}
