"""What the configuration can say of a provider made of commands, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr import config, registry
from mngr.config_keys import Misfit
from mngr.errors import UsageError
from mngr.hosts.place import Place
from mngr.hosts.prefix import PrefixProvider, filled
from mngr.hosts.settings import home_there

EXEC = 'exec = ["kubectl", "exec", "-i", "{host}", "--", "sh", "-c", "{script}"]\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    config.forget(overrides=True)
    yield tmp_path / "config.toml"
    config.forget()


def refusal(file: Path, text: str) -> Misfit:
    file.write_text(f"[providers.k8s]\n{text}")
    config.forget()
    with pytest.raises(Misfit) as refused:
        registry.provider("k8s")
    return refused.value


def test_placeholders_are_filled_all_at_once() -> None:
    values = {"host": "box", "script": "echo {host} {{x}} ${host}", "empty": ""}
    words = ["run", "{host}", "a-{host}-{host}", "{script}", "--memory={empty}", "{empty}"]
    assert filled(words, values) == ["run", "box", "a-box-box", "echo {host} {{x}} ${host}"]


def test_braces_of_others_stay() -> None:
    words = ["{{.Names}}", "{{host}}", "${host}", "{.items[*].name}", "{}", "{Host}", "{a b}"]
    assert filled(words, {"host": "box"}) == words


def test_a_host_is_reached_by_the_words_of_the_configuration(file: Path) -> None:
    file.write_text(
        f'[providers.k8s]\n{EXEC}tty = ["kubectl", "exec", "-it", "{{host}}", "--", "sh", "-c", "{{script}}"]\n'
    )
    host = registry.provider("k8s").reach(Place(name="web.k8s"))
    assert host.argv("echo $1", ["a b"]) == [*"kubectl exec -i web -- sh -c".split(), "set -- 'a b'\necho $1"]
    assert host.argv("top", [], tty=True) == "kubectl exec -it web -- sh -c top".split()
    assert not registry.provider("k8s").makes
    assert registry.provider("k8s").find() == {}
    assert "k8s" in registry.providers()


def test_without_a_command_for_terminals_exec_gets_them(file: Path) -> None:
    file.write_text(f"[providers.k8s]\n{EXEC}")
    host = registry.provider("k8s").reach(Place(name="web.k8s"))
    assert host.argv("top", [], tty=True) == "kubectl exec -i web -- sh -c top".split()


def test_options_have_defaults_and_can_be_given(file: Path) -> None:
    file.write_text(
        f'[providers.k8s]\n{EXEC}create = ["echo", "{{image}}", "{{size}}", "x-{{host}}"]\ndestroy = ["true"]\n'
        'options = { image = "small", size = "" }\n'
    )
    provider = registry.provider("k8s")
    assert isinstance(provider, PrefixProvider)
    assert sorted(provider.options) == ["home", "image", "size"]
    assert provider.makes
    place = Place(name="web.k8s", options={"size": "9"})
    assert provider._words("create", place) == ["echo", "small", "9", "x-web"]
    assert provider._words("create", Place(name="web.k8s")) == ["echo", "small", "x-web"]
    assert provider.make("web", {"image": "large"}, print) == "x-web"  # the last word that it printed is its id


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('list = ["x"]\n', "providers.k8s.exec is missing"),
        ('exec = ["kubectl"]\n', "providers.k8s.exec in {file} does not say where the script goes"),
        ('exec = ["sh", "-c {script}"]\n', "providers.k8s.exec in {file} does not say where the script goes"),
        (EXEC + 'tty = ["kubectl"]\n', "providers.k8s.tty in {file} does not say where the script goes"),
        (EXEC + 'create = ["x"]\n', "providers.k8s.destroy is missing"),
        (
            EXEC + 'stop = ["x", "{hots}"]\n',
            "providers.k8s.stop in {file} has {{hots}} in it, which stands for nothing",
        ),
        (
            EXEC + 'stop = ["x", "{name}"]\n',
            "providers.k8s.stop in {file} has {{name}} in it, which stands for nothing",
        ),
        (EXEC + 'image = "x"\n', "providers.k8s.image in {file} has no meaning for a provider made of commands"),
        (EXEC + 'options = { script = "x" }\n', "providers.k8s.options in {file} has script in it"),
    ],
)
def test_what_cannot_work_is_refused_with_its_key(file: Path, text: str, said: str) -> None:
    assert refusal(file, text).message.startswith(said.format(file=file))


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ('[providers.ssh]\nexec = ["x"]\n', "would make a provider ssh, which mngr has already", "choose another name"),
        ('[providers.k8s]\nexce = ["x"]\n', "providers.k8s.exce in", "did you mean providers.k8s.exec?"),
        ('[providers.docker]\nimgae = "x"\n', "providers.docker.imgae in", "did you mean providers.docker.image?"),
        ('[providers.k8s]\nexec = "x"\n', "must be a list of texts", None),
        ("[providers.k8s]\noptions = { a = 1 }\n", "must be a table of texts", None),
        ('[hosts.box]\ntraget = "x"\n', "hosts.box.traget in", "did you mean hosts.box.target?"),
        ('[hosts.Box]\ntarget = "x"\n', "has an invalid name, 'Box'", "names are lower-case letters, digits, - and _"),
    ],
)
def test_what_is_no_key_is_refused_when_it_is_read(file: Path, text: str, said: str, hint: str | None) -> None:
    file.write_text(text)
    with pytest.raises(Misfit) as refused:
        config.load()
    assert said in refused.value.message
    assert refused.value.hint == hint


def test_a_provider_that_nobody_knows(file: Path) -> None:
    file.write_text(f"[providers.k8s]\n{EXEC}")
    with pytest.raises(UsageError, match="there is no provider 'k9s'") as refused:
        registry.provider("k9s")
    assert refused.value.hint == "did you mean k8s?"


@pytest.mark.parametrize(
    "text",
    [
        f"[providers.k8s]\n{EXEC}",
        '[providers.ssh]\nconfig = "x"\n',
        '[hosts.box]\ntarget = "x"\n',
        '[providers.docker]\nmount = ["/:/all"]\n',
        '[providers.docker]\nrun = ["--privileged"]\n',
        '[providers.docker]\nnetwork = "host"\n',
    ],
)
def test_a_project_says_neither_what_runs_here_nor_what_a_host_may_see(file: Path, text: str) -> None:
    project = file.parent / ".mngr.toml"
    project.write_text(text)
    with pytest.raises(Misfit, match="is yours to say, not a project's") as refused:
        config.load()
    assert f" in {project}:2 " in refused.value.message
    project.write_text('[providers.docker]\nimage = "x"\nmemory = "2g"\n')
    config.forget()
    assert config.load().text("providers.docker.image") == "x"


def test_where_the_files_of_mngr_are_on_a_host(file: Path) -> None:
    file.write_text('[providers.k8s]\nhome = "~/of-{host}"\n[hosts.box]\nhome = "/srv/mngr"\n')
    assert home_there(Place(name="web.k8s")) == "~/of-web"
    assert home_there(Place(name="web.k8s", options={"home": "/x"})) == "/x"
    assert home_there(Place(name="box.ssh")) == "/srv/mngr"
    assert home_there(Place(name="other.ssh")) == ""
    assert home_there(Place(name="box.k8s")) == "~/of-box"
