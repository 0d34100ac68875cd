"""`mngr dev model-server`: try agent programs with no network and no key. What it answers is in mngr/dev/script.py."""

from __future__ import annotations

from mngr.errors import MngrError, UsageError
from mngr.grammar import Args, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.dev.script import Script


@command(
    "dev model-server",
    summary="answer agent programs by a script, in place of a model",
    usage=["dev model-server [--port PORT] [--script FILE] [--log FILE]"],
    about="""
        Speaks the protocols of Anthropic (Messages) and OpenAI (Responses, Chat Completions) on 127.0.0.1, so that
        Claude Code, Codex, OpenCode and others can be tried with no network, no key and the same answers every time.
        It is no model, and says so in its answers' headers. Prints its address as the first line; Ctrl-C ends it.

        Lines in the user's message tell it what to do: `SAY: text`, `RUN: command` (a call of the shell tool that the
        program offers), `FAULT: {"status": 529, "times": 2}` and others. A script does the same by rules.
        docs/model-server.md has all of it.
        """,
    options=[
        option("--port PORT", "listen on this port instead of a free one"),
        option(
            "--script FILE", "a JSON list of rules, of which the first that matches gives the answer", completes="files"
        ),
        option("--log FILE", "append a line of JSON for each request that was answered", completes="files"),
    ],
    examples=[
        ("mngr dev model-server --log requests.jsonl", "answer by directives, and keep what was asked"),
        (
            "ANTHROPIC_BASE_URL=http://127.0.0.1:PORT ANTHROPIC_API_KEY=dummy claude -p 'RUN: ls'",
            "Claude Code calls its shell tool, with the address that was printed",
        ),
    ],
)
def model_server(args: Args) -> int:
    from threading import Event

    from mngr.dev.handler import WHAT_IT_IS
    from mngr.dev.model_server import ModelServer

    port = args.text("port") or "0"
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--port takes a number up to 65535, not {port!r}")
    try:
        server = ModelServer(_script(args.text("script")), args.text("log"), int(port))
    except OSError as error:
        if error.filename:
            raise
        raise MngrError(f"port {port}: {error.strerror}", "without --port, a free one is taken") from None
    with server:
        print(f"listening on {server.url}", WHAT_IT_IS, sep="\n", flush=True)
        Event().wait()
    return 0


def _script(path: str | None) -> Script:
    from mngr.dev.script import BadScript, Script

    if path is None:
        return Script()
    try:
        with open(path, encoding="utf-8") as file:
            return Script.load(file.read())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (BadScript, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
