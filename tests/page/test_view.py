"""The combined view in a real Chromium, opened from the disk and from its server. A page that writes an error to the
console, or asks for anything outside of its folder, fails its test."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from mngr.e2e.block import block_id
from mngr.e2e.serve import ViewServer
from mngr.e2e.view import PLAYER, Part, View
from tests.home import Home, Mngr
from tests.page.artifacts import START, cast, make_run, make_test, step

MAKE, LOOK = "# Make an agent.\nmngr create foo", "# Nobody has tested this.\nmngr list"
CREATE = "test_create-aa11bb"
RECORDED = cast(
    (0.0, "m", "1 make it"),
    (0.2, "o", "made foo\r\n"),
    (2.0, "m", "2 look at it"),
    (2.2, "o", "listed foo\r\n"),
    (4.0, "m", "3 stop it"),
    (4.2, "o", "stopped foo\r\n"),
    (6.0, "o", "the end\r\n"),
)
STEPS = (
    step(1, "mngr create foo", 0, "made \x1b[1;32mfoo\x1b[0m\n10%\r100%", comment="make it"),
    step(2, "mngr list", 2, "\x1b[38;5;208mfoo\x1b[0m \x1b[48;2;1;2;3mbusy\x1b[0m \x1b]0;title\x07end", comment="look"),
    step(3, "mngr stop bar", 4, err="no agent bar", exit_code=3),
)
HOSTILE = "</script><script>window.bad=1</script><img src=x onerror=window.bad=1>\u2028\x1b]8;;javascript:bad\x07\u202e"


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=15_000)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "Chromium is not here: make system"
    assert PLAYER.exists(), "asciinema-player is not here: make player"
    options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    browser = playwright.chromium.launch(executable_path=chromium, args=options)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """For all tests: the view keeps nothing in the browser, and one of its own would cost each test a third more."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(15_000)
    context.new_page()  # it stays: with the last page what loads the next one quickly would go too
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    wrong: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    told = list(wrong)  # a server that ended before its page is no fault of the page
    for each in context.pages[1:]:
        each.close()
    assert told == []
    home = page.url.split("index.html")[0].split("#")[0]
    assert [url for url in asked if not url.startswith((home, "data:", "blob:"))] == []


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    top = tmp_path_factory.mktemp("view") / "e2e"
    old = make_run(top, "old", START - 1000, START - 900)
    make_test(old, "test_create", "passed", blocks=(MAKE,), slug=CREATE, started=START - 1000)
    make_test(old, "test_gone", "passed", slug="test_gone-1")
    run = make_run(top, "new")
    for number in range(40):
        make_test(run, f"test_many[{number}]", steps=(step(1, f"echo number-{number}", out=str(number)),))
    about = {"docstring": "An agent is made.", "failure": "E   assert \x1b[31m3\x1b[0m == 0"}
    casts = {"foo.cast": RECORDED, "bar.cast": RECORDED}
    make_test(run, "test_create", "failed", STEPS, casts, (MAKE,), slug=CREATE, **about)
    make_test(run, "test_left", "running", (step(1, "sleep 100"),), slug="test_left-1")
    make_test(run, "test_other_failure", "failed", slug="test_other-1", file="tests/e2e/test_zoo.py")
    make_test(run, "test_skipped", "skipped", slug="test_skipped-1")
    hostile = (step(1, HOSTILE, out=HOSTILE, comment=HOSTILE),)
    make_test(
        run, f"test_{HOSTILE}", steps=hostile, slug="hostile-1", failure=HOSTILE, blocks=(HOSTILE,), docstring=HOSTILE
    )
    damaged = make_test(run, "test_cut", steps=(step(1, "true"),), slug="test_cut-1")
    (damaged / "steps.jsonl").write_text(json.dumps(step(1, "true")) + '\n{"n": 2, "comm')
    parts = [
        Part("FIRST STEPS", 3, "# Some words."),
        Part("FIRST STEPS", 5, MAKE, block_id(MAKE)),
        Part("SECOND", 9, LOOK, block_id(LOOK)),
    ]
    view = View(top, top / "view", ["tutorial.sh"], lambda _: parts)
    view.build()
    return view


