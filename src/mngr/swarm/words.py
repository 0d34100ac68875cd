"""The vocabulary of a run: at which stage a task can be, and how it can end. Everything that is written down, counted,
compared or alerted on uses these words and no others."""

from __future__ import annotations

# Stages, in the order in which a task comes through them.
LAUNCH = "launch"  # its agent is being made; what goes wrong here is the machine's, the network's or the setup's fault
SETUP = "setup"  # of that, the setup command
READY = "ready"  # its program is up, and has been told what to do
FIRST_RUN = "first run"  # it has asked its model once
WORK = "work"  # and again
RESULT = "result"  # it has handed in a result
PULL = "pull"  # what it made is brought home
VERIFY = "verify"  # and checked
INTEGRATE = "integrate"
STAGES = (LAUNCH, SETUP, READY, FIRST_RUN, WORK, RESULT, PULL, VERIFY, INTEGRATE)
BEFORE_ANY_MODEL_CALL = (LAUNCH, SETUP, READY)

# Endings. Each task gets exactly one.
FIXED = "fixed"  # it failed before and passes now
IMPROVED = "improved"  # it passed before and was made better
UNCHANGED = "unchanged"  # it passes, and nothing had to be done
BLOCKED = "blocked"  # the agent says that it needs something, or a dialog stands in front of it
FAILED = "failed"  # no result, an invalid one, or one that does not hold
TIMED_OUT = "timed out"
STUCK = "stuck"
RATE_LIMITED = "rate-limited"
INFRASTRUCTURE = "infrastructure"  # the machine, the network, tmux, git: nothing that the agent did
OVER_BUDGET = "over budget"
CANCELLED = "cancelled"
LOST = "lost"  # the agent is no more, and nobody knows why
SKIPPED = "skipped"  # it cannot matter
DONE = "done"  # a recipe that has no finer words
GOOD = (FIXED, IMPROVED, UNCHANGED, DONE)
ENDINGS = (
    *GOOD,
    BLOCKED,
    FAILED,
    TIMED_OUT,
    STUCK,
    RATE_LIMITED,
    INFRASTRUCTURE,
    OVER_BUDGET,
    CANCELLED,
    LOST,
    SKIPPED,
)

# Phases: what is to be done next for a task.
PENDING = "pending"
LAUNCHING = "launching"
RUNNING = "running"
PARKED = "parked"  # its account has reached a limit; it goes on in place when that is over
ENDED = "ended"  # its agent has done what it will do
HOME = "home"  # everything of it is here
CHECKING = "checking"
CHECKED = "checked"
SETTLED = "settled"
AT_WORK = (LAUNCHING, RUNNING, PARKED)
PHASES = (PENDING, LAUNCHING, RUNNING, PARKED, ENDED, HOME, CHECKING, CHECKED, SETTLED)
