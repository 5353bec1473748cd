# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Runs after hvd has been installed, from a deb and from an rpm: compiles the modules, which users cannot write.
# Without it, each rank would compile them again at its start.
python3 -m compileall -q /usr/lib/hvd/python || true
