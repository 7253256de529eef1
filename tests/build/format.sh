#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every C and C++ file is as clang-format-14 would write it. Usage: format.sh [--fix]
set -eu
cd "$(dirname "$0")/../.."

mode='--dry-run -Werror'
[ "${1-}" != --fix ] || mode=-i
# shellcheck disable=SC2086 # two words
find include src sim tests bench -name '*.[ch]pp' -o -name '*.[ch]' | sort |
  xargs -r clang-format-14 $mode
