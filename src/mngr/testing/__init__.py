"""What every place that agents can be in must do, as tests for pytest. A provider of hosts is ready when its hosts pass
them: docs/providers.md shows how to write one, and how to run these.

    class TestMyHosts(HostConformance):
        @pytest.fixture
        def host(self):
            return arrived(MyProvider(), "box.mine")

Each file beside this one has the tests of one thing; conformance.py puts them together."""

import pytest

pytest.register_assert_rewrite(
    *(f"mngr.testing.{part}" for part in ("running", "streaming", "ending", "derived", "trouble"))
)

from mngr.testing.conformance import HostConformance as HostConformance  # noqa: E402 - rewritten, so that failures show values
from mngr.testing.control import Control as Control  # noqa: E402
from mngr.testing.control import arrived as arrived  # noqa: E402
