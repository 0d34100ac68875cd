"""Handing a message to agents whose program can prove that it arrived: pasted as a whole, Enter pressed until the
program says that it has it, the text never sent twice. What counts as proof is a record of the program's own, after the
point that its logs had reached before: a hook that was told the prompt, or a line of the session log with it.

Nothing presses keys blindly: no Enter while a dialog is in front, and no text onto what somebody else has typed.
One lock per agent, on its host, so that two senders cannot mix."""

from __future__ import annotations

import os
import time

from mngr import hosts, jsonline
from mngr.agents.log import same
from mngr.fleet.outcome import Outcome
from mngr.hosts.shell import Shell
from mngr.model import RUNNING, STARTING, new_id
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mngr.agents import AgentType
    from mngr.agents.screen import Screen
    from mngr.hosts import Host
    from mngr.model import Ref

_ENTERS = (0.5, 1.5, 3.0, 6.0, 12.0, 24.0)  # seconds after the first Enter at which it is pressed again, if need be
_PATIENCE = 40.0  # seconds for the proof
_LINGER = 3.0  # seconds that a text may be shown after its program has said that it has it
_SETTLE = 0.6  # seconds that a dialog, or somebody's text, must have been there before it counts


class _Message:
    """A text, in a tmux buffer of its own once one is needed: however many agents get it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = "".join(text.split())  # as it is compared with what a screen shows
        self.buffer = "m" + new_id()
        self.loaded = False
        self.entry = jsonline.dumps({"id": self.buffer, "time": time.time(), "text": text}).removesuffix("}")


class _Delivery:
    """One agent's message on its way."""

    def __init__(self, ref: Ref, message: _Message) -> None:
        self.ref, self.message = ref, message
        self.stage = "lock"
        self.piped = False  # it has no terminal interface, but a pipe
        self.idle = False  # so that what it queues from there is taken up at once: only that counts
        self.since = time.monotonic()
        self.enters = 0
        self.obstacle: tuple[str, float] | None = None  # what is in the way, and since when
        self.base: tuple[int, int, str] = (0, 0, "")  # lengths and path before the paste
        self.proof: tuple[str, str] | None = None  # what its program's records say: the outcome, and why
        self.erased = 0  # keys pressed to erase what is left of it
        self.outcome: Outcome | None = None

    def enter(self, stage: str) -> None:
        self.stage, self.since, self.obstacle = stage, time.monotonic(), None

    def age(self) -> float:
        return time.monotonic() - self.since

    def hindered(self, what: str) -> bool:
        """By this, and long enough that it is not just passing by."""
        now = time.monotonic()
        if self.obstacle is None or self.obstacle[0] != what:
            self.obstacle = (what, now)
        return now - self.obstacle[1] >= _SETTLE

    def end(self, did: str, why: str = "", ok: bool = False) -> None:
        self.outcome = Outcome(id=self.ref.id, name=self.ref.name, did=did, ok=ok, why=why)


def deliver(
    host: Host, refs: Sequence[Ref], type: AgentType, texts: Mapping[str, str], ready_timeout: float
) -> list[Outcome]:
    """To agents of one type on one host. `texts`, by id, are typeable."""
    parts = [hosts.read_script(hosts.__file__, "lock.sh"), hosts.read_script(__file__, "deliver.sh")]
    with Shell(host, "\n".join(parts)) as shell:
        return _Sender(shell, type, max(ready_timeout, 3.0 * len(refs))).send(refs, texts)


