# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Runs before hvd is removed, from a deb and from an rpm: removes the modules that were compiled after the installation,
# or by Python that ran as root.
find /usr/lib*/hvd /usr/lib/*/hvd /usr/share/hvd -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
