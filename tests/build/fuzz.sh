#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds the fuzz preset, replays each corpus under AddressSanitizer, fuzzes each target for 20 s.
set -eu
cd "$(dirname "$0")/../.."

cmake --preset fuzz
cmake --build --preset fuzz
ctest --preset fuzz -j "$(nproc)"
