"""Having an agent propose blocks for the blanks of a tutorial. It is told to read the manual, and writes its answer as
a file in its work dir, which is all that is taken from it.

Its name comes from its project and its prompt: whoever asks the very same again, after a Ctrl-C for instance, waits for
the same agent. When it has answered it is stopped, and its conversation stays."""

from __future__ import annotations

import os
import stat

from mngr.e2e.block import block_id
from mngr.errors import MngrError
from mngr.fleet.plan import choose
from mngr.fleet.select import one
from mngr.fleet.stop import stop
from mngr.fleet.wait import wait
from mngr.tutorial.errand import LABEL, brief, make, prompt
from mngr.tutorial.proposals import REJECT, read_answer
from mngr.tutorial.trial import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.plan import Request
    from mngr.model import Agent
    from mngr.tutorial.blocks import Blank
    from mngr.tutorial.proposals import Proposal, Store

RESULT = "proposals.json"  # what the agent writes, in its work dir
_LARGEST = 10_000_000  # bytes of it


def ask(
    fleet: Fleet,
    request: Request,
    path: str,
    store: Store,
    blanks: list[Blank],
    manual: str | None,
    tell: Callable[[str], None],
    timeout: float | None = None,
) -> None:
    """Puts proposals for these blanks of the tutorial `path` into the store. MngrError when there are none."""
    path = os.path.realpath(path)
    top = _top(path)
    text = _prompt(fleet.home, os.path.relpath(path, top), blanks, store.having(REJECT), _manual(manual, top))
    agent = _agent(fleet, request.replace(source=top), text, tell)
    (status,) = wait(fleet, [agent.ref], timeout=timeout)
    try:
        found, problems = read_answer(_answer(agent), blanks)
    except MngrError as error:
        reason = f" ({status.verdict.reason})" if status.verdict.reason else ""
        raise MngrError(
            f"{agent.name} is {status.state}{reason}: {error.message}",
            f"mngr connect {agent.name} and fill again; or mngr destroy {agent.name} to begin anew",
        ) from None
    for problem in problems:
        tell(f"{agent.name}: {problem}")
    if not found:
        raise MngrError(
            f"{agent.name} has proposed nothing that could be used", f"mngr destroy {agent.name} to begin anew"
        )
    known = {(each.blank, each.block) for each in store.having(REJECT)}
    store.proposals += [each for each in found if (each.blank, each.block) not in known]
    store.save()
    stop(fleet, [agent.ref])


def _agent(fleet: Fleet, request: Request, text: str, tell: Callable[[str], None]) -> Agent:
    name = "fill-" + block_id(f"{request.source}\n{text}")
    if fleet.names.find(name):
        tell(f"{name} was asked already")
        agent = one(fleet, name).agent
        if agent is None:
            raise MngrError(f"{name} is damaged", f"mngr destroy -f {name}")
        return agent
    request = request.replace(address=name, dirty=True, labels={**request.labels, LABEL: "fill"})
    if choose(request, None).type.headless(request.args or []) is not None:
        request = request.replace(headless=True)
    tell(f"{name} is asked for proposals")
    agent = make(fleet, request, text, tell)
    if trouble := brief(fleet, agent, text):
        raise MngrError(f"{name}: {trouble}")
    return agent


def _prompt(home: str, file: str, blanks: list[Blank], rejected: list[Proposal], manual: str) -> str:
    shown = [f"- line {blank.line}, section {blank.section or '(none)'}:\n\n{_fenced(blank.text)}" for blank in blanks]
    wanted = {blank.text for blank in blanks}
    again = [
        f"- for line {each.line}, because: {each.reason}\n\n{_fenced(each.block)}"
        for each in rejected
        if each.blank in wanted
    ]
    return prompt(
        home,
        "fill",
        file=file,
        manual=manual,
        blanks="\n".join(shown),
        rejected="\n".join(["", "These were proposed before, and rejected:", "", *again]) if again else "",
        result=RESULT,
        limit=f"{LIMIT:g}",
    )


def _fenced(text: str) -> str:
    return "".join(f"      {line}".rstrip() + "\n" for line in text.split("\n"))


def _top(path: str) -> str:
    """The repository of the tutorial, else its directory."""
    place = os.path.dirname(path)
    above = place
    while not os.path.exists(os.path.join(above, ".git")):
        above, below = os.path.dirname(above), above
        if above == below:
            return place
    return above


def _manual(directory: str | None, top: str) -> str:
    """Where the commands are explained, in words for the agent. Below the repository, its own copy will do."""
    if directory is None:
        directory = os.path.join(top, "man")
        if not os.path.isdir(directory):
            return (
                "What the program can do is told by its own help: run `PROGRAM --help`, and `PROGRAM SUBCOMMAND "
                "--help` for each subcommand in question, before you propose anything."
            )
    directory = os.path.realpath(directory)
    where = os.path.relpath(directory, top) if directory.startswith(f"{top}/") else directory
    return (
        f"What the program can do is told by its manual, the pages in `{where}`. Read those of the commands in "
        "question before you propose anything; `man -l FILE` shows one as text, and as a file it can be read too."
    )


def _answer(agent: Agent) -> str:
    """Whatever stands there: a pipe would be waited for without end, a link leads out of the work dir."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        with open(os.path.join(agent.work_dir, RESULT), "rb", opener=lambda path, _: os.open(path, flags)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MngrError(f"{RESULT} is no regular file")
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise MngrError(f"{RESULT} is larger than {_LARGEST // 1_000_000} MB")
        return data.decode()
    except FileNotFoundError:
        raise MngrError(f"it has written no {RESULT}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MngrError(f"{RESULT} cannot be read: {error}") from None
