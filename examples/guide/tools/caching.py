"""Caching, for both kinds of function. A cache lives in one process and is gone when that ends."""

import asyncio
import time
from functools import lru_cache

from toolcrib import tool

RESOURCES = {"primes": "2 3 5 7 11 13", "squares": "1 4 9 16 25 36", "vowels": "a e i o u"}
MOST = 128


def look_up(key):
    if key not in RESOURCES:
        raise ValueError(f"key: '{key}' is none of {', '.join(RESOURCES)}")
    return RESOURCES[key]


@lru_cache(maxsize=MOST)
def fetch(key):
    time.sleep(0.05)  # As slow as something worth caching.
    return look_up(key)


@tool(read_only=True)
def get_cached_resource(key: str) -> dict:
    """Get a resource by its key; the second time at once."""
    return {"key": key, "value": fetch(key)}


# `lru_cache` on an `async def` would keep the coroutine, and a coroutine can be awaited only once.
# A task can be awaited by everybody who asks, also while it is still running.
tasks = {}


async def fetch_slowly(key):
    await asyncio.sleep(0.05)
    return look_up(key)


async def fetch_once(key):
    task = tasks.get(key)
    if task is None or (task.done() and (task.cancelled() or task.exception())):
        task = tasks[key] = asyncio.ensure_future(fetch_slowly(key))
    while len(tasks) > MOST:
        del tasks[next(iter(tasks))]
    # One caller who gives up must not take the answer from the others.
    return await asyncio.shield(task)


@tool(read_only=True)
async def get_cached_resource_async(key: str) -> dict:
    """Get a resource by its key; callers who ask at the same time share one fetch."""
    return {"key": key, "value": await fetch_once(key)}
