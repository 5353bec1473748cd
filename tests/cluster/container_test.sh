#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks in containers that have Python but none of the libraries that hvd needs. A user namespace in which these
# libraries cannot be loaded stands in for a container.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
cat >"$home/enter" <<'SCRIPT'
#!/bin/sh
# enter COMMAND...: runs COMMAND in a container.
exec unshare --user --map-root-user --mount sh -euc '
    for file in $(ls -d /usr/lib/*/libpmix.so* /usr/lib/*/libsodium.so* /usr/lib/*/libuc[pst].so* \
            /usr/lib/*/libhwloc.so* /usr/lib/*/pmix*/lib/libpmix.so* 2>/dev/null); do
        mount --bind /dev/null "$(readlink -f "$file")"
    done
    exec "$@"' enter "$@"
SCRIPT
# The script does without PyTorch, because that of Debian 12 needs libsodium itself.
cat >"$home/sum.py" <<'SCRIPT'
import ctypes
from ctypes import byref
from horovod.common import basics, library

NUMBERS, SUM = 100000, 1
basics.init()
numbers = (ctypes.c_float * NUMBERS)(*[basics.rank() + 1] * NUMBERS)
shape = (ctypes.c_int64 * 1)(NUMBERS)
tensor = library.Tensor(name=b'numbers', input=ctypes.addressof(numbers), output=ctypes.addressof(numbers),
                        shape=shape, ndim=1, dtype=library.DTYPES['float32'], device=library.DEVICE_CPU)
request, error = ctypes.c_void_p(), library.Error()
status = library.lib.hvd_allreduce_start(byref(tensor), 1, SUM, 1, 1, 0, byref(request), byref(error)) or \
    library.lib.hvd_wait(request, byref(error))
try:
    ctypes.CDLL('libhwloc.so.15')
    where = 'outside'
except OSError:
    where = 'inside'
print(f'rank {basics.rank()} of {basics.size()}, local {basics.local_rank()}, {where}: '
      f'{numbers[0] if status == 0 else error.message()}')
SCRIPT
chmod 755 "$home/enter"
chmod 644 "$home/sum.py"
message=$(as_user ./enter true 2>&1) || tap_skip_all "no user namespaces here: $(tail -n 1 <<<"$message")"

# in_containers START_BY SRUN-OPTION...: runs ranks in containers; all must print their line.
in_containers()
{
    as_user HOROVOD_LOG_LEVEL=info HVD_START_BY="$1" srun --hvd "${@:2}" -N 2 --ntasks-per-node=2 \
        ./enter /usr/bin/python3 sum.py >"$work/ranks" 2>&1
    cat "$work/ranks"
    [ "$(grep -cE '^rank [0-3] of 4, local [01], inside: 10.0$' "$work/ranks")" = 4 ]
}

succeeds 'ranks in containers find each other' in_containers service
prints 'ranks in containers use the rendezvous service' "start: 4 ranks, by hvd's rendezvous service" cat "$work/ranks"
if has_pmix; then
    succeeds 'ranks in containers find each other with HVD_START_BY=pmix' in_containers pmix
    prints 'they log why PMIx was not used' \
        'no PMIx here: .*hvd-boot cannot start: .*lib(pmix|sodium)' cat "$work/ranks"
else
    tap_skip 'they log why PMIx was not used' "$no_pmix"
fi
succeeds 'ranks in containers find each other with --mpi=none' in_containers service --mpi=none
prints 'outside containers, libhvd uses the libraries of the system' '/lib/[^ ]*/libsodium' \
    as_user /usr/bin/python3 -c '
import sys
sys.path.insert(0, sys.argv[1])
import horovod.common.library
print(*(line.split()[-1] for line in open("/proc/self/maps") if "libsodium" in line))' \
    "$prefix/lib/hvd/python"
tap_done
