#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# own_shm.sh COMMAND...: runs a command with a private /dev/shm, and prints "left in
# /dev/shm: NAME" for each file left there at the end, except those of the stand-in for
# NCCL, which a rank that dies while it connects cannot remove. Exits with the command's
# status. Without mount namespaces it prints "no /dev/shm of its own", and the command uses
# the /dev/shm of the machine.
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
