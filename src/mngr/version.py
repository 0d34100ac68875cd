"""The version, in a file of its own so that `mngr --version` imports nothing else. pyproject.toml reads it from
here."""

VERSION = "0.1.0"
