"""The scripted model server, over real HTTP: what each protocol gets, what goes wrong on purpose, what is counted."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mngr.dev.model_server import ModelServer
from mngr.dev.script import BadScript, Script
from tests.home import Mngr, wait_until

PATHS = {"anthropic": "/v1/messages", "responses": "/v1/responses", "chat": "/v1/chat/completions"}
SHELLS = {"anthropic": "Bash", "responses": "exec_command", "chat": "bash"}
PROTOCOLS = pytest.mark.parametrize("protocol", list(PATHS))
BOTH_WAYS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        lines = [line[6:] for line in self.body.decode().splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


def ask(
    server: ModelServer, path: str, body: bytes | Iterator[bytes] | None = None, method: str = "POST", **headers: str
) -> Reply:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named, encode_chunked=isinstance(body, Iterator))
        answer = connection.getresponse()
        return Reply(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def get(server: ModelServer, path: str) -> Reply:
    return ask(server, path, method="GET")


def request(protocol: str, *texts: str, stream: bool = False, tools: bool = True) -> dict[str, Any]:
    """What a program sends when the user said these texts one after the other, each but the last answered."""
    name = SHELLS[protocol]
    turns: list[dict[str, Any]] = []
    for text in texts:
        turns += [{"role": "user", "content": text}, {"role": "assistant", "content": "fine"}]
    body: dict[str, Any] = {"model": "m-1", "stream": stream}
    body["input" if protocol == "responses" else "messages"] = turns[:-1]
    if protocol == "chat":
        body["stream_options"] = {"include_usage": True}
        body["tools"] = [{"type": "function", "function": {"name": name}}]
    else:
        body["tools"] = [{"name": name}]
    if not tools:
        del body["tools"]
    return body


def say(server: ModelServer, protocol: str, *texts: str, stream: bool = False) -> Reply:
    body = request(protocol, *texts, stream=stream)
    return ask(server, PATHS[protocol], json.dumps(body).encode())


def text_of(protocol: str, reply: Reply, stream: bool) -> str:
    """The text as a client puts it together."""
    match protocol, stream:
        case "anthropic", True:
            deltas = [event["delta"] for event in reply.events if event["type"] == "content_block_delta"]
            return "".join(delta.get("text", "") for delta in deltas)
        case "anthropic", False:
            return "".join(block.get("text", "") for block in reply.json["content"])
        case "responses", True:
            return "".join(event["delta"] for event in reply.events if event["type"] == "response.output_text.delta")
        case "responses", False:
            return str(reply.json["output"][0]["content"][0]["text"])
        case "chat", True:
            chunks = [event["choices"][0]["delta"] for event in reply.events if event["choices"]]
            return "".join(chunk.get("content") or "" for chunk in chunks)
    return str(reply.json["choices"][0]["message"]["content"])


def call_of(protocol: str, reply: Reply, stream: bool) -> tuple[str, Any]:
    """The name and the input of the tool call."""
    if protocol == "anthropic" and stream:
        [start] = [event for event in reply.events if event["type"] == "content_block_start"]
        [delta] = [event["delta"] for event in reply.events if event["type"] == "content_block_delta"]
        return start["content_block"]["name"], json.loads(delta["partial_json"])
    if protocol == "anthropic":
        [block] = reply.json["content"]
        return block["name"], block["input"]
    if protocol == "responses":
        whole = reply.events[-1]["response"] if stream else reply.json
        [item] = whole["output"]
        return item["name"], json.loads(item["arguments"])
    if stream:
        deltas = [event["choices"][0]["delta"] for event in reply.events if event["choices"]]
        [call] = [delta for delta in deltas if "tool_calls" in delta]
    else:
        call = reply.json["choices"][0]["message"]
    function = call["tool_calls"][0]["function"]
    return function["name"], json.loads(function["arguments"])


def usage_of(protocol: str, reply: Reply, stream: bool) -> dict[str, int]:
    """What the client was told, in the words of the log."""
    if protocol == "anthropic":
        told = reply.events[-2]["usage"] if stream else reply.json["usage"]
        kept = told["cache_creation"]
        assert told["cache_creation_input_tokens"] == sum(kept.values())
        return {
            "input": told["input_tokens"],
            "cache_read": told["cache_read_input_tokens"],
            "cache_write_5m": kept["ephemeral_5m_input_tokens"],
            "cache_write_1h": kept["ephemeral_1h_input_tokens"],
            "output": told["output_tokens"],
            "reasoning": 0,
        }
    if protocol == "responses":
        told = (reply.events[-1]["response"] if stream else reply.json)["usage"]
        names = ("input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details")
    else:
        told = (reply.events[-1] if stream else reply.json)["usage"]
        names = ("prompt_tokens", "prompt_tokens_details", "completion_tokens", "completion_tokens_details")
    taken, cached = told[names[0]], told[names[1]]["cached_tokens"]
    assert told["total_tokens"] == taken + told[names[2]]
    return {
        "input": taken - cached,
        "cache_read": cached,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "output": told[names[2]],
        "reasoning": told[names[3]]["reasoning_tokens"],
    }


# Answers.


@PROTOCOLS
@BOTH_WAYS
def test_a_text_arrives_as_it_was_said(server: ModelServer, protocol: str, stream: bool) -> None:
    reply = say(server, protocol, "please\nSAY: one  two\nSAY:  three", stream=stream)
    assert reply.status == 200
    assert text_of(protocol, reply, stream) == "one  two\nthree"
    assert reply.headers["x-mngr-model-server"] == "scripted, not a model"


@PROTOCOLS
@BOTH_WAYS
def test_run_calls_the_shell_tool_that_is_offered(server: ModelServer, protocol: str, stream: bool) -> None:
    name, given = call_of(protocol, say(server, protocol, "RUN: echo 'a b'", stream=stream), stream)
    assert name == SHELLS[protocol]
    assert given["cmd" if name == "exec_command" else "command"] == "echo 'a b'"


@PROTOCOLS
def test_call_calls_any_tool(server: ModelServer, protocol: str) -> None:
    reply = say(server, protocol, 'CALL: {"name": "Read", "input": {"file": "a"}}')
    assert call_of(protocol, reply, stream=False) == ("Read", {"file": "a"})


def test_a_custom_tool_gets_a_text_with_the_command_in_it(server: ModelServer) -> None:
    body = {**request("responses", "RUN: ls"), "tools": [{"type": "custom", "name": "exec"}]}
    [item] = ask(server, PATHS["responses"], json.dumps(body).encode()).json["output"]
    assert item["type"] == "custom_tool_call"
    assert 'exec_command({"cmd": "ls"})' in item["input"]


def test_tools_may_be_offered_in_the_conversation_and_in_namespaces(server: ModelServer) -> None:
    body = {**request("responses", "RUN: ls"), "tools": []}
    shell = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
    body["input"] = [{"type": "additional_tools", "role": "developer", "tools": [shell]}, *body["input"]]
    [item] = ask(server, PATHS["responses"], json.dumps(body).encode()).json["output"]
    assert item["name"] == "exec"
    assert server.requests()[0]["tools"] == 1


def test_without_a_shell_tool_run_says_so(server: ModelServer) -> None:
    body = request("anthropic", "RUN: ls", tools=False)
    reply = ask(server, PATHS["anthropic"], json.dumps(body).encode())
    assert text_of("anthropic", reply, False) == "There is no shell among the tools: none"


RESULTS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "name": "Bash"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "it ran"}]}]},
    ],
    "responses": [{"type": "function_call"}, {"type": "function_call_output", "output": "it ran"}],
    "chat": [{"role": "assistant", "tool_calls": []}, {"role": "tool", "content": "it ran"}],
}


@PROTOCOLS
def test_a_tool_result_ends_the_turn_although_the_directive_is_still_in_the_history(
    server: ModelServer, protocol: str
) -> None:
    body = request(protocol, "RUN: make")
    body["input" if protocol == "responses" else "messages"] += RESULTS[protocol]
    reply = ask(server, PATHS[protocol], json.dumps(body).encode())
    assert text_of(protocol, reply, False) == "DONE: it ran"


def test_what_codex_tells_about_a_process_is_left_out_of_its_result(server: ModelServer) -> None:
    told = "Chunk ID: 1\nWall time: 0.1 seconds\nOutput:\ntool-42\nOutput:\n"
    body = {"model": "m", "input": [{"type": "function_call"}, {"type": "function_call_output", "output": told}]}
    reply = ask(server, PATHS["responses"], json.dumps(body).encode())
    assert text_of("responses", reply, False) == "DONE: tool-42\nOutput:"


def test_other_texts_are_answered_with_their_beginning(server: ModelServer) -> None:
    reply = say(server, "chat", "x" * 100)
    assert text_of("chat", reply, False) == "Hello from the scripted model. You said: " + "x" * 60


@PROTOCOLS
def test_recall_answers_with_the_first_earlier_message_that_matches(server: ModelServer, protocol: str) -> None:
    history = ("the word is plum", "the word is pear", "RECALL: word is p")
    assert text_of(protocol, say(server, protocol, *history), False) == "the word is plum"
    assert text_of(protocol, say(server, protocol, "RECALL: plum"), False) == "I recall nothing"


@pytest.mark.parametrize(
    "text",
    [
        "I want SAY: no",
        " SAY: no",
        "<system-reminder>\nSAY: no\n</system-reminder>\nhello",
        "say: no",
    ],
)
def test_only_lines_of_the_user_that_begin_with_it_are_directives(server: ModelServer, text: str) -> None:
    assert text_of("anthropic", say(server, "anthropic", "SAY: no", text), False).startswith("Hello")


def test_of_several_texts_the_last_counts_and_instructions_at_the_end_do_not(server: ModelServer) -> None:
    blocks = [{"type": "text", "text": f"SAY: {word}"} for word in ("failed before", "now")]
    body = request("anthropic", "x")
    body["messages"] = [{"role": "user", "content": blocks}, {"role": "system", "content": "SAY: no"}]
    reply = ask(server, PATHS["anthropic"], json.dumps(body).encode())
    assert text_of("anthropic", reply, False) == "now"


def test_a_directive_that_is_wrong_is_told(server: ModelServer) -> None:
    assert "FAULT" in text_of("chat", say(server, "chat", "FAULT: {"), False)
    assert "fault needs one of" in text_of("chat", say(server, "chat", "FAULT: {}"), False)


def test_requests_aside_are_answered_but_obey_no_directive(server: ModelServer) -> None:
    body = {**request("anthropic", 'FAULT: {"status": 500}', tools=False), "system": "write a title"}
    reply = ask(server, PATHS["anthropic"], json.dumps(body).encode())
    assert (reply.status, text_of("anthropic", reply, False)) == (200, "Scripted")
    [entry] = server.requests()
    assert entry["answered"]["aside"]
    assert (entry["tools"], entry["new_user_texts"]) == (0, [])


def test_what_is_asked_for_in_a_form_is_aside_too(server: ModelServer) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    body = {**request("responses", "RUN: ls"), "text": {"format": {"type": "json_schema", "schema": schema}}}
    reply = ask(server, PATHS["responses"], json.dumps(body).encode())
    assert json.loads(text_of("responses", reply, False)) == {"title": "Scripted"}
    assert server.texts() == []


# The rest of the surface.


def test_it_says_what_it_is(server: ModelServer) -> None:
    assert b"not a model" in get(server, "/").body
    assert ask(server, "/", method="HEAD").status == 200
    assert get(server, "/v1/models").json["data"][0]["id"] == "scripted"


def test_tokens_are_counted(server: ModelServer) -> None:
    body = json.dumps(request("anthropic", "hello")).encode()
    assert ask(server, "/v1/messages/count_tokens", body).json["input_tokens"] > 1


def test_an_unknown_path_is_404_and_in_the_log(server: ModelServer) -> None:
    assert ask(server, "/v1/embeddings", b"{}").status == 404
    assert [(entry["path"], entry["status"]) for entry in server.requests()] == [("/v1/embeddings", 404)]


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"messages": 1}', b'{"messages": ["x"]}'])
def test_what_is_no_request_is_400_in_the_shape_of_the_protocol(server: ModelServer, body: bytes) -> None:
    reply = ask(server, PATHS["anthropic"], body)
    assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")


def test_bodies_may_be_chunked_and_compressed(server: ModelServer) -> None:
    body = json.dumps(request("chat", "SAY: unpacked")).encode()
    packed = gzip.compress(body)
    halves = iter([packed[:50], packed[50:]])
    for reply in (
        ask(server, PATHS["chat"] + "?beta=true", iter([body[:9], body[9:]]), transfer_encoding="chunked"),
        ask(server, PATHS["chat"], packed, content_encoding="gzip"),
        ask(server, PATHS["chat"], halves, content_encoding="gzip", transfer_encoding="chunked"),
    ):
        assert text_of("chat", reply, False) == "unpacked"


@pytest.mark.parametrize(("encoding", "status"), [("br", 415), ("gzip", 400)])
def test_a_body_that_cannot_be_unpacked_is_refused(server: ModelServer, encoding: str, status: int) -> None:
    reply = ask(server, PATHS["chat"], b"xxxx", content_encoding=encoding)
    assert reply.status == status
    assert reply.json["error"]["message"]


def test_zstd_is_unpacked_or_the_missing_package_named(server: ModelServer) -> None:
    raw = json.dumps(request("chat", "SAY: z")).encode()
    frame = b"\x28\xb5\x2f\xfd\xa0" + len(raw).to_bytes(4, "little")  # one block, stored as it is
    frame += (len(raw) << 3 | 1).to_bytes(3, "little") + raw
    reply = ask(server, PATHS["chat"], frame, content_encoding="zstd")
    try:
        import zstandard  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        assert reply.status == 415
        assert "zstandard" in reply.json["error"]["message"]
    else:
        assert text_of("chat", reply, False) == "z"


def test_one_connection_serves_many_requests(server: ModelServer) -> None:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    for stream in (True, False, True):
        connection.request("POST", PATHS["chat"], json.dumps(request("chat", "hi", stream=stream)))
        port = connection.sock.getsockname()
        assert connection.getresponse().read()
        assert connection.sock.getsockname() == port
    connection.close()


# Faults.

ERROR_TYPES = {"anthropic": "rate_limit_error", "responses": "requests", "chat": "requests"}


@PROTOCOLS
@BOTH_WAYS
def test_a_status_comes_with_its_headers_in_the_shape_of_the_protocol(
    server: ModelServer, protocol: str, stream: bool
) -> None:
    fault = {"status": 429, "retry_after": 3, "headers": {"x-should-retry": "false"}, "message": "slow down"}
    reply = say(server, protocol, f"FAULT: {json.dumps(fault)}", stream=stream)
    assert reply.status == 429
    assert (reply.headers["retry-after"], reply.headers["x-should-retry"]) == ("3", "false")
    assert reply.json["error"]["type"] == ERROR_TYPES[protocol]
    assert reply.json["error"]["message"] == "slow down"
    [entry] = server.requests()
    assert (entry["status"], entry["usage"]) == (429, None)
    assert entry["answered"] == {"fault": fault}


def test_overload_has_its_own_type(server: ModelServer) -> None:
    reply = say(server, "anthropic", 'FAULT: {"status": 529}')
    assert reply.json == {"type": "error", "error": {"type": "overloaded_error", "message": "the script says 529"}}


def test_a_fault_with_times_is_over_after_so_many_for_each_conversation(server: ModelServer) -> None:
    text = 'FAULT: {"status": 500, "times": 2}\nSAY: through'
    assert [say(server, "anthropic", text).status for _ in range(4)] == [500, 500, 200, 200]
    assert [say(server, "anthropic", "another", text).status for _ in range(3)] == [500, 500, 200]


@PROTOCOLS
@BOTH_WAYS
def test_a_cut_answer_breaks_off(server: ModelServer, protocol: str, stream: bool) -> None:
    with pytest.raises(http.client.IncompleteRead) as broken:
        say(server, protocol, 'FAULT: {"cut": 2}\nSAY: one two three four', stream=stream)
    if stream:
        assert b"two" in broken.value.partial
        assert b"three" not in broken.value.partial
    assert server.requests()[0]["usage"] is None


@pytest.mark.parametrize("count", [0, 99])
def test_a_cut_answer_is_never_whole(server: ModelServer, count: int) -> None:
    with pytest.raises(http.client.IncompleteRead) as broken:
        say(server, "anthropic", f'FAULT: {{"cut": {count}}}\nSAY: one two', stream=True)
    assert (b"one" in broken.value.partial) is (count == 99)
    assert b"message_stop" not in broken.value.partial


@PROTOCOLS
@BOTH_WAYS
def test_a_malformed_answer_is_no_json(server: ModelServer, protocol: str, stream: bool) -> None:
    reply = say(server, protocol, 'FAULT: {"malformed": true}', stream=stream)
    assert reply.status == 200
    with pytest.raises(ValueError, match=r"line 1"):
        _ = reply.events if stream else reply.json


def test_a_hanging_request_ends_without_an_answer(server: ModelServer) -> None:
    with pytest.raises(http.client.RemoteDisconnected):
        say(server, "chat", 'FAULT: {"hang": 0.05}')
    assert [(entry["status"], entry["usage"]) for entry in server.requests()] == [(None, None)]


def test_delay_and_pace_hold_the_answer_back_and_lose_nothing(server: ModelServer) -> None:
    reply = say(server, "chat", "DELAY: 0.05\nPACE: 0.01\nSAY: a b c", stream=True)
    assert text_of("chat", reply, True) == "a b c"


def test_a_client_that_leaves_is_noticed_at_once_and_its_usage_not_counted(server: ModelServer) -> None:
    body = json.dumps(request("chat", "DELAY: 600"))
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    connection.request("POST", PATHS["chat"], body)
    connection.close()
    wait_until(server.requests, what="the log to tell that the client left")
    assert server.requests()[0]["answered"]["left"]
    assert server.usage() == {}


# Scripts.


def scripted(*rules: dict[str, Any]) -> ModelServer:
    return ModelServer(Script(list(rules)))


def test_the_first_rule_that_matches_answers_with_groups_of_its_match() -> None:
    with scripted(
        {"when": r"add (\d+) to (?P<what>\w+)", "say": r"\g<what>+\1"}, {"when": "add", "say": "other"}
    ) as server:
        assert text_of("chat", say(server, "chat", "add 3 to x"), False) == "x+3"
        assert text_of("chat", say(server, "chat", "add it"), False) == "other"
        assert text_of("chat", say(server, "chat", "SAY: by directive"), False) == "by directive"


def test_a_rule_can_match_a_tool_result() -> None:
    with scripted({"when": "go", "run": "make"}, {"when": "it (ran)", "say": r"so it \1"}) as server:
        assert call_of("chat", say(server, "chat", "go"), False)[1]["command"] == "make"
        body = request("chat", "go")
        body["messages"] += RESULTS["chat"]
        reply = ask(server, PATHS["chat"], json.dumps(body).encode())
        assert text_of("chat", reply, False) == "so it ran"


def test_a_rule_with_times_is_used_up() -> None:
    with scripted({"when": "", "say": "once", "times": 1}) as server:
        assert [text_of("chat", say(server, "chat", "SAY: then"), False) for _ in range(2)] == ["once", "then"]


def test_a_rule_can_fail_first_and_then_answer() -> None:
    with scripted({"when": "go", "fault": {"status": 503, "times": 1}, "say": "gone"}) as server:
        assert say(server, "chat", "go").status == 503
        assert text_of("chat", say(server, "chat", "go"), False) == "gone"


def test_text_and_call_come_in_one_answer(server: ModelServer) -> None:
    content = say(server, "anthropic", "SAY: I run it\nRUN: ls").json["content"]
    assert [block["type"] for block in content] == ["text", "tool_use"]


def test_rules_can_be_replaced_while_it_runs(server: ModelServer) -> None:
    rules = [{"when": "x", "say": "new"}]
    assert ask(server, "/_script", json.dumps(rules).encode()).status == 200
    refused = ask(server, "/_script", b'[{"say": "x"}]')
    assert (refused.status, refused.body) == (400, b'rule 1: "when" is missing\n')
    assert text_of("chat", say(server, "chat", "x"), False) == "new"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON: "),
        ("{}", "not a list of rules"),
        ('[{"when": "a", "say": "b"}, 3]', "rule 2: a rule is not a table"),
        ('[{"say": "b"}]', 'rule 1: "when" is missing'),
        ('[{"when": "("}]', 'rule 1: "when" is not a regular expression: '),
        ('[{"when": "a", "say": "\\\\2"}]', "rule 1: invalid group reference 2"),
        ('[{"when": "a", "sya": "b"}]', "rule 1: a rule has no 'sya'; known are when, say"),
        ('[{"when": "a", "say": 1}]', "rule 1: 'say' of a rule cannot be 1"),
        ('[{"when": "a", "delay": -1}]', "rule 1: 'delay' of a rule cannot be -1"),
        ('[{"when": "a", "times": true}]', "rule 1: 'times' of a rule cannot be true"),
        ('[{"when": "a", "call": {"name": "x"}}]', "rule 1: call needs a name and an input"),
        ('[{"when": "a", "fault": {"status": 500, "cut": 1}}]', "rule 1: fault needs one of status, cut,"),
        ('[{"when": "a", "fault": {"status": 200}}]', "rule 1: the status of a fault is between 400 and 599"),
        ('[{"when": "a", "fault": {"status": "500"}}]', "rule 1: 'status' of fault cannot be \"500\""),
        ('[{"when": "a", "usage": {"inputs": 1}}]', "rule 1: usage has no 'inputs'; known are input, cache_read,"),
    ],
)
def test_a_bad_script_is_refused_with_one_clear_line(text: str, why: str) -> None:
    with pytest.raises(BadScript) as refused:
        Script.load(text)
    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)


# What is counted and logged.


def test_the_sums_are_those_of_what_clients_were_told(server: ModelServer) -> None:
    told = []
    for protocol in PATHS:
        for stream in (True, False):
            told.append(usage_of(protocol, say(server, protocol, f"hi {stream}", stream=stream), stream))
            say(server, protocol, 'FAULT: {"status": 500}', stream=stream)
    assert [entry["usage"] for entry in server.requests() if entry["usage"]] == told
    assert len({usage["input"] for usage in told}) == len(told)
    sums = {key: sum(usage[key] for usage in told) for key in told[0]}
    assert server.usage() == {"m-1": sums}
    assert get(server, "/_usage").json == {"m-1": sums}


@PROTOCOLS
@BOTH_WAYS
def test_usage_can_be_set(server: ModelServer, protocol: str, stream: bool) -> None:
    wanted = {"input": 7, "cache_read": 8, "cache_write_5m": 9, "cache_write_1h": 10, "output": 11, "reasoning": 3}
    told = usage_of(protocol, say(server, protocol, f"USAGE: {json.dumps(wanted)}", stream=stream), stream)
    unknown = ["reasoning"] if protocol == "anthropic" else ["cache_write_5m", "cache_write_1h"]
    assert told == {**wanted, **dict.fromkeys(unknown, 0)}
    assert server.requests()[0]["usage"] == told


def test_a_stream_begins_with_one_output_token(server: ModelServer) -> None:
    first, *_, last, _stop = say(server, "anthropic", 'USAGE: {"output": 50}', stream=True).events
    assert first["message"]["usage"]["output_tokens"] == 1
    assert last["usage"]["output_tokens"] == 50


def test_a_chat_stream_tells_usage_only_when_asked_to(server: ModelServer) -> None:
    body = request("chat", "hi", stream=True)
    del body["stream_options"]
    reply = ask(server, PATHS["chat"], json.dumps(body).encode())
    assert not any(event.get("usage") for event in reply.events)
    assert server.requests()[0]["usage"] is None


@PROTOCOLS
def test_the_id_of_the_log_is_that_of_the_answer(server: ModelServer, protocol: str) -> None:
    told = say(server, protocol, "hi").json["id"]
    assert [entry["id"] for entry in server.requests()] == [told]


@PROTOCOLS
def test_each_text_is_new_once_and_a_repeated_one_again(server: ModelServer, protocol: str) -> None:
    for history in (["a"], ["a"], ["a", "b"], ["a", "b", "a"]):
        say(server, protocol, *history)
    assert [entry["new_user_texts"] for entry in server.requests()] == [["a"], [], ["b"], ["a"]]
    assert server.texts() == ["a", "b", "a"]


QUEUED = "The user sent a new message while you were working:\nand this\n\nIMPORTANT: After your task, address it."


@pytest.mark.parametrize(
    "late",
    [
        [{"role": "user", "content": [{"type": "tool_result", "content": "ok"}, {"type": "text", "text": "and this"}]}],
        [
            {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]},
            {"role": "system", "content": QUEUED},
        ],
        [{"role": "user", "content": f"<system-reminder>\n{QUEUED}\n</system-reminder>"}],
    ],
    ids=["block", "instructions", "reminder"],
)
def test_a_message_that_was_typed_into_a_running_turn_is_new(server: ModelServer, late: list[dict[str, Any]]) -> None:
    say(server, "anthropic", "RUN: make")
    body = request("anthropic", "RUN: make")
    body["messages"] += [RESULTS["anthropic"][0], *late]
    ask(server, PATHS["anthropic"], json.dumps(body).encode())
    assert server.texts() == ["RUN: make", "and this"]


@pytest.mark.parametrize(
    "user_id",
    [
        "user_0f_account__session_{session}",
        '{{"device_id": "0f", "account_uuid": "", "session_id": "{session}"}}',
    ],
)
def test_the_session_of_claude_is_the_conversation(server: ModelServer, user_id: str) -> None:
    session = "7f8d9c2a-ec93-4361-8a43-311104260355"
    body = {**request("anthropic", "hi"), "metadata": {"user_id": user_id.format(session=session)}}
    ask(server, PATHS["anthropic"], json.dumps(body).encode())
    assert server.requests()[0]["conversation"] == session


@pytest.mark.parametrize("protocol", ["responses", "chat"])
def test_the_cache_key_of_openai_is_the_conversation(server: ModelServer, protocol: str) -> None:
    body = {**request(protocol, "hi"), "prompt_cache_key": "thread-1"}
    ask(server, PATHS[protocol], json.dumps(body).encode())
    say(server, protocol, "hi")
    assert [entry["new_user_texts"] for entry in server.requests()] == [["hi"], ["hi"]]
    assert server.requests()[0]["conversation"] == "thread-1"


def test_the_log_file_the_log_address_and_the_list_are_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with ModelServer(log=str(log)) as server:
        say(server, "chat", "a", stream=True)
        say(server, "anthropic", 'FAULT: {"status": 500}')
        told = server.requests()
        assert get(server, "/_log").json == told
        assert [json.loads(line) for line in log.read_text().splitlines()] == told
    assert set(told[0]) == set("n time path model tools conversation new_user_texts answered status usage id".split())


# Many at once, and the end.


def test_a_hundred_clients_can_wait_while_others_are_served(server: ModelServer) -> None:
    waiting = [http.client.HTTPConnection(server.url.removeprefix("http://")) for _ in range(100)]
    for connection in waiting:
        connection.request("POST", PATHS["chat"], json.dumps(request("chat", "DELAY: 600")))
    wait_until(lambda: server.ledger._begun == 100, what="all requests to be under way")
    assert text_of("chat", say(server, "chat", "SAY: served"), False) == "served"
    assert len(server.requests()) == 1
    for connection in waiting:
        connection.close()


def test_a_hundred_slow_streams_do_not_mix_and_are_all_counted(server: ModelServer) -> None:
    texts = [f"DELAY: 0.1\nPACE: 0.02\nSAY: answer {number} of many" for number in range(100)]
    with ThreadPoolExecutor(100) as pool:
        replies = list(pool.map(lambda text: say(server, "anthropic", text, stream=True), texts))
    told = [text_of("anthropic", reply, True) for reply in replies]
    assert told == [f"answer {number} of many" for number in range(100)]
    assert sorted(server.texts()) == sorted(texts)
    total = sum(usage_of("anthropic", reply, True)["input"] for reply in replies)
    assert server.usage()["m-1"]["input"] == total == sum(100 + n for n in range(1, 101))


def test_it_stops_with_streams_open_and_clients_idle() -> None:
    with ModelServer() as server:
        address = server.url.removeprefix("http://")
        waiting, streaming, idle = (http.client.HTTPConnection(address) for _ in range(3))
        host, port = address.split(":")
        hasty = socket.create_connection((host, int(port)))
        body = json.dumps(request("chat", "DELAY: 600"))
        hasty.sendall(f"POST {PATHS['chat']} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        waiting.request("POST", PATHS["chat"], body)
        slow = request("chat", "PACE: 600\nSAY: a b", stream=True)
        streaming.request("POST", PATHS["chat"], json.dumps(slow))
        stream = streaming.getresponse()
        idle.request("GET", "/")
        idle.getresponse().read()
        wait_until(lambda: server.ledger._begun == 3, what="the requests to come in")
        hasty.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        waiting.getresponse()
    with pytest.raises(http.client.IncompleteRead):
        stream.read()
    assert idle.sock.recv(1) == b""
    for connection in (waiting, streaming, idle):
        connection.close()
    hasty.close()
    assert [entry["answered"]["left"] for entry in server.requests()] == [True] * 3


# The verb.


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_verb_tells_its_address_first_and_ends_by_a_signal(mngr: Mngr, tmp_path: Path, number: int) -> None:
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    script.write_text('[{"when": "ping", "say": "pong"}]')
    process = mngr.popen("dev", "model-server", "--script", str(script), "--log", str(log))
    assert process.stdout
    assert process.stderr
    start, _, port = process.stdout.readline().strip().rpartition(":")
    assert start == "listening on http://127.0.0.1"
    assert process.stdout.readline() == "scripted, not a model\n"
    with socket.create_connection(("127.0.0.1", int(port))):
        connection = http.client.HTTPConnection("127.0.0.1", int(port))
        connection.request("POST", PATHS["chat"], json.dumps(request("chat", "ping")))
        assert b"pong" in connection.getresponse().read()
        connection.close()
        os.kill(process.pid, number)
        assert process.wait(30) == 128 + number
    assert process.stderr.read() == ""
    assert [json.loads(line)["n"] for line in log.read_text().splitlines()] == [1]


def test_a_script_that_is_wrong_or_missing_is_a_usage_error(mngr: Mngr, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    missing = mngr("dev", "model-server", "--script", str(script))
    assert (missing.code, missing.err) == (2, f"mngr: {script}: No such file or directory\n")
    script.write_text('[{"when": "("}]')
    wrong = mngr("dev", "model-server", "--script", str(script))
    assert wrong.code == 2
    assert wrong.err.startswith(f'mngr: {script}: rule 1: "when" is not a regular expression')
    assert wrong.err.count("\n") == 1


def test_a_port_that_is_taken_or_none_is_told(mngr: Mngr, server: ModelServer) -> None:
    port = server.url.rpartition(":")[2]
    taken = mngr("dev", "model-server", "--port", port)
    assert taken.code == 1
    assert f"mngr: port {port}: Address already in use" in taken.err
    assert mngr("dev", "model-server", "--port", "http").code == 2
