"""The figures as a table for people, a line each as soon as it is known, and as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess

from figure import COUNT, SECONDS, Figure

_LINE = "{:<42} {:>10} {:>10} {:>7}  {}"


def print_head() -> None:
    print(_LINE.format("FIGURE", "MNGR", "FLOOR", "RATIO", "TARGET"), flush=True)


def print_figure(figure: Figure) -> None:
    ratio = f"{figure.ratio:.2f}x" if figure.ratio is not None else "-"
    target = ""
    verdict = {True: "  met", False: "  NOT met", None: ""}[figure.met]
    if figure.target is not None:
        target = f"<= {figure.target:g}x{verdict}"
    elif figure.over is not None:
        target = f"<= +{_amount(figure.over, figure.unit)}{verdict}"
    elif figure.most is not None:
        target = f"<= {_amount(figure.most, figure.unit)}{verdict}"
    row = (figure.name, _amount(figure.value, figure.unit), _amount(figure.floor, figure.unit), ratio, target)
    print(_LINE.format(*row).rstrip(), flush=True)


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == SECONDS:
        return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"
    return f"{value:g}" if unit == COUNT else f"{value:.0f} {unit}"


def write_json(path: str, figures: list[Figure]) -> None:
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "tmux": _first_line("tmux", "-V"),
        "git": _first_line("git", "--version"),
    }
    rows = [
        {
            "name": figure.name,
            "unit": figure.unit or "count",
            "mngr": figure.value,
            "floor": figure.floor,
            "ratio": figure.ratio,
            "target": figure.target,
            "over": figure.over,
            "most": figure.most,
            "met": figure.met,
            "samples": {"mngr": figure.ours, "floor": figure.floors},
        }
        for figure in figures
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"machine": machine, "figures": rows}, file, indent=2)
        file.write("\n")


def _first_line(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True).stdout.strip()
