# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Runs before a deb or rpm of hvd is removed: removes the compiled modules that compile_python.sh, or a Python that ran
# as root, has written.
find /usr/lib*/hvd /usr/lib/*/hvd /usr/share/hvd -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
