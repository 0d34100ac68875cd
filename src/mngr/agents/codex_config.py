"""The configuration directory of one Codex agent: the user's own settings and hooks, with ours on top.

Codex runs a hook only after somebody has looked at it and trusted it, which it remembers in config.toml: a checksum of
the hook, under the place where the hook stands. Ours are trusted in advance, so that no dialog asks for it. Of the
user's, those that the user has trusted come along; the others would not run anyway, and would bring the dialog up."""

from __future__ import annotations

import os

from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mngr.agents import Seat

# What it tells our hook script, and as what. SessionStart comes with the first prompt, and so tells nothing.
HOOKS = {
    "UserPromptSubmit": "UserPromptSubmit",
    "PostToolUse": "ToolRan",
    "PermissionRequest": "PermissionRequest",
    "Stop": "Stop",
    "Interrupt": "Interrupt",
}
_LINKED = ("AGENTS.md", "AGENTS.override.md", "agents", "prompts", "rules")


def users_directory(home: str) -> str:
    """Not that of the agent that we may be inside of."""
    chosen = "" if "MNGR_AGENT_ID" in os.environ else os.environ.get("CODEX_HOME")
    return chosen or f"{home}/.codex"


def users_config(home: str | None) -> dict[str, Any]:
    return _read(f"{users_directory(home)}/config.toml") if home else {}


def key_variable(config: dict[str, Any]) -> str | None:
    """The variable with the key for the models that this configuration chooses; empty when they need none. None: it
    chooses no others than those that one is logged in for."""
    provider = _table(config, "model_providers").get(str(config.get("model_provider")))
    if not isinstance(provider, dict) or provider.get("requires_openai_auth"):
        return None
    return str(provider.get("env_key", ""))


def links(theirs: str) -> dict[str, str]:
    """Skills one by one: Codex unpacks those of its own beside them. Files of profiles have names of the user's."""
    found = {name: f"{theirs}/{name}" for name in _LINKED}
    for place in (theirs, f"{theirs}/skills"):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if not name.startswith(".") and (place != theirs or name.endswith(".config.toml")):
                found[os.path.relpath(f"{place}/{name}", theirs)] = f"{place}/{name}"
    return {f"codex/{path}": target for path, target in found.items()}


def files(seat: Seat) -> dict[str, str]:
    """config.toml and hooks.json."""
    import json

    import tomlkit

    config = users_config(seat.user_home)
    theirs = users_directory(seat.user_home) if seat.user_home else None
    hooks, state = _hooks(seat, theirs, _table(config, "hooks"))
    trusted = {"trust_level": "trusted"}
    _table(config, "projects").update(dict.fromkeys(_work_dirs(seat), trusted))
    # A key in OPENAI_API_KEY is only for a provider of one's own: `launch` chooses this one if there is no other way.
    _table(config, "model_providers")["mngr"] = {
        "name": "OpenAI by API key",
        "base_url": seat.env.get("OPENAI_BASE_URL") or "https://api.openai.com/v1",
        "env_key": "OPENAI_API_KEY",
        "wire_api": "responses",
    }
    config["check_for_update_on_startup"] = False
    _table(config, "features")["daemon_auto_start"] = False  # it would outlive the agent, with 300 MB
    screen = _table(config, "tui")
    screen["animations"] = False  # which cost 2 % of a core
    for name in ("status_line", "terminal_title"):  # by what they usually are, we see where one types
        screen.pop(name, None)
    config["hooks"] = {"state": state}
    return {"codex/config.toml": tomlkit.dumps(config), "codex/hooks.json": json.dumps({"hooks": hooks})}


def checksum(event: str, handler: dict[str, Any]) -> str:
    """By which Codex knows a hook again."""
    import hashlib
    import json

    told = {"event_name": _snake(event), "hooks": [{"async": False, **handler}]}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _hooks(seat: Seat, theirs: str | None, config: dict[str, Any]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """What hooks.json holds, and the state that says that all of it is trusted."""
    known = _table(config, "state")
    state = _of_the_project(known, seat)
    hooks: dict[str, list[Any]] = {}

    def add(event: str, group: dict[str, Any], handlers: list[Any], entries: list[Any]) -> None:
        groups = hooks.setdefault(event, [])
        for number, entry in enumerate(entries):
            state[f"{seat.directory}/codex/hooks.json:{_snake(event)}:{len(groups)}:{number}"] = entry
        groups.append({**group, "hooks": handlers})

    for source, event, number, group in _groups(theirs, config) if theirs else ():
        handlers = enumerate(group["hooks"] if isinstance(group.get("hooks"), list) else ())
        keys = {f"{source}:{_snake(event)}:{number}:{place}": handler for place, handler in handlers}
        trusted = {key: handler for key, handler in keys.items() if key in known}
        if trusted:
            add(event, group, list(trusted.values()), [known[key] for key in trusted])
    for event, told in HOOKS.items():
        command = f"sh {quote(seat.directory + '/hook')} {told}"
        patience = 3 if event == "Interrupt" else 10  # more is not allowed there
        handler = {"type": "command", "command": command, "timeout": patience}
        add(event, {}, [handler], [{"trusted_hash": checksum(event, handler)}])
    return hooks, state


def _groups(theirs: str, config: dict[str, Any]) -> Iterator[tuple[str, str, int, dict[str, Any]]]:
    """The user's hooks, from both files that can hold them: file, event, number and content of each group."""
    beside = _read(f"{theirs}/hooks.json").get("hooks")
    for source, events in ((f"{theirs}/hooks.json", beside), (f"{theirs}/config.toml", config)):
        for event, groups in events.items() if isinstance(events, dict) else ():
            for number, group in enumerate(groups if isinstance(groups, list) else ()):
                if isinstance(group, dict):
                    yield source, event, number, group


def _of_the_project(known: dict[str, Any], seat: Seat) -> dict[str, Any]:
    """Hooks of the repository itself, trusted where the agent's work comes from, are the same in its work dir."""
    source = f"{seat.agent.source}/"
    keys = [key for key in known if key.startswith(source)]
    return {f"{place}/{key.removeprefix(source)}": known[key] for key in keys for place in _work_dirs(seat)}


def _work_dirs(seat: Seat) -> list[str]:
    """Both names, when the way to it leads over a link."""
    return sorted({seat.agent.work_dir, os.path.realpath(seat.agent.work_dir)})


def _snake(event: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in event).removeprefix("_")


def _read(path: str) -> dict[str, Any]:
    """A file of the user's; one that is missing or broken says nothing."""
    import json
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        found = tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _table(config: dict[str, Any], name: str) -> dict[str, Any]:
    """That member, which is a table from now on."""
    if not isinstance(config.get(name), dict):
        config[name] = {}
    found: dict[str, Any] = config[name]
    return found
