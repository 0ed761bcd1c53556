"""What the tools share: one SQLite file under tmp/, made with sample rows on first use.

Tools run in several processes, so a module's variable is no place for what they share. The file's
name begins with an underscore: it is imported by its neighbours and offers no tools itself.
"""

import re
import sqlite3
from contextlib import contextmanager
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
DATABASE = WORKSPACE / "tmp" / "guide.db"

TABLES = {
    "items": "id TEXT PRIMARY KEY, title TEXT, description TEXT, category TEXT, status TEXT",
    "tasks": "id TEXT PRIMARY KEY, title TEXT, priority INTEGER, tags TEXT",
    "users": "username TEXT PRIMARY KEY, role TEXT",
}

ITEMS = [
    ("claw-hammer", "Claw hammer", "Drives nails and pulls them", "hand", "active"),
    ("block-plane", "Block plane", "Trims end grain", "hand", "active"),
    ("hand-drill", "Hand drill", "Needs no socket", "hand", "archived"),
    ("band-saw", "Band saw", "Cuts curves", "machine", "active"),
    ("drill-press", "Drill press", "Drills straight down", "machine", "active"),
    ("belt-sander", "Belt sander", "Takes off a lot, quickly", "machine", "archived"),
    ("steel-rule", "Steel rule", "30 cm, half millimetres", "measure", "active"),
]
USERS = [("storekeeper", "lends tools"), ("workshop", "borrows tools")]


@contextmanager
def database():
    """A connection in a transaction, kept if nothing is raised and undone otherwise."""
    DATABASE.parent.mkdir(exist_ok=True)
    connection = sqlite3.connect(str(DATABASE), timeout=10, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        with connection:
            # The write lock comes first, so that of two processes only one fills a new file.
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                fill(connection)
            yield connection
    finally:
        connection.close()


def fill(connection):
    """Throws away what is there and puts the samples in its place."""
    for name, columns in TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} ({columns})")
    connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", ITEMS)
    connection.executemany("INSERT INTO users VALUES (?, ?)", USERS)
    connection.execute("PRAGMA user_version = 1")


def id_of(title):
    """`Claw hammer` becomes `claw-hammer`."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    if not words:
        raise ValueError("title: it needs at least one letter or digit")
    return "-".join(words)
