# SPDX-License-Identifier: Apache-2.0
"""A rank of a job that runs torch's suite for torch_suite.py. It appends a line for each test to a
file, and skips tests that have a line from an earlier job. HVD_SUITE_KNOWN names the tests that are
expected to fail. They run last, and the job continues after them."""

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
# Releases after 1.13 skip tests of groups of some ranks if the job has fewer than eight ranks.
# Three suffice.
common_distributed.skip_if_small_worldsize = unittest.skipIf(SIZE < 3, 'it needs three ranks')

from torch.testing._internal.distributed import distributed_test as suite  # noqa: E402

DIRECTORY = os.environ['HVD_SUITE_DIRECTORY']
BACKEND = os.environ['HVD_SUITE_BACKEND']
KNOWN = os.environ['HVD_SUITE_KNOWN'].split()
LONGEST = 60  # time limit of a test in seconds
LONGEST_KNOWN = 15  # time limit of a test that is expected to fail
HURRIED = 'test_barrier_timeout_global'
AGAIN = 7  # exit status after a failure, which makes torch_suite.py start another job

# With this store the ranks wait for each other between tests, independently of groups.
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
    # With TORCH_DISTRIBUTED_DEBUG=DETAIL torch checks the calls of its own backends only.
    c10d._create_process_group_wrapper = lambda wrapped_pg, **_: wrapped_pg
    if not hasattr(c10d, '_create_gloo_process_group'):  # older torch calls the class instead
        c10d.ProcessGroupGloo = TypeOfGroups('ProcessGroupGloo', (), {})


class TypeOfGroups(type):
    """A type whose instances are groups of hvd. Older torch calls it as ProcessGroupGloo()."""

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
    """Waits until all ranks have called this; ends the job if one does not."""
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
    """Runs a test, even if torch skips it for Gloo by an attribute, because hvd may support it.
    Returns the word and the reason."""
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
    """Leaves the group; returns the word and the reason."""
    try:
        if word == 'failed' and BACKEND == 'hvd':
            from horovod.common.basics import basics
            basics.shutdown()  # other ranks may wait for this one, and now get an error
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException as failure:
        return 'failed', f'destroy_process_group: {failure}'
    return word, ''


def is_late(*_):
    raise RuntimeError(f'{LONGEST} s are over')


def take(number, name):
    """Runs one test; ends the job if it fails unexpectedly on any rank."""
    meet(f'{number} begins')
    test = Suite(name)
    test.rank = RANK
    test.file_name = os.path.join(DIRECTORY, f'store.{os.getppid()}.{number}')
    # HURRIED gives the ranks one second to meet, in which rank 0 may not listen yet: use a file.
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
