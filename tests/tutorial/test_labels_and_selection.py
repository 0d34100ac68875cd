"""LABELS AND SELECTION of tutorial.sh."""

from __future__ import annotations

from mngr.e2e import E2eSession, expect
from tests.agents import begun


def labels(e2e: E2eSession) -> dict[str, dict[str, str]]:
    return {each["name"]: each["labels"] for each in e2e.run("mngr list --json").json()}


def test_labels_select(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Labels are your own words for agents. Every verb over many agents can select by them.
        mngr label fix owner=ann topic=login
        mngr list --label owner=ann --labels
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="an agent for Ann")
    e2e.run("mngr create other --label owner=bob --no-connect -- sleep 1000", comment="and one for Bob")

    expect(e2e.run("mngr label fix owner=ann topic=login", comment="say so")).to_succeed()
    hers = e2e.run("mngr list --label owner=ann --labels", comment="what is Ann's?")
    expect(hers).to_match("^fix .*owner=ann,topic=login$").not_.to_contain("other")
    expect(labels(e2e)).to_equal({"fix": {"owner": "ann", "topic": "login"}, "other": {"owner": "bob"}})

    e2e.run("mngr stop --label owner=ann", comment="another verb over many")
    expect(e2e.run("mngr list --names --state running").stdout).to_equal("other\n")


def test_a_label_for_nobody_is_an_error(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Labels are your own words for agents. Every verb over many agents can select by them.
        mngr label fix owner=ann topic=login
        mngr list --label owner=ann --labels
    """)
    expect(e2e.run("mngr label fix owner=ann topic=login", comment="there is no fix yet")).to_have_exit_code(3)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="now there is one")
    expect(e2e.run("mngr label fix", comment="but no label")).to_have_exit_code(2).to_contain("which labels?")
    expect(labels(e2e)).to_equal({"fix": {}})


def test_labels_of_a_group_change_together(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Change one and remove another, for a whole group. K= selects whoever has the label, with any value.
        mngr label 'try-*' batch=2 tmp-
        mngr list --label batch=
    """)
    e2e.run("mngr create try --count 2 -l batch=1 -l tmp=yes --no-connect -- sleep 1000", comment="a group")
    e2e.run("mngr create old -l batch=1 --no-connect -- sleep 1000", comment="one with an older number")
    e2e.run("mngr create other --no-connect -- sleep 1000", comment="and one without any")

    expect(e2e.run("mngr label 'try-*' batch=2 tmp-", comment="a new number for the group")).to_succeed()
    expect(labels(e2e)).to_equal({"try-1": {"batch": "2"}, "try-2": {"batch": "2"}, "old": {"batch": "1"}, "other": {}})
    numbered = e2e.run("mngr list --label batch=", comment="who has a number?")
    expect(numbered).to_contain("try-1", "try-2", "old").not_.to_contain("other")


def test_the_finished_are_sorted_from_the_rest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Sort the finished from the rest, and say so in JSON for the record.
        mngr label --state done --type command --host local ready=yes
        mngr label --label ready=yes --json seen=no
        mngr label --all seen=yes
    """)
    e2e.run("mngr create quick --no-connect -- true", comment="one that is done at once")
    e2e.run("mngr create slow --no-connect -- sleep 1000", comment="and one that is not")
    e2e.run("mngr wait quick --for done")

    sorted_out = e2e.run("mngr label --state done --type command --host local ready=yes", comment="who is ready?")
    expect(sorted_out.stdout).to_equal("labelled quick\n")
    told = e2e.run("mngr label --label ready=yes --json seen=no", comment="for the record")
    expect(told).to_be_json([{"name": "quick", "did": "labelled", "ok": True, ...: ...}])
    expect(labels(e2e)).to_equal({"quick": {"ready": "yes", "seen": "no"}, "slow": {}})
    expect(e2e.run("mngr label --all seen=yes", comment="now I have seen them all")).to_succeed()
    expect(labels(e2e)).to_equal({"quick": {"ready": "yes", "seen": "yes"}, "slow": {"seen": "yes"}})


def test_nothing_said_is_not_all(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A verb that changes something never takes "nothing said" for "all": say --all, or it asks which.
        mngr stop || echo "exit code $?"
        mngr stop --all
    """)
    e2e.run("mngr create try --count 2 --no-connect -- sleep 1000", comment="two agents")

    asked = e2e.run('mngr stop || echo "exit code $?"', comment="nothing said")
    expect(asked).to_contain("which agents?", "exit code 2")
    expect(e2e.run("mngr list --names --state running", comment="nobody was stopped").stdout).to_equal("try-1\ntry-2\n")
    expect(e2e.run("mngr stop --all", comment="all, then")).to_succeed()
    expect(e2e.run("mngr list --names --state stopped").stdout).to_equal("try-1\ntry-2\n")


def test_no_verb_that_changes_something_takes_nothing_for_all(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A verb that changes something never takes "nothing said" for "all": say --all, or it asks which.
        mngr stop || echo "exit code $?"
        mngr stop --all
    """)
    e2e.run("mngr create fix --no-connect -- sleep 1000", comment="even with one agent alone")
    e2e.run(begun(1), comment="since when it runs is known when its program has begun")
    before = e2e.run("mngr list --json").stdout
    for words in (
        "stop",
        "start",
        "destroy --force",
        "label seen=yes",
        "message -m hello",
        "exec -- true",
        "pull",
        "push",
    ):
        expect(e2e.run(f"mngr {words}")).to_have_exit_code(2)
    expect(e2e.run("mngr list --json", comment="all is as it was").stdout).to_equal(before)
