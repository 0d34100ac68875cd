"""Sums over the ledger: who and what is in them, by what, and what they cost."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from mngr.agents.log import Spent, Usage
from mngr.cli.usage import usage as verb
from mngr.errors import NoSuchAgent, UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.ledger import Account, Ledger, with_ledger
from mngr.fleet.select import Selection
from mngr.fleet.survey import Status
from mngr.grammar import parse
from mngr.insight.usage import Report, spent, usage
from mngr.model import Ref
from mngr.state import Evidence, Verdict

KNOWN = "claude-opus-4-5"  # 5 USD for a million tokens in, 25 out


class Books:
    """A home whose ledger is written by hand. Only agents that have a name live."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.told: list[str] = []

    def agent(self, id: str, name: str, *, lives: bool = True, type: str = "claude", **labels: str) -> None:
        account = Account(id=id, name=name, host="local", type=type, labels=labels, created=float(len(id)))
        with_ledger(str(self.home), print, lambda ledger: ledger.remember([account]))
        if lives:
            Fleet().names.reserve(Ref(id=id, name=name, type=type, host="local"))

    def spend(
        self, agent: str, id: str, *, model: str = KNOWN, at: float = 1e9, input: int = 0, output: int = 0, **more: int
    ) -> None:
        spent = Spent(id=id, time=at, model=model, usage=Usage(input=input, output=output, **more))
        with_ledger(str(self.home), print, lambda ledger: ledger.add([(agent, spent)], []))

    def usage(self, *words: str, by: str = "agent", since: float = float("-inf"), **filters: object) -> Report:
        selection = Selection(words=list(words), **filters)  # type: ignore[arg-type]
        return usage(Fleet(), selection, self.told.append, since=since, by=by)

    def messages(self, *words: str, **how: object) -> dict[str | None, int]:
        return {row.key: row.sum.messages for row in self.usage(*words, **how).rows}  # type: ignore[arg-type]

    def prints(self, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
        capsys.readouterr()
        assert verb.run(parse(verb, list(words))) == 0
        said = capsys.readouterr()
        self.told = said.err.splitlines()
        return said.out.splitlines()


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    (tmp_path / "m").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNGR_HOME", str(tmp_path / "m"))
        patch.setenv("TZ", "Asia/Kolkata")  # half an hour beside the full ones
        time.tzset()
        yield Books(tmp_path / "m")
    time.tzset()


# Who.


def test_everybody_is_in_the_sums_destroyed_agents_under_their_last_name(books: Books) -> None:
    books.agent("a", "x-10")
    books.agent("b", "x-9")
    books.agent("cc", "x-9", lives=False)
    for agent in ("a", "b", "cc"):
        books.spend(agent, f"m-{agent}", input=10)
    report = books.usage()
    found = [(row.key, row.account and row.account.id, row.account and row.account.destroyed) for row in report.rows]
    assert found == [("x-9", "b", False), ("x-9", "cc", True), ("x-10", "a", False)]
    assert (report.total.messages, report.total.tokens[0]) == (3, 30)


def test_an_agent_that_has_lost_its_name_is_destroyed_and_one_that_is_seen_again_is_not(books: Books) -> None:
    books.agent("a", "x")
    books.spend("a", "m1")
    assert [row.account and row.account.destroyed for row in books.usage().rows] == [False]
    os.unlink(books.home / "names" / "x")
    assert [row.account and row.account.destroyed for row in books.usage().rows] == [True]
    books.agent("a", "x")
    assert [row.account and row.account.destroyed for row in books.usage().rows] == [False]


def test_names_globs_and_filters_select_the_dead_as_well(books: Books) -> None:
    books.agent("a", "fix-1", run="1")
    books.agent("b", "fix-2", lives=False, run="2")
    books.agent("c", "other", lives=False, type="codex")
    for agent in "abc":
        books.spend(agent, f"m-{agent}")
    assert books.messages("fix-2") == {"fix-2": 1}
    assert books.messages("fix-*") == {"fix-1": 1, "fix-2": 1}
    assert books.messages("fix-1", "other") == {"fix-1": 1, "other": 1}
    assert books.messages("fix-2@local") == {"fix-2": 1}
    assert books.messages(labels={"run": "2"}) == {"fix-2": 1}
    assert books.messages(labels={"run": ""}) == {"fix-1": 1, "fix-2": 1}
    assert books.messages(types=["codex"]) == {"other": 1}
    assert books.messages(hosts=["elsewhere"]) == {}
    assert books.messages(states=["running"]) == {}


def test_a_name_that_nobody_has_or_had_is_an_error(books: Books) -> None:
    books.agent("a", "fix-1", lives=False)
    with pytest.raises(NoSuchAgent) as caught:
        books.usage("fix-l")
    assert (caught.value.message, caught.value.hint) == ("no agent is or was called fix-l", "did you mean fix-1?")
    with pytest.raises(NoSuchAgent):
        books.usage("fix-1@box.ssh")
    with pytest.raises(UsageError):
        books.usage(states=["asleep"])


def test_nothing_at_all(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    assert books.prints(capsys) == ["nothing was spent"]
    told = json.loads("\n".join(books.prints(capsys, "--json")))
    assert (told["rows"], told["total"]["messages"], told["total"]["cost"]) == ([], 0, 0)


# By what, and since when.


def test_by_model_day_and_label(books: Books) -> None:
    books.agent("a", "a", task="red")
    books.agent("b", "b", task="blue")
    books.agent("c", "c")
    midnight = datetime(2026, 11, 2).timestamp()  # here, which is not UTC
    books.spend("a", "m1", model="one", at=midnight - 1)
    books.spend("a", "m2", model="two", at=midnight)
    books.spend("b", "m3", model="two", at=midnight + 86399)
    books.spend("c", "m4", model="two", at=midnight + 86400)
    assert books.messages(by="model") == {"one": 1, "two": 3}
    assert books.messages(by="day") == {"2026-11-01": 1, "2026-11-02": 2, "2026-11-03": 1}
    assert books.messages(by="label:task") == {"blue": 1, "red": 2, None: 1}
    assert list(books.messages(by="label:task")) == ["blue", "red", None]
    assert books.messages(by="label:other") == {None: 4}
    assert books.messages(by="label") == {"task=blue": 1, "task=red": 2, None: 1}


@pytest.mark.parametrize("by", ["", "label:", "agents", "model:x"])
def test_any_other_way_is_refused(books: Books, by: str) -> None:
    with pytest.raises(UsageError, match="--by is agent, model, day, label or label:KEY"):
        books.usage(by=by)


def test_since(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    books.agent("a", "a")
    midnight = datetime(2026, 11, 2).timestamp()
    books.spend("a", "m1", at=midnight - 1)
    books.spend("a", "m2", at=midnight)
    books.spend("a", "m3", at=time.time() - 3000)
    books.spend("a", "m4", at=time.time() - 4000)

    def counted(since: str) -> int:
        told = json.loads("\n".join(books.prints(capsys, "--json", "--since", since)))
        return int(told["total"]["messages"])

    assert counted("2026-11-01") == 4
    assert counted("2026-11-02") == 3
    assert counted("2026-11-02T00:00:01") == 2
    assert counted("2026-11-01T18:30:00Z") == 3
    assert counted("1h") == 1
    assert counted("0s") == 0


@pytest.mark.parametrize("since", ["yesterday", "-1h", "2026-13-01", "99999999999d", "h"])
def test_a_time_that_is_none_is_refused(books: Books, since: str) -> None:
    with pytest.raises(UsageError, match="--since takes a time such as 24h or 7d, or a date such as 2026-11-01"):
        verb.run(parse(verb, [f"--since={since}"]))


# Money.


def test_what_is_known_and_what_is_not_are_kept_apart(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    books.agent("a", "a")
    books.agent("b", "b")
    books.agent("c", "c")
    books.spend("a", "m1", input=1_000_000)
    books.spend("b", "m2", input=100_000, output=2000)
    books.spend("b", "m3", model="fake", input=7)
    books.spend("c", "m4", model="fake\033[1m", input=7)
    report = books.usage()
    assert [(row.key, row.sum.cost, row.sum.unpriced) for row in report.rows] == [
        ("a", Decimal(5), 0),
        ("b", Decimal("0.55"), 1),
        ("c", 0, 1),
    ]
    assert (report.total.cost, report.total.unpriced) == (Decimal("5.55"), 2)
    assert report.unpriced == ["fake", "fake\033[1m"]
    lines = books.prints(capsys)
    assert [line[:5].strip() for line in lines] == ["AGENT", "a", "b", "c", "total"]
    assert lines[1].endswith("  $5.00")
    assert lines[2].endswith("  at least $0.5500, 1 message unpriced")
    assert lines[3].endswith("  unpriced")
    assert lines[4].endswith("  at least $5.55, 2 messages unpriced")
    assert books.told == [
        "mngr: prices are missing for fake, fake\N{REPLACEMENT CHARACTER}[1m: prices.toml in MNGR_HOME can say them"
    ]


def test_json_has_exact_numbers_and_null_for_a_cost_that_is_not_known(
    books: Books, capsys: pytest.CaptureFixture[str]
) -> None:
    books.agent("a", "a")
    books.agent("b", "b", lives=False)
    exact = 987_654_321_987
    books.spend("a", "m1", model="fake", input=exact, cache_read=1, cache_write_5m=2, cache_write_1h=3, reasoning=4)
    books.spend("b", "m2", input=2, output=3)
    told = json.loads("\n".join(books.prints(capsys, "--json")))
    tokens = {"cache_read": 1, "cache_write_5m": 2, "cache_write_1h": 3, "output": 0, "reasoning": 4}
    none = dict.fromkeys(tokens, 0)
    assert told == {
        "by": "agent",
        "rows": [
            {
                "key": "a",
                "id": "a",
                "destroyed": False,
                "messages": 1,
                "input": exact,
                **tokens,
                "cost": None,
                "unpriced": 1,
            },
            {
                "key": "b",
                "id": "b",
                "destroyed": True,
                "messages": 1,
                "input": 2,
                **none,
                "output": 3,
                "cost": 8.5e-05,
                "unpriced": 0,
            },
        ],
        "total": {"messages": 2, "input": exact + 2, **tokens, "output": 3, "cost": 8.5e-05, "unpriced": 1},
    }
    told = json.loads("\n".join(books.prints(capsys, "--json", "--by", "label:x")))
    assert [row["key"] for row in told["rows"]] == [None]


def test_own_prices_count(books: Books) -> None:
    books.agent("a", "a")
    books.spend("a", "m1", model="fake", input=1_000_000)
    books.spend("a", "m2", input=1_000_000)
    (books.home / "prices.toml").write_text('[models."fa*"]\ninput = 1\n[models."claude-*"]\ninput = 2\n')
    assert books.usage().total.cost == 3
    (books.home / "prices.toml").write_text('[models."fa*"]\ninputs = 1\n')
    with pytest.raises(UsageError, match=r"prices\.toml:2: inputs is no class of tokens"):
        books.usage()


def test_messages_of_one_quarter_are_priced_each_for_itself(books: Books) -> None:
    """By the length of their own context, and by what they have: one that has no price takes no other with it."""
    books.agent("a", "a")
    for id, input in {"long": 200_001, "short": 150_000, "too": 150_000}.items():
        books.spend("a", id, model="claude-sonnet-4-5-20250929", input=input)
    assert books.usage().total.cost == Decimal("0.000006") * 200_001 + Decimal("0.000003") * 300_000
    books.spend("a", "x1", model="gpt-5.6-cyber", input=1_000_000)
    books.spend("a", "x2", model="gpt-5.6-cyber", input=1_000_000, cache_write_1h=1)
    report = books.usage(by="model")
    assert [(row.sum.cost, row.sum.unpriced) for row in report.rows if row.key == "gpt-5.6-cyber"] == [
        (Decimal("12.5"), 1)
    ]


def test_without_the_library_nothing_has_a_price_and_a_line_says_how_to_get_it(
    books: Books, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    books.agent("a", "a")
    books.spend("a", "m1", input=1)
    assert books.prints(capsys)[-1].endswith("  unpriced")
    (told,) = books.told
    assert "pip install 'mngr[prices]'" in told


# Nonsense in the ledger.


def test_nonsense_times_and_tokens_stop_nobody(books: Books) -> None:
    books.agent("a", "a")

    def act(ledger: Ledger) -> None:
        nonsense = [float("nan"), float("inf"), -1.0, 1e17]
        ledger.add([("a", Spent(id=f"m{n}", time=at, model=KNOWN, usage=Usage())) for n, at in enumerate(nonsense)], [])
        ledger.add([("a", Spent(id="big", time=1.0, model=KNOWN, usage=Usage(input=2**70)))], [])

    with_ledger(str(books.home), print, act)
    assert books.messages(by="day") == {"1970-01-01": 4}


# Exactly these.


def test_spent_is_of_these_agents_alone_and_has_all_of_them(books: Books) -> None:
    for agent in ("a", "b", "c"):
        books.agent(agent, agent)
        books.spend(agent, f"m-{agent}", input=1_000_000)
    books.spend("a", "m-unknown", model="nobody-knows", input=7, output=5)
    sums = spent(Fleet(), [status("a"), status("none")], books.told.append)
    assert {id: (sum.messages, sum.tokens[0], sum.cost, sum.unpriced) for id, sum in sums.items()} == {
        "a": (2, 1_000_007, Decimal(5), 1),
        "none": (0, 0, Decimal(0), 0),
    }
    assert spent(Fleet(), [], books.told.append) == {}
    assert books.told == []


def status(id: str) -> Status:
    verdict = Verdict(state="stopped", reason="", since=None, because="")
    return Status(id=id, name=id, host="local", agent=None, verdict=verdict, evidence=Evidence(id=id))


def test_sums_of_some_agents_read_no_messages_of_others(books: Books) -> None:
    """By an index: what is in the ledger besides costs nothing."""
    books.agent("a", "a")
    database = sqlite3.connect(books.home / "usage.db")
    asked: list[str] = []
    database.set_trace_callback(asked.append)
    list(Ledger(database).batches(0.0, [], ["a", "b"]))
    Ledger(database).models(["a", "b"])
    database.set_trace_callback(None)
    for query in asked:
        plan = " ".join(row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {query}"))
        assert "USING INDEX messages_of (agent=?)" in plan, plan
    database.close()
    assert len(asked) == 2
