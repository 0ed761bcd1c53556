"""An MCP server with everything the official conformance suite asks for, in both eras.

    fixture.py http PORT [--era legacy|modern|both]
    fixture.py stdio     [--era legacy|modern|both]

Names and texts are the suite's; each one is described in the scenario that wants it. Needs `mcp` 2.3.0.

The rule a reader would get wrong: a tool that needs something of the client never sends a request by itself.
It calls `ask`, which sends requests in the legacy era and returns `input_required` in the modern one, and which
asks for nothing that the client did not declare. So every such tool works in both eras.

`--era` pins what is spoken, so that a gateway in front speaks the wished era with this server.
"""

import argparse
import hashlib
import hmac
import json
import logging
import re
import warnings

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import modern_on_request, serve_dual_era_loop, serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

# The suite still wants logging, sampling and roots, which the newest revision deprecates.
warnings.simplefilter("ignore")

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
# How long a stream closed early stays closed: long enough for a client to notice, short for a test.
RETRY_MS = 200


# --- Results --------------------------------------------------------------------------------------------------


def text(value):
    return {"type": "text", "text": value}


def image():
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def resource(uri, value, mime="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": value}}


def content(*items):
    return {"content": list(items)}


def said(value):
    return content(text(value))


def failed(value):
    return {**said(value), "isError": True}


# --- Asking the client ----------------------------------------------------------------------------------------


class InputRequired(Exception):
    """Carries the interim result out of a tool; the dispatching handler returns it."""

    def __init__(self, requests, state):
        super().__init__("input required")
        self.result = {"resultType": "input_required", "inputRequests": requests}
        if state is not None:
            self.result["requestState"] = state


def form(message, properties, required=None):
    required = list(properties) if required is None else required
    schema = {"type": "object", "properties": properties, "required": required}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(prompt, max_tokens=100):
    messages = [{"role": "user", "content": text(prompt)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": max_tokens}}


ROOTS = {"method": "roots/list", "params": {}}
CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
REQUEST = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


def modern(ctx):
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def declares(ctx, capability):
    declared = ctx.session.client_capabilities
    return declared is not None and getattr(declared, capability) is not None


def require(ctx, *capabilities):
    missing = [it for it in capabilities if not declares(ctx, it)]
    if missing:
        data = {"requiredCapabilities": {it: {} for it in missing}}
        message = f"the client did not declare {', '.join(missing)}"
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)


async def ask(ctx, params, requests, state=None):
    """The client's answers by key, as plain JSON. In the modern era they come with a later call."""
    require(ctx, *(CAPABILITY[it["method"]] for it in requests.values()))
    if modern(ctx):
        answers = params.input_responses or {}
        if any(key not in answers for key in requests):
            raise InputRequired(requests, state)
        return {key: wire(answers[key]) for key in requests}
    answers = {}
    for key, request in requests.items():
        kind, result = REQUEST[request["method"]]
        here = ServerMessageMetadata(related_request_id=ctx.request_id)
        answers[key] = wire(await ctx.session.send_request(kind.model_validate(request), result, metadata=here))
    return answers


def wire(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True) if hasattr(model, "model_dump") else model


# A fixed key: a gateway may run several processes of this server, and each must know the others' states.
KEY = b"a conformance fixture keeps no secrets"


def seal(state):
    return f"{state}.{hmac.new(KEY, state.encode(), hashlib.sha256).hexdigest()}"


def unseal(params):
    """What the echoed `requestState` says, None on a first call; a changed one is refused."""
    if params.request_state is None:
        return None
    state = params.request_state.rpartition(".")[0]
    if not hmac.compare_digest(seal(state).encode(), params.request_state.encode()):
        raise MCPError(types.INVALID_PARAMS, "requestState was not issued by this server")
    return state


# --- Tools ----------------------------------------------------------------------------------------------------

TOOLS = {}
NOTHING = {"type": "object", "properties": {}}


def tool(name, description, schema=NOTHING):
    def register(run):
        TOOLS[name] = ({"name": name, "description": description, "inputSchema": schema}, run)
        return run

    return register


def one_string(name, description, **more):
    described = {"type": "string", "description": description, **more}
    return {"type": "object", "properties": {name: described}, "required": [name]}


# First, because the suite takes the first tool of the list for its header tests and calls it without arguments.
@tool("test_simple_text", "Returns a line of text")
async def simple_text(fixture, ctx, params):
    return said("This is a simple text response for testing.")


@tool("test_image_content", "Returns an image")
async def image_content(fixture, ctx, params):
    return content(image())


@tool("test_audio_content", "Returns a sound")
async def audio_content(fixture, ctx, params):
    return content({"type": "audio", "data": WAV, "mimeType": "audio/wav"})


@tool("test_embedded_resource", "Returns a resource within its result")
async def embedded_resource(fixture, ctx, params):
    return content(resource("test://embedded-resource", "This is an embedded resource content."))


@tool("test_multiple_content_types", "Returns text, an image and a resource")
async def multiple_content_types(fixture, ctx, params):
    data = resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return content(text("Multiple content types test:"), image(), data)


@tool("test_tool_with_logging", "Logs three times, then answers")
async def tool_with_logging(fixture, ctx, params):
    for moment in ["Tool execution started", "Tool processing data", "Tool execution completed"]:
        await fixture.log(ctx, moment)
        await anyio.sleep(0.05)
    return said("Tool with logging executed successfully")


@tool("test_tool_with_progress", "Reports progress three times, then answers")
async def tool_with_progress(fixture, ctx, params):
    for progress in [0, 50, 100]:
        await ctx.session.report_progress(progress, 100, f"Completed step {progress} of 100")
        await anyio.sleep(0.05)
    return said("Tool with progress executed successfully")


@tool("test_error_handling", "Always fails")
async def error_handling(fixture, ctx, params):
    return failed("This tool intentionally returns an error for testing")


@tool("test_sampling", "Has the client's model answer a prompt", one_string("prompt", "What to ask the model"))
async def sampling(fixture, ctx, params):
    answer = (await ask(ctx, params, {"answer": sample(params.arguments["prompt"])}))["answer"]
    return said(f"LLM response: {answer['content'].get('text', '')}")


@tool("test_elicitation", "Asks the user", one_string("message", "What to show the user"))
async def elicitation(fixture, ctx, params):
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    answer = (await ask(ctx, params, {"answer": form(params.arguments["message"], properties)}))["answer"]
    return said(f"User response: {told(answer)}")


def told(answer):
    return f"action={answer['action']}, content={json.dumps(answer.get('content') or {})}"


@tool("test_elicitation_sep1034_defaults", "Asks the user with a default in every field")
async def elicitation_defaults(fixture, ctx, params):
    properties = {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    }
    request = form("Please review the default values", properties, required=[])
    return said(f"Elicitation completed: {told((await ask(ctx, params, {'answer': request}))['answer'])}")


@tool("test_elicitation_sep1330_enums", "Asks the user to choose, in each of the five ways")
async def elicitation_enums(fixture, ctx, params):
    def titled(noun):
        words = enumerate(["First", "Second", "Third"], 1)
        return [{"const": f"value{number}", "title": f"{word} {noun}"} for number, word in words]

    options = ["option1", "option2", "option3"]
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    }
    request = form("Please choose", properties, required=[])
    return said(f"Elicitation completed: {told((await ask(ctx, params, {'answer': request}))['answer'])}")


