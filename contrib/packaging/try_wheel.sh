#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the wheel in a Debian that has only Python, no compiler and none of hvd's libraries: installs it in a virtual
# environment of a user, lets hvd-bench measure and check an allreduce on two ranks, and runs a function on two ranks.
# Needs root and `contrib/packages.sh install distros`.
#
# usage: try_wheel.sh WHEEL RELEASE ROOT
# RELEASE: of Debian, such as bullseye. ROOT: the folder for its root directory; debootstrap makes it if it is missing,
# and it is kept for the next run.
set -euo pipefail

wheel=$(realpath "${1:?usage: try_wheel.sh WHEEL RELEASE ROOT}")
release=$2
root=$3

# Prints the address of the archive from which this machine installs packages.
mirror()
{
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1
}

# in_root COMMAND...: runs COMMAND in the root directory, with its own list of processes and its own shared memory.
in_root()
{
    # shellcheck disable=SC2016 # for the shell inside
    unshare --mount --propagation private --pid --fork --kill-child bash -euc '
        mount --bind "$0" "$0" && cd "$0"
        mkdir -p outside
        mount -t proc proc proc
        mount --rbind /sys sys
        mount --rbind /dev dev
        mount -t tmpfs tmpfs dev/shm
        pivot_root . outside && umount -l /outside
        exec env -i HOME=/try PATH=/usr/bin:/bin "$@"' "$root" "$@"
}

if [ ! -x "$root/usr/bin/python3" ]; then
    # shellcheck disable=SC2046 # no argument if empty
    debootstrap --variant=minbase --include=python3-venv "$release" "$root" $(mirror) >"$root.log" 2>&1 ||
        { tail -n 5 "$root.log" >&2 && exit 1; }
fi
rm -rf "$root/try"
mkdir "$root/try"
python3 -m pip download --quiet --no-deps --dest "$root/try" cloudpickle
cp "$wheel" "$root/try/"
cat >"$root/try/run.sh" <<'SH'
set -eu
getconf GNU_LIBC_VERSION
if command -v cc; then
    echo 'try_wheel.sh: this root directory has a compiler: name another' >&2
    exit 1
fi
python3 -m venv /try/venv
. /try/venv/bin/activate
pip install --quiet --no-index --find-links /try hvd
pip list
hvdrun -np 2 hvd-bench allreduce --sizes 8,64K,4M
cat >/try/run.py <<'PYTHON'
import os, horovod
print(horovod.run(lambda: f"rank {os.environ['HOROVOD_RANK']} of {os.environ['HOROVOD_SIZE']}", num_proc=2))
PYTHON
python /try/run.py
SH
chown -R 65534:65534 "$root/try"
in_root setpriv --reuid 65534 --regid 65534 --clear-groups sh /try/run.sh
