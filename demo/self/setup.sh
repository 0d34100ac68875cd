#!/bin/sh
# setup.sh PYTHON: a .venv in this checkout, so that what its tests import and run is what lies here and nothing else. The
# packages are those of the environment that PYTHON is of: by a line of a .pth file, which does not read the .pth files
# over there, one of which would lead to other sources.
set -eu

"$1" -m venv --without-pip .venv
theirs=$("$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
ours=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$PWD/src" "$theirs" >"$ours/here.pth"
for program in mngr mngr-e2e-connect; do
  { echo "#!$PWD/.venv/bin/python" && tail -n +2 "bin/$program"; } >".venv/bin/$program"
  chmod +x ".venv/bin/$program"
done
