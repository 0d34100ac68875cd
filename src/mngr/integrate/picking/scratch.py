"""A repository of our own, where everything is made in memory of git and nothing is checked out. It borrows the objects
of the user's repository and shares nothing else with it: no refs, no index, no work tree, no settings. So whatever
happens here, the user's repository is as it was, until one `publish` at the end.

What git does must depend on the inputs alone: the user's and the machine's settings are shut out, and the attributes
that a merge respects are those of the base commit. They are laid out as files, and git runs beside them, because it
reads them from where it runs."""

from __future__ import annotations

import os
import shutil

from mngr import process
from mngr.errors import MngrError
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mngr.process import Done

_DEADLINE = 600.0
_SETTINGS = (
    "gc.auto=0",
    "core.quotePath=false",
    f"core.attributesFile={os.devnull}",  # or git looks into the user's home for one
    "merge.renames=true",
    "diff.renames=true",
    "core.fsync=none",
)
_FOR_USER = ("safe.directory=*",)  # whether git trusts it was asked first, with the user's own settings
_PATHS_AT_ONCE = 500  # a command line has its limits
OLDEST_GIT = (2, 39)  # merge-tree --write-tree, patch-id --verbatim
NOBODY = "mngr <mngr@localhost> 0 +0000"  # of commits that are never published


