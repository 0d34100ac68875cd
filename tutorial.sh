#!/usr/bin/env bash
# mngr, from the first create to the last verb. To be read from the top, and copied from: every paragraph below is an
# example that stands alone, says first why one would do it, and is run by a test. Where a paragraph names an agent that
# it does not make, think of one that is there already. You are in a git repository with README.md and src/app.py.
# What is single-quoted is for the agent's shell (SC2016), what is sourced is made on the spot (SC1090), and done is a
# state here (SC1010).
# shellcheck disable=SC2016,SC1090,SC1010

############################################################
# FIRST STEPS
############################################################

# Before anything else: which mngr is this, and does it find what it needs? doctor names what is missing and what to do.
mngr --version
mngr doctor

# An agent is a program in a terminal of its own, with a work dir and a branch of its own, so that it cannot get in your
# way. Any program will do. In a terminal, create takes you to it: Ctrl-b d leaves, and it goes on without you.
mngr create hello -- sleep 1000

# Most agents are made to be left alone. --no-connect stays here, and list shows how they are.
mngr create build --no-connect -- sh -c 'python3 src/app.py; sleep 1000'
mngr list

# One word with blanks in it is a line for the shell, which is shorter to write than sh -c.
mngr create report --no-connect -- 'git log --oneline >report.txt; cat report.txt; sleep 1000'

# A program with a question waits in its terminal. Look at its screen, answer, and wait until it is done.
mngr create ask --no-connect -- 'printf "MIT or BSD? "; read it; git commit --allow-empty -qm "Choose $it"'
mngr capture ask
mngr message ask -m MIT
mngr wait ask

# Its work is on its branch, not in your files. Merge it when you like it, and then the agent can go.
mngr pull ask --merge
mngr destroy --force ask

# Too lazy for a name? One is made up, and printed. Give it a better one once you know what it is good for.
name=$(mngr create --no-connect -- sleep 1000)
mngr rename "$name" night-watch

# The rest of this tutorial makes agents and goes on with something else. From here on create stays where you are; with
# --connect it takes you along all the same, here into a shell, which is what a command without a program is.
mngr config set commands.create.connect false
mngr create hello -- sleep 1000
mngr create shell command --connect

# Somebody else's script may have made the agent already. --reuse takes the one that is there, and starts it if need be.
mngr create hello --reuse -- sleep 1000

# Every verb explains itself, in three ways; the first word of a family, such as snapshot, lists its members.
mngr help
mngr help create
mngr create --help
mngr help snapshot

# Stopping ends the program and keeps all else, starting brings it back. Connecting to a stopped agent starts it too.
mngr stop hello
mngr start hello

############################################################
# SEEING WHAT THEY DO
############################################################

# Who works, who wants me, who is done? ls is the same verb.
mngr list
mngr ls 'try-*'

# Has it done anything yet? --git counts the commits and changed files of each, --labels shows what you called them.
mngr list --git --labels

# Keep the list in a corner of the screen: it is drawn again whenever something happens, until Ctrl-C.
mngr list --watch

# Only those that interest you now: filters can be joined, and a list of states means any of them.
mngr list --state waiting,failed
mngr list --type command --host local --label batch=1
mngr list --all

# Look over an agent's shoulder without attaching. --full has what scrolled away too, --colours keeps it pretty.
mngr capture build
mngr capture build --full
mngr capture build --colours

# What do they all show at this moment? Several screens are read at once, and printed under their names.
mngr capture --all
mngr capture --state running --type command --host local
mngr capture --label batch=1 --json

# An agent may have further windows, for a server or a log beside the work. They are captured by their names.
mngr create web --window server='python3 -m http.server 0' --window log='tail -f README.md' -- sleep 1000
mngr capture web --window log

# When did that happen? Everything that became of an agent is on record.
mngr events build
mngr events --all --json

# What has happened, and then what happens while you look on, until Ctrl-C.
mngr events --label batch=1 --type command --host local --follow

# A stream of JSON lines is what a script of yours would read.
mngr events --state running,waiting --follow --jsonl

# The list says one word; explain says what that word rests on.
mngr explain build
mngr explain build --json

############################################################
# TALKING TO THEM
############################################################

# A message is typed into the agent's terminal and sent with Enter. Of a plain program nobody can say whether it has
# read it, so the answer is only: typed.
mngr message ask -m MIT

# A longer text comes better from a file, or from a pipe. msg is the same verb.
mngr message ask --file README.md
git log --oneline | mngr message ask
mngr msg ask -F - <README.md

# The same word to a whole group at once: by a glob, by a label, or to all.
mngr message 'try-*' -m 'go on'
mngr message --label batch=1 -m 'go on'
mngr message --all -m 'go on'

# Only to those that can listen: filters apply here as everywhere. The answer in JSON tells what became of each.
mngr message --state running --type command --host local -m 'go on' --json

# It is stopped, and you have something to say: bring it back for that.
mngr stop ask
mngr message ask --start -m MIT

