"""End-to-end tests that read like a terminal, for any command-line program. Add mngr to the development dependencies,
and pytest has the fixture `e2e`:

    def test_greets(e2e):
        result = e2e.run("hello --name Ada", comment="greet somebody")
        expect(result).to_succeed().to_contain("Hello, Ada")

Nothing in this package imports the rest of mngr. docs/e2e.md is the way in."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.e2e.command import Result as Result
    from mngr.e2e.expectation import expect as expect
    from mngr.e2e.session import E2eSession as E2eSession
    from mngr.e2e.terminal import Terminal as Terminal

_HOME = {"E2eSession": "session", "Result": "command", "Terminal": "terminal", "expect": "expectation"}
__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"mngr.e2e has no {name!r}")
    from importlib import import_module

    return getattr(import_module(f"mngr.e2e.{_HOME[name]}"), name)
