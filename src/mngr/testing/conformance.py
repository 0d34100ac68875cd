"""All tests of a host, as one class to inherit from."""

from __future__ import annotations

import pytest

from mngr import hosts
from mngr.process import quote
from mngr.testing.control import Control
from mngr.testing.derived import Derived
from mngr.testing.ending import Ending
from mngr.testing.running import Running
from mngr.testing.streaming import Streaming
from mngr.testing.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.hosts import Host


class HostConformance(Running, Streaming, Ending, Derived, Trouble):
    """Give it a fixture `host`; and, if there are ways to cut the host off or to crash it, a fixture `control`."""

    @pytest.fixture
    def host(self) -> Host:
        raise NotImplementedError("a fixture `host` gives the tests what they are about")

    @pytest.fixture
    def control(self) -> Control:
        return Control()

    @pytest.fixture
    def there(self, host: Host) -> Iterator[str]:
        """A directory on the host for one test."""
        path = hosts.check(host, 'mkdir -p "$H" && mktemp -d "$H/test.XXXXXX"').strip()
        yield path
        hosts.check(host, f"rm -rf {quote(path)}")
