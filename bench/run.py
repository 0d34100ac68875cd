"""`make bench`: what the verbs cost, each beside its floor, measured in the same run. Timing never fails it: the exit
code is 0 unless a command fails. The figures are in the files beside; figure.py says how they are taken."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from agents import agents
from creates import creates
from e2e import e2e
from figure import FULL, QUICK, Figure
from group import group
from hosts import hosts
from idle import idle
from integrate import integrate
from logs import logs
from one import list_agents, start_up, verbs
from spawned import spawned
from swarm import swarm
from table import print_figure, print_head, write_json
from world import MNGR, CommandFailed

SECTIONS = {
    "start-up": start_up,
    "list": list_agents,
    "create": creates,
    "one": verbs,
    "group": group,
    "processes": spawned,
    "memory": idle,
    "agents": agents,
    "logs": logs,
    "e2e": e2e,
    "swarm": swarm,
    "integrate": integrate,
    "hosts": hosts,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Measure mngr against its floor.")
    parser.add_argument("section", nargs="*", help=f"only these: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="small numbers, in half a minute")
    parser.add_argument("--json", metavar="FILE", help="write the figures and all samples there too")
    args = parser.parse_args()
    for name in args.section:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}")
    if not os.access(MNGR, os.X_OK):
        parser.error(f"there is no mngr beside {sys.executable}: run this by make bench")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, with everything cleared away
    return _measure(args.section or list(SECTIONS), args.quick, args.json)


def _measure(sections: list[str], quick: bool, json_file: str | None) -> int:
    figures: list[Figure] = []
    print_head()
    try:
        for name in sections:
            for figure in SECTIONS[name](QUICK if quick else FULL):
                figures.append(figure)
                print_figure(figure)
    except CommandFailed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if json_file:
            write_json(json_file, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
