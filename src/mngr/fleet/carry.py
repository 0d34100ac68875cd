"""What a new agent starts from, brought to the host where it is to work: commits into the one store that all its clones
there borrow from, so that the first agent uploads and the next ones send what is new; ignored files and plain
directories as an archive."""

from __future__ import annotations

import os

from mngr import hosts, process
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.fleet.fleet import LOCAL
from mngr.fleet.host_lock import Lock
from mngr.fleet.origin import store_path
from mngr.hosts import git
from mngr.model import CLONE, COPY, new_id
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.origin import Origin
    from mngr.hosts import Host

LARGE = 16 << 20  # bytes of objects that are sent so that a cut does not cost all of them
_LACKING = """
make_store "$store" && : >"$store/mngr-used" || exit 1 # gc leaves alone what was used today
[ -n "$(git -C "$store" for-each-ref --count=1)" ] || echo empty
for commit in $commits; do
  git -C "$store" show-ref -q --verify "refs/mngr/base/$commit" || echo "$commit"
done
"""


class Load(Record):
    """What create.sh is told of it."""

    src: str  # repository, directory or archive, on the host
    here: str = ""  # where the files that `copy` names are
    directory: str = ""  # with all of it that is to be taken away afterwards; "" when it was there already
    who: str = ""  # makes commits
    mail: str = ""
    url: str = ""  # of the original


def carry(
    fleet: Fleet, host: Host, origin: Origin, mode: str, copy: Sequence[str], tell: Callable[[str], None]
) -> Load:
    """`copy`: patterns of ignored files, below the source."""
    there = origin.files or origin.repo or origin.source
    if host.name == origin.host:
        return Load(src=there, here=origin.top or "")
    directory = f"{host.home}/carry/{new_id()}"
    if origin.talk:
        tell(f"what was said to {origin.parent.name if origin.parent else 'it'} stays on {origin.host}")
    if mode == COPY:
        _send(fleet, host, directory, _local(origin, origin.files or origin.source), ["."], tell)
        return Load(src=f"{directory}/files", here=f"{directory}/files", directory=directory)
    if mode != CLONE:
        return Load(src=there, here=origin.top or "")
    store = store_path(host, origin.source)
    _give_commits(fleet, host, origin, store, tell)
    top = origin.top or origin.source
    load = Load(src=store, directory=directory)
    if origin.host == LOCAL:
        if origin.tree is None and (changes := git.run(top, "status", "--porcelain").out.splitlines()):
            tell(changes_stay(len(changes), origin.source))
        said = _settings(top)
        load = load.replace(
            who=said.get("user.name", ""), mail=said.get("user.email", ""), url=said.get("remote.origin.url", "")
        )
        if found := _matching(top, copy):
            _send(fleet, host, directory, top, found, tell)
            load = load.replace(here=f"{directory}/files")
    return load


def _local(origin: Origin, path: str) -> str:
    if origin.host != LOCAL:
        raise MngrError(f"{path} is on {origin.host}", "mngr pull it first, and create the agent from that")
    return path


def _give_commits(fleet: Fleet, host: Host, origin: Origin, store: str, tell: Callable[[str], None]) -> None:
    lacking, is_empty = _lacking(host, origin, store)
    if not lacking:
        return
    waited = []

    def wait() -> None:
        waited.append(True)
        tell(f"another create is sending {origin.source} to {host.name}: waiting for it")

    with _only_one(fleet, host, store, wait):
        if waited or is_empty:  # somebody may have sent all of it since
            lacking, is_empty = _lacking(host, origin, store)
        if not lacking:
            return
        repo = origin.repo or origin.source
        if origin.host != LOCAL:
            repo = _by_way_of_here(fleet, host, origin, lacking, wait)
        if is_empty and _size(repo) > LARGE:
            _send_pack(fleet, host, repo, store, lacking, tell)
        else:
            _push(host, repo, store, lacking)


def _lacking(host: Host, origin: Origin, store: str) -> tuple[list[str], bool]:
    """Which commits are not there, and whether nothing is."""
    commits = [commit for commit in (origin.base, origin.tree) if commit]
    words = f"store={quote(store)} commits={quote(' '.join(commits))}"
    script = f"{hosts.read_script(__file__, 'tree.sh')}\n{words}\n{_LACKING}"
    told = hosts.check(host, script, deadline=60).split()
    return [commit for commit in told if commit != "empty"], "empty" in told


def _push(host: Host, repo: str, store: str, commits: Sequence[str]) -> None:
    """A link that breaks in the middle costs another try."""
    for last in (False, False, True):
        try:
            git.give(host, repo, store, commits)
        except HostUnreachable:
            if last:
                raise
            hosts.check(host, ":", deadline=30)  # raises when it is gone for good
        else:
            return


