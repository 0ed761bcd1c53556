#!/usr/bin/env python3
"""A small MCP server: the calendar, the moon and the sun, worked out from the date.

It speaks MCP over standard input and output with nothing but Python's standard library, so that the
example works offline on any machine. The place comes from the environment, as configuration does.
"""

import datetime as dt
import json
import math
import os
import sys

PLACES = {
    "Greenwich": (51.48, 0.0),
    "Nairobi": (-1.29, 36.82),
    "Reykjavik": (64.15, -21.94),
    "Sydney": (-33.87, 151.21),
}
VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
SYNODIC_MONTH = 29.530588853
NEW_MOON = dt.date(2000, 1, 6)

DATE = {"type": "string", "format": "date", "description": "A day as YYYY-MM-DD; today if left out"}
PLACE = {"type": "string", "enum": sorted(PLACES), "description": "Where; the configured place if left out"}


def day_of(arguments):
    text = arguments.get("date")
    return dt.date.fromisoformat(text) if text else dt.date.today()


def moon_phase(arguments):
    """The moon's age in days and how much of it is lit, to within half a day."""
    day = day_of(arguments)
    age = (day - NEW_MOON).days % SYNODIC_MONTH
    lit = round((1 - math.cos(2 * math.pi * age / SYNODIC_MONTH)) / 2, 2)
    names = ["new moon", "waxing crescent", "first quarter", "waxing gibbous",
             "full moon", "waning gibbous", "last quarter", "waning crescent"]
    name = names[round(age / SYNODIC_MONTH * 8) % 8]
    return {"date": day.isoformat(), "phase": name, "age_days": round(age, 1), "lit": lit}


def day_length(arguments):
    """Hours of daylight at a place, by the sun's declination."""
    day = day_of(arguments)
    place = arguments.get("place") or os.environ.get("ALMANAC_PLACE", "Greenwich")
    if place not in PLACES:
        raise ValueError(f"no such place: {place}; one of {', '.join(sorted(PLACES))}")
    latitude = math.radians(PLACES[place][0])
    declination = math.radians(-23.44) * math.cos(2 * math.pi * (day.timetuple().tm_yday + 10) / 365.25)
    cosine = -math.tan(latitude) * math.tan(declination)
    hours = 24 / math.pi * math.acos(max(-1.0, min(1.0, cosine)))
    return {"date": day.isoformat(), "place": place, "hours": round(hours, 2)}


def days_between(arguments):
    """How many days lie between two dates."""
    first, second = (dt.date.fromisoformat(arguments[key]) for key in ("from", "to"))
    return {"days": (second - first).days}


TOOLS = {
    "moon_phase": (moon_phase, {"date": DATE}, []),
    "day_length": (day_length, {"date": DATE, "place": PLACE}, []),
    "days_between": (
        days_between,
        {"from": {**DATE, "description": "The first day"}, "to": {**DATE, "description": "The last day"}},
        ["from", "to"],
    ),
}


def definition(name):
    function, properties, required = TOOLS[name]
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "name": name,
        "description": function.__doc__,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    }


def call(params):
    name, arguments = params.get("name"), params.get("arguments") or {}
    if name not in TOOLS:
        raise LookupError(f"no such tool: {name}")
    try:
        value = TOOLS[name][0](arguments)
    except KeyError as missing:
        return failure(f"Invalid input: {missing} is required")
    except (TypeError, ValueError) as error:
        return failure(f"Invalid input: {error}")
    text = {"type": "text", "text": json.dumps(value)}
    return {"content": [text], "structuredContent": value, "isError": False}


def failure(text):
    return {"content": [{"type": "text", "text": text}], "isError": True}


def answer(method, params):
    if method == "initialize":
        wanted = params.get("protocolVersion")
        version = wanted if wanted in VERSIONS else VERSIONS[0]
        info = {"name": "almanac", "version": "1.0.0"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [definition(name) for name in TOOLS]}
    if method == "tools/call":
        return call(params)
    raise NotImplementedError(f"no such method: {method}")


def main():
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = answer(message["method"], message.get("params") or {})
        except LookupError as error:
            reply["error"] = {"code": -32602, "message": str(error)}
        except NotImplementedError as error:
            reply["error"] = {"code": -32601, "message": str(error)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
