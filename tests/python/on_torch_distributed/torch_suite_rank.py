# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that runs torch's suite: torch_suite.py tells how. Results are appended to a file, a
line a test; those that have a line are not run again. HVD_SUITE_KNOWN names tests that are expected to
fail, of themselves: they are run last, and the job goes on after them."""

import faulthandler
import os
import signal
import sys
import time
import traceback
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.testing._internal import common_distributed, common_utils

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
# Releases after 1.13 run the tests of groups of some ranks on eight ranks and more; three are enough.
common_distributed.skip_if_small_worldsize = unittest.skipIf(SIZE < 3, 'it needs three ranks')

from torch.testing._internal.distributed import distributed_test as suite  # noqa: E402

DIRECTORY = os.environ['HVD_SUITE_DIRECTORY']
BACKEND = os.environ['HVD_SUITE_BACKEND']
KNOWN = os.environ['HVD_SUITE_KNOWN'].split()
LONGEST = 60  # seconds of a test
LONGEST_KNOWN = 15  # of one that fails
HURRIED = 'test_barrier_timeout_global'
AGAIN = 7  # exit status after a failure: another job goes on

# Of ranks that wait for each other between tests, whatever became of the groups.
MEETING = dist.FileStore(os.path.join(DIRECTORY, f'meeting.{os.getppid()}'), SIZE)


class Suite(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
    pass


def take_the_place_of_gloo():
    from horovod import backend
    backend.register()
    c10d = dist.distributed_c10d
    dist.Backend._plugins['GLOO'] = dist.Backend._plugins['HVD']
    kinds = getattr(dist.Backend, 'backend_type_map', {})
    kinds['gloo'] = kinds.get('hvd')
    # Torch checks the calls of its own backends when TORCH_DISTRIBUTED_DEBUG is DETAIL, not hvd's.
    c10d._create_process_group_wrapper = lambda wrapped_pg, **_: wrapped_pg
    if not hasattr(c10d, '_create_gloo_process_group'):  # torch makes it by its class
        c10d.ProcessGroupGloo = TypeOfGroups('ProcessGroupGloo', (), {})


class TypeOfGroups(type):
    """Makes groups of hvd, which older torch believes to be of this type."""

    def __call__(cls, *arguments, **named):
        return group_of_older_torch(*arguments, **named)

    def __instancecheck__(cls, group):
        return isinstance(group, dist.ProcessGroup)


def group_of_older_torch(store, rank, size, timeout=None):
    from horovod.torch.distributed.group import make
    frame = sys._getframe(1)
    while 'global_ranks_in_group' not in frame.f_locals:
        frame = frame.f_back
    asked = frame.f_locals
    options = dist.distributed_c10d._DistributedBackendOptions()
    options.store, options.group_rank, options.group_size = store, rank, size
    options.timeout = timeout
    options.global_ranks_in_group = asked['global_ranks_in_group']
    return make(options)


def meet(what):
    """All ranks come here; the job ends if one does not."""
    MEETING.add(what, 1)
    until = time.monotonic() + 2 * LONGEST
    while MEETING.add(what, 0) < SIZE:
        if time.monotonic() > until:
            os._exit(AGAIN)
        time.sleep(0.02)


def note(name, word, reason=''):
    with open(os.path.join(DIRECTORY, f'results.{RANK}'), 'a') as file:
        print(name, word, ' '.join(str(reason).split())[-600:], file=file)


def noted():
    path = os.path.join(DIRECTORY, f'results.{RANK}')
    return {line.split()[0] for line in open(path)} if os.path.exists(path) else set()


def why_skipped(status):
    return next((each.message for each in common_distributed.TEST_SKIPS.values()
                 if each.exit_code == status), None)


def run(test, name):
    """The word and reason of a test. Also of one that torch skips for Gloo, by an attribute: hvd may
    have what Gloo lacks."""
    try:
        timeout = suite.CUSTOM_PG_TIMEOUT.get(name, 40)
        dist.init_process_group('gloo', init_method=test.init_method, rank=RANK, world_size=SIZE,
                                timeout=timedelta(seconds=timeout))
        test._barrier()
        common_utils.set_rng_seed(1234)
        getattr(test, name)()
        test._barrier()
    except unittest.SkipTest as reason:
        return 'skipped', reason
    except SystemExit as end:
        reason = why_skipped(end.code)
        return ('skipped', reason) if reason else ('failed', f'exit {end.code}')
    except BaseException as failure:
        return 'failed', ''.join(traceback.format_exception(type(failure), failure,
                                                            failure.__traceback__))
    return 'ok', ''


def leave(word):
    """The word and reason of leaving the group."""
    try:
        if word == 'failed' and BACKEND == 'hvd':
            from horovod.common.basics import basics
            basics.shutdown()  # others may wait for this rank
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException as failure:
        return 'failed', f'destroy_process_group: {failure}'
    return word, ''


def is_late(*_):
    raise RuntimeError(f'{LONGEST} s are over')


def take(number, name):
    """One test; ends the job if it fails unexpectedly on any rank."""
    meet(f'{number} begins')
    test = Suite(name)
    test.rank = RANK
    test.file_name = os.path.join(DIRECTORY, f'store.{os.getppid()}.{number}')
    # Has one second, after which 1.13 looks again for a rank 0 that does not listen yet.
    suite.INIT_METHOD = f'file://{test.file_name}.again' if name == HURRIED else 'env://'
    suite.Barrier.barrier_id = 0
    if RANK == 0:
        for each in os.scandir(os.path.join(DIRECTORY, 'barrier')):
            os.unlink(each)
    meet(f'{number} is ready')
    note(name, 'lost')
    faulthandler.dump_traceback_later(LONGEST + 20, exit=True)
    signal.alarm(LONGEST_KNOWN if name in KNOWN else LONGEST)
    word, reason = run(test, name)
    signal.alarm(LONGEST // 4)
    left, why_not = leave(word)
    signal.alarm(0)
    faulthandler.cancel_dump_traceback_later()
    note(name, left, f'{reason} {why_not}')
    if left == 'failed' and name not in KNOWN:
        MEETING.add(f'{number} fails', 1)
    meet(f'{number} ends')
    if MEETING.add(f'{number} fails', 0) > 0:
        os._exit(AGAIN)


def main():
    for each in ('barrier', 'test_dir', 'init_dir'):
        os.makedirs(os.path.join(DIRECTORY, each), exist_ok=True)
    signal.signal(signal.SIGALRM, is_late)
    if BACKEND == 'hvd':
        take_the_place_of_gloo()
    suite.PROFILING_SUPPORTED_BACKENDS = []
    names = sys.argv[1:] or [each for each in dir(Suite)
                             if each.startswith('test') and not each.endswith('_profiler')]
    done = noted()
    for number, name in enumerate(sorted(names, key=KNOWN.__contains__)):
        if name not in done:
            take(number, name)


if __name__ == '__main__':
    main()