# Sit down at its terminal yourself. Ctrl-b d leaves it running.
mngr connect ask

# Would you rather have another terminal program there? Your command runs in place of the attach, and knows the agent
# by its variables.
mngr connect ask --connect-command 'echo "$MNGR_AGENT_NAME works in $MNGR_WORK_DIR"'
mngr create job --connect --connect-command 'echo "$MNGR_AGENT_NAME is $MNGR_SESSION"' -- sleep 1000

# Run something beside the agent, in its work dir and with its environment. It does not notice, and need not run.
mngr exec build -- git status --short
mngr exec build -- 'ls | wc -l'

# A command that may hang gets a limit; its exit code is then 124, as with timeout.
mngr exec build --timeout 1s -- sleep 1000 || echo "exit code $?"

############################################################
# CODING AGENTS
############################################################

# Claude Code, unattended, with its first task: the message is sent as soon as it is ready for it.
mngr create fix claude -m 'The login fails on Safari: find out why'
mngr wait fix

# What follows -- goes to the program itself. Let it run its tools without asking, since it works in a worktree.
mngr create fix claude -m 'Add a test for the login' -- --dangerously-skip-permissions

# A real task is more than a line: write it into a file, or here.
mngr create fix claude --message-file - <<'EOF'
The login fails on Safari.
Find out why, mend it, and commit the change with a test.
EOF

# Codex and OpenCode are used in the same way; every verb below works for all three.
mngr create docs codex -m 'Bring README.md up to date'
mngr create tidy opencode -m 'Which functions of src/app.py are unused?'
mngr wait docs tidy

# Nobody is going to look at its terminal? Headless is cheaper, and messages work all the same.
mngr create ci claude --headless -m 'Review the last commit' -- --dangerously-skip-permissions
mngr wait ci
mngr message ci -m 'And now the one before'

# Is it still at work? Your message is queued, and taken up next; it arrives once, whatever the agent does meanwhile.
mngr message fix -m 'And add a test for it'
mngr message docs tidy -m 'Please be brief'

# Commands of the program are messages too. One that opens a dialog ends with exit code 7, and nobody but you answers.
mngr message fix -m /clear
mngr message fix -m /model || echo "exit code $?"

# What has been said? It is read from the program's own log, so the agent need not run.
mngr transcript fix
mngr transcript fix --tail 1
mngr transcript fix --head 3 --full

# Only you and the model, without what tools gave back; then all of it for a program, in one form for all agents.
mngr transcript fix --role user,assistant
mngr transcript fix --json
mngr transcript fix --jsonl
mngr transcript --schema

# Follow the conversation as it goes, until Ctrl-C.
mngr transcript fix --follow

# A second opinion from the same point: the clone takes the conversation over, and the uncommitted work with it.
mngr clone fix fix-b --no-connect
mngr message fix-b -m 'Try it without a new dependency'

# After stop and start, or a reboot, the conversation goes on where it was.
mngr stop fix
mngr start fix
mngr message fix -m 'Where were we?'

# On this machine an agent uses your login through a link. On another host it has none, unless you have it copied there.
mngr create fix@local claude --copy-credentials -m 'Hello'

# Tired of naming the type? With this setting create means claude. A plain program then has to be called a command.
mngr config set type claude
mngr create fix -m 'The login fails on Safari'
mngr create build command -- sleep 1000

############################################################
# MANY AT ONCE
############################################################

# Three attempts at the same thing, each on a branch of its own, made side by side. Labels keep the group together.
mngr create try --count 3 --label batch=1 --label task=speed -- 'read answer; echo "$answer" >answer.txt'
mngr list --label batch=1

# The same command in all of them, side by side; each line is prefixed with the agent's name.
mngr exec 'try-*' --timeout 5m -- git status --short
mngr exec --label batch=1 --state running -- git log --oneline -1
mngr exec --all --type command --host local --json -- pwd

# Ask all of them the same question, and go on when the first one has an answer.
mngr message 'try-*' -m 42
mngr wait 'try-*' --any --for done --timeout 1m

# Names go through pipes: - reads them from standard input, so verbs compose.
mngr list --names --label batch=1 | mngr exec - -- git rev-parse HEAD