@tool("test_reconnection", "Closes its stream before it answers, so that the client must come back for the result")
async def reconnection(fixture, ctx, params):
    # Only a legacy HTTP stream with event ids can be resumed; elsewhere there is nothing to close.
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
        await anyio.sleep(RETRY_MS / 1000)
    return said("Reconnection test completed successfully")


JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", JSON_SCHEMA)
async def json_schema(fixture, ctx, params):
    return said(f"Received: {json.dumps(params.arguments or {})}")


REGION = one_string("region", "Where", **{"x-mcp-header": "Region"})


@tool("test_custom_header", "Mirrors an argument in a header", REGION)
async def custom_header(fixture, ctx, params):
    return said(f"Region: {(params.arguments or {}).get('region', '')}")


@tool("test_missing_capability", "Needs a client that samples")
async def missing_capability(fixture, ctx, params):
    require(ctx, "sampling")
    return said("The client declared sampling")


@tool("test_streaming_elicitation", "Sends notifications, then asks the user")
async def streaming_elicitation(fixture, ctx, params):
    await ctx.session.report_progress(1, 2)
    answer = (await ask(ctx, params, {"answer": form("Shall we go on?", {"ok": {"type": "boolean"}})}))["answer"]
    return said(f"Elicitation completed: {told(answer)}")


@tool("test_logging_tool", "Logs once, then answers")
async def logging_tool(fixture, ctx, params):
    await fixture.log(ctx, "Called")
    return said("Logged, if that was wanted")


@tool("test_trigger_tool_change", "Adds a tool to the list, or takes it away again")
async def trigger_tool_change(fixture, ctx, params):
    fixture.more_tools = not fixture.more_tools
    if modern(ctx):
        await fixture.bus.publish(ToolsListChanged())
    else:
        await ctx.session.send_tool_list_changed()
    return said("The tools have changed")


