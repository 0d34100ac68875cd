"""The swarm: many agents, one task each. A plugin of mngr's own that is found and used like a stranger's."""

from __future__ import annotations


def mngr_commands() -> dict[str, str]:
    return {
        "swarm run": "mngr.cli.swarm_run:run",
        "swarm estimate": "mngr.cli.swarm_run:estimate",
        "swarm status": "mngr.cli.swarm_status:status",
        "swarm list": "mngr.cli.swarm_status:list_",
        "swarm show": "mngr.cli.swarm_show:show",
        "swarm resume": "mngr.cli.swarm_run:resume",
        "swarm set": "mngr.cli.swarm_set:set_",
        "swarm cancel": "mngr.cli.swarm_set:cancel",
    }