@pytest.fixture(params=["from the disk", "from the server"])
def site(request: pytest.FixtureRequest, view: View) -> Iterator[str]:
    if request.param == "from the disk":
        yield (view.output / "index.html").as_uri()
    else:
        with ViewServer(view) as server:
            yield server.url


@pytest.fixture
def address(view: View) -> str:
    """For what the page does once it is there, wherever it came from."""
    return (view.output / "index.html").as_uri()


def names(page: Page) -> list[str]:
    return page.locator(".rows li:visible .name").all_text_contents()


TIME = "file => document.querySelector(`[data-file='${file}']`)?.player?.getCurrentTime() ?? -1"


def current_time(page: Page, file: str) -> float:
    found: float = page.evaluate(TIME, file)
    return found


def wait_for_time(page: Page, at: float, file: str = "foo.cast") -> None:
    page.wait_for_function(f"([file, at]) => Math.abs(({TIME})(file) - at) < .05", arg=[file, at])


def test_the_newest_run_is_listed_failed_first(page: Page, site: str) -> None:
    page.goto(site)
    expect(page.locator("h1")).to_have_text("new")
    seen = names(page)
    assert len(seen) == 46
    assert seen[:3] == ["test_create", "test_other_failure", "test_left"]
    assert seen[3] == "test_skipped"
    assert seen.index("test_many[9]") + 1 == seen.index("test_many[10]")
    assert page.locator(".rows li").nth(2).locator(".sign").get_attribute("aria-label") == "killed"  # its run is over


def test_a_run_in_which_nothing_stirs_is_not_believed_to_run(page: Page, tmp_path: Path) -> None:
    run = make_run(tmp_path, "r", started=time.time() - 4000, finished=None)
    left = make_test(run, "test_left", "running", (step(1, "true"),), started=time.time() - 3990)
    view = View(tmp_path, tmp_path / "view")
    view.build()
    page.goto((view.output / "index.html").as_uri())
    expect(page.locator(".rows .sign")).to_have_attribute("aria-label", "running")  # its files are fresh
    for path in left.iterdir():
        os.utime(path, (time.time() - 3980,) * 2)
    view.build()
    page.reload()
    expect(page.locator(".rows .sign")).to_have_attribute("aria-label", "killed")
    expect(page.locator(".list")).to_contain_text("did not finish")


def test_search_filters_as_one_types_over_names_files_commands_and_blocks(page: Page, site: str) -> None:
    page.goto(site)
    page.locator(".list[data-searchable]").wait_for()
    for text, found in (
        ("other_fail", ["test_other_failure"]),
        ("zoo.py", ["test_other_failure"]),
        ("NUMBER-17", ["test_many[17]"]),
        ("make an agent", ["test_create"]),
        ("create stop", ["test_create"]),
        ("nothing of the kind", []),
    ):
        page.locator("#search").fill(text)
        assert names(page) == found
    expect(page.locator("#matches")).to_have_text("No test here.")


def test_status_buttons_filter(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="failed 2").click()
    assert names(page) == ["test_create", "test_other_failure"]
    page.get_by_role("button", name="skipped 1").click()
    assert names(page) == ["test_skipped"]
    expect(page.get_by_role("button", name="skipped 1")).to_have_attribute("aria-pressed", "true")


def test_another_run_can_be_chosen(page: Page, site: str) -> None:
    page.goto(site)
    page.get_by_label("Run").select_option(value="old")
    expect(page.locator("h1")).to_have_text("old")
    assert names(page) == ["test_create", "test_gone"]


def test_a_test_shows_what_it_is_for_and_what_it_did(page: Page, site: str) -> None:
    page.goto(site)
    page.get_by_role("link", name="test_create").click()
    expect(page.locator("h1")).to_contain_text("test_create")
    expect(page.locator(".docstring")).to_have_text("An agent is made.")
    expect(page.locator(".failure")).to_have_text("E   assert 3 == 0")
    expect(page.locator("a.block .shell")).to_contain_text("mngr create foo")
    expect(page.locator(".phase .comment")).to_have_text(["make it", "look"])
    outputs = page.locator(".output").all_text_contents()
    assert outputs == ["made foo\n100%\n", "foo busy end\n", "no agent bar\n"]
    expect(page.locator("#step-3 .code")).to_have_text("? 3")
    expect(page.locator("#step-1 .output .bold.f-2")).to_have_text("foo")
    styles = "span => [getComputedStyle(span).color, getComputedStyle(span).backgroundColor]"
    first, second = page.locator("#step-2 .output .line > span").all()
    assert first.evaluate(styles)[0] == "rgb(255, 135, 0)"
    assert second.evaluate(styles) == ["rgb(255, 255, 255)", "rgb(1, 2, 3)"]


