#!/usr/bin/env bash
# mlir.sh: sees to it that mlir-opt and mlir-translate of LLVM 19, which the target "mlir" needs, are on the PATH.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

VERSION=19
PACKAGE=mlir-$VERSION-tools

# Under the distribution's name or the plain one, as the inspector looks for them.
is_there() {
  local name
  for name in "$1-$VERSION" "$1"; do
    if "$name" --version 2> /dev/null | grep -q "LLVM version $VERSION"; then
      return
    fi
  done
  return 1
}

all_there() { is_there mlir-opt && is_there mlir-translate; }

all_there && exit
apt_install "$PACKAGE" || true
hash -r
all_there || die "no mlir-opt and mlir-translate of LLVM $VERSION here, and the tests run what passes make with them: install $PACKAGE, or put them on the PATH"
