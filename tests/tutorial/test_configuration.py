"""CONFIGURATION of tutorial.sh."""

from __future__ import annotations

from mngr.e2e import E2eSession, expect


def test_what_is_configured_and_which_file_says_so(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What you say every time belongs into your configuration. Nothing has to be there; this is what is, and which file
        # says so. --all shows every key that there is.
        mngr config list
        mngr config list --all
        mngr config list --json
    """)
    file = e2e.root / "m" / "config.toml"
    file.write_text("stop_grace = 10\n")
    expect(e2e.run("mngr config list", comment="one line").stdout).to_equal(f"stop_grace = 10  # {file}\n")
    expect(e2e.run("mngr config list --all", comment="and all that could be")).to_contain(
        "stop_grace = 10", "ready_timeout = ", "default", "commands.VERB.OPTION", "templates.NAME", "agent_types.NAME"
    )
    told = e2e.run("mngr config list --json", comment="for a script")
    expect(told).to_be_json([{"key": "stop_grace", "value": 10, "origin": str(file)}])


def test_nothing_has_to_be_configured(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What you say every time belongs into your configuration. Nothing has to be there; this is what is, and which file
        # says so. --all shows every key that there is.
        mngr config list
        mngr config list --all
        mngr config list --json
    """)
    (e2e.root / "m" / "config.toml").unlink()
    expect(e2e.run("mngr config list", comment="a new home").stdout).to_be_empty()
    expect(e2e.run("mngr config list --all", comment="but all has a value")).to_match("^stop_grace = 5 .*default")
    expect(e2e.run("mngr config list --json")).to_be_json([])


def test_a_setting_for_ever_and_for_one_call(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A setting of your own, then the same one for a single call, by an option or by a variable.
        mngr config set stop_grace 10
        mngr config get stop_grace
        mngr config get stop_grace -S stop_grace=1
        MNGR_CONFIG_STOP_GRACE=2 mngr config get stop_grace --json
    """)
    expect(e2e.run("mngr config set stop_grace 10", comment="for ever")).to_succeed()
    expect(e2e.run("mngr config get stop_grace").stdout).to_equal("10\n")
    expect(e2e.root / "m" / "config.toml").to_match("^stop_grace = 10$")
    once = e2e.run("mngr config get stop_grace -S stop_grace=1", comment="for one call, by an option")
    expect(once.stdout).to_equal("1\n")
    once = e2e.run("MNGR_CONFIG_STOP_GRACE=2 mngr config get stop_grace --json", comment="or by a variable")
    expect(once).to_be_json(2)
    expect(e2e.run("mngr config get stop_grace", comment="and that was all").stdout).to_equal("10\n")


def test_the_projects_file_wins_over_yours(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The project's file is committed with the project and wins over yours. Edit either by hand, or take back what you said.
        mngr config path
        mngr config path --project
        mngr config set --project stop_grace 30
        mngr config unset --project stop_grace
    """)
    yours, projects = e2e.root / "m" / "config.toml", e2e.dir / ".mngr.toml"
    expect(e2e.run("mngr config path", comment="where are they?").stdout).to_equal(f"{yours}\n")
    expect(e2e.run("mngr config path --project").stdout).to_equal(f"{projects}\n")

    e2e.run("mngr config set stop_grace 10", comment="your own opinion")
    expect(e2e.run("mngr config set --project stop_grace 30", comment="the project's")).to_succeed()
    expect(e2e.run("git status --short", comment="it can be committed")).to_contain(".mngr.toml")
    expect(e2e.run("mngr config get stop_grace", comment="it wins").stdout).to_equal("30\n")
    expect(e2e.run("mngr config get stop_grace", cwd="src", comment="in all of the project").stdout).to_equal("30\n")
    expect(e2e.run("mngr config get stop_grace", cwd=e2e.home, comment="and not elsewhere").stdout).to_equal("10\n")

    expect(e2e.run("mngr config unset --project stop_grace", comment="take it back")).to_succeed()
    expect(e2e.run("mngr config get stop_grace").stdout).to_equal("10\n")


