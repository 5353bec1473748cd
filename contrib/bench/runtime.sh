#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The runtime of hvd against Horovod 0.28.1 and Open MPI on this machine, as Markdown tables:
#
#   contrib/bench/runtime.sh [--turns N] [--layouts 2,2 1,1] [--lists resnet50 bert_base] ...
#   contrib/bench/runtime.sh --calls [--turns N] [--count N] [--ranks 1 2] [--tensorflow PYTHON] ...
#
# With --calls: only what the calls of torch's front end cost a thread for each tensor, in Python
# and in C, also of torch.distributed (call_costs.py); four minutes. With --tensorflow, which names a
# Python that has TensorFlow, also those of its front end.
#
# Installs what is missing (Debian, root), builds hvd in build-bench/ and Horovod once
# (horovod_env.sh); without Horovod, the rest is measured. Takes about half an hour, during which
# nothing else should run: the tables come with the machine's load.
#
# The agreement's tables: a step submits all gradients of a model, one element each, and waits for
# all. "alone" is the same by as many jobs of one rank at once: the same calls on an equally busy
# machine, with nobody to agree with; so "step - alone" is what agreeing costs, with the exchange
# of the few elements, and without the wait for a cycle that a job of one rank has, too. "one
# tensor" is one agreement and all the data. CPU is processor time, of all ranks together.
# Both runtimes are called from Python by agreement.py; "hvd, C" is agreement.c.
# Where ranks share cores, Horovod also pays for its waiting threads, which poll: on a machine of
# two cores, layout 1,1 is kinder to it than 2,2.
set -euo pipefail

root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
build=$root/build-bench

case ${1-} in --help | -h) sed -n '3,24s/^# \{0,1\}//p' "$0" && exit ;; esac
"$root/contrib/packages.sh" install build torch bench >&2
meson configure "$build" -Dbench=true >/dev/null 2>&1 || meson setup "$build" "$root" -Dtests=false -Dbench=true >&2
ninja -C "$build" >&2
horovod=()
if python=$("$root/contrib/bench/horovod_env.sh"); then
    horovod=(--horovod "$python")
fi
program=runtime.py options=("${horovod[@]}")
if [ "${1-}" = --calls ]; then
    shift
    program=call_costs.py
fi
exec /usr/bin/python3 "$root/contrib/bench/$program" --build "$build" "${options[@]}" "$@"