def test_a_phase_can_be_folded(page: Page, address: str) -> None:
    page.goto(f"{address}#/new/{CREATE}")
    page.locator("#step-1").wait_for()
    page.get_by_text("make it", exact=True).click()
    expect(page.locator("#step-1")).to_be_hidden()
    expect(page.locator("#step-2")).to_be_visible()
    page.get_by_role("button", name="fold all", exact=True).click()
    expect(page.locator("#step-2")).to_be_hidden()


def test_a_recording_plays(page: Page, site: str) -> None:
    page.goto(f"{site}#/new/{CREATE}")
    recording = page.locator("[data-file='foo.cast']")
    expect(recording.locator(".ap-term")).to_contain_text("the end")  # at first, how it ended
    recording.locator(".ap-overlay-start").click()
    page.wait_for_function("() => document.querySelector(`[data-file='foo.cast']`).player.getCurrentTime() > .3")
    expect(recording.locator(".ap-term")).to_contain_text("made foo")
    expect(recording.locator(".ap-term")).not_to_contain_text("the end")


def test_a_marker_takes_its_recording_to_its_second(page: Page, address: str) -> None:
    page.goto(f"{address}#/new/{CREATE}")
    recording = page.locator("[data-file='foo.cast']")
    recording.get_by_role("button", name="3 stop it").click()
    wait_for_time(page, 4.0)
    expect(recording.locator(".ap-term")).to_contain_text("listed foo")
    expect(recording.locator(".ap-term")).not_to_contain_text("stopped foo")
    assert current_time(page, "bar.cast") != 4.0
    expect(recording.locator(".ap-marker")).to_have_count(3)


def test_a_step_takes_every_recording_to_its_second(page: Page, address: str) -> None:
    page.goto(f"{address}#/new/{CREATE}")
    page.locator("#step-2 a.at").click()
    for file in ("foo.cast", "bar.cast"):
        wait_for_time(page, 2.0, file)
        screen = page.locator(f"[data-file='{file}'] .ap-term")
        expect(screen).to_contain_text("made foo")
        expect(screen).not_to_contain_text("listed foo")
    assert page.url.endswith(f"#/new/{CREATE}/step/2")
    page.locator("[data-file='foo.cast']").get_by_role("button", name="3 stop it").click()
    wait_for_time(page, 4.0)
    page.locator("#step-2 a.at").click()  # the same address again
    wait_for_time(page, 2.0)


def test_an_address_leads_to_a_step(page: Page, site: str) -> None:
    page.goto(f"{site}#/new/{CREATE}/step/3")
    expect(page.locator("#step-3")).to_have_attribute("aria-current", "step")
    expect(page.locator("#step-3")).to_be_in_viewport()
    wait_for_time(page, 4.0)
    wait_for_time(page, 4.0, "bar.cast")
    expect(page.locator("[data-file='foo.cast'] .ap-term")).to_contain_text("listed foo")


def test_a_recording_can_be_downloaded(page: Page, site: str) -> None:
    page.goto(f"{site}#/new/{CREATE}")
    link = page.locator("[data-file='foo.cast']").get_by_role("link", name="download")
    if site.startswith("file:"):  # where a browser shows it instead
        with page.expect_popup() as shown:
            link.click()
        expect(shown.value.locator("body")).to_contain_text("mngr_started")
        return
    with page.expect_download() as download:
        link.click()
    assert Path(download.value.path()).read_text() == RECORDED
    assert download.value.suggested_filename == "foo.cast"


def test_an_address_of_what_is_not_there_says_so(page: Page, address: str) -> None:
    for place in ("#/no-such-run", "#/new/no-such-test", "#/new/no-such-test/step/1"):
        page.goto(f"{address}{place}")
        expect(page.locator("main")).to_contain_text("not")
        page.get_by_role("link", name="Back to the tests").click()
        expect(page.locator("h1")).to_have_text("new")
    page.goto(f"{address}#/new/{CREATE}/step/99")
    expect(page.locator("h1")).to_contain_text("test_create")