@tool("test_trigger_prompt_change", "Adds a prompt to the list, or takes it away again")
async def trigger_prompt_change(fixture, ctx, params):
    fixture.more_prompts = not fixture.more_prompts
    if modern(ctx):
        await fixture.bus.publish(PromptsListChanged())
    else:
        await ctx.session.send_prompt_list_changed()
    return said("The prompts have changed")


# --- Tools that need input in the middle ----------------------------------------------------------------------

NAME = {"name": {"type": "string"}}


@tool("test_input_required_result_elicitation", "Asks for a name")
async def input_elicitation(fixture, ctx, params):
    answers = await ask(ctx, params, {"user_name": form("What is your name?", NAME)})
    return said(f"Hello, {(answers['user_name'].get('content') or {}).get('name', 'stranger')}!")


@tool("test_input_required_result_sampling", "Asks the client's model")
async def input_sampling(fixture, ctx, params):
    answers = await ask(ctx, params, {"capital_question": sample("What is the capital of France?")})
    return said(json.dumps(answers["capital_question"]["content"]))


@tool("test_input_required_result_list_roots", "Asks for the client's roots")
async def input_roots(fixture, ctx, params):
    answers = await ask(ctx, params, {"client_roots": ROOTS})
    return said(f"Roots: {', '.join(it['uri'] for it in answers['client_roots']['roots'])}")


@tool("test_input_required_result_request_state", "Asks for a yes, with a state to echo")
async def input_state(fixture, ctx, params):
    return await confirm(ctx, params, "request_state", "state-ok")


@tool("test_input_required_result_tampered_state", "Asks for a yes, and refuses a changed state")
async def input_tampered(fixture, ctx, params):
    return await confirm(ctx, params, "tampered_state", "The state is as it was")


async def confirm(ctx, params, state, answer):
    echoed = unseal(params)
    request = form("Please confirm", {"ok": {"type": "boolean"}})
    await ask(ctx, params, {"confirm": request}, seal(state))
    if modern(ctx) and echoed != state:
        raise MCPError(types.INVALID_PARAMS, "the answer came without its requestState")
    return said(answer)


@tool("test_input_required_result_multiple_inputs", "Asks for three things at once")
async def input_multiple(fixture, ctx, params):
    unseal(params)
    requests = {
        "user_name": form("What is your name?", NAME),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    answers = await ask(ctx, params, requests, seal("multiple"))
    return said(json.dumps(answers))


@tool("test_input_required_result_multi_round", "Asks twice, one after the other")
async def input_rounds(fixture, ctx, params):
    first = {"step1": form("Step 1: What is your name?", NAME)}
    second = {"step2": form("Step 2: What is your favorite color?", {"color": {"type": "string"}})}
    if unseal(params) != "asked for the color":
        await ask(ctx, params, first, seal("asked for the name"))
    await ask(ctx, params, second, seal("asked for the color"))
    return said("Both questions are answered")


@tool("test_input_required_result_capabilities", "Asks for whatever the client can give")
async def input_capabilities(fixture, ctx, params):
    able = {
        "question": sample("What is the capital of France?"),
        "name": form("What is your name?", NAME),
        "roots": ROOTS,
    }
    requests = {key: it for key, it in able.items() if declares(ctx, CAPABILITY[it["method"]])}
    if not requests:
        return said("The client can give nothing")
    return said(json.dumps(await ask(ctx, params, requests)))


# --- Resources and prompts ------------------------------------------------------------------------------------

RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content."},
}
TEMPLATE = "test://template/{id}/data"


def find_resource(ctx, uri):
    if uri in RESOURCES:
        return RESOURCES[uri]
    if match := re.fullmatch(r"test://template/([^/]+)/data", uri):
        it = match[1]
        data = {"id": it, "templateTest": True, "data": f"Data for ID: {it}"}
        return {"mimeType": "application/json", "text": json.dumps(data)}
    # The code for this changed with the era.
    raise MCPError(types.INVALID_PARAMS if modern(ctx) else -32002, "Resource not found", {"uri": uri})


def user(*items):
    return {"messages": [{"role": "user", "content": it} for it in items]}


def argument(name, description):
    return {"name": name, "description": description, "required": True}


PROMPTS = {
    "test_simple_prompt": ("A prompt without arguments", []),
    "test_prompt_with_arguments": (
        "A prompt with two arguments",
        [argument("arg1", "First test argument"), argument("arg2", "Second test argument")],
    ),
    "test_prompt_with_embedded_resource": (
        "A prompt with a resource in it",
        [argument("resourceUri", "URI of the resource to embed")],
    ),
    "test_prompt_with_image": ("A prompt with an image in it", []),
    "test_input_required_result_prompt": ("A prompt that asks for its context", []),
}