class _Sender:
    def __init__(self, shell: Shell, type: AgentType, ready_timeout: float) -> None:
        from mngr.agents.screen import rules

        self._shell, self._type, self._ready_timeout = shell, type, ready_timeout
        self._rules = rules(type.rules)
        self._mark = os.urandom(6).hex()

    def send(self, refs: Sequence[Ref], texts: Mapping[str, str]) -> list[Outcome]:
        messages = {text: _Message(_as_read(text)) for text in {texts[ref.id] for ref in refs}}
        todo = [_Delivery(ref, messages[texts[ref.id]]) for ref in refs]
        deliveries = list(todo)
        stages = {
            "lock": self._at_lock,
            "ready": self._at_ready,
            "pasted": self._at_pasted,
            "entered": self._at_entered,
            "proven": self._at_proven,
        }
        pause = 0.02
        try:
            while todo:
                before = [(each.stage, each.enters) for each in todo]
                for stage in stages:
                    those = [each for each in todo if each.stage == stage and each.outcome is None]
                    if those:
                        stages[stage](those)
                self._settle([each for each in todo if each.outcome is not None])
                moved = before != [(each.stage, each.enters) for each in todo if each.outcome is None]
                todo = [each for each in todo if each.outcome is None]
                pause = 0.02 if moved else min(pause * 1.5, 0.2)
                if todo:
                    time.sleep(pause)
        except (KeyboardInterrupt, SystemExit):
            self._press([each for each in todo if each.stage == "pasted"])  # or it would stand before the next message
            raise
        finally:
            if loaded := [message.buffer for message in messages.values() if message.loaded]:
                self._shell.ask(f"printf 'delete-buffer -b %s\\n' {' '.join(loaded)} | t source-file - 2>/dev/null")
        return [each.outcome for each in deliveries if each.outcome is not None]

    def _settle(self, those: list[_Delivery]) -> None:
        lines = []
        for each in those:
            assert each.outcome is not None
            if each.outcome.did != "gone":
                lines.append(f"record {quote(each.message.entry)} {each.outcome.did} {each.ref.id}")
                lines += [] if each.stage == "lock" else [f"let_go {each.ref.id}"]
        if lines:
            self._shell.ask("\n".join(lines))

    # The stages

    def _at_lock(self, those: list[_Delivery]) -> None:
        told = self._shell.ask("take " + _ids(those)).splitlines()
        for each in those:
            if f"gone {each.ref.id}" in told:
                each.end("gone", "there is no such agent any more")
            elif f"mine {each.ref.id}" in told:
                each.piped = f"pipe {each.ref.id}" in told
                each.enter("ready")
            elif each.age() > self._ready_timeout + _PATIENCE:
                each.end("undelivered", f"somebody else keeps sending to it, or left agents/{each.ref.id}/message.lock")

    def _at_ready(self, those: list[_Delivery]) -> None:
        ready = []
        for each, seen, state in self._look(those):
            if seen is None:
                continue
            is_up = state != STARTING or (self._type.ready_by_screen and not each.piped)
            if each.piped:
                each.idle = state != RUNNING
                ready += [each] if is_up else []
            elif seen.dialog and each.hindered(seen.dialog):
                each.end("blocked", f"a dialog is in front of it ({seen.dialog}): mngr connect {each.ref.name}")
            elif seen.composer and each.hindered(seen.composer):
                if each.age() > 10:  # what the sender before us typed may still be shown
                    shown = seen.composer if len(seen.composer) < 40 else seen.composer[:37] + "..."
                    each.end("undelivered", f"its input line holds a text already: {shown!r}")
            elif seen.composer == "" and is_up:
                ready.append(each)
            if each.outcome is None and each.age() > self._ready_timeout:
                each.end(
                    "undelivered",
                    f"it was not ready within {self._ready_timeout:g} s: see mngr explain {each.ref.name}",
                )
        if ready:
            self._note_lengths(ready)
            self._hand_over(ready)

    def _hand_over(self, ready: list[_Delivery]) -> None:
        piped, typed = [each for each in ready if each.piped], [each for each in ready if not each.piped]
        lines = [f"feed {quote(self._type.line(message.text))} {ids}" for message, ids in _by_message(piped)]
        for message, ids in _by_message(typed):
            if not message.loaded:
                text = quote(self._type.typed(message.text))
                lines.append(f"printf %s {text} | t load-buffer -b {message.buffer} -")
                message.loaded = True
            # copy-mode -q: while somebody scrolls there, the keys would go to copy mode and not to the program
            lines.append(self._keys(f"copy-mode -q -t PANE ; paste-buffer -p -b {message.buffer} -t PANE", ids))
        self._shell.ask("\n".join(lines))
        for each in ready:
            each.enter("entered" if each.piped else "pasted")

    def _at_pasted(self, those: list[_Delivery]) -> None:
        shown = []
        for each, seen, _ in self._look(those):
            if seen is None:
                continue
            if seen.dialog and each.hindered(seen.dialog):
                each.end("blocked", f"typed, but not sent: a dialog came in front of it ({seen.dialog})")
            elif seen.composer or (seen.composer == "" and each.age() > 1):
                shown.append(each)
            elif each.age() > _PATIENCE:
                each.end("undelivered", f"typed, but not sent: see mngr explain {each.ref.name}")
        self._press(shown)

    def _at_entered(self, those: list[_Delivery]) -> None:
        self._read_news(those)
        waiting = [each for each in those if each.outcome is None and each.stage == "entered"]
        typed = [each for each in waiting if not each.piped]
        late = [each for each in typed if each.enters <= len(_ENTERS) and each.age() > _ENTERS[each.enters - 1]]
        again = []
        for each, seen, _ in self._look(late):
            if seen is None:
                continue
            text = each.message.text
            command = text.startswith(("/", "!"))
            if seen.dialog and each.hindered(seen.dialog):
                self._shell.ask(f"dialog {each.ref.id} {quote(seen.dialog)}")
                did = "delivered" if command else "blocked"
                each.end(did, f"a dialog is in front of it now ({seen.dialog}): mngr connect {each.ref.name}")
            elif seen.composer and text.split()[0] == seen.refused:
                self._take_back(each, seen.composer)
            elif _is_shown(each.message, seen.composer) and each.hindered("ours"):  # not just as it was before Enter
                again.append(each)
            elif seen.composer == "" and _is_among(each.message, seen.queued):
                each.end("queued", "it is at work, and takes it up next", ok=True)
            elif command and seen.composer == "" and each.age() > 3:
                each.end("typed", "its input line took the command; it leaves no other trace", ok=True)
        self._press(again)
        for each in waiting:
            if each.outcome is None and each.age() > _PATIENCE:
                each.end("undelivered", f"typed, but nothing shows that it arrived: see mngr explain {each.ref.name}")

    def _at_proven(self, those: list[_Delivery]) -> None:
        """Its program has it, and no Enter is pressed any more: a busy machine shows a text long after it was sent."""
        for each, seen, _ in self._look(those):
            assert each.proof is not None
            if seen is None or not _is_shown(each.message, seen.composer):  # no screen: it ended with this message
                each.end(*each.proof, ok=True)
            elif self._is_left_over(each):
                self._press_keys(f"send-keys -t PANE {self._type.erases[each.erased % len(self._type.erases)]}", [each])
                each.erased += 1
            if each.outcome is None and each.age() > _PATIENCE:
                each.end("undelivered", f"typed, but it stands in its input line: see mngr explain {each.ref.name}")

    # What they use

    def _press(self, those: list[_Delivery]) -> None:
        if those:
            self._press_keys("send-keys -t PANE Enter", those)
        for each in those:
            if each.stage != "entered":
                each.enter("entered")
            each.enters += 1

    def _take_back(self, each: _Delivery, shown: str) -> None:
        """What was refused must not stand before the next message. Only if it is all that stands there."""
        text = each.message.text
        why = f"it knows no command {text.split()[0]}"
        if self._type.erases and same(shown, text):
            times = 2 * text.count("\n") + 1  # the end of a line needs a key of its own
            self._press_keys(
                " ".join(["send-keys -t PANE", *(key for key in self._type.erases for _ in range(times))]), [each]
            )
        else:
            why += "; its input line still holds the text"
        each.end("refused", why)

    def _is_left_over(self, each: _Delivery) -> bool:
        """Claude Code takes a prompt whose Enter falls on the very end of a turn, and goes on showing it: erased, a key
        at each look, or it would stand before the next message. Not if the same text was queued before: then that may
        be what was proven, and ours is what stands there."""
        if each.erased:
            return True
        if each.age() < _LINGER or not self._type.erases:
            return False
        text = quote(jsonline.dumps(each.message.text)[:1000])
        return not self._shell.ask(f"was_queued {each.ref.id} {text}").strip()

    def _press_keys(self, command: str, those: Iterable[_Delivery]) -> None:
        self._shell.ask(self._keys(command, _ids(those)))

    def _keys(self, command: str, ids: str) -> str:
        return f"keys {quote(command)} {quote(self._rules.guard)} {ids}"

    def _look(self, those: list[_Delivery]) -> list[tuple[_Delivery, Screen | None, str]]:
        """Each with its screen and state. One that has no live terminal ends here, and has none."""
        if not those:
            return []
        told = self._shell.ask(f"look {self._mark} {_ids(those)}")
        states: dict[str, str] = {}
        screens: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in told.split("\n"):
            if not line.startswith(self._mark):
                lines.append(line)
                continue
            _, kind, id, *rest = line.split(" ")
            if kind == "state":
                states[id] = rest[0] if rest else ""
            elif kind == "screen":
                lines = screens[id] = []
        found: list[tuple[_Delivery, Screen | None, str]] = []
        for each in those:
            id = each.ref.id
            if id not in screens:
                why = "its program has ended" if f"{self._mark} dead {id}" in told else "it is stopped"
                each.end("refused", f"{why}: mngr start it, or message --start")
            seen = self._rules.read("\n".join(screens[id])) if id in screens else None
            found.append((each, seen, states.get(id, "")))
        return found

    def _lengths(self, those: Iterable[_Delivery]) -> dict[str, tuple[int, int, str]]:
        found = {}
        for line in self._shell.ask("lengths " + _ids(those)).splitlines():
            id, received, logged, log = line.split(" ", 3)
            found[id] = (int(received), int(logged), log)
        return found

    def _note_lengths(self, those: list[_Delivery]) -> None:
        lengths = self._lengths(those)
        for each in those:
            each.base = lengths[each.ref.id]

    def _read_news(self, those: list[_Delivery]) -> None:
        lengths = self._lengths(those)
        grown = [each for each in those if lengths[each.ref.id] != each.base]
        if not grown:
            return
        calls = []
        for each in grown:
            received, logged, log = each.base
            new_log = lengths[each.ref.id][2]
            words = (each.ref.id, str(received), str(logged if log == new_log else 0), new_log)
            calls.append("news " + " ".join(map(quote, words)))
        by_id: dict[str, list[str]] = {}
        for line in self._shell.ask("\n".join(calls)).split("\n"):
            _, _, rest = line.partition(" ")
            id, _, record = rest.partition(" ")
            by_id.setdefault(id, []).append(record)
        for each in grown:
            verdict = self._receipt(by_id.get(each.ref.id, []), each.message.text)
            if verdict == "delivered" or (verdict == "queued" and not each.idle):
                each.proof = (verdict, "it is at work, and takes it up next" if verdict == "queued" else "")
                if each.piped:
                    each.end(*each.proof, ok=True)
                else:
                    each.enter("proven")
            elif verdict and verdict != "queued":
                each.end("refused", verdict.removeprefix("refused "))

    def _receipt(self, lines: list[str], text: str) -> str | None:
        """Everything since the paste is read each time: little, and a line may have been half-written before."""
        best = None
        for line in lines:
            try:
                record = jsonline.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and (found := self._type.receipt(record, text)):
                if found == "delivered":
                    return found
                best = best or found
        return best


def _as_read(text: str) -> str:
    """By a program, which reads UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_among(message: _Message, queued: list[str]) -> bool:
    """They show how a message begins, perhaps cut off."""
    return any(message.bare.startswith("".join(shown.rstrip("…").split())) for shown in queued)


def _is_shown(message: _Message, composer: str | None) -> bool:
    """What stands in the input line is this message, or the picture that programs show of a long one."""
    shown = "".join((composer or "").split())
    return bool(shown) and (shown.startswith("[Pasted") or message.bare.startswith(shown[:60]))


def _by_message(those: Iterable[_Delivery]) -> list[tuple[_Message, str]]:
    """Each message, and the ids of those who get it."""
    found: dict[str, list[_Delivery]] = {}
    for each in those:
        found.setdefault(each.message.buffer, []).append(each)
    return [(group[0].message, _ids(group)) for group in found.values()]


def _ids(those: Iterable[_Delivery]) -> str:
    return " ".join(each.ref.id for each in those)