def focused(page: Page) -> str:
    text: str = page.evaluate(
        "() => document.activeElement?.querySelector('.name')?.textContent ?? document.activeElement?.id ?? ''"
    )
    return text


def test_everything_can_be_reached_by_keys(page: Page, address: str) -> None:
    page.goto(address)
    page.locator(".rows li").first.wait_for()
    for key, at in (
        ("j", "test_create"),
        ("j", "test_other_failure"),
        ("ArrowDown", "test_left"),
        ("k", "test_other_failure"),
    ):
        page.keyboard.press(key)
        assert focused(page) == at
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("test_other_failure")
    page.keyboard.press("j")
    expect(page.locator("h1")).to_contain_text("test_left")
    page.keyboard.press("n")  # past the end: the first failed one
    expect(page.locator("h1")).to_contain_text("test_create")
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_contain_text("test_other_failure")
    page.keyboard.press("u")
    expect(page.locator("h1")).to_have_text("new")
    assert focused(page) == "test_other_failure"
    page.keyboard.press("/")
    assert focused(page) == "search"
    page.keyboard.type("skipped")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("test_skipped")
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("new")
    page.keyboard.press("/")
    page.keyboard.press("Escape")  # empties the search
    expect(page.locator(".rows li:visible")).to_have_count(46)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Tutorial")


def test_keys_of_the_player_stay_with_the_player(page: Page, address: str) -> None:
    page.goto(f"{address}#/new/{CREATE}")
    page.locator("[data-file='foo.cast'] .ap-overlay-start").click()
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_contain_text("test_create")
    page.keyboard.press("j")
    expect(page.locator("h1")).to_contain_text("test_other_failure")


def test_the_tutorial_shows_blocks_with_their_tests_and_leads_to_their_recordings(page: Page, site: str) -> None:
    page.goto(site)
    page.get_by_role("link", name="Tutorial").click()
    expect(page.locator("h3")).to_have_text(["FIRST STEPS", "SECOND"])
    expect(page.locator(".words")).to_have_text("Some words.")
    block = page.locator(f"#block-{block_id(MAKE)}")
    assert block.locator(".proofs .sign").get_attribute("aria-label") == "failed"  # of the newer run
    expect(block).to_contain_text("2 recordings")
    expect(page.locator(f"#block-{block_id(LOOK)}")).to_contain_text("no test")
    block.get_by_role("link", name="test_create").click()
    expect(page.locator(".recording")).to_have_count(2)
    page.locator("a.block").click()
    expect(block).to_have_attribute("aria-current", "true")


def test_what_tests_print_does_nothing_to_the_page(page: Page, site: str) -> None:
    page.goto(site)
    page.get_by_role("link", name="test_<").click()
    expect(page.locator(".output")).to_contain_text("<script>window.bad=1</script>")
    expect(page.locator("main img, main script, main a[href^=javascript]")).to_have_count(0)
    page.goto(f"{site}#/tutorial")
    expect(page.locator(".tutorial")).to_contain_text("onerror")
    assert page.evaluate("() => window.bad") is None