async def render(ctx, params):
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt" | "test_prompt_of_the_moment":
            return user(text("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            return user(text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"))
        case "test_prompt_with_embedded_resource":
            embedded = resource(given["resourceUri"], "Embedded resource content for testing.")
            return user(embedded, text("Please process the embedded resource above."))
        case "test_prompt_with_image":
            return user(image(), text("Please analyze the image above."))
        case "test_input_required_result_prompt":
            request = form("What context should the prompt use?", {"context": {"type": "string"}})
            answer = (await ask(ctx, params, {"user_context": request}))["user_context"]
            return user(text(f"Use this context: {(answer.get('content') or {}).get('context', '')}"))
    raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")


# --- The server -----------------------------------------------------------------------------------------------

FRESH = CacheHint(ttl_ms=60_000, scope="public")


def typed(handler):
    """Adds what every modern result must say of itself; the SDK does that for its own result types only."""

    async def handle(ctx, params):
        result = await handler(ctx, params)
        return {"resultType": "complete", **result} if modern(ctx) else result

    return handle


class Fixture(Server):
    def __init__(self):
        self.bus = InMemorySubscriptionBus()
        self.more_tools = self.more_prompts = False
        # By session: how much it wants logged. Nothing is deleted; the process is short-lived.
        self.levels = {}
        cacheable = ["prompts/list", "resources/list", "resources/templates/list", "resources/read", "tools/list"]
        super().__init__(
            "conformance-fixture",
            version="1.0.0",
            cache_hints={it: FRESH for it in cacheable},
            get_tool_input_schema=lambda name: TOOLS[name][0]["inputSchema"] if name in TOOLS else None,
            on_list_tools=typed(self.list_tools),
            on_call_tool=typed(self.call_tool),
            on_list_resources=typed(self.list_resources),
            on_list_resource_templates=typed(self.list_templates),
            on_read_resource=typed(self.read_resource),
            on_subscribe_resource=self.accept,
            on_unsubscribe_resource=self.accept,
            on_subscriptions_listen=ListenHandler(self.bus),
            on_list_prompts=typed(self.list_prompts),
            on_get_prompt=typed(self.get_prompt),
            on_completion=typed(self.complete),
            on_set_logging_level=self.set_level,
        )

    def create_initialization_options(self, notification_options=None, *rest, **more):
        # The HTTP transport passes no options of its own, and would announce fixed lists.
        changes = NotificationOptions(prompts_changed=True, resources_changed=False, tools_changed=True)
        return super().create_initialization_options(notification_options or changes, *rest, **more)

    async def list_tools(self, ctx, params):
        tools = [described for described, _ in TOOLS.values()]
        if self.more_tools:
            moment = {"name": "test_tool_of_the_moment", "description": "Comes and goes", "inputSchema": NOTHING}
            tools = [*tools, moment]
        return {"tools": tools}

    async def call_tool(self, ctx, params):
        if params.name == "test_tool_of_the_moment" and self.more_tools:
            return said("Still here")
        if params.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        try:
            return await TOOLS[params.name][1](self, ctx, params)
        except InputRequired as interim:
            return interim.result
        except KeyError as missing:
            return failed(f"The argument {missing} is missing")

    async def list_resources(self, ctx, params):
        names = {uri: uri.removeprefix("test://") for uri in RESOURCES}
        return {
            "resources": [
                {"uri": uri, "name": names[uri], "description": f"The {names[uri]}", "mimeType": it["mimeType"]}
                for uri, it in RESOURCES.items()
            ]
        }

    async def list_templates(self, ctx, params):
        described = {"name": "template", "description": "Data by id", "mimeType": "application/json"}
        return {"resourceTemplates": [{"uriTemplate": TEMPLATE, **described}]}

    async def read_resource(self, ctx, params):
        uri = str(params.uri)
        return {"contents": [{"uri": uri, **find_resource(ctx, uri)}]}

    async def accept(self, ctx, params):
        return {}

    async def list_prompts(self, ctx, params):
        prompts = [
            {"name": name, "description": description, "arguments": arguments}
            for name, (description, arguments) in PROMPTS.items()
        ]
        if self.more_prompts:
            prompts.append({"name": "test_prompt_of_the_moment", "description": "Comes and goes"})
        return {"prompts": prompts}

    async def get_prompt(self, ctx, params):
        try:
            return await render(ctx, params)
        except InputRequired as interim:
            return interim.result
        except KeyError as missing:
            raise MCPError(types.INVALID_PARAMS, f"The argument {missing} is missing") from None

    async def complete(self, ctx, params):
        known = ["paris", "park", "party", "test", "testing"]
        values = [it for it in known if it.startswith(params.argument.value)]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    async def set_level(self, ctx, params):
        self.levels[session_of(ctx)] = params.level
        return {}

    async def log(self, ctx, message):
        # In the modern era the SDK itself drops what the request did not opt into.
        floor = "debug" if modern(ctx) else self.levels.get(session_of(ctx), "debug")
        if LEVELS.index("info") >= LEVELS.index(floor):
            await ctx.session.send_log_message("info", message, related_request_id=ctx.request_id)


