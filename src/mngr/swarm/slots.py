"""How many agents an account can take at once: nobody says, so it is found out, as senders find out what a network
takes. The number doubles while nothing is known, halves when the account says that it is too much, and from then on
grows by one: many probes cost little, many rate limits cost agents.

It grows by rounds. A round is over when it has lasted half a minute and as many different agents as there are slots
have asked their model in it: less would be no evidence about that number. It counts only if all slots were in use at
once (at some moment: one agent always ends a little before the next one starts) and no API error fell into it.

Times are wall clock, since the state outlives processes. A clock that steps can make a round longer or a cooldown end
early, and no more than that."""

from __future__ import annotations

from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

START, LEAST, MOST = 4, 1, 200
ROUND = 30.0  # seconds that a round lasts at least
COOLDOWN = 60.0  # after a cut: no growth, and no second cut, since agents meet one and the same limit one by one
LONGEST = 900.0  # that anything is waited for; a limit that is over in hours is tried again before
FORGOTTEN = 3600.0  # without a look at it, what was learnt says nothing any more about what the account can take


class Controller(Record):
    """Frozen: what happens makes a new one. When its limit is another one than before, `why` says what changed it."""

    limit: int = START
    why: str = "nothing is known of this account yet"
    doubles: bool = True  # until the first rate limit
    began: float = 0.0  # the round
    asked: list[str] = []  # noqa: RUF012 - Record copies defaults; agents that have asked their model in it
    peak: int = 0  # agents that were at work at once in it
    cooldown: float = 0.0  # lasts until then
    closed: float = 0.0  # until then the account answers nobody, so that no agent needs to be started
    seen: float = 0.0

    def observed(self, now: float, using: int, asked: Iterable[str] = ()) -> Controller:
        """So many agents are at work, and these have asked their model since the last time."""
        me = self._at(now)
        if now < me.cooldown:
            return me._new_round(now)
        me = me.replace(peak=max(me.peak, using), asked=sorted({*me.asked, *asked})[: me.limit])
        if now - me.began < ROUND or len(me.asked) < me.limit:
            return me
        if me.peak < me.limit or me.limit == MOST:
            return me._new_round(now)
        limit = min(MOST, me.limit * 2 if me.doubles else me.limit + 1)
        why = f"{me.limit} agents at work met no limit in {now - me.began:.0f} s"
        return me._new_round(now).replace(limit=limit, why=why)

    def limited(self, now: float, reset: float | None = None) -> Controller:
        """An agent has met a rate limit, which is over at `reset` if it said so."""
        me = self._at(now)._new_round(now)
        wait = min(max(0.0, (reset or now) - now), LONGEST)
        me = me.replace(doubles=False, closed=max(me.closed, now + wait))
        if now < me.cooldown:
            return me
        why = "rate limit" + (f", over in {wait:.0f} s" if wait else "")
        return me.replace(limit=max(LEAST, me.limit // 2), why=why, cooldown=now + max(COOLDOWN, wait))

    def failed(self, now: float) -> Controller:
        """An agent has met an API error that is no rate limit: no sign of too many agents, nor a time to add some."""
        return self._at(now)._new_round(now)

    def slots(self, now: float) -> int:
        """Agents that may be at work after one more is started. Those that are at work are never ended for it."""
        return 0 if now < self.closed else self.limit

    def _at(self, now: float) -> Controller:
        """Without what cannot be: the clock was stepped, or somebody edited the file."""
        if now - self.seen > FORGOTTEN:
            return Controller(began=now, seen=now)
        if now < self.seen - 1:  # set back: nobody knows any more when these end, and asking too early does little harm
            return self.replace(cooldown=now, closed=now, seen=now)._at(now)
        return self.replace(
            limit=min(max(self.limit, LEAST), MOST),
            began=min(self.began, now),
            cooldown=min(self.cooldown, now + LONGEST),
            closed=min(self.closed, now + LONGEST),
            seen=now,
        )

    def _new_round(self, now: float) -> Controller:
        return self.replace(began=now, asked=[], peak=0)
