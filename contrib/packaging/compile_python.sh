# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Runs after a deb or rpm has installed hvd: compiles its Python modules. Users may not write the compiled files, so
# otherwise each rank would compile the modules again at its start.
python3 -m compileall -q /usr/lib/hvd/python || true
