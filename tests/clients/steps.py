"""What every Python client here does with a gateway, and the JSON it prints.

A script hands `drive` an object with these coroutines, written with its own client:
  tools(), prompts(), resources(), templates(): the names or URIs listed
  call(name, arguments, progress=None): (text, structured content); raises on an error
  prompt(name, arguments): the first message's text
  read(uri): the first content's (uri, text)
  set_level(level): legacy era only, and only where the server says that it logs
and the list which its log handler appends (logger, data) to.
"""

import asyncio
import json
import re
import sys
import time

NAME, WORD, ROOT = "Ada", "blue", "file:///srv/work"
KEYS = ["client", "mode", "tools", "echo", "moon", "prompts", "prompt", "resources", "read", "templates", "dynamic",
        "progress", "cancelled", "after_cancel", "elicited", "sampled", "roots", "logged", "unknown"]
AWAITED = {"mcp__everything__echo", "mcp__almanac__moon_phase", "mcp__asker__ask_name", "mcp__time__get_current_time"}
LONG = "mcp__everything__trigger_long_running_operation"


def arguments():
    """SCRIPT [--direct] MODE TARGET...: whether asker.py itself is the target, the mode, the target."""
    rest = sys.argv[1:]
    direct = rest[:1] == ["--direct"]
    mode, *target = rest[direct:]
    return direct, mode, target


def message(error):
    return re.sub(r"^(MCP error -?\d+: )+", "", str(error))


def plain(value):
    """Whole numbers as the other clients print them: 1, not 1.0."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def report(seen):
    print(json.dumps({key: plain(seen.get(key)) for key in KEYS}))


async def attempt(call):
    try:
        return (await call)[0]
    except Exception as error:
        return f"error: {message(error)}"


async def until(done, seconds):
    """Notifications may be handled a moment after the result that they came before."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        await asyncio.sleep(0.05)


async def ordinary(client):
    end = time.monotonic() + 20
    # A gateway on standard input answers before its servers are up.
    while not AWAITED <= set(names := await client.tools()) and time.monotonic() < end:
        await asyncio.sleep(0.2)
    resources = await client.resources()
    progress = []
    seen = {
        "tools": len(names),
        "echo": await attempt(client.call("mcp__everything__echo", {"message": "hi"})),
        "moon": (await client.call("mcp__almanac__moon_phase", {"date": "2026-11-24"}))[1],
        "prompts": sorted(await client.prompts()),
        "prompt": await client.prompt("mcp__everything__args_prompt", {"city": "Oslo"}),
        "resources": len(resources),
        "read": (await client.read(resources[0]))[0] == resources[0],
        "templates": len(await client.templates()),
        "dynamic": (await client.read("demo://resource/dynamic/text/1"))[1].split(":")[0],
        "progress": progress,
    }
    await client.call(LONG, {"duration": 1, "steps": 2}, progress.append)
    await until(lambda: len(progress) == 2, 2)
    began = time.monotonic()
    work = asyncio.ensure_future(client.call(LONG, {"duration": 20, "steps": 2}))
    await asyncio.sleep(0.5)
    work.cancel()
    await asyncio.wait([work])
    seen["cancelled"] = work.cancelled() and time.monotonic() - began < 5
    seen["after_cancel"] = await attempt(client.call("mcp__everything__echo", {"message": "still here"}))
    try:
        await client.call("mcp__almanac__nothing", {})
    except Exception as error:
        seen["unknown"] = message(error)
    return seen


async def asking(client, prefix, logs):
    seen = {
        "elicited": await attempt(client.call(prefix + "ask_name", {})),
        "sampled": await attempt(client.call(prefix + "ask_model", {})),
        "roots": await attempt(client.call(prefix + "list_roots", {})),
    }
    try:
        await client.set_level("info")
        await client.call(prefix + "log_three", {})
        # Other servers log too.
        logged = lambda: [data for logger, data in logs if (logger or "").endswith("asker")]
        await until(lambda: len(logged()) == 3, 2)
        seen["logged"] = logged()
    except Exception as error:
        seen["logged"] = f"error: {message(error)}"
    return seen


async def drive(name, mode, direct, client, logs):
    seen = {"client": name, "mode": mode}
    if not direct:
        seen |= await ordinary(client)
    seen |= await asking(client, "" if direct else "mcp__asker__", logs)
    report(seen)
