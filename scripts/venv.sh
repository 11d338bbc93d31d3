#!/usr/bin/env bash
# venv.sh DIR: a virtual environment with pip at DIR, from PYTHON or the first Python >= 3.11 found.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

dir=$1

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; }

find_python() {
  local name
  for name in ${PYTHON:-python3.11 python3 python3.12 python3.13}; do
    if command -v "$name" > /dev/null && is_new_enough "$name"; then
      command -v "$name"
      return
    fi
  done
  die "no Python >= 3.11 found: install python3.11, or name one with 'make PYTHON=/path/to/python ...'"
}

if "$dir/bin/python" -m pip --version > /dev/null 2>&1; then
  exit
fi

python=$(find_python)
if ! "$python" -c 'import ensurepip' 2> /dev/null; then
  package="$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
  apt_install "$package" || die "$python cannot make virtual environments: install $package"
fi
say "creating $dir with $python"
"$python" -m venv --clear "$dir"
