#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# own_shm.sh COMMAND...: runs a command that has a /dev/shm for itself, and prints "left in /dev/shm: NAME"
# for each name that is there at its end, but those of the stand-in for NCCL, which a rank that dies while it
# connects cannot remove. Ends as the command does. Where there is no mount namespace to
# be had, it prints that instead, and the command shares /dev/shm with all others.
user=
[ "$(id -u)" -eq 0 ] || user=--map-root-user
# shellcheck disable=SC2016
run='mount -t tmpfs hvd-test /dev/shm || exit 126
"$@"
status=$?
ls -A /dev/shm | grep -v "^fake_nccl_" | sed "s,^,left in /dev/shm: ,"
exit $status'
# shellcheck disable=SC2086
if unshare $user --mount mount -t tmpfs hvd-test /dev/shm 2>/dev/null; then
    exec unshare $user --mount sh -c "$run" own_shm "$@"
fi
echo "no /dev/shm of its own"
exec "$@"
