"""The ledger: `usage.db` in the user's MNGR_HOME, a row for every API message that an agent has paid for. For agents
that live it is derived: their logs hold the same. For destroyed ones it is the only memory.

A message is counted once, by its id: logs repeat it, for every block of its content and again where a conversation is
resumed, forked or cloned. It is booked on the agent that had it first, which is the one that was made first. A repeat
with more output was written later in the stream, and replaces what is known. So logs may be read twice, by two
processes and from any place on: the sums stay the same."""

from __future__ import annotations

import os
import sqlite3
import time

from mngr import jsonline
from mngr.agents.log import Usage
from mngr.errors import MngrError
from mngr.fleet.history import LATEST
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from mngr.agents.log import Spent

    T = TypeVar("T")

CLASSES = tuple(Usage.FIELDS)  # of tokens; the names of columns too
INPUT = CLASSES[:4]  # what the context of a message consists of
SLOT = 900  # seconds; nothing that depends on the time changes within a quarter of an hour, neither prices nor days
_MOST = 2**40  # tokens of one message; more is nonsense, and would fit into no sum
_PATIENCE = 60.0  # seconds that we wait for another process to finish writing
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS agents (
  id TEXT PRIMARY KEY, name TEXT, host TEXT, type TEXT, labels TEXT, created REAL, destroyed INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
  id TEXT PRIMARY KEY, agent TEXT, model TEXT, time REAL, {", ".join(f"{name} INTEGER" for name in CLASSES)}
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS messages_of ON messages (agent);
CREATE TABLE IF NOT EXISTS files (
  agent TEXT, path TEXT, inode INTEGER, size INTEGER, offset INTEGER, state TEXT, PRIMARY KEY (agent, path)
) WITHOUT ROWID;
"""
_REMEMBER = """
INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT (id) DO UPDATE SET
  name = excluded.name, host = excluded.host, type = excluded.type, labels = excluded.labels, destroyed = 0
"""
_ADD = f"""
INSERT INTO messages VALUES (?, ?, ?, ?{", ?" * len(CLASSES)}) ON CONFLICT (id) DO UPDATE SET
  {", ".join(f"{name} = excluded.{name}" for name in CLASSES)}
  WHERE excluded.output + excluded.reasoning > messages.output + messages.reasoning
"""
_BOOK = """
UPDATE messages SET agent = ?1 WHERE id = ?2 AND agent <> ?1
  AND (SELECT created FROM agents WHERE id = ?1) < (SELECT created FROM agents WHERE id = messages.agent)
"""


class Account(Record):
    """An agent as the ledger knows it: as it was when it was last seen."""

    id: str
    name: str
    host: str
    type: str
    labels: dict[str, str]
    created: float
    destroyed: bool = False


class Place(Record):
    """How far a log has been read, by one of the readers in `agents`."""

    inode: int
    size: int  # how much of it there was
    offset: int  # behind the last complete line
    state: str | None  # JSON of what the reader keeps from record to record; None when that cannot be stored


class Batch(Record):
    """Messages that cost the same for each token."""

    agent: str
    model: str
    time: int  # when their quarter of an hour began
    context: int  # the longest
    messages: int
    tokens: tuple[int, ...]  # of each class


def with_ledger(home: str, tell: Callable[[str], None], act: Callable[[Ledger], T]) -> T:
    """What `act` makes of the ledger. A damaged one is moved aside, and `act` is done again with a new one."""
    path = os.path.join(home, "usage.db")
    try:
        return _open_and(path, act)
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise MngrError(f"{path}: {error}") from error
        if aside := _move_aside(path):
            tell(f"{path} is damaged ({error}); moved to {aside}: only that has what destroyed agents have spent")
    try:
        return _open_and(path, act)
    except sqlite3.Error as error:
        raise MngrError(f"{path}: {error}") from error


def _open_and(path: str, act: Callable[[Ledger], T]) -> T:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    try:  # SQLite would make it readable for everybody
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass  # and must not be opened here: to close it again would end the locks that another thread's SQLite has
    database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    try:
        database.executescript(_SCHEMA)
        return act(Ledger(database))
    finally:
        database.close()


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _move_aside(path: str) -> str | None:
    """Where it is now. Of two processes that find the damage, one moves it, and the other leaves the new ledger alone:
    the lock is on the damaged file itself, and under it we look whether that is still the ledger."""
    import fcntl

    aside = f"{path}.damaged-{time.strftime('%Y%m%dT%H%M%S')}"
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return None
            if os.path.exists(f"{path}-journal"):  # an unfinished one would be played into the new ledger
                os.rename(f"{path}-journal", f"{aside}-journal")
            os.rename(path, aside)
    except FileNotFoundError:
        return None
    return aside


class Ledger:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def accounts(self, ids: Sequence[str] | None = None) -> dict[str, Account]:
        """All, or these."""
        whose, parameters = _of(ids, "id")
        return {
            id: Account(
                id=id,
                name=name,
                host=host,
                type=type,
                labels=jsonline.loads(labels),
                created=created,
                destroyed=bool(destroyed),
            )
            for id, name, host, type, labels, created, destroyed in self._database.execute(
                f"SELECT * FROM agents WHERE {whose}", parameters
            )
        }

    def places(self, agents: Sequence[str] | None = None) -> dict[tuple[str, str], Place]:
        """How far each log has been read, or each of these agents, by agent and path."""
        whose, ids = _of(agents)
        return {
            (agent, path): Place(inode=inode, size=size, offset=offset, state=state)
            for agent, path, inode, size, offset, state in self._database.execute(
                f"SELECT * FROM files WHERE {whose}", ids
            )
        }

    def models(self, agents: Sequence[str] | None = None) -> list[str]:
        """Of all messages, or of those of these agents."""
        whose, ids = _of(agents)
        return [model for (model,) in self._database.execute(f"SELECT DISTINCT model FROM messages WHERE {whose}", ids)]

    def batches(self, since: float, steps: Sequence[int], agents: Sequence[str] | None = None) -> Iterator[Batch]:
        """All messages since then, or those of these agents. Those that have the same price are summed up here, which
        is much faster: of one agent, model and quarter of an hour, with the same of these `steps` below their context,
        and with tokens of the same classes."""
        whose, ids = _of(agents)
        same = ["agent", "model", "slot", *(f"context > {start}" for start in steps), *(f"{c} > 0" for c in CLASSES)]
        rows = self._database.execute(
            f"SELECT agent, model, CAST(time / {SLOT} AS INTEGER) AS slot, max(context), count(*),"
            f" {', '.join(f'sum({name})' for name in CLASSES)}"
            f" FROM (SELECT *, {' + '.join(INPUT)} AS context FROM messages WHERE time >= ? AND {whose})"
            f" GROUP BY {', '.join(same)}",
            (since, *ids),
        )
        for agent, model, slot, context, messages, *tokens in rows:
            yield Batch(
                agent=agent, model=model, time=slot * SLOT, context=context, messages=messages, tokens=tuple(tokens)
            )

    def remember(self, accounts: Iterable[Account]) -> None:
        rows = [(a.id, a.name, a.host, a.type, jsonline.dumps(a.labels), a.created) for a in accounts]
        self._write((_REMEMBER, rows))

    def bury(self, ids: Iterable[str]) -> None:
        """These are no more. Their messages stay."""
        rows = [(id,) for id in ids]
        self._write(("UPDATE agents SET destroyed = 1 WHERE id = ?", rows), ("DELETE FROM files WHERE agent = ?", rows))

    def add(self, messages: Iterable[tuple[str, Spent]], places: Iterable[tuple[str, str, Place]]) -> None:
        """Messages with their agents, and how far the logs have now been read: both or neither."""
        found = [(agent, spent) for agent, spent in messages if _is_sane(spent)]
        rows = [(s.id, agent, s.model, _time(s), *(getattr(s.usage, name) for name in CLASSES)) for agent, s in found]
        read = [(agent, path, at.inode, at.size, at.offset, at.state) for agent, path, at in places]
        self._write(
            (_ADD, rows),
            (_BOOK, [(agent, spent.id) for agent, spent in found]),
            ("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", read),
        )

    def _write(self, *statements: tuple[str, Sequence[tuple[object, ...]]]) -> None:
        """All of it or nothing, and one process at a time."""
        if not any(rows for _, rows in statements):
            return
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for statement, rows in statements:
                self._database.executemany(statement, rows)
        except BaseException:
            if self._database.in_transaction:  # a full disk, or damage, has ended it already
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def _of(agents: Sequence[str] | None, column: str = "agent") -> tuple[str, Sequence[str]]:
    """A condition on whose something is, and its parameters."""
    if agents is None:
        return "1", ()
    # as one: how many of them there may be differs between versions of SQLite
    return f"{column} IN (SELECT value FROM json_each(?))", [jsonline.dumps(list(agents))]


def _is_sane(spent: Spent) -> bool:
    """Anybody can write a log: an id that is no text, or more tokens than exist, would stop the ledger for all."""
    try:
        (spent.id + spent.model).encode()
    except UnicodeEncodeError:
        return False
    return bool(spent.id) and all(getattr(spent.usage, name) < _MOST for name in CLASSES)


def _time(spent: Spent) -> float:
    return spent.time if 0 <= spent.time < LATEST else 0.0
