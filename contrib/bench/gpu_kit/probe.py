# SPDX-License-Identifier: Apache-2.0
"""Checks hvd on a real GPU, in addition to the project's tests. Runs as each rank of a job on one node;
all ranks use the first GPU. device.sh starts it.

    hvdrun -np 2 python3 probe.py streams graphs
    hvdrun -np 2 python3 probe.py --device cpu streams     # to try this script
"""

import argparse
import os
import sys
import time
import traceback

# NCCL accepts several ranks on one GPU if each claims to be on a host of its own.
os.environ.setdefault('NCCL_HOSTID', f'kit.{os.environ.get("HOROVOD_RANK", 0)}')

import horovod.torch as hvd  # noqa: E402
import backend  # noqa: E402
import behaviour  # noqa: E402
import figures  # noqa: E402
import gathers  # noqa: E402
from accelerator import Accelerator  # noqa: E402
from findings import Findings, first_line  # noqa: E402

PARTS = {part.__name__: part for part in figures.PARTS + gathers.PARTS + behaviour.PARTS
         + backend.PARTS}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('parts', nargs='+', choices=PARTS)
    parser.add_argument('--device', choices=('cuda', 'cpu'), default='cuda')
    return parser.parse_args()


def run_part(name, gpu, findings):
    begin = time.perf_counter()
    try:
        PARTS[name](gpu, findings)
    except Exception as error:  # pylint: disable=broad-except # the next part may work
        findings.check(False, name, first_line(error))
        traceback.print_exc()
    if hvd.rank() == 0:
        print(f'    {name}: {time.perf_counter() - begin:.1f} s', flush=True)


def main():
    options = parse()
    findings = Findings()
    hvd.init()
    gpu = Accelerator(options.device)
    for name in options.parts:
        run_part(name, gpu, findings)
    findings.check_call('the process group and hvd end', lambda: (backend.end(), hvd.shutdown()))
    sys.stdout.flush()
    # A defect may have left threads behind that would keep the interpreter from exiting.
    os._exit(findings.defects > 0)


if __name__ == '__main__':
    main()
