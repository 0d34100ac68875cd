"""Tools for developing mngr and plugins. The scripted model server speaks the protocols of model APIs, so that the
real agent programs can be tested with no network, no key and the same answer every time. docs/model-server.md."""
