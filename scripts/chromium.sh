#!/usr/bin/env bash
# chromium.sh: prints the path of a Chromium that starts here, installing one where there is none.
# Looks at CHROMIUM, then the PATH, then the distribution's packages, then Playwright's own build.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

NAMES=(chromium chromium-browser google-chrome google-chrome-stable)

# Starting it is the only proof: on Ubuntu the package is a shim that needs a running snapd.
starts() {
  local profile ok=0
  profile=$(mktemp -d)
  timeout 60 "$1" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
    --user-data-dir="$profile" --dump-dom 'data:text/html,<p>started' 2> /dev/null < /dev/null | grep -q started || ok=1
  rm -rf "$profile"
  return $ok
}

print_first_that_starts() {
  local name path
  for name in "$@"; do
    path=$(command -v "$name") || continue
    if starts "$path"; then
      printf '%s\n' "$path"
      return 0
    fi
    say "$path does not start headless: looking on"
  done
  return 1
}

playwright_build() {
  python -c 'from playwright.sync_api import sync_playwright as p
with p() as pw: print(pw.chromium.executable_path)'
}

driver_starts() { python -m playwright --version > /dev/null 2>&1; }

# Playwright brings its own node, which wants a library that comes with a compiler and that small images lack.
driver_starts || apt_install libatomic1 || true
driver_starts || die "Playwright's driver does not start; its own words: $(python -m playwright --version 2>&1 | tail -n 1)"

if [ -n "${CHROMIUM:-}" ]; then
  print_first_that_starts "$CHROMIUM" && exit
  die "CHROMIUM=$CHROMIUM does not start"
fi

print_first_that_starts "${NAMES[@]}" && exit
for package in chromium chromium-browser; do
  if apt_install "$package"; then
    hash -r
    print_first_that_starts "${NAMES[@]}" && exit
  fi
done
say "no Chromium from the distribution: trying Playwright's own build"
python -m playwright install --with-deps chromium >&2 || true
print_first_that_starts "$(playwright_build)" && exit
die "no Chromium starts here, and the browser tests need one: install chromium or google-chrome, or name one with CHROMIUM=/path"
