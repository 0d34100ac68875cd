"""COSTS of tutorial.sh: what `mngr usage` counts is what the model server has handed out."""

from __future__ import annotations

import pytest

from mngr.dev.model_server import ModelServer
from mngr.e2e import E2eSession, expect

PRICES = """\
cat >"${MNGR_HOME:-$HOME/.mngr}/prices.toml" <<'EOF'
[models."*"]
input = 5
output = 25
cache_read = 0.5
cache_write_5m = 6.25
cache_write_1h = 10
EOF"""
MINE = {"input": 5, "output": 25, "cache_read": 0.5, "cache_write_5m": 6.25, "cache_write_1h": 10}


def handed_out(agents: ModelServer) -> dict[str, int]:
    """In the turns: the program keeps no record of what it asks aside, such as a title."""
    spent = [entry["usage"] for entry in agents.requests() if entry["tools"] and "aside" not in entry["answered"]]
    return {"messages": len(spent), **{each: sum(usage[each] for usage in spent) for each in MINE}}


def counted(e2e: E2eSession) -> dict[str, int]:
    total = e2e.run("mngr usage --json").json()["total"]
    return {each: total[each] for each in ("messages", *MINE)}


def costs(e2e: E2eSession) -> dict[str, float]:
    return {row["key"]: row["cost"] for row in e2e.run("mngr usage --json").json()["rows"]}


def test_everybody_counts_the_destroyed_too(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # What has it cost so far? Everybody counts, agents that are destroyed too.
        mngr usage
    """)
    expect(e2e.run("mngr usage", comment="before anything").stdout).to_equal("nothing was spent\n")
    e2e.run("mngr create fix claude --headless --no-connect -m Hello && mngr wait fix", comment="somebody spends")
    expect(e2e.run("mngr usage", comment="how much?").stdout).to_match(r"^fix +1 ")
    expect(counted(e2e)).to_equal(handed_out(agents))
    e2e.run("mngr destroy --force fix", comment="away with it")
    expect(e2e.run("mngr usage", comment="the money is gone all the same").stdout).to_match(r"^fix \(destroyed\) +1 ")
    expect(counted(e2e)).to_equal(handed_out(agents))


def test_where_the_money_goes(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # By model, by day, by label: where does the money go?
        mngr usage --since 24h --by model
        mngr usage --by day
        mngr usage --label batch=1 --by label:task
    """)
    e2e.write_tutorial_block("""
        # Some agents only; and in JSON, with exact numbers.
        mngr usage 'fix*' --type claude --host local --state waiting
        mngr usage --json
    """)
    create = "mngr create fix claude --count 2 --headless -l batch=1 -m Hello && mngr wait 'fix-*'"
    e2e.run(create, comment="two agents")
    e2e.run("mngr label fix-1 task=speed && mngr label fix-2 task=size", comment="with two tasks")
    (model,) = {entry["model"] for entry in agents.requests() if entry["tools"]}
    by_model = e2e.run("mngr usage --since 24h --by model", comment="for which model?")
    expect(by_model.stdout).to_contain("MODEL", model).to_match(r"^total +2 ")
    by_day = e2e.run("mngr usage --by day", comment="on which day?")
    expect(by_day.stdout).to_match(r"^\d{4}-\d\d-\d\d +\d ").to_match(r"^total +2 ")
    by_task = e2e.run("mngr usage --label batch=1 --by label:task", comment="for which task?")
    expect(by_task.stdout).to_match(r"^speed +1 ").to_match(r"^size +1 ").to_match(r"^total +2 ")
    e2e.run("mngr stop fix-2", comment="only one of them is still waiting")
    some = e2e.run("mngr usage 'fix*' --type claude --host local --state waiting", comment="what has that one cost?")
    expect(some.stdout).to_match(r"^fix-1 +1 ").to_match(r"^total +1 ").not_.to_contain("fix-2")
    exact = e2e.run("mngr usage --json", comment="and both of them, to the token?").json()
    expect({row["key"]: row["messages"] for row in exact["rows"]}).to_equal({"fix-1": 1, "fix-2": 1})
    expect(counted(e2e)).to_equal(handed_out(agents))


@pytest.mark.parametrize("wrong", ["--since yesterday", "--by colour"])
def test_a_question_that_usage_does_not_understand(e2e: E2eSession, wrong: str) -> None:
    e2e.write_tutorial_block("""
        # By model, by day, by label: where does the money go?
        mngr usage --since 24h --by model
        mngr usage --by day
        mngr usage --label batch=1 --by label:task
    """)
    result = e2e.run(f"mngr usage {wrong}", comment="a word that it does not know")
    expect(result).to_have_exit_code(2).to_contain(wrong.split()[0], wrong.split()[1])


def test_prices_of_your_own(e2e: E2eSession, agents: ModelServer) -> None:
    e2e.write_tutorial_block("""
        # A model without a price is called unpriced, and never free. Your own prices come before those of the tables.
        cat >"${MNGR_HOME:-$HOME/.mngr}/prices.toml" <<'EOF'
        [models."*"]
        input = 5
        output = 25
        cache_read = 0.5
        cache_write_5m = 6.25
        cache_write_1h = 10
        EOF
        mngr usage
    """)
    e2e.run(
        "mngr create fix claude --headless --no-connect -m Hello -- --model made-in-house && "
        "mngr create old claude --headless --no-connect -m Hello -- --model claude-haiku-4-5 && mngr wait fix old",
        comment="a model that no table knows, and one that is in the tables",
    )
    unpriced = e2e.run("mngr usage", comment="what did it cost? Nobody can say")
    expect(unpriced).to_match(r"^fix .* unpriced$").to_contain("prices are missing for made-in-house")
    known = costs(e2e)["old"]
    e2e.run(PRICES, comment="but I can")
    expect(e2e.run("mngr usage")).to_match(r"^fix .* \$0\.\d+$").not_.to_contain("unpriced")
    mine = costs(e2e)
    expect(mine["old"] > known > 0).to_equal(True)
    total = sum(handed_out(agents)[each] * price for each, price in MINE.items()) / 1e6
    expect(mine["fix"] + mine["old"]).to_equal(pytest.approx(total))


def test_a_price_that_is_no_number(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A model without a price is called unpriced, and never free. Your own prices come before those of the tables.
        cat >"${MNGR_HOME:-$HOME/.mngr}/prices.toml" <<'EOF'
        [models."*"]
        input = 5
        output = 25
        cache_read = 0.5
        cache_write_5m = 6.25
        cache_write_1h = 10
        EOF
        mngr usage
    """)
    e2e.run(PRICES.replace("output = 25", 'output = "a lot"'), comment="a price list with a slip of the pen")
    result = e2e.run("mngr usage", comment="is told with its line")
    expect(result).to_have_exit_code(2).to_match(r"prices\.toml:3: output must be a number")
