"""What the server answers: the rules of a script, then directives in the user's own message, then a fixed sentence.

A directive is a rule that is written into the message, so both are read into the same Rule by the same checks."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

from mngr.dev.exchange import NO_USAGE, Call, Json, Turn, Usage

_TITLE = "Scripted"
SHOWN = 60  # of what was said: enough to recognise it, on one line of a screen

# The shell tools of the agent programs, and how each wants its command.
_SHELLS: dict[str, Any] = {
    "Bash": lambda command: {"command": command, "description": "scripted"},
    "bash": lambda command: {"command": command, "description": "scripted"},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
    "exec": lambda command: f"text(JSON.stringify(await tools.exec_command({json.dumps({'cmd': command})})));",
}

_NUMBER, _TEXT, _TABLE = (int, float), (str,), (dict,)
_RULE_KEYS: dict[str, tuple[type, ...]] = {
    "when": _TEXT,
    "say": _TEXT,
    "run": _TEXT,
    "recall": _TEXT,
    "call": _TABLE,
    "fault": _TABLE,
    "usage": _TABLE,
    "delay": _NUMBER,
    "pace": _NUMBER,
    "times": (int,),
}
_FAULTS = ("status", "cut", "malformed", "hang")
_FAULT_KEYS: dict[str, tuple[type, ...]] = {
    "status": (int,),
    "cut": (int,),
    "malformed": (bool,),
    "hang": _NUMBER,
    "times": (int,),
    "retry_after": _NUMBER,
    "message": _TEXT,
    "headers": _TABLE,
}
_DIRECTIVE = re.compile(r"^(RUN|SAY|RECALL|DELAY|PACE|CALL|FAULT|USAGE): *(.*)$", re.MULTILINE)


class BadScript(ValueError):
    """One sentence about what is wrong with it."""


class Plan(NamedTuple):
    """What to do about one request. A fault takes the place of the answer."""

    say: str = ""
    call: Call | None = None
    fault: Json | None = None
    usage: Usage | None = None  # the numbers that differ from the usual ones
    delay: float = 0
    pace: float = 0


@dataclass
class Rule:
    when: re.Pattern[str] | None = None
    say: str | None = None
    run: str | None = None
    recall: re.Pattern[str] | None = None
    call: Call | None = None
    fault: Json | None = None
    usage: Usage = field(default_factory=dict)
    delay: float = 0
    pace: float = 0
    times: int | None = None

    @classmethod
    def read(cls, given: object) -> Rule:
        values = _checked(given, _RULE_KEYS, "a rule")
        for key in ("when", "recall"):
            if key in values:
                values[key] = _pattern(values[key], key)
        if "call" in values:
            call = _checked(values["call"], {"name": _TEXT, "input": (dict, str)}, "call")
            if set(call) != {"name", "input"}:
                raise BadScript("call needs a name and an input")
            values["call"] = Call(**call)
        if "fault" in values:
            kinds = [key for key in _checked(values["fault"], _FAULT_KEYS, "fault") if key in _FAULTS]
            if len(kinds) != 1:
                raise BadScript(f"fault needs one of {', '.join(_FAULTS)}")
            if not 400 <= values["fault"].get("status", 400) <= 599:
                raise BadScript("the status of a fault is between 400 and 599")
        _checked(values.get("usage", {}), dict.fromkeys(NO_USAGE, (int,)), "usage")
        return cls(**values)


class Script:
    def __init__(self, rules: object = ()) -> None:
        """Of rules as JSON gives them. Raises BadScript."""
        if not isinstance(rules, list | tuple):
            raise BadScript("not a list of rules")
        self._rules = [_numbered(number, rule) for number, rule in enumerate(rules, 1)]
        self._failures: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    @classmethod
    def load(cls, text: str) -> Script:
        """Raises BadScript."""
        try:
            return cls(json.loads(text))
        except json.JSONDecodeError as error:
            raise BadScript(f"not JSON: {error}") from None

    def plan(self, turn: Turn) -> Plan:
        if turn.is_aside:
            return Plan(say=json.dumps(dict.fromkeys(turn.form, _TITLE)) if turn.form else _TITLE)
        with self._lock:
            for rule in self._rules:
                match = _search(rule, turn)
                if match and rule.times != 0:
                    if rule.times:
                        rule.times -= 1
                    say = rule.say if rule.say is None else match.expand(rule.say)
                    return self._carry_out(rule, say, turn)
            try:
                rule = directives(turn.text)
            except BadScript as error:
                return Plan(say=f"I do not understand this directive: {error}")
            return self._carry_out(rule, rule.say, turn)

    def _carry_out(self, rule: Rule, say: str | None, turn: Turn) -> Plan:
        if rule.fault and self._is_due(rule.fault, turn):
            # A cut answer needs a text that can be cut.
            return Plan(say=say or _usual(turn), fault=rule.fault, delay=rule.delay, pace=rule.pace)
        call = rule.call
        if rule.run is not None:
            shell = next((name for name in _SHELLS if name in turn.tools), None)
            call = Call(shell, _SHELLS[shell](rule.run)) if shell else None
            if not shell:
                say = f"There is no shell among the tools: {', '.join(turn.tools) or 'none'}"
        if rule.recall:
            say = next((text for text in turn.said[:-1] if rule.recall.search(text)), "I recall nothing")
        if say is None and call is None:
            say = _usual(turn)
        return Plan(say=say or "", call=call, usage=rule.usage, delay=rule.delay, pace=rule.pace)

    def _is_due(self, fault: Json, turn: Turn) -> bool:
        """`times` counts for one text in one conversation: the program that repeats its request gets through, and
        another agent with the same message meets the same faults."""
        if "times" not in fault:
            return True
        key = (turn.conversation, turn.text or turn.result or "")
        self._failures[key] += 1
        return self._failures[key] <= int(fault["times"])


def _numbered(number: int, given: object) -> Rule:
    try:
        rule = Rule.read(given)
        if rule.when is None:
            raise BadScript('"when" is missing')
        if rule.say is not None:
            rule.when.sub(rule.say, "")  # complains about groups that the pattern does not have
    except (BadScript, re.error, IndexError) as error:
        raise BadScript(f"rule {number}: {error}") from None
    return rule


def directives(text: str) -> Rule:
    """Raises BadScript. Several lines of SAY are one text; of the others the last counts."""
    given: Json = {}
    for name, value in _DIRECTIVE.findall(text):
        key, value = name.lower(), value.strip()
        if key == "say" and key in given:
            given[key] += "\n" + value
        elif key in ("run", "say", "recall"):
            given[key] = value
        else:
            try:
                given[key] = json.loads(value)
            except ValueError as error:
                raise BadScript(f"{name}: {value}: {error}") from None
    return Rule.read(given)


def _search(rule: Rule, turn: Turn) -> re.Match[str] | None:
    assert rule.when is not None
    for text in (turn.text, turn.result):
        if text and (match := rule.when.search(text)):
            return match
    return None


def _usual(turn: Turn) -> str:
    if turn.result is None:
        return f"Hello from the scripted model. You said: {_short(turn.text)}"
    also = f"\nYou also said: {_short(turn.text)}" if turn.text else ""
    return f"DONE: {_short(turn.result)}{also}"


def _short(text: str) -> str:
    return text.strip()[:SHOWN]


def _pattern(text: str, key: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise BadScript(f'"{key}" is not a regular expression: {error}') from None


def _checked(given: object, keys: dict[str, tuple[type, ...]], what: str) -> Json:
    if not isinstance(given, dict):
        raise BadScript(f"{what} is not a table")
    for key, value in given.items():
        if key not in keys:
            raise BadScript(f"{what} has no {key!r}; known are {', '.join(keys)}")
        is_wrong = not isinstance(value, keys[key]) or (isinstance(value, bool) and bool not in keys[key])
        if is_wrong or (isinstance(value, int | float) and not 0 <= value < 1e9):
            raise BadScript(f"{key!r} of {what} cannot be {json.dumps(value)}")
    return dict(given)
