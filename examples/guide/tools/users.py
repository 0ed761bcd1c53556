"""Two kinds of failure: what the caller can mend, and what he cannot.

ValueError is answered as `Invalid input: …`, any other exception as `Error: …`. Both are results that a
model can read and act on; the traceback goes to the log.
"""

import re
from typing import Annotated

from toolcrib import tool

from . import _store

NAME = "^[a-z][a-z0-9_]{1,30}$"
Username = Annotated[str, {"pattern": NAME}, "Lower case letters, digits and _, at least two characters"]


def checked(username):
    # The schema says the same and the gateway holds callers to it; other code may call us as well.
    if not re.search(NAME, username):
        raise ValueError(f"username: {username!r} does not match {NAME}")
    return username


@tool(read_only=True)
def get_user_profile(username: Username) -> dict:
    """What is known about a user."""
    with _store.database() as db:
        row = db.execute("SELECT * FROM users WHERE username = ?", [checked(username)]).fetchone()
    if row is None:
        raise LookupError(f"there is no user '{username}'")
    return dict(row)


@tool(idempotent=True, destructive=False)
def ensure_user_exists(username: Username, role: str = "guest") -> dict:
    """Make a user unless there is one of that name: calling it twice does no more than calling it once."""
    with _store.database() as db:
        made = db.execute("INSERT OR IGNORE INTO users VALUES (?, ?)", [checked(username), role]).rowcount
    return {"username": username, "created": made == 1}