def session_of(ctx):
    return None if ctx.request is None else ctx.request.headers.get("mcp-session-id")


# --- Transports -----------------------------------------------------------------------------------------------


class Events(EventStore):
    """What was sent on legacy streams, so that a client can come back for the rest."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events) - 1)

    async def replay_events_after(self, last_event_id, send_callback):
        if not last_event_id.isdecimal() or int(last_event_id) >= len(self.events):
            return None
        last = int(last_event_id)
        stream = self.events[last][0]
        for number, (owner, message) in enumerate(self.events[last + 1 :], last + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def not_in_this_era(era, method, requested):
    """How a server that speaks one era answers the other one."""
    if era == "legacy":
        return {"code": types.METHOD_NOT_FOUND, "message": "Method not found", "data": method}
    data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": requested}
    return {"code": types.UNSUPPORTED_PROTOCOL_VERSION, "message": "Unsupported protocol version", "data": data}


class Pinned:
    """Refuses HTTP requests of the other era; the SDK's application would serve both."""

    def __init__(self, app, era):
        self.app = app
        self.era = era

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        version = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode("latin-1")
        # A request without the header is a first `initialize`, so of the legacy era.
        legacy = not version or version in HANDSHAKE_PROTOCOL_VERSIONS
        if legacy == (self.era == "legacy"):
            return await self.app(scope, receive, send)
        if scope["method"] != "POST":
            return await reply(send, 405, None)
        try:
            message = json.loads(await read_body(receive))
        except ValueError:
            message = None
        message = message if isinstance(message, dict) else {}
        requested = version or (message.get("params") or {}).get("protocolVersion", "")
        error = not_in_this_era(self.era, message.get("method"), requested)
        await reply(send, 400, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})


async def read_body(receive):
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return body


async def reply(send, status, body):
    headers = [(b"content-type", b"application/json")] if body else [(b"allow", b"POST")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode() if body else b""})


async def serve_http(port, era):
    import uvicorn

    # The SDK's defaults for this host also refuse foreign Host and Origin headers, which the suite tests.
    app = Fixture().streamable_http_app(event_store=Events(), retry_interval=RETRY_MS)
    app = app if era == "both" else Pinned(app, era)
    config = uvicorn.Config(app, "127.0.0.1", port, log_level="warning", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve()


async def serve_stdio(era):
    fixture = Fixture()
    async with stdio_server() as (read, write), fixture.lifespan(fixture) as state:
        if era == "both":
            options = fixture.create_initialization_options()
            await serve_dual_era_loop(fixture, read, write, lifespan_state=state, init_options=options)
        elif era == "legacy":
            await serve_loop(fixture, read, write, lifespan_state=state)
        else:
            await serve_modern(fixture, read, write, state)


async def serve_modern(fixture, read, write, state):
    """Like the SDK's loop, but an `initialize` that comes first does not make the connection a legacy one."""
    handle = modern_on_request(fixture, state)

    async def on_request(dctx, method, params):
        if method == "initialize":
            refusal = not_in_this_era("modern", method, (params or {}).get("protocolVersion", ""))
            raise MCPError(refusal["code"], refusal["message"], refusal["data"])
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        return await handle(dctx, method, params)

    async def on_notify(dctx, method, params):
        """The era has no notification from client to server but `cancelled`, which the dispatcher handles."""

    try:
        await JSONRPCDispatcher(read, write).run(on_request, on_notify)
    finally:
        # Else the writer of the transport waits for more, and the process outlives its client.
        await write.aclose()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    era = argparse.ArgumentParser(add_help=False)
    era.add_argument("--era", choices=["legacy", "modern", "both"], default="both")
    transports = parser.add_subparsers(dest="transport", required=True)
    transports.add_parser("http", parents=[era]).add_argument("port", type=int)
    transports.add_parser("stdio", parents=[era])
    options = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    if options.transport == "http":
        anyio.run(serve_http, options.port, options.era)
    else:
        anyio.run(serve_stdio, options.era)


if __name__ == "__main__":
    main()
