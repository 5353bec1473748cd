# SPDX-License-Identifier: Apache-2.0
"""A job for elastic_sets_check.py: elastic_sets_job.py FRONT_END DIRECTORY. Slot 1 of three dies
and comes back. In each generation the slots print which slots they find in their process sets."""

import importlib
import os
import sys
import time

from horovod.common.elastic import ObjectState
from horovod.common.objects import allgather_object, broadcast_object

hvd = importlib.import_module(sys.argv[1])
SLOT = int(os.environ['HOROVOD_RANK'])
MARK = os.path.join(sys.argv[2], f'was.{SLOT}')
IS_FIRST = not os.path.exists(MARK)


def meet(process_set):
    """Returns the slots in the set, or the text of the error if it cannot be used."""
    try:
        return allgather_object(SLOT, None, process_set)
    except ValueError as refusal:
        return str(refusal)


@hvd.elastic.run
def train(state, sets):
    sets = dict(sets, train=hvd.add_process_set([0]))
    for name, each in sets.items():
        if each.included() or not each.size():
            print(f'{state.generation} slot {SLOT} {name}: {meet(each)}', flush=True)
    state.generation += 1
    state.commit()
    if SLOT == 1 and IS_FIRST:
        os._exit(3)
    while state.generation < 3:  # until slot 1's death or return raises an exception
        state.check_host_updates()
        time.sleep(0.02)


def main():
    open(MARK, 'w').close()
    os.environ['HOROVOD_DYNAMIC_PROCESS_SETS'] = '1'
    pair, ends = hvd.ProcessSet([1, 2]), hvd.ProcessSet([0, 2])
    hvd.init(process_sets=[pair, ends])
    sets = {'pair': pair, 'ends': ends, 'alone': hvd.add_process_set([1])}
    train(ObjectState(broadcast_object, hvd.rank, generation=0), sets)
    hvd.shutdown()


if __name__ == '__main__':
    main()