# A batch of tasks is a loop over files. The agents work side by side; the loop only starts them.
mkdir -p tasks && echo 'Explain README.md' >tasks/readme.md && echo 'Explain src/app.py' >tasks/app.md
for task in tasks/*.md; do
  mngr create "$(basename "$task" .md)" claude --headless --message-file "$task" -l batch=tasks
done
mngr wait --label batch=tasks

############################################################
# GETTING THE WORK
############################################################

# Bring the branch of an agent here, then look at it as at any other branch.
mngr pull fix
git log --oneline -3 mngr/fix

# You trust it: merge at once into what you have checked out. A merge that conflicts is undone.
mngr pull fix --merge

# Collect everything that is ready, and only that.
mngr list --names --state done | mngr pull - --merge
mngr pull --state done --label batch=1 --type command --host local
mngr pull --all --json

# One file is enough, committed or not.
mngr exec fix -- 'mkdir -p build && echo ok >build/report.txt'
mngr pull fix:build/report.txt .

# Into another repository than the one that the agent came from, for example one that you publish from.
git clone -q . ../release
mngr pull fix --repo ../release

# Meanwhile you have committed yourself. Bring the agent up to date: its branch and work dir move forward to your HEAD.
git commit -q --allow-empty -m 'Meanwhile'
mngr push fix

# It has commits of its own? Then a push has to merge, there, and is undone if that conflicts.
git commit -q --allow-empty -m 'Meanwhile'
mngr push fix --rev main --merge

# A whole group, from a tag; or everybody.
git tag v1
mngr push --label batch=1 --state running --type command --host local --rev v1
mngr push --all --rev v1 --json

# A file that git does not know, such as a secret, goes to the agent directly; so do commits from another repository.
echo TOKEN=secret >.env
mngr push .env fix:.env
git clone -q . ../release && git -C ../release commit -q --allow-empty -m 'Publish'
mngr push fix --repo ../release

############################################################
# WORK DIRS AND BRANCHES
############################################################

# The default is a git worktree on a new branch mngr/NAME: cheap, and the branch is at once in your repository.
mngr create fix --mode worktree -- sleep 1000
git worktree list

# A clone is a repository of its own, for an agent that should not touch yours. Pull brings its commits.
mngr create fix --mode clone -- git commit --allow-empty -qm 'In my clone'
mngr wait fix --for done
mngr pull fix

# Sometimes the agent is to work right here, on your own files: no work dir and no branch are made.
mngr create docs --mode none -- sleep 1000

# Outside of git, a directory is copied.
mkdir -p ../notes && echo milk >../notes/list.txt
mngr create notes --from ../notes --mode copy -- 'cat list.txt; sleep 1000'

# Start from another commit than yours, and call the branch as your team does.
git tag v1 && git commit -q --allow-empty -m 'After the release'
mngr create hotfix --base v1 --branch hotfix/login -- sleep 1000
git log --oneline -1 hotfix/login

# A branch that exists already is gone on with, from where it is.
git branch wip
mngr create go-on --branch wip -- sleep 1000

# Uncommitted changes stay behind, with a warning, unless you want them carried.
echo '# half done' >>README.md
mngr create half --dirty -- sleep 1000
mngr exec half -- git status --short

# Ignored files do not come along either. Name those that the program cannot do without.
echo .env >.gitignore && echo TOKEN=secret >.env
mngr create job --copy .env -- sleep 1000
mngr exec job -- cat .env

# Let one agent go on from the work of another, uncommitted files included, with a program of its own.
mngr create review command --from fix -- 'git log --oneline; sleep 1000'

############################################################
# ENVIRONMENT AND SETUP
############################################################

# An agent gets little of your shell's environment. Say what it needs: outright, by file, or from here by name.
export REGION=eu
echo LEVEL=debug >agent.env
mngr create job -e STAGE=test --env-file agent.env --pass-env REGION -- sleep 1000
mngr exec job -- 'echo $STAGE $LEVEL $REGION'

# A new work dir has no dependencies installed. The setup runs in it first; if it fails, nothing is left behind.
mngr create job --setup 'python3 -m venv --without-pip .venv' -- sleep 1000
mngr create bad --setup 'exit 3' -- sleep 1000 || echo "exit code $?"

# What every agent of this repository needs belongs into the project's file, which you commit.
mngr config set --project setup 'echo ready >.ready'
mngr config set --project copy .env,.env.local
mngr config set --project pass_env REGION
cat .mngr.toml

# Inside an agent, mngr knows where it is: scripts can ask for the name and the directory.
mngr create job -- 'echo "I am $MNGR_AGENT_NAME in $MNGR_WORK_DIR"; sleep 1000'
mngr capture job

############################################################
# STOPPING, STARTING, CLONING
############################################################

# A stop ends the whole tree of processes, children that hide included. Give it time if it has to write something down.
mngr stop build --grace 30s
mngr list build

# Stop a group, or whatever is up, and tell a script what became of each.
mngr stop --label batch=1
mngr stop --state waiting,running --type command --host local
mngr stop --all --json

# After a reboot: bring back all that were stopped, or a part of them.
mngr start --state stopped
mngr start --label batch=1 --type command --host local
mngr start --all --json

# Fork an agent: same program, labels and environment, a branch of its own that starts where the other is. The other
# is not disturbed.
mngr clone build build-b --no-connect
mngr clone build --json

# Same place, another program: what follows -- replaces the arguments.
mngr clone build look --no-connect -- 'git status; sleep 1000'

# An agent has grown into something else: give it another name. The program notices nothing.
mngr rename build nightly

############################################################
# SNAPSHOTS
############################################################

# Keep the work as it is now, uncommitted and untracked files too, before something daring. Nothing is stopped.
mngr snapshot create fix before-refactoring
mngr snapshot list fix

# It went wrong: put the work back. What there is now is kept as a snapshot of its own first, so nothing is lost.
mngr snapshot create fix good
mngr exec fix -- rm README.md
mngr snapshot restore fix good
mngr exec fix -- ls

# Several ways on from one point: snapshots outlive their agent, and agents can start from them.
mngr snapshot create fix start
mngr create other --from fix/start -- sleep 1000

# With just one agent there is no need to name it, and a script gets its answers in JSON.
mngr snapshot create monday --json
mngr snapshot list --json
mngr snapshot restore monday --json

# Snapshots cost little, and stay until they are removed.
mngr snapshot create fix old
mngr snapshot destroy fix old

############################################################
# OTHER MACHINES
############################################################

# A machine that your ssh reaches is a place for agents like this one: NAME@MACHINE.ssh. Nothing else changes, and the
# work comes home as ever.
mngr create fix@box.ssh --no-connect -- 'git commit -q --allow-empty -m "Mended on $(hostname)"'
mngr wait fix --for done
mngr pull fix

# Before the first agent goes there: does it have tmux, git and room? What is missing can be installed.
mngr host check box.ssh
mngr host check box.ssh --install --json

# And the program of a coding agent? It is looked for, and installed only when you ask for it.
mngr host check box.ssh claude codex
mngr host check box.ssh claude --install

# A machine that your ssh does not know by name, and whose key it has never seen. From now on it is gpu.ssh.
mngr host add gpu.ssh --with target=ada@10.0.0.7 --with port=2222 --accept-new
mngr host list

# A container, made for this one agent, with what it may use. It stops and starts with the agent, and goes with it.
mngr create try@.podman --with image=localhost/tools --with memory=1g --no-connect -- sleep 1000
mngr stop try
mngr host list --json
mngr start try
mngr destroy --force try

# Several agents in one container: it needs a name. --keep-host leaves it as it is when the last of them stops or goes.
mngr create one@pod.podman --with image=localhost/tools --no-connect -- sleep 1000
mngr create two@pod.podman --no-connect -- sleep 1000
mngr stop one two --keep-host
mngr destroy --force one two --keep-host

# Many agents, each in a container of its own, or a few in each. One is prepared, with the commits and the setup; the
# others begin as its copies.
mngr create batch@.podman --count 3 --per-host 2 --setup 'command -v git' --with image=localhost/tools -- sleep 1000
mngr list 'batch-*'
mngr destroy --force 'batch-*'

# A container is yours to stop, start and remove, too. With it stop the agents that are on it.
mngr host stop pod.podman --json
mngr host start pod.podman --json
mngr host remove pod.podman --json

# Your home directory was lost, and the containers were not: look what mngr has made, and take it over, agents and all.
mngr host list --discover
mngr host add pod.podman --adopt --json

# A machine with agents is not forgotten by accident. --force destroys them first and parks their work; --purge does not.
mngr host remove box.ssh || echo "exit code $?"
mngr host remove box.ssh --force
mngr host remove pod.podman --purge

# A machine has burnt down. Nobody will ever answer there: forget it, and the agents that were on it.
mngr host remove box.ssh --forget --force

############################################################
# WAITING AND SCRIPTING
############################################################

# Wait for the end of a program, not only for a pause, and tell by the exit code how it went: 1 is for never.
mngr create tests -- python3 src/app.py
mngr wait tests --for done && echo "all is well"

# Never wait for ever in a script: after the limit wait ends with 4.
mngr wait build --for done --timeout 1s || echo "exit code $?"

# Wait for everybody, or for those of one kind; the JSON says in which state each has arrived.
mngr wait --all --for running,done --timeout 1m
mngr wait --label batch=1 --state running --type command --host local --for running --json

# The exit code of exec is that of the command, so that it stands where a test stands.
if mngr exec fix -- test -f README.md; then echo "it is still there"; fi

# For each failure there is a code of its own: 2 for wrong words, 3 for an agent that is not there.
mngr list --colour || echo "exit code $?"
mngr stop nobody || echo "exit code $?"

# Scripts read JSON: of the whole list, line by line, or of a create.
mngr list --json
mngr list --jsonl
mngr create job --json -- sleep 1000

# For a shell a template is often enough.
mngr list --format '{name}\t{state}\t{branch}'
mngr list --names --state running | xargs -r -n 1 echo next:

############################################################
# LABELS AND SELECTION
############################################################

# Labels are your own words for agents. Every verb over many agents can select by them.
mngr label fix owner=ann topic=login
mngr list --label owner=ann --labels

# Change one and remove another, for a whole group. K= selects whoever has the label, with any value.
mngr label 'try-*' batch=2 tmp-
mngr list --label batch=

# Sort the finished from the rest, and say so in JSON for the record.
mngr label --state done --type command --host local ready=yes
mngr label --label ready=yes --json seen=no
mngr label --all seen=yes

# A verb that changes something never takes "nothing said" for "all": say --all, or it asks which.
mngr stop || echo "exit code $?"
mngr stop --all

############################################################
# CONFIGURATION
############################################################

# What you say every time belongs into your configuration. Nothing has to be there; this is what is, and which file
# says so. --all shows every key that there is.
mngr config list
mngr config list --all
mngr config list --json

# A setting of your own, then the same one for a single call, by an option or by a variable.
mngr config set stop_grace 10
mngr config get stop_grace
mngr config get stop_grace -S stop_grace=1
MNGR_CONFIG_STOP_GRACE=2 mngr config get stop_grace --json

# The project's file is committed with the project and wins over yours. Edit either by hand, or take back what you said.
mngr config path
mngr config path --project
mngr config set --project stop_grace 30
mngr config unset --project stop_grace

# Every option of every verb can have another default. What is on the command line still wins.
mngr config set commands.list.git true
mngr config set commands.create.label owner=ann,batch=1
mngr create build -- sleep 1000
mngr list --labels
mngr config unset commands.create.label

# A set of options with a name is a template. What is on the command line wins over it.
mngr config set templates.watch.args '["tail", "-f", "README.md"]'
mngr config set templates.watch.type command
mngr create log --template watch
mngr create log-b -t watch --label batch=1

# A mistake in the configuration is found when it is made, with the nearest key for a hint.
mngr config set stop_graze 10 || echo "exit code $?"

############################################################
# YOUR OWN TYPES
############################################################

# A program that you start again and again with the same words becomes a type: here, whatever runs, runs gently.
mngr config set agent_types.gentle.parent command
mngr config set agent_types.gentle.args nice,-n,19
mngr create build gentle -- python3 -m compileall src
mngr list --type gentle

# A variant of Claude Code: another model, and a variable for all of its agents.
mngr config set agent_types.thrifty.parent claude
mngr config set agent_types.thrifty.model claude-haiku-4-5
mngr config set agent_types.thrifty.env.TEAM shop
mngr create fix thrifty -m 'The login fails on Safari'

# Types and templates may live in the project, so that the whole team has them.
cat >>.mngr.toml <<'EOF'
[agent_types.reviewer]
parent = "claude"
args = ["--append-system-prompt", "You review. You never change a file."]
[templates.review]
type = "reviewer"
message = "Review the last commit."
EOF
mngr create look --template review

############################################################
# COSTS
############################################################

# What has it cost so far? Everybody counts, agents that are destroyed too.
mngr usage

# By model, by day, by label: where does the money go?
mngr usage --since 24h --by model
mngr usage --by day
mngr usage --label batch=1 --by label:task

# Some agents only; and in JSON, with exact numbers.
mngr usage 'fix*' --type claude --host local --state waiting
mngr usage --json

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

############################################################
# CLEANING UP
############################################################

# Destroy asks first, and refuses to lose work: commits and files that nobody else has. --dry-run says what would be.
mngr destroy fix --dry-run
mngr destroy fix || echo "exit code $?"

# Not worth a look, you think. --force parks the work for two weeks all the same, and here it is again.
mngr rm -f fix
git for-each-ref refs/mngr/trash

# Away with the finished ones, or with a whole group.
mngr destroy --force --state done --type command --host local
mngr destroy --force --label batch=1

# Away with all that are left, and with their snapshots. This time nothing is parked: what nobody else has is lost.
mngr destroy --purge --all --json

# A machine that crashed, a create that was killed: gc clears away what belongs to no agent, and never unsaved work.
mngr gc --dry-run
mngr gc
mngr gc --json

############################################################
# WHEN SOMETHING IS WRONG
############################################################

# The first thing to do when something is strange. It changes nothing, and says what to do.
mngr doctor
mngr doctor --json

# An agent has failed: why, with which last words, and since when?
mngr create broken -- 'echo "no such table: users"; exit 1'
mngr wait broken --for failed
mngr explain broken
mngr capture broken --full
mngr events broken

# A coding agent waits, and it is not for you to guess for what: the reason is in the list, the question on its screen.
mngr list --state waiting
mngr capture --state waiting
mngr explain fix

# You have mended the cause: start it again, in the same place, with the same program.
mngr exec broken -- 'echo mended >state.txt'
mngr start broken

############################################################
# PLUGINS AND COMPLETION
############################################################

# Plugins add verbs, agent types and places. What is installed, and what is wrong with it?
mngr plugin list
mngr plugin list --json

# Complete verbs, options and the names of your agents with Tab, from now on in this shell.
source <(mngr completion bash)

# For good, in the shell that you use.
mkdir -p ~/.config/fish/completions
mngr completion fish >~/.config/fish/completions/mngr.fish
echo 'source <(mngr completion bash)' >>~/.bashrc
echo 'source <(mngr completion zsh)' >>~/.zshrc

# All of this is in man pages too, one for each verb, and from Python it is an import away.
mngr help help
python3 -c 'import mngr; print(mngr.__doc__)'

############################################################
# TRYING WITHOUT A MODEL
############################################################

# Real agent programs, without a network, a key or a bill: this server answers by a script. Ctrl-C ends it. It listens
# on a free port, unless you say which.
mngr dev model-server --port "${PORT:-0}"

# It is a program, so it can be an agent; where it listens, its screen tells. Claude Code takes it for its model, and
# does what the message says.
mngr create model command --mode none -- mngr dev model-server --log requests.jsonl
until url=$(mngr capture model | grep -o 'http://[0-9.:]*'); do sleep 0.1; done
export ANTHROPIC_BASE_URL=$url ANTHROPIC_API_KEY=dummy
mngr create fix claude -m 'SAY: hello'
mngr wait fix
mngr transcript fix --tail 1

# With rules of your own the answers are always the same, which is what a test of your own tools needs.
cat >rules.json <<'EOF'
[{"when": "fix the (\\w+)", "say": "The \\1 is fixed."}]
EOF
mngr dev model-server --script rules.json

############################################################
# TUTORIALS AND TESTS
############################################################

# This file is a list of blocks: paragraphs with a command in them, each with an id of its own.
mngr tutorial blocks tutorial.sh
mngr tutorial blocks tutorial.sh --jsonl
mngr tutorial blocks tutorial.sh --json

# Is every block proven by a test, and does every test cite a block that is still there? The tests are read, not run.
mngr tutorial check tutorial.sh tests
mngr tutorial check tutorial.sh tests --json

# See it together: the tutorial, the tests of each block, their transcripts and recordings, as one folder to open or to
# publish.
mngr e2e view
mngr e2e view .test_output/e2e --output ../proof --tutorial tutorial.sh --json

# While you work on tests, have the page served: it is up to date whenever one of them ends. Ctrl-C ends it. Without
# --port, any free one is taken.
mngr e2e view --serve --port "${PORT:-8398}" --open

# A block without a test is work for an agent. This is what it would be told, if you want to look first.
mngr tutorial sync tutorial.sh tests --print-prompt

# Or teach the agent that you talk to anyway: the same rules as a skill.
mngr tutorial sync --print-skill
mngr tutorial sync --install-skill .claude/skills

# Send agents, three at most for now, each in a work dir of its own. Nobody sits beside them, so they have to be allowed
# what they need; a type of your own saves saying so every time.
mngr config set agent_types.writer.parent claude
mngr config set agent_types.writer.args -- --dangerously-skip-permissions
mngr tutorial sync tutorial.sh tests --type writer --headless --max 3 --timeout 1h

# What comes back counts only when its tests pass, in the work dir of the agent, which needs what your own has.
mngr tutorial sync tutorial.sh tests --type writer --setup 'touch .deps' --test 'python3 -m pytest -q'

# One agent for a whole section, with your uncommitted tests, and do not wait for it: the same without --no-wait tells
# later how it went, and sends nobody twice.
mngr tutorial sync tutorial.sh tests --type writer --per section --dirty --no-wait --label run=nightly --json
mngr tutorial sync tutorial.sh tests --type writer --per section --dirty

# A comment without a command is a blank. An agent proposes what belongs there, and you decide. What you keep is run
# once, and you see what came of it.
mngr tutorial fill tutorial.sh --type writer

# Decide in your editor instead: the first call writes the file, the second carries it out. Nothing is run before that.
mngr tutorial fill tutorial.sh --type writer --review-file todo
"${EDITOR:-vi}" todo
mngr tutorial fill tutorial.sh --review-file todo

# Without any question, for the brave: proposals are run as you, unread, and the first that succeeds is kept. The manual
# that the agent goes by is in man/, unless you say otherwise.
mngr tutorial fill tutorial.sh --type writer --yes --man docs/man --setup 'touch .deps' --timeout 10m --json

# These agents need what your other agents need, so both verbs have more of the options of create.
export REGION=eu
echo .env >.gitignore && echo TOKEN=secret >.env && echo LEVEL=debug >agent.env
mngr tutorial sync tutorial.sh tests --type writer --copy .env -e CI=1 --env-file agent.env --pass-env REGION
mngr tutorial fill tutorial.sh --type writer -y --copy .env -e CI=1 --env-file agent.env --pass-env REGION

# Which parts of an interface confuse agents most? Wrong options, repeated questions for help and rejected proposals are
# counted, of mngr or of the program that you write, with examples.
mngr tutorial confusing
mngr tutorial confusing --program git --since 7d --json

# What did these make of it? Filters choose whose conversations are read.
mngr tutorial confusing 'fix*' --type claude --host local --state waiting --label batch=1

############################################################
# THE SWARM
############################################################

# One agent for each test: it runs the test, mends what is broken, makes it prove just what it promises, and hands in a
# result, which is checked. These play a script, and need no model; with claude the lines below stay the same.
cat >agent.sh <<'EOF'
say 'I run my test as it stands.'
run python3 -m pytest -q tests && before pass && after pass
finish 'It proves what it promises.'
EOF
mngr config set agent_types.tester.parent replay
mngr config set agent_types.tester.args "$PWD/agent.sh"
mngr swarm run tests --type tester

# What would it take, and what would leave this machine? Nothing is launched. What comes after -- is for pytest.
mngr swarm estimate tests --type tester
mngr swarm estimate tests/test_app.py --type tester --at local --json -- -k one_line
mngr swarm estimate --type tester --jsonl

# Agents cost money, so set limits. What one will probably use is put aside before it starts. When too little is left,
# no more are started, and those at work have a while to finish.
mngr swarm estimate tests --type tester \
  --max-agents 20 --per-host 4 --budget 20usd --max-tokens 5m --timeout 30m --wind-down 2m
mngr swarm run tests/test_app.py::test_it_greets --type tester --name nightly --at local --json \
  --max-agents 2 --per-host 4 --budget 20usd --max-tokens 5m --timeout 30m --wind-down 2m

# What stands still is nudged, then ended. What the machine broke is tried again, and put off while the machine is busy.
# What ends badly again and again is a pattern: you are told. Agents that are kept can be asked afterwards.
mngr swarm estimate tests --type tester --stuck-after 5m --retries 1 --min-memory 20 --max-load 2 \
  --alert-after 5 --alert-command 'echo "$MNGR_ALERT" >>alerts' --keep failed
mngr swarm run tests --type tester --jsonl --stuck-after 5m --retries 1 --min-memory 1 --max-load 90 \
  --alert-after 2 --alert-command 'echo "$MNGR_ALERT" >>alerts' --keep all -- -k one_line

# Agents, and the checks of their work, need what you need to run the tests.
export REGION=eu
echo TOKEN=secret >.env && echo LEVEL=debug >agent.env
mngr swarm estimate tests --type tester --base main --headless --setup 'touch .deps' --copy .env -e CI=1 \
  --env-file agent.env --pass-env REGION --pytest 'python3 -B -m pytest' --test-timeout 60s --tutorial tutorial.sh
mngr swarm run tests/test_app.py::test_it_greets --type tester --base main --headless --setup 'touch .deps' \
  --copy .env -e CI=1 --env-file agent.env --pass-env REGION \
  --pytest 'python3 -B -m pytest' --test-timeout 60s --tutorial tutorial.sh

# Nobody sits beside them to say yes. They may edit files, use git and run the tests, and what you allow; or everything,
# where that can do no harm. Runs that share a rate limit name the same account.
mngr swarm estimate tests --type tester --permissions allowlist --allow make --allow 'npm test'
mngr swarm estimate tests --type tester --permissions bypass || echo "exit code $?"
mngr swarm estimate tests --type replay --agent-arg "$PWD/agent.sh" --permissions bypass --bypass-here --account team
mngr swarm run tests/test_app.py::test_it_greets --type replay --agent-arg "$PWD/agent.sh" --account team \
  --permissions bypass --bypass-here --allow make

# Skip what cannot have changed: a test counts as the same with the same text, fixtures, tutorial block, program, lock
# file, prompt and model. Some of the skipped are run all the same, to see whether skipping is right.
mngr swarm estimate tests --type tester --changed-since last
mngr swarm estimate tests --type tester --changed-since HEAD --program src --audit 50%
mngr swarm run tests --type tester --changed-since HEAD --program src --audit 0%

# How is it going? On a terminal a live picture, elsewhere a line for each test.
mngr swarm list
mngr swarm status
mngr swarm status r1 --once
mngr swarm status r1 --watch

# What became of them, and of one of them: what it claims, what the check found, and its last screen.
mngr swarm show r1
mngr swarm show r1 test_it_greets
git branch --list 'mngr/r1-*'

# All of it for scripts.
mngr swarm list --json
mngr swarm list --jsonl
mngr swarm status r1 --json
mngr swarm status r1 --jsonl
mngr swarm show r1 --json
mngr swarm show r1 test_it_greets --jsonl

# It goes well: more of them at once, and more money, while it is going on. The log keeps who wanted it.
mngr swarm set r1 max-agents=30 budget=50usd
mngr swarm set r1 timeout=2h --json
mngr swarm set r1 keep=all --jsonl

# Ctrl-C leaves the agents at work, and after a crash or a reboot nothing is lost either. Go on, from another shell too.
mngr swarm resume
mngr swarm resume r1 --json
mngr swarm resume r1 --jsonl

# Enough: no more are started, those at work are ended, and what they have made is brought home.
mngr swarm cancel r1
mngr swarm cancel r2 --json
mngr swarm cancel r3 --jsonl

############################################################
# INTEGRATING
############################################################

# Many branches, one review. Look first: which commits would come of them, in which order and why, and what conflicts?
mngr integrate 'work/*' --into review --dry-run
mngr integrate work/port work/at-once --base main --into review --dry-run --json

# Make it: tests and documents as one commit, then each fix as a commit of its own, and all of it tested in clean
# checkouts. Your files stay as they are. 6 is for something that was left out: it says what, why, and how to go on.
mngr integrate 'work/*' --into review || echo "exit code $?"
git log --oneline main..review

# Paths decide what is a fix. Say which are which, if it is not plain. A message can say how severe the matter is.
mngr config set --project integrate.docs 'guide/,*.md'
git switch -qc work/safe && echo 'SAFE = True' >src/safe.py && git add src
git commit -qm 'Be safe' -m 'Importance: critical' && git switch -q main
mngr integrate 'work/*' --into review --dry-run

# Tests need what they need. A project without pytest has a command that says whether all is well; and for a first look
# no test is needed at all. What was run once is not run again, unless something beyond the repository was mended.
echo TOKEN=secret >.env
mngr integrate work/port work/at-once --into review --setup 'touch .deps' --copy .env \
  --pytest 'python3 -B -m pytest' --test-timeout 60s -- -k greets
mngr integrate work/port work/at-once --into checked --check 'python3 src/app.py' --workers 1
mngr integrate work/port work/at-once --into checked --check 'python3 src/app.py' --reintegrate --forget
mngr integrate work/port work/at-once --into quick --no-verify

# Another order, or one fix less? Edit the rank file and make the branch anew, with the branches that came since.
mngr integrate work/port work/at-once --into review --no-verify
"${EDITOR:-vi}" "${MNGR_HOME:-$HOME/.mngr}"/integrations/review-*/rank
mngr integrate work/port work/at-once work/guide --into review --no-verify --reintegrate

