# What the set-up scripts share; sourced, never run.

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

# apt_install PACKAGE...: from the distribution, as root or through sudo; fails where there is no apt-get.
apt_install() {
  command -v apt-get > /dev/null || return 1
  local root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null || return 1
    root=(sudo)
  fi
  say "installing $* from the distribution"
  # A new machine has no package lists yet, an old one stale ones: refresh them only when the first try fails.
  _apt_get "$@" > /dev/null 2>&1 || { "${root[@]}" apt-get -qq update && _apt_get "$@" >&2; }
}

_apt_get() {
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" < /dev/null
}
