"""A repository of our own, where everything is made in memory of git and nothing is checked out. It borrows the objects
of the user's repository and shares nothing else with it: no refs, no index, no work tree, no settings. So whatever
happens here, the user's repository is as it was, until one `publish` at the end.

What git does must depend on the inputs alone: the user's and the machine's settings are shut out, and the attributes
that a merge respects are those of the base commit, which are laid out as files because git reads them from there."""

from __future__ import annotations

import os
import shutil

from mngr import process
from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mngr.process import Done

_DEADLINE = 600.0
_SETTINGS = ("gc.auto=0", "core.quotePath=false", "merge.renames=true", "diff.renames=true", "core.fsync=none")
NOBODY = "mngr <mngr@localhost> 0 +0000"  # of commits that are never published


class Scratch:
    """Of the repository that `repo` is in, for integrations onto `base`. It lies in `directory`, which is ours."""

    def __init__(self, repo: str, base: str, directory: str) -> None:
        self.repo = _top_of(repo)
        self.directory = os.path.join(directory, "repo.git")
        self._attributes = os.path.join(directory, "attributes")
        self._env = self._environment()
        self._begin()
        self.base = self.commit_of(base)
        self._lay_out_attributes()

    # What git is asked

    def run(
        self, *words: str, input: bytes = b"", env: Mapping[str, str] | None = None, deadline: float = _DEADLINE
    ) -> Done:
        """Whatever its exit code is."""
        line = ["git", "--git-dir", self.directory, "--literal-pathspecs", *words]
        return process.run(line, input=input, deadline=deadline, env={**self._env, **(env or {})})

    def git(self, *words: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """What it says, without the last newline. MngrError when it fails."""
        done = self.run(*words, input=input, env=env)
        if done.code:
            said = done.err.strip().splitlines()
            raise MngrError(f"git {words[0]} failed: {said[-1] if said else done.code}")
        return done.out.removesuffix("\n")

    def commit_of(self, revision: str) -> str:
        """The whole id of a commit of the user's repository. MngrError if there is none of that name."""
        words = ["git", "-C", self.repo, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"]
        done = process.run(words, deadline=_DEADLINE, env=self._env)
        if done.code:
            raise MngrError(f"there is no commit {revision!r} in {self.repo}", "git branch --all shows what there is")
        return done.out.strip()

    def tree_of(self, commit: str) -> str:
        return self.git("rev-parse", f"{commit}^{{tree}}")

    # What is made here

    def commit(self, tree: str, parents: Iterable[str], message: str = "", author: str = NOBODY) -> str:
        """Author and committer are the same, so that the same inputs give the same id."""
        lines = [f"tree {tree}", *(f"parent {each}" for each in parents), f"author {author}", f"committer {author}"]
        content = "\n".join([*lines, "", message]).encode("utf-8", "surrogateescape")
        return self.git("hash-object", "-t", "commit", "-w", "--stdin", input=content)

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
        if found:
            said = self.git("ls-tree", "-z", "--full-tree", tree, "--", *found)
            for line in said.split("\0")[:-1]:
                mode, _, rest = line.partition(" ")
                _, _, rest = rest.partition(" ")
                object, _, path = rest.partition("\t")
                if path in found:
                    found[path] = (mode, object)
        return found

    def blob(self, object: str) -> bytes:
        done = self.run("cat-file", "blob", object)
        if done.code:
            raise MngrError(f"git cat-file failed: {done.err.strip()}")
        return done.out.encode("utf-8", "surrogateescape")

    def store(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", input=content)

    # Its beginning and its end

    def publish(self, branch: str, commit: str, expected: str | None) -> None:
        """The branch in the user's repository, with everything that it needs; the only thing we ever write there.
        `expected` is what the branch must be now: a commit, or None for one that does not exist. MngrError, with
        nothing changed, if it is something else, or is checked out."""
        self.git("update-ref", "refs/mngr/published", commit)
        words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
        self._user("-c", "protocol.file.allow=always", *words, self.directory, "refs/mngr/published")
        old = expected or "0" * len(commit)
        if branch in self._checked_out():
            raise MngrError(
                f"{branch} is checked out, and would change under its work tree", "--into NEW names another"
            )
        self._user("update-ref", "-m", "mngr integrate", f"refs/heads/{branch}", commit, old)

    def remove(self) -> None:
        for place in (self.directory, self._attributes):
            shutil.rmtree(place, ignore_errors=True)

    def _user(self, *words: str) -> str:
        done = process.run(["git", "-C", self.repo, *words], deadline=_DEADLINE, env=self._env)
        if done.code:
            said = done.err.strip().splitlines()
            raise MngrError(f"git {words[0]} failed in {self.repo}: {said[-1] if said else done.code}")
        return done.out

    def _checked_out(self) -> set[str]:
        said = self._user("worktree", "list", "--porcelain")
        heads = [line.partition(" ")[2] for line in said.splitlines() if line.startswith("branch ")]
        return {head.removeprefix("refs/heads/") for head in heads}

    def _environment(self) -> dict[str, str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        settings = {f"GIT_CONFIG_KEY_{n}": pair.partition("=")[0] for n, pair in enumerate(_SETTINGS)}
        settings |= {f"GIT_CONFIG_VALUE_{n}": pair.partition("=")[2] for n, pair in enumerate(_SETTINGS)}
        return {
            **env,
            **settings,
            "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_WORK_TREE": self._attributes,
            "LC_ALL": "C",
        }

    def _begin(self) -> None:
        """One that an earlier integration has left is begun anew: it holds nothing that cannot be made again."""
        self.remove()
        os.makedirs(self._attributes)
        common = self._user("rev-parse", "--path-format=absolute", "--git-common-dir").strip()
        form = self._user("rev-parse", "--show-object-format").strip()
        env = {key: value for key, value in self._env.items() if key != "GIT_WORK_TREE"}
        line = ["git", "init", "--quiet", "--bare", f"--object-format={form}", "--template=", self.directory]
        done = process.run(line, deadline=_DEADLINE, env=env)
        if done.code:
            raise MngrError(f"git init failed: {done.err.strip()}")
        with open(os.path.join(self.directory, "objects", "info", "alternates"), "w", encoding="utf-8") as file:
            file.write(os.path.join(common, "objects") + "\n")
        shallow = os.path.join(common, "shallow")
        if os.path.exists(shallow):
            shutil.copy(shallow, self.directory)

    def _lay_out_attributes(self) -> None:
        said = self.git("ls-tree", "-r", "-z", "--full-tree", "--name-only", self.base)
        for path in said.split("\0"):
            if path.rpartition("/")[2] == ".gitattributes":
                target = os.path.join(self._attributes, path)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                entry = self.entries(self.base, [path])[path]
                if entry and entry[0].startswith("100"):
                    with open(target, "wb") as file:
                        file.write(self.blob(entry[1]))


def _top_of(directory: str) -> str:
    words = ["git", "-C", directory, "rev-parse", "--path-format=absolute", "--show-toplevel"]
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = process.run(words, deadline=60, env=env)
    if done.code == 0:
        return done.out.removesuffix("\n")
    bare = process.run([*words[:-1], "--absolute-git-dir"], deadline=60, env=env)
    if bare.code:
        raise MngrError(f"{directory} is in no git repository", "run it in the project, or name it with -C")
    return bare.out.removesuffix("\n")
