"""What mngr itself has, as a plugin like any other: the hooks of hookspecs.py as plain functions.

The names here are looked up before any plugin is searched for, so the verbs of mngr cost no scan and no cache, and
nobody else can take their names."""

from __future__ import annotations


def mngr_commands() -> dict[str, str]:
    return {
        "create": "mngr.cli.create:create",
        "list": "mngr.cli.list:list_",
        "ls": "mngr.cli.list:list_",
        "connect": "mngr.cli.connect:connect",
        "message": "mngr.cli.message:message",
        "msg": "mngr.cli.message:message",
        "exec": "mngr.cli.exec:exec_",
        "stop": "mngr.cli.stop:stop",
        "start": "mngr.cli.start:start",
        "destroy": "mngr.cli.destroy:destroy",
        "rm": "mngr.cli.destroy:destroy",
        "rename": "mngr.cli.rename:rename",
        "clone": "mngr.cli.clone:clone",
        "snapshot create": "mngr.cli.snapshot:create",
        "snapshot list": "mngr.cli.snapshot:list_",
        "snapshot restore": "mngr.cli.snapshot:restore",
        "snapshot destroy": "mngr.cli.snapshot:destroy",
        "pull": "mngr.cli.pull:pull",
        "push": "mngr.cli.push:push",
        "integrate": "mngr.cli.integrate:integrate",
        "wait": "mngr.cli.wait:wait",
        "capture": "mngr.cli.capture:capture",
        "transcript": "mngr.cli.transcript:transcript",
        "events": "mngr.cli.events:events",
        "usage": "mngr.cli.usage:usage",
        "label": "mngr.cli.label:label",
        "explain": "mngr.cli.explain:explain",
        "host add": "mngr.cli.host:add",
        "host list": "mngr.cli.host:list_",
        "host check": "mngr.cli.host:check",
        "host remove": "mngr.cli.host:remove",
        "host stop": "mngr.cli.host:stop",
        "host start": "mngr.cli.host:start",
        "gc": "mngr.cli.gc:gc",
        "config get": "mngr.cli.config:get",
        "config set": "mngr.cli.config:set_",
        "config unset": "mngr.cli.config:unset",
        "config list": "mngr.cli.config:list_",
        "config path": "mngr.cli.config:path",
        "plugin list": "mngr.cli.plugin:list_",
        "dev model-server": "mngr.cli.dev:model_server",
        "e2e view": "mngr.cli.e2e:view",
        "tutorial blocks": "mngr.cli.tutorial:blocks",
        "tutorial check": "mngr.cli.tutorial:check",
        "tutorial sync": "mngr.cli.tutorial_sync:sync",
        "tutorial fill": "mngr.cli.tutorial_fill:fill",
        "tutorial confusing": "mngr.cli.tutorial_confusing:confusing",
        "doctor": "mngr.cli.doctor:doctor",
        "completion": "mngr.cli.completion:completion",
        "complete": "mngr.cli.complete:complete",
        "help": "mngr.cli.help:help_",
    }


def mngr_agent_types() -> dict[str, str]:
    return {
        "command": "mngr.agents.command:COMMAND_TYPE",
        "claude": "mngr.agents.claude:CLAUDE",
        "codex": "mngr.agents.codex:CODEX",
        "opencode": "mngr.agents.opencode:OPENCODE",
        "replay": "mngr.agents.replay:REPLAY",
    }


def mngr_providers() -> dict[str, str]:
    return {
        "local": "mngr.hosts.local:LocalProvider",
        "ssh": "mngr.hosts.ssh:SshProvider",
        "docker": "mngr.hosts.containers:Docker",
        "podman": "mngr.hosts.containers:Podman",
        "modal": "mngr.hosts.modal:ModalProvider",
    }