class Scratch:
    """Of the repository that `repo` is in, for integrations onto `base`. It lies in `directory`, which is ours."""

    def __init__(self, repo: str, base: str, directory: str) -> None:
        self.repo = top_of(repo)
        self.directory = os.path.join(os.path.abspath(directory), "repo.git")
        self._attributes = os.path.join(os.path.abspath(directory), "attributes")
        self._env = {**_environment(_SETTINGS), "GIT_WORK_TREE": self._attributes}
        self._trees: dict[str, str] = {}  # by commit
        self._commits: dict[bytes, str] = {}  # by content: what is made here
        try:
            self._begin()
            self.base = self.commit_of(base)
            self._lay_out_attributes()
        except BaseException:
            self.remove()
            raise

    # What git is asked

    def run(
        self, *words: str, input: bytes = b"", env: Mapping[str, str] | None = None, deadline: float = _DEADLINE
    ) -> Done:
        """Whatever its exit code is. Files are named by absolute paths: git does not run in our directory."""
        line = ["git", "-C", self._attributes, "--git-dir", self.directory, "--literal-pathspecs", *words]
        return process.run(line, input=input, deadline=deadline, env={**self._env, **(env or {})})

    def git(self, *words: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """What it says, without the last newline. MngrError when it fails."""
        return _said(self.run(*words, input=input, env=env), f"git {words[0]}").removesuffix("\n")

    def commit_of(self, revision: str) -> str:
        """The whole id of a commit of the user's repository. MngrError if there is none of that name."""
        words = ["rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"]
        done = _ask(self.repo, words)
        if done.code:
            raise MngrError(f"there is no commit {revision!r} in {self.repo}", "git branch --all shows what there is")
        return done.out.strip()

    def tree_of(self, commit: str) -> str:
        """`commit` is an id, so that the answer stays true."""
        if commit not in self._trees:
            self._trees[commit] = self.git("rev-parse", f"{commit}^{{tree}}")
        return self._trees[commit]

    # What is made here

    def commit(self, tree: str, parents: Iterable[str], message: str = "", author: str = NOBODY) -> str:
        """Author and committer are the same, so that the same inputs give the same id."""
        lines = [f"tree {tree}", *(f"parent {each}" for each in parents), f"author {author}", f"committer {author}"]
        content = "\n".join([*lines, "", message]).encode("utf-8", "surrogateescape")
        if content not in self._commits:
            self._commits[content] = self.git("hash-object", "-t", "commit", "-w", "--stdin", input=content)
        return self._commits[content]

    def edit_commits(self, edits: Sequence[tuple[str, Mapping[str, tuple[str, str] | None]]]) -> list[str]:
        """For each a commit on this parent, in which these paths are as they are given: see `edit_tree`. All in one
        go, which takes the time of one `edit_tree`."""
        if not edits:
            return []
        lines = []
        for number, (parent, entries) in enumerate(edits, 1):
            lines += ["commit refs/mngr/made", f"mark :{number}", f"committer {NOBODY}", "data 0", f"from {parent}"]
            lines += [f"D {quoted(path)}" for path, entry in entries.items() if entry is None]
            lines += [f"M {entry[0]} {entry[1]} {quoted(path)}" for path, entry in entries.items() if entry]
            lines += ["", f"get-mark :{number}"]
        text = "\n".join([*lines, "done", ""]).encode("utf-8", "surrogateescape")
        return self.git("fast-import", "--quiet", "--force", "--done", input=text).split()

    def edit_tree(self, tree: str, entries: Mapping[str, tuple[str, str] | None]) -> str:
        """The tree with these paths as they are given: mode and object, or None for a path that is no more."""
        index = os.path.join(self.directory, f"index-{os.getpid()}-{id(entries)}")
        env = {"GIT_INDEX_FILE": index}
        nothing = "0" * len(tree)
        gone = [f"0 {nothing}\t{path}\0" for path, entry in entries.items() if entry is None]
        there = [f"{entry[0]} {entry[1]}\t{path}\0" for path, entry in entries.items() if entry is not None]
        try:
            self.git("read-tree", tree, env=env)
            # What goes, goes first: a file can take the place of a directory.
            lines = "".join(gone + there).encode("utf-8", "surrogateescape")
            self.git("update-index", "-z", "--index-info", input=lines, env=env)
            return self.git("write-tree", env=env)
        finally:
            if os.path.exists(index):
                os.remove(index)

    def entries(self, tree: str, paths: Iterable[str]) -> dict[str, tuple[str, str] | None]:
        """What a tree has at these paths: mode and object; None for nothing."""
        found: dict[str, tuple[str, str] | None] = dict.fromkeys(paths)
        asked = list(found)
        for start in range(0, len(asked), _PATHS_AT_ONCE):
            some = asked[start : start + _PATHS_AT_ONCE]
            for path, entry in _listed(self.git("ls-tree", "-z", "--full-tree", tree, "--", *some)):
                if path in found:
                    found[path] = entry
        return found

    def blob(self, object: str) -> bytes:
        return _said(self.run("cat-file", "blob", object), "git cat-file").encode("utf-8", "surrogateescape")

    def store(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", input=content)

    # Its beginning and its end

    def publish(self, branch: str, commit: str, expected: str | None) -> None:
        """The branch in the user's repository, with everything that it needs; the only thing we ever write there.
        `expected` is what the branch must be now: a commit, or None for one that does not exist. MngrError, with
        nothing changed, if it is something else, or is checked out."""
        self._check_branch(branch, expected)
        self.git("update-ref", "refs/mngr/published", commit)
        words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-prune"]
        words += ["--no-recurse-submodules", "--no-write-commit-graph", self.directory, "refs/mngr/published"]
        self._user("-c", "protocol.file.allow=always", *words)
        self._check_branch(branch, expected)
        old = expected or "0" * len(commit)
        self._user("update-ref", "--no-deref", "-m", "mngr integrate", f"refs/heads/{branch}", commit, old)

    def remove(self) -> None:
        for place in (self.directory, self._attributes):
            shutil.rmtree(place, ignore_errors=True)

    def _check_branch(self, branch: str, expected: str | None) -> None:
        words = ["for-each-ref", "--format=%(refname) %(objectname)", f"refs/heads/{branch}"]
        found = dict(line.split(" ") for line in self._user(*words).splitlines())
        there = found.get(f"refs/heads/{branch}")
        if there != expected:
            raise MngrError(
                f"{branch} exists already" if expected is None else f"{branch} has moved since it was integrated",
                f"git log {there} shows what is on it; --into NEW names another" if there else "--into NEW names it",
            )
        if branch in checked_out(self.repo):
            raise MngrError(
                f"{branch} is checked out, and would change under its work tree", "--into NEW names another"
            )

    def _user(self, *words: str) -> str:
        return _of_user(self.repo, *words)

    def _begin(self) -> None:
        """One that an earlier integration has left is begun anew: it holds nothing that cannot be made again."""
        self.remove()
        os.makedirs(self._attributes)
        common = common_of(self.repo)
        form = self._user("rev-parse", "--show-object-format").strip()
        line = ["git", "init", "--quiet", "--bare", f"--object-format={form}", "--template=", self.directory]
        _said(process.run(line, deadline=_DEADLINE, env=_environment(_FOR_USER)), "git init")
        with open(os.path.join(self.directory, "objects", "info", "alternates"), "wb") as file:
            objects = os.path.join(common, "objects")
            file.write(os.fsencode(quoted(objects) + "\n"))
        shallow = os.path.join(common, "shallow")
        if os.path.exists(shallow):
            shutil.copy(shallow, self.directory)

    def _lay_out_attributes(self) -> None:
        for path, (mode, object) in _listed(self.git("ls-tree", "-r", "-z", "--full-tree", self.base)):
            *above, name = path.split("/")
            if name == ".gitattributes" and mode.startswith("100") and not {"..", ".git"} & set(above):
                os.makedirs(os.path.join(self._attributes, *above), exist_ok=True)
                with open(os.path.join(self._attributes, path), "wb") as file:
                    file.write(self.blob(object))


def _said(done: Done, what: str, where: str = "") -> str:
    if done.code:
        said = done.err.strip().splitlines()
        fatal = [line for line in said if line.startswith(("fatal:", "error:"))]
        raise MngrError(f"{what} failed{where}: {(fatal or said or [str(done.code)])[-1]}")
    return done.out


def _listed(said: str) -> list[tuple[str, tuple[str, str]]]:
    """What ls-tree tells: path, mode and object."""
    found = []
    for line in said.split("\0")[:-1]:
        about, _, path = line.partition("\t")
        mode, _, object = about.split(" ")
        found.append((path, (mode, object)))
    return found


def quoted(path: str) -> str:
    """As git reads it on a line of its own."""
    if "\n" not in path and not path.startswith('"'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _environment(settings: Sequence[str]) -> dict[str, str]:
    """Ours, without what tells git about repositories and settings other than those that we name."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    for number, setting in enumerate(settings):
        env[f"GIT_CONFIG_KEY_{number}"], _, env[f"GIT_CONFIG_VALUE_{number}"] = setting.partition("=")
    return {
        **env,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }


# The user's repository


def _ask(repo: str, words: Sequence[str], input: bytes = b"") -> Done:
    return process.run(["git", "-C", repo, *words], input=input, deadline=_DEADLINE, env=_environment(_FOR_USER))


def _of_user(repo: str, *words: str, input: bytes = b"") -> str:
    verb = next(word for word in words if not word.startswith("-") and "=" not in word)
    return _said(_ask(repo, words, input), f"git {verb}", f" in {repo}")


def common_of(repo: str) -> str:
    """The git directory that all work trees of a repository share."""
    return _of_user(repo, "rev-parse", "--path-format=absolute", "--git-common-dir").removesuffix("\n")


def checked_out(repo: str) -> set[str]:
    """Branches that work trees are on, or come back to when the rebase that goes on there ends."""
    words = _of_user(repo, "worktree", "list", "--porcelain", "-z").split("\0")
    heads = [word.partition(" ")[2] for word in words if word.startswith("branch ")]
    common = common_of(repo)
    linked = os.path.join(common, "worktrees")
    names = os.listdir(linked) if os.path.isdir(linked) else []
    for place in (common, *(os.path.join(linked, name) for name in names)):
        for file in ("rebase-merge/head-name", "rebase-apply/head-name"):
            path = os.path.join(place, file)
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="surrogateescape") as head:
                    heads.append(head.read().strip())
    return {head.removeprefix("refs/heads/") for head in heads}


def check_whole(repo: str, base: str, heads: Iterable[str]) -> None:
    """MngrError if a partial clone lacks objects of what is integrated: nothing is fetched on the way."""
    remotes = _ask(repo, ["config", "--get-regexp", r"^remote\..*\.promisor$"]).out.splitlines()
    if not remotes:
        return
    ends = "".join(f"{head}\n" for head in heads) + f"^{base}\n"
    between = _of_user(repo, "rev-list", "--boundary", "--stdin", input=ends.encode()).replace("-", "")
    words = ["rev-list", "--no-walk", "--objects", "--missing=print", "--stdin"]
    missing = _of_user(repo, *words, input=f"{between}{base}\n".encode()).count("\n?")
    if missing:
        remote = remotes[0].split(" ")[0].removeprefix("remote.").removesuffix(".promisor")
        raise MngrError(
            f"{repo} is a partial clone, and lacks {missing:,} of the objects that this needs",
            f"git fetch --refetch --no-filter {quote(remote)} gets everything",
        )


def check_git() -> None:
    """MngrError if git is too old to merge without a work tree."""
    said = process.run(["git", "--version"], deadline=60).out
    numbers = [int(word) for word in said.partition("version ")[2].split(" ")[0].split(".") if word.isdecimal()]
    if tuple(numbers) < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        raise MngrError(f"{said.strip() or 'git'} is too old to integrate", f"install git {oldest} or newer")


def top_of(directory: str) -> str:
    """Asked with the user's own settings: whether git trusts the place is for them to say."""
    words = ["git", "-C", directory, "rev-parse", "--path-format=absolute"]
    places = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
    env = {key: value for key, value in os.environ.items() if key not in places}
    done = process.run([*words, "--show-toplevel"], deadline=60, env=env)
    if done.code == 0:
        return done.out.removesuffix("\n")
    bare = process.run([*words, "--absolute-git-dir"], deadline=60, env=env)
    if bare.code:
        said = bare.err.strip().splitlines()
        if said and "not a git repository" not in said[0]:
            raise MngrError(f"git does not read {directory}: {said[0]}")
        raise MngrError(f"{directory} is in no git repository", "run it in the project")
    return bare.out.removesuffix("\n")
