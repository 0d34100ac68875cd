"""Who has which name: `names/<name>` on the user's machine, one symbolic link per agent whose target is
`host/id/type`, or `host/id/type/program` for a variant. A link is made atomically with its content and only if the name
is free, so two creates of one name have one winner, there is no half-written entry, and a verb that is given names asks
nobody else where they are."""

from __future__ import annotations

import os
import time

from mngr.address import is_name, nearest
from mngr.errors import MngrError, NoSuchAgent
from mngr.model import Ref

_TIME_TO_APPEAR = 60.0  # seconds after which a name without an agent is a leftover of an interrupted create


class NameTaken(MngrError):
    def __init__(self, holder: Ref) -> None:
        super().__init__(
            f"there is already an agent called {holder.name}",
            f"choose another name, or --reuse, or mngr destroy {holder.name}",
        )
        self.holder = holder


class Names:
    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, "names")

    def all(self) -> list[Ref]:
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        return [ref for name in names if (ref := self.find(name))]

    def find(self, name: str) -> Ref | None:
        if not is_name(name):
            return None
        try:
            host, id, type, *program = os.readlink(f"{self.path}/{name}").split("/")
        except (OSError, ValueError):
            return None
        if not is_name(id) or len(program) > 1:  # the id goes into scripts as it is
            return None
        return Ref(id=id, name=name, type=type, host=host, program="".join(program))

    def get(self, name: str) -> Ref:
        """The agent of that name, or NoSuchAgent with the nearest one."""
        ref = self.find(name)
        if ref is None:
            close = nearest(name, [other.name for other in self.all()])
            raise NoSuchAgent(f"no agent called {name}", f"did you mean {close}?" if close else "see mngr list")
        return ref

    def by_id(self, id: str) -> Ref | None:
        return next((ref for ref in self.all() if ref.id == id), None)

    def reserve(self, ref: Ref) -> None:
        """Raises NameTaken."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        try:
            target = f"{ref.host}/{ref.id}/{ref.type}" + (f"/{ref.program}" if ref.program else "")
            os.symlink(target, os.path.join(self.path, ref.name))
        except FileExistsError:
            raise NameTaken(self.find(ref.name) or ref) from None

    def release(self, ref: Ref) -> None:
        """Frees the name if it is still this agent's."""
        import fcntl  # only here: one releaser at a time, so that nobody removes what another has just reserved

        try:
            with open(os.path.join(self.path, ".lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                held = self.find(ref.name)
                if held is not None and held.id == ref.id:
                    os.unlink(os.path.join(self.path, ref.name))
                    self._forget_agreement(ref.id)
        except FileNotFoundError:
            pass

    def _forget_agreement(self, id: str) -> None:
        """What was agreed with an agent elsewhere (fleet/agreed.py) goes with its last name: while it is renamed, it
        has two."""
        path = os.path.join(os.path.dirname(self.path), "agreed", id)
        if os.path.exists(path) and self.by_id(id) is None:
            os.unlink(path)

    def doubt(self, ref: Ref) -> None:
        """Whoever reserved it does not go on to make its agent: if there is none, the name is a leftover already."""
        try:
            os.utime(os.path.join(self.path, ref.name), (0, 0), follow_symlinks=False)
        except (OSError, NotImplementedError):
            pass

    def renew(self, ref: Ref) -> None:
        """Its agent is still being made, if the name is still this agent's."""
        held = self.find(ref.name)
        if held is None or held.id != ref.id:
            return
        try:
            os.utime(os.path.join(self.path, ref.name), follow_symlinks=False)
        except (OSError, NotImplementedError):
            pass

    def is_leftover(self, ref: Ref) -> bool:
        """For a name whose agent does not exist: has whoever reserved it had time to make it?"""
        try:
            return time.time() - os.lstat(os.path.join(self.path, ref.name)).st_mtime > _TIME_TO_APPEAR
        except FileNotFoundError:
            return False
