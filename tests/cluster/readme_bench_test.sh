#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of the pages that measure; readme_test.sh runs the others.
# shellcheck disable=SC2034 # readme_test.sh reads it
measures=yes
. "$(dirname "$0")/readme_test.sh"