def test_what_could_not_be_read_is_told_in_a_line(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_text("1 line or file could not be read").click()
    expect(page.locator(".problems")).to_contain_text("test_cut-1/steps.jsonl:2")


def test_a_view_without_the_player_still_has_the_transcript(page: Page, view: View, tmp_path: Path) -> None:
    folder = tmp_path / "view"
    shutil.copytree(view.output, folder)
    shutil.rmtree(folder / "player")
    index = folder / "data" / "index.js"
    index.write_text(index.read_text().replace('"player":true', '"player":false'))
    page.goto(f"{(folder / 'index.html').as_uri()}#/new/{CREATE}/step/2")
    expect(page.locator("#step-2 .output")).to_contain_text("busy")
    expect(page.locator("[data-file='foo.cast']")).to_contain_text("make player")


def test_a_phone_shows_everything_without_scrolling_sideways(page: Page, view: View) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    for address in ("", f"#/new/{CREATE}", "#/new/hostile-1", "#/tutorial"):
        page.goto((view.output / "index.html").as_uri() + address)
        page.locator("h1").wait_for()
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_an_open_page_follows_the_tests(page: Page, tmp_path: Path) -> None:
    run = make_run(tmp_path, "r", finished=None)
    view = View(tmp_path, tmp_path / "view")
    now: dict[str, Any] = {"started": time.time()}
    with ViewServer(view) as server:
        page.goto(server.url)
        expect(page.locator("#live")).to_have_text("live")
        page.locator("#search").fill("te")
        directory = make_test(run, "test_it", "running", (step(1, "echo one", out="one"),), slug="t", **now)
        expect(page.locator(".rows .running .name")).to_have_text("test_it")
        assert page.locator("#search").input_value() == "te"
        assert focused(page) == "search"
        page.get_by_role("link", name="test_it").click()
        expect(page.locator(".output")).to_have_text(["one\n"])
        with open(directory / "steps.jsonl", "a") as file:
            file.write(json.dumps(step(2, "echo two", out="two")) + "\n")
        expect(page.locator(".output")).to_have_text(["one\n", "two\n"])
        (directory / "foo.cast").write_text(RECORDED)
        expect(page.locator(".ap-term")).to_contain_text("the end")
        shutil.rmtree(directory)
        make_test(run, "test_it", "passed", (step(1, "echo one", out="one"),), slug="t", **now)
        expect(page.locator("h1 .sign.passed")).to_be_visible()
        page.close()  # before its server ends, which it would complain about


def test_a_thousand_tests_are_listed_and_searched(page: Page, tmp_path: Path) -> None:
    run = make_run(tmp_path, "r")
    for number in range(1000):
        steps = tuple(step(n, f"mngr create agent-{number} --step {n}", out="made") for n in (1, 2, 3))
        make_test(run, f"test_{number}", steps=steps, slug=f"t{number}")
    view = View(tmp_path, tmp_path / "view")
    view.build()
    page.goto((view.output / "index.html").as_uri())
    expect(page.locator(".rows li")).to_have_count(1000)
    page.locator(".list[data-searchable]").wait_for()
    page.locator("#search").fill("agent-777 ")
    assert names(page) == ["test_777"]
    loaded = page.evaluate(
        "() => performance.getEntriesByType('resource').filter(entry => entry.name.includes('data/tests')).length"
    )
    assert loaded == 0


def test_the_verb_serves_says_where_and_ends_with_ctrl_c(page: Page, mngr: Mngr, home: Home) -> None:
    make_test(make_run(home.path / ".test_output" / "e2e", "r"), "test_it")
    process = mngr.popen("e2e", "view", "--serve", cwd=home.path)
    assert process.stdout
    page.goto(process.stdout.readline().strip())
    expect(page.locator(".rows .name")).to_have_text(["test_it"])
    page.close()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert process.stderr
    assert "Traceback" not in process.stderr.read()


def test_the_verb_writes_the_folder_and_says_where(mngr: Mngr, home: Home) -> None:
    make_test(make_run(home.path / ".test_output" / "e2e", "r"), "test_it")
    written = mngr.json("e2e", "view", "--output", "site", cwd=home.path)
    assert (written["index"], written["runs"], written["tests"], written["problems"]) == ("site/index.html", 1, 1, [])
    assert mngr.ok("e2e", "view", cwd=home.path) == ".test_output/e2e/view/index.html\n"
    assert (home.path / "site" / "index.html").exists()


def test_the_verb_refuses_what_makes_no_sense(mngr: Mngr, home: Home) -> None:
    for words, told in (
        ([], ".test_output/e2e: no such directory"),
        (["nowhere"], "nowhere: no such directory"),
        ([".", "--port", "80"], "--port goes with --serve"),
        ([".", "--serve", "--json"], "--json"),
        ([".", "--serve", "--port", "many"], "--port takes a number"),
        ([".", "--tutorial", "nothing.sh"], "nothing.sh"),
    ):
        result = mngr("e2e", "view", *words, cwd=home.path)
        assert result.code == 2
        assert told in result.err
    (home.path / "full").mkdir()
    (home.path / "full" / "mine.txt").write_text("mine")
    result = mngr("e2e", "view", ".", "--output", "full", cwd=home.path)
    assert (result.code, "not of a view" in result.err) == (1, True)
