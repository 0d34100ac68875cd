import sys

from mngr.cli.main import main

sys.exit(main())