def test_what_was_written_by_hand_stays_when_a_setting_goes(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The project's file is committed with the project and wins over yours. Edit either by hand, or take back what you said.
        mngr config path
        mngr config path --project
        mngr config set --project stop_grace 30
        mngr config unset --project stop_grace
    """)
    projects = e2e.dir / ".mngr.toml"
    projects.write_text("# Ask Ada before you change this.\nsetup = 'make deps'  # takes a minute\n")
    e2e.run("mngr config set --project stop_grace 30", comment="add something")
    expect(projects).to_contain("stop_grace = 30")
    e2e.run("mngr config unset --project stop_grace", comment="take it back")
    expect(projects).to_contain("# Ask Ada before you change this.", "setup = 'make deps'  # takes a minute")
    expect(projects).not_.to_contain("stop_grace")
    gone = e2e.run("mngr config unset --project stop_grace", comment="it is gone already")
    expect(gone).to_fail().to_contain("stop_grace")


def test_options_with_other_defaults(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Every option of every verb can have another default. What is on the command line still wins.
        mngr config set commands.list.git true
        mngr config set commands.create.label owner=ann,batch=1
        mngr create build -- sleep 1000
        mngr list --labels
        mngr config unset commands.create.label
    """)
    e2e.run("mngr config set commands.list.git true", comment="always count commits")
    e2e.run("mngr config set commands.create.label owner=ann,batch=1", comment="always say whose it is")
    expect(e2e.run("mngr create build -- sleep 1000", comment="without a word about labels")).to_succeed()
    expect(e2e.run("mngr list --labels")).to_contain("AHEAD", "owner=ann,batch=1")

    e2e.run("mngr create other --label owner=bob -- sleep 1000", comment="the command line wins")
    expect(e2e.run("mngr list other --labels -S commands.list.git=false")).to_match("owner=bob$").not_.to_contain(
        "AHEAD"
    )

    expect(e2e.run("mngr config unset commands.create.label", comment="no more of that")).to_succeed()
    e2e.run("mngr create plain -- sleep 1000")
    expect(e2e.run("mngr list plain --json").json()[0]["labels"]).to_equal({})


def test_a_template_is_a_set_of_options_with_a_name(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A set of options with a name is a template. What is on the command line wins over it.
        mngr config set templates.watch.args '["tail", "-f", "README.md"]'
        mngr config set templates.watch.type command
        mngr create log --template watch
        mngr create log-b -t watch --label batch=1
    """)
    e2e.run("""mngr config set templates.watch.args '["tail", "-f", "README.md"]'""", comment="what it runs")
    e2e.run("mngr config set templates.watch.type command", comment="and as what")
    expect(e2e.run("mngr create log --template watch", comment="one like that")).to_succeed()
    expect(e2e.run("mngr create log-b -t watch --label batch=1", comment="and another, with a label")).to_succeed()

    agents = {each["name"]: each for each in e2e.run("mngr list --json").json()}
    for agent in agents.values():
        expect(agent["command"]).to_equal(["tail", "-f", "README.md"])
    expect({name: agent["labels"] for name, agent in agents.items()}).to_equal({"log": {}, "log-b": {"batch": "1"}})
    expect(e2e.run("mngr capture log", comment="it shows the file")).to_eventually_contain("# Sample")


def test_the_command_line_wins_over_a_template(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A set of options with a name is a template. What is on the command line wins over it.
        mngr config set templates.watch.args '["tail", "-f", "README.md"]'
        mngr config set templates.watch.type command
        mngr create log --template watch
        mngr create log-b -t watch --label batch=1
    """)
    e2e.run("""mngr config set templates.watch.args '["tail", "-f", "README.md"]'""", comment="a template")
    e2e.run("mngr config set templates.watch.type command")
    e2e.run("mngr config set templates.watch.label batch=1", comment="with a label, too")
    e2e.run("mngr create log -t watch --label batch=2 -- tail -f src/app.py", comment="all of it said otherwise")
    (agent,) = e2e.run("mngr list --json").json()
    expect(agent["command"]).to_equal(["tail", "-f", "src/app.py"])
    expect(agent["labels"]).to_equal({"batch": "2"})

    wrong = e2e.run("mngr create log-b -t wach", comment="a slip of the pen")
    expect(wrong).to_have_exit_code(2).to_contain("did you mean watch?")
    expect(e2e.run("mngr list --names").stdout).to_equal("log\n")


def test_a_mistake_is_found_when_it_is_made(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A mistake in the configuration is found when it is made, with the nearest key for a hint.
        mngr config set stop_graze 10 || echo "exit code $?"
    """)
    file = e2e.root / "m" / "config.toml"
    before = file.read_text()
    slip = e2e.run('mngr config set stop_graze 10 || echo "exit code $?"', comment="a slip of the pen")
    expect(slip).to_contain("did you mean stop_grace?", "exit code 2")
    expect(e2e.run("mngr config set stop_grace soon", comment="not a time")).to_have_exit_code(2).to_contain("number")
    expect(file).to_equal(before)


def test_a_mistake_made_by_hand_is_found_by_the_next_command(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A mistake in the configuration is found when it is made, with the nearest key for a hint.
        mngr config set stop_graze 10 || echo "exit code $?"
    """)
    e2e.run("echo 'stop_graze = 10' >.mngr.toml", comment="in an editor, nobody warns")
    expect(e2e.run("mngr list")).to_have_exit_code(2).to_contain(".mngr.toml:1", "did you mean stop_grace?")
