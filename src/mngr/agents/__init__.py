"""The contract of an agent type: what is special about one kind of program. Registered by the `mngr_agent_types` hook.

Everything but `command` has a default, with which a type is a plain program: it runs while its process lives, it can be
typed to, and nothing is known of what it says. `command` beside this file is that; `claude` overrides everything.
docs/agent-types.md adds a type step by step.

What runs on the agent's host is sh, since nothing else can be relied on there: `launch`, `adopt`, the hook script."""

from __future__ import annotations

from mngr.errors import UsageError
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.agents.log import LogReader
    from mngr.model import Agent


class Program(Record):
    """What must be installed on the host, and how one gets it."""

    name: str  # as it is found in PATH
    oldest: str = ""  # version that it must have at least
    install: str = ""  # a command line for people; one that is `npm install -g PACKAGE` mngr can run on a host itself
    credentials: str = ""  # what is missing when `has_credentials` says no, and how to get it

    @property
    def package(self) -> str:
        """That of npm; "" for a program that is installed in another way, which is left to people."""
        words = self.install.split()
        return words[3] if words[:3] == ["npm", "install", "-g"] and len(words) == 4 else ""


class Seat(Record):
    """Where a new agent will sit: what `seed` may use."""

    agent: Agent
    directory: str  # its own, on its host
    env: Mapping[str, str]  # what it will be given
    user_home: str | None  # of the user, when the agent is on this machine; None elsewhere


class Seed(Record):
    """What is laid into an agent's directory before its program starts: paths below it."""

    files: dict[str, str] = {}  # noqa: RUF012 - Record copies defaults
    links: dict[str, str] = {}  # noqa: RUF012 - to what exists; what does not is passed over
    env: dict[str, str] = {}  # noqa: RUF012


class Permissions(Record):
    """How a program is told what it may do without asking: what a new agent gets beside its own."""

    args: list[str] = []  # noqa: RUF012 - Record copies defaults
    env: dict[str, str] = {}  # noqa: RUF012


BYPASS = "bypass"  # policies, for `permissions`: it may do everything;
ALLOWLIST = "allowlist"  # it may edit the files of its work dir, hand in its result, and run the commands of a list


NETWORK = (  # for `passes`
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)


class AgentType:
    name: str = ""
    summary: str = ""  # one line for people who choose
    env: Mapping[str, str] = {}  # variables for its agents, below those that the user gives
    preset: tuple[str, ...] = ()  # arguments before the user's own, and
    variant_of: str = ""  # the type that it was made from: a variant of the configuration has these

    # What to launch

    has_terminal = True  # False: its agents are headless, whether one says so or not
    program: Program | None = None
    launch: str = ""  # sh, run before each start: "$@" is the command, and may be changed, to resume a conversation

    def command(self, args: list[str]) -> list[str]:
        """The program and its arguments, from what followed `--`. Raises UsageError before anything is made."""
        raise NotImplementedError

    def headless(self, args: list[str]) -> list[str] | None:
        """The same without a terminal interface: messages come by the pipe `in` of its directory. None: cannot."""
        return None

    def with_model(self, model: str) -> list[str] | None:
        """The arguments that choose a model. None: it has none to choose."""
        return None

    def permissions(self, policy: str, allow: Sequence[str]) -> Permissions | None:
        """For an agent that nobody sits beside. `allow` are beginnings of command lines, in whole words: `git`,
        `python -m pytest`. None: it cannot be held to that policy."""
        return None

    # What to seed

    passes: tuple[str, ...] = ()  # variables of the user's own that it needs to reach its model, on this machine only

    def credentials(self, user_home: str) -> dict[str, str]:
        """Files with secrets: the path below the agent's directory, and where the user has it. On this machine they are
        linked, so that a token which is renewed is renewed for all; on another one copied, and only if told to."""
        return {}

    def has_credentials(self, env: Mapping[str, str], user_home: str | None) -> bool:
        """By these variables, or by what the user has. `user_home` is None where that does not count."""
        return True

    def seed(self, seat: Seat) -> Seed:
        return Seed()

    # Its state

    reports = False  # its hooks write the state: until the first one it is starting
    ready_by_screen = False  # no hook tells that it has started: it has when one can type

    def judge(self, claim: str, screen: str, tail: str) -> tuple[str, str] | None:
        """A second look at an agent whose hooks have been silent: state and reason, from its screen and the last lines
        of its session log. `claim` is what was written last. None: the claim stands."""
        return None

    # Its messages

    proves = False  # it can tell that a message arrived: `receipt`, and the screen rules for where one types
    rules = ""  # the file of its screen rules, see mngr.agents.screen
    erases: tuple[str, ...] = ()  # keys that empty a line of what was typed, and do nothing to an empty one

    def receipt(self, record: Mapping[str, object], text: str) -> str | None:
        """What a line of its session log, or of what its hooks were told, says about this message: delivered, queued,
        or refused and why. None: nothing."""
        return None

    def typed(self, text: str) -> str:
        """How a message is pasted. Some last words mean more than themselves, to the Enter that follows: a backslash
        continues the line, $WORD, /WORD and @WORD open a list to choose from. A blank behind them prevents it. The
        program trims that, but not from a long text, which gets none without need."""
        is_special = text.endswith("\\") or text.split()[-1].startswith(("$", "/", "@"))
        return text + " " if is_special else text

    def line(self, text: str) -> str:
        """How a message is written into the pipe of a headless agent."""
        return text

    # Its session log

    logs: tuple[str, ...] = ()  # globs below its directory: all that its use is counted from
    adopt = ""  # sh: copies the log of another agent's conversation to where its own is, and sets $own_log and $session

    def reader(self) -> LogReader | None:
        return None


def check_args(args: list[str], ours: tuple[str, ...]) -> None:
    """For a program whose conversation mngr keeps: words that would lead it into another one are refused, and so is a
    prompt, which would be sent again at every start."""
    for word in args:
        if word.partition("=")[0] in ours:
            raise UsageError(f"{word} is mngr's own business: it keeps the agent's conversation", "leave it out")
    if args and not args[0].startswith("-"):
        raise UsageError(
            f"{args[0]!r} is no option of the agent's program",
            "a prompt goes with --message; for another program name the type: mngr create NAME command -- PROGRAM",
        )


def session_id(id: str) -> str:
    """For a program whose sessions have UUIDs: that of this agent's first one, known before it starts."""
    return f"{id[:8]}-{id[8:12]}-4000-8000-{id}"


def hook_script() -> str:
    """For a program whose hooks are command lines that are told JSON: `seed` lays it as `hook`, and what the program
    then runs is `sh DIRECTORY/hook EVENT`."""
    from mngr.hosts import read_script

    return read_script(__file__, "hook.sh")