def _send_pack(
    fleet: Fleet, host: Host, repo: str, store: str, commits: Sequence[str], tell: Callable[[str], None]
) -> None:
    """All of a large repository, once per host. The pack is kept here until it has arrived: what is made anew may
    differ, and then what came before a cut would be in vain."""
    from mngr.hosts.transfer import upload

    repository = os.path.basename(store).removesuffix(".git")
    name = f"{repository}-{commits[0][:12]}-{len(commits)}-{host.name}.pack"  # for this host alone: it goes afterwards
    pack = os.path.join(fleet.home, "carry", name)
    if not os.path.exists(pack):
        os.makedirs(os.path.dirname(pack), mode=0o700, exist_ok=True)
        fresh = f"{pack}.{os.getpid()}"
        tell(f"packing {repo}")
        words = f"git -C {quote(repo)} pack-objects -q --revs --stdout >{quote(fresh)}"
        done = process.run(["/bin/sh", "-c", words], input="".join(f"{c}\n" for c in commits).encode(), deadline=3600)
        if done.code:
            os.unlink(fresh)
            raise git.failure(fleet.host(LOCAL), f"git could not pack {repo}", done)
        os.replace(fresh, pack)
    there = f"{host.home}/carry/{name}"
    upload(host, pack, there, tell)
    lines = [f"git -C {quote(store)} index-pack --stdin <{quote(there)} >/dev/null || exit 1"]
    lines += [f"git -C {quote(store)} update-ref refs/mngr/base/{commit} {commit} || exit 1" for commit in commits]
    try:
        hosts.check(host, "\n".join([*lines, f"rm -f {quote(there)}"]), deadline=3600)
    except MngrError as error:
        if not isinstance(error, (HostUnreachable, TimedOut)):
            os.unlink(pack)  # whatever is wrong with it, the next create makes another
        raise
    os.unlink(pack)


def _size(repo: str) -> int:
    """About how many bytes its objects have."""
    found = git.run(repo, "count-objects", "-v").out.splitlines()
    return sum(int(line.split()[1]) << 10 for line in found if line.startswith(("size:", "size-pack:")))


def _only_one(fleet: Fleet, host: Host, store: str, wait: Callable[[], None]) -> Lock:
    """Of those that would write the same into a store."""
    return Lock(fleet, f"{host.name}.{os.path.basename(store)}", busy=wait)


def _by_way_of_here(fleet: Fleet, host: Host, origin: Origin, commits: list[str], wait: Callable[[], None]) -> str:
    """From one host to another: two hosts know nothing of each other."""
    here, there = fleet.host(LOCAL), fleet.host(origin.host)
    store = store_path(here, origin.source)
    hosts.check(here, f"{hosts.read_script(__file__, 'tree.sh')}\nmake_store {quote(store)}", deadline=60)
    refs = [f"{commit}:refs/mngr/base/{commit}" for commit in commits]
    url = git.fetch_url(there, origin.repo or origin.source)
    words = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--", url, *refs]
    if host.name == LOCAL:
        done = git.run(store, *words, deadline=3600)  # it is the store of which we are the only one already
    else:
        with _only_one(fleet, here, store, wait):  # several hosts may need the same: it comes once
            done = git.run(store, *words, deadline=3600)
    if done.code:
        raise git.failure(there, f"git could not fetch from {origin.host}", done)
    return store


def changes_stay(count: int, source: str) -> str:
    what = "1 uncommitted change stays" if count == 1 else f"{count} uncommitted changes stay"
    return f"{what} behind in {source} (--dirty carries them along)"


def _settings(repo: str) -> dict[str, str]:
    """Whose commits they are, and where the original is."""
    told = git.run(repo, "config", "-z", "--get-regexp", r"^(user\.(name|email)|remote\.origin\.url)$").out
    found = (entry.partition("\n") for entry in told.split("\0") if entry)  # of several the last one counts
    return {key: value for key, _, value in found}


def _matching(top: str, patterns: Sequence[str]) -> list[str]:
    from glob import glob

    return sorted({path for pattern in patterns for path in glob(pattern, root_dir=top)})


def _send(
    fleet: Fleet, host: Host, directory: str, top: str, names: Sequence[str], tell: Callable[[str], None]
) -> None:
    """These files of a directory here, as `files` in that one there."""
    into = f"{quote(directory)}/files"
    take = f"umask 077; mkdir -p {into} && tar -xf - -C {into}"
    if _bytes_below(top, names) <= LARGE:
        child = host.start(take, [], stdin=process.PIPE, stdout=process.NULL, stderr=process.PIPE)
        assert child.stdin is not None
        assert child.stderr is not None
        try:
            _pack(os.fdopen(child.stdin, "wb", 1 << 18), top, names)
        except BrokenPipeError:
            pass  # its message says why
        with os.fdopen(child.stderr, "rb") as stream:
            said = stream.read().decode("utf-8", "replace").strip().splitlines()
        if child.wait():
            raise MngrError(f"{host.name} did not take {top}: {said[-1] if said else 'tar failed'}")
        return
    from mngr.hosts.transfer import upload

    archive = os.path.join(fleet.home, "carry", f"{os.path.basename(directory)}.tar")
    os.makedirs(os.path.dirname(archive), mode=0o700, exist_ok=True)
    try:
        tell(f"packing {top}")
        _pack(open(archive, "wb", 1 << 18), top, names)  # noqa: SIM115 - closed there
        upload(host, archive, f"{directory}.tar", tell)
        lines = f"{{ {take}; }} <{quote(directory)}.tar && rm -f {quote(directory)}.tar"
        hosts.check(host, lines, deadline=3600)
    finally:
        if os.path.exists(archive):
            os.unlink(archive)


def _pack(stream: IO[bytes], top: str, names: Sequence[str]) -> None:
    import tarfile  # 10 ms

    try:
        with stream, tarfile.open(fileobj=stream, mode="w|") as archive:
            for name in names:
                archive.add(os.path.join(top, name), arcname=name)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise MngrError(f"{top} cannot be read: {error.strerror or error}") from None


def _bytes_below(top: str, names: Sequence[str]) -> int:
    """Counted as far as it matters."""
    total = 0
    for name in names:
        path = os.path.join(top, name)
        files = [path] if not os.path.isdir(path) else None
        for place, _, found in os.walk(path) if files is None else [("", [], files)]:
            total += sum(os.lstat(os.path.join(place, file)).st_size for file in found)
            if total > LARGE:
                return total
    return total