# Or say so right here. Names are those of --dry-run, and stay the same as long as the change does.
echo 'pick 03ba3df080f1' >order
mngr integrate work/port work/at-once --into review --no-verify --rank-file order
mngr integrate work/port work/at-once --into review --no-verify --reintegrate --drop ef21626ac053

# What conflicts waits in a work dir that holds just that. Solve it as you would anywhere, commit, and go on.
mngr integrate 'work/*' --into review --no-verify || echo "exit code $?"
(cd "${MNGR_HOME:-$HOME/.mngr}"/integrations/review-*/conflicts/*/ &&
  "${EDITOR:-vi}" src/app.py && git commit -qam 'Both')
mngr integrate 'work/*' --into review --no-verify --resume

# Let an agent do that. It is told what both sides want, and what it commits is checked. Here it plays a script, and
# needs no model; with --type claude it would be a real one.
cat >solve.sh <<'EOF'
say 'Loudly, and at once.'
write src/app.py <<END
print("HELLO", flush=True)
END
run git commit -qam 'Loudly, and at once'
result <<END
{"resolved": true, "why": "both are wanted"}
END
EOF
mngr integrate 'work/*' --into review --no-verify --type replay --agent-arg "$PWD/solve.sh" -e CI=1
mngr integrate 'work/*' --into without --no-verify --no-agent || echo "exit code $?"

# An agent can also judge the order. It has to say why.
cat >order.sh <<'EOF'
say 'What is said at once prevents more harm.'
result <<END
{"order": ["03ba3df080f1", "ef21626ac053"], "why": {"03ba3df080f1": "users see nothing without it"}}
END
EOF
mngr integrate work/port work/at-once --into review --no-verify --rank-agent --type replay --agent-arg "$PWD/order.sh"

# You have looked at it: push it, or open the pull request that is written already. Only this step has your token.
mngr integrate work/port work/at-once --into review --no-verify --push --remote fork
mngr integrate work/port work/at-once --into review --no-verify --reintegrate --pr

# A run of the swarm is integrated at its end, in mngr/RUN-integrated. Or later, when you have looked at the branches:
# the latest run, or this one.
mngr swarm run tests --type tester --no-integrate
mngr swarm integrate --dry-run
mngr swarm integrate r1

# Everything else is as above. What the run knows (setup, pytest, the type of agent) need not be said again, but can be.
echo TOKEN=secret >.env
mngr swarm integrate r1 --into checked --check 'python3 src/app.py' --workers 1
mngr swarm integrate r1 --into checked --check 'python3 src/app.py' --reintegrate --forget
mngr swarm integrate r1 --into tested --setup 'touch .deps' --copy .env \
  --pytest 'python3 -B -m pytest' --test-timeout 60s -- -k greets
mngr swarm integrate r1 --no-verify --no-agent --json
mngr swarm integrate r1 --no-verify --resume

# Several runs of one repository are one branch.
mngr swarm integrate r1 r2 --into all --no-verify --type replay --agent-arg "$PWD/solve.sh" -e CI=1

# The order is yours, or an agent's, here too.
echo 'pick 03ba3df080f1' >order
mngr swarm integrate r1 --into mine --no-verify --rank-file order --drop ef21626ac053
mngr swarm integrate r1 --into its --no-verify --rank-agent --type replay --agent-arg "$PWD/order.sh"

# And what was looked at is published.
mngr swarm integrate r1 --no-verify --push --remote fork
mngr swarm integrate r1 --no-verify --reintegrate --pr
