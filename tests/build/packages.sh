# SPDX-License-Identifier: BSD-2-Clause
# Sourced by sim/demo, tests/run, bench/run and .ci/setup: the packages that each needs, and their installation.

# What the command, the tests, the checks and the benches need, by the names of Debian 12.
packages_demo="g++ cmake ninja-build libfmt-dev libcli11-dev"
packages_test="$packages_demo libgtest-dev libgmock-dev libbenchmark-dev jq libxml2-utils mandoc cpp"
packages_check="$packages_test clang libclang-rt-14-dev llvm-14 clang-format-14 valgrind pkg-config"
packages_bench="$packages_test valgrind"
# What the benches compare with, where it can be had.
packages_peers="libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 lttng-tools liblttng-ust-dev
  systemtap-sdt-dev time"

say() { printf '== %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$0" "$*" >&2
  exit 1
}

is_debian_12() (
  [ -r /etc/os-release ] || exit 1
  . /etc/os-release
  [ "${ID-}" = debian ] && [ "${VERSION_ID-}" = 12 ]
)

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
  for package; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=absent
    [ "$status" = installed ] || printf '%s ' "$package"
  done
}

# install_packages PACKAGE...: on Debian 12 installs those that are missing. Another system must
# have them all already, under these names; otherwise the list is printed and the script ends with
# status 1.
install_packages() {
  missing=$*
  if command -v dpkg-query >/dev/null 2>&1; then
    missing=$(missing_packages "$@")
  fi
  if [ -z "$missing" ]; then
    say "all packages are installed: $*"
    return
  fi
  if ! is_debian_12; then
    printf 'Packages needed, by the names of Debian 12:\n  %s\n' "$*"
    die "this is not Debian 12, so nothing is installed here; install: $missing"
  fi
  may_install || die "must be root, or have sudo, to install: $missing"
  say "apt-get update (log: build/apt.log)"
  apt_get update -q
  say "apt-get install --no-install-recommends $missing"
  # shellcheck disable=SC2086 # a list of words
  apt_get install -q -y --no-install-recommends $missing
}

# install_optional_packages PACKAGE...: installs what is missing of them; what cannot be had is
# named and left out.
install_optional_packages() {
  command -v dpkg-query >/dev/null 2>&1 || return 0
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if ! is_debian_12 || ! may_install; then
    say "not installed, left out: $missing"
    return
  fi
  (apt_get update -q) || true
  for package in $missing; do
    say "apt-get install --no-install-recommends $package"
    (apt_get install -q -y --no-install-recommends "$package") || say "left out: $package"
  done
}

may_install() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null 2>&1; }

# apt_get ARGUMENT...: as root; its output is kept in build/apt.log and shown when it fails.
apt_get() {
  mkdir -p build
  sudo=
  [ "$(id -u)" = 0 ] || sudo=sudo
  if ! $sudo env DEBIAN_FRONTEND=noninteractive apt-get "$@" >build/apt.log 2>&1 </dev/null; then
    tail -n 30 build/apt.log >&2
    die "apt-get $1 failed"
  fi
}

# build PRESET [CMAKE-ARG]...: configures build/PRESET and builds it. Run from the project's root.
build() {
  preset=$1
  shift
  say "cmake --preset $preset $*"
  cmake --preset "$preset" "$@"
  say "cmake --build --preset $preset"
  cmake --build --preset "$preset"
}
