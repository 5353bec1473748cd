# SPDX-License-Identifier: Apache-2.0
"""Handles, names, and errors. If the ranks' calls differ, the request fails on all ranks, and other
requests succeed."""

import os
import signal
import sys
import threading
import time
import unittest
import unittest.mock
import weakref

import torch

import horovod.torch as hvd
from case import Case
from horovod.common import repeated


def interrupt_a_wait():
    """Sends SIGINT to this process when the main thread is in a function of the package."""
    main = threading.main_thread().ident
    while 'horovod' not in sys._current_frames()[main].f_globals['__name__']:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)


class Handles(Case):

    def setUp(self):
        self.alone = hvd.size() == 1

    def check_job_goes_on(self):
        self.assertEqual(hvd.allreduce(torch.ones(2), op=hvd.Sum, name='goes on').tolist(),
                         [hvd.size()] * 2)

    def test_poll_is_true_when_synchronize_would_not_wait(self):
        handle = hvd.allreduce_async(torch.ones(5), name='polled')
        self.assertIsInstance(handle, int)
        while not hvd.poll(handle):
            time.sleep(0.001)
        self.assertEqual(hvd.synchronize(handle).tolist(), [1.0] * 5)

    def test_an_ended_handle_gives_none_and_cannot_be_polled(self):
        handle = hvd.allreduce_async(torch.ones(1))
        hvd.synchronize(handle)
        self.assertIsNone(hvd.synchronize(handle))
        with self.assertRaisesRegex(ValueError, 'was not created or has been cleared'):
            hvd.poll(handle)

    def test_tensors_of_a_pending_request_stay_alive(self):
        handles = [hvd.allreduce_async(torch.full((1000,), float(i)), op=hvd.Max,
                                       name=f'alive.{i}') for i in range(30)]
        trash = [torch.full((1000,), -1.0) for _ in range(60)]
        for i, handle in enumerate(handles):
            self.assertEqual(hvd.synchronize(handle).tolist(), [float(i)] * 1000)
        del trash

    def test_waiting_lets_other_threads_run(self):
        seen = []
        if hvd.rank() == 0 and not self.alone:
            handle = hvd.allreduce_async(torch.ones(1), name='late')
            waiter = threading.Thread(target=lambda: seen.append(hvd.synchronize(handle)))
            waiter.start()
            hvd.barrier()
            waiter.join()
        else:
            hvd.barrier()
            seen.append(hvd.allreduce(torch.ones(1), name='late'))
        self.assertEqual(seen[0].item(), 1.0)

    def test_interrupt_ends_a_wait_and_leaves_the_request(self):
        if self.alone:
            self.skipTest('a lone rank never waits')
        if hvd.rank() == 0:
            handle = hvd.allreduce_async(torch.ones(1), name='interrupted')
            interrupter = threading.Thread(target=interrupt_a_wait)
            with self.assertRaises(KeyboardInterrupt):
                interrupter.start()
                hvd.synchronize(handle)
            hvd.barrier()
        else:
            hvd.barrier()
            handle = hvd.allreduce_async(torch.ones(1), name='interrupted')
        self.assertEqual(hvd.synchronize(handle).item(), 1.0)

    def test_threads_may_submit_and_wait_together(self):
        results = {}

        def work(number):
            for step in range(20):
                tensor = torch.full((50,), float(number))
                results[number, step] = hvd.allreduce(tensor, op=hvd.Sum,
                                                      name=f'thread.{number}.{step}')

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 80)
        for (number, _), result in results.items():
            self.assertEqual(result.tolist(), [float(number * hvd.size())] * 50)

    def test_name_in_flight_twice_is_refused(self):
        if self.alone:
            self.skipTest('a lone rank ends its requests at once')
        if hvd.rank() == 0:
            first = hvd.allreduce_async(torch.ones(2), name='twice')
            with self.assertRaisesRegex(ValueError, 'same name as another tensor that is '
                                        'currently being processed'):
                hvd.allreduce_async(torch.ones(2), name='twice')
            hvd.barrier()
        else:
            hvd.barrier()
            first = hvd.allreduce_async(torch.ones(2), name='twice')
        self.assertEqual(hvd.synchronize(first).tolist(), [1.0, 1.0])

    def test_name_may_come_back_with_another_tensor(self):
        size, ranks = hvd.size(), sum(range(hvd.size()))
        own = float(hvd.rank())
        for case, tensor, settings, expected in (
                ('first', torch.full((2, 3), own), {}, ranks / size),
                ('same', torch.full((2, 3), own), {}, ranks / size),
                ('shape', torch.full((3, 2), own), {}, ranks / size),
                ('dims', torch.full((6,), own), {}, ranks / size),
                ('scalar', torch.tensor(own), {}, ranks / size),
                ('empty', torch.ones(0), {}, None),
                ('dtype', torch.full((6,), own, dtype=torch.float64), {}, ranks / size),
                ('op', torch.full((6,), own), {'op': hvd.Sum}, ranks),
                ('scales', torch.full((6,), own), {'op': hvd.Sum, 'prescale_factor': 0.5,
                                                   'postscale_factor': 4.0}, 2 * ranks),
                ('strided', torch.full((3, 2), own).t(), {}, ranks / size),
                ('strided part', torch.full((4, 4), own)[:, 1], {}, ranks / size),
                ('same again', torch.full((2, 3), own), {}, ranks / size)):
            with self.subTest(case=case):
                for _ in range(2):
                    given = tensor.clone() if tensor.is_contiguous() else tensor
                    before = given.clone()
                    result = hvd.synchronize(hvd.allreduce_async_(given, name='back', **settings))
                    self.assertIs(result, given)
                    self.assertEqual(result.shape, tensor.shape)
                    if expected is not None:
                        self.assertTrue(torch.all(result == expected), f'{result} of {before}')
                    given.copy_(before)

    def test_name_may_come_back_before_it_was_waited_for(self):
        hvd.synchronize(hvd.allreduce_async_(torch.ones(4), name='early'))
        handles = []
        for step in range(3):
            handles.append(hvd.allreduce_async_(torch.full((4,), float(step)), name='early'))
            while not hvd.poll(handles[-1]):
                time.sleep(0.001)
        self.assertEqual([hvd.synchronize(handle).tolist() for handle in handles],
                         [[float(step)] * 4 for step in range(3)])

    def test_name_comes_back_after_a_failure(self):
        if self.alone:
            self.skipTest('one rank cannot disagree')
        for _ in range(2):
            hvd.synchronize(hvd.allreduce_async_(torch.ones(2), name='failed'))
            with self.assertRaisesRegex(hvd.HorovodInternalError, 'Mismatched'):
                hvd.synchronize(hvd.allreduce_async_(torch.ones(2 + hvd.rank()), name='failed'))

    def test_a_tensor_is_released_once_it_was_waited_for(self):
        tensor = torch.ones(3)
        reference = weakref.ref(tensor)
        handle = hvd.allreduce_async_(tensor, name='let go')
        del tensor
        self.assertIsNotNone(reference())
        hvd.synchronize(handle)
        self.assertIsNone(reference())

    def test_threads_may_use_one_name_in_turns(self):
        turns, seen = threading.Barrier(2), []

        def work(number):
            for step in range(10):
                turns.wait(60)
                if step % 2 == number:
                    seen.append(hvd.synchronize(hvd.allreduce_async_(
                        torch.full((3,), float(step)), name='turns')).tolist())

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(seen), [[float(step)] * 3 for step in range(10)])

    def test_any_number_of_names_may_be_used(self):
        with unittest.mock.patch('horovod.common.repeated._MOST_IDLE', 8):
            for _ in range(2):
                handles = [hvd.allreduce_async_(torch.ones(1), name=f'many.{index}')
                           for index in range(30)]
                self.assertEqual([hvd.synchronize(handle).item() for handle in handles],
                                 [1.0] * 30)
                self.assertLessEqual(len(repeated._idle), 8)

    def check_mismatch(self, message, call):
        """Checks that ``call(is_odd)`` fails with this message on all ranks. ``is_odd`` is False on
        rank 0 and True on the others, so their calls differ."""
        if self.alone:
            self.skipTest('one rank cannot disagree')
        with self.assertRaisesRegex(hvd.HorovodInternalError, message):
            call(hvd.rank() > 0)
        self.check_job_goes_on()

    def test_mismatched_shapes_fail_everywhere(self):
        self.check_mismatch(
            'Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape .*, but another '
            'rank sent a tensor of shape',
            lambda odd: hvd.allreduce(torch.ones(3 if odd else 2), name='shapes'))

    def test_mismatched_dtypes_fail_everywhere(self):
        self.check_mismatch(
            'Mismatched data types: One rank had type .*, but another rank had type',
            lambda odd: hvd.allreduce(torch.ones(2, dtype=torch.int32 if odd else torch.int64),
                                      name='dtypes'))

    def test_mismatched_ops_fail_everywhere(self):
        self.check_mismatch(
            'Mismatched reduction operation: One rank sent reduction op',
            lambda odd: hvd.allreduce(torch.ones(2), op=hvd.Max if odd else hvd.Min, name='ops'))

    def test_mismatched_scale_factors_fail_everywhere(self):
        self.check_mismatch(
            'Mismatched prescale and/or postscale factors',
            lambda odd: hvd.allreduce(torch.ones(2), op=hvd.Sum, name='scales',
                                      prescale_factor=2.0 if odd else 1.0))

    def test_mismatched_roots_fail_everywhere(self):
        self.check_mismatch(
            'Mismatched BROADCAST root ranks: One rank specified root rank',
            lambda odd: hvd.broadcast(torch.ones(2), 1 if odd else 0, name='roots'))

    def test_mismatched_inner_dimensions_fail_everywhere(self):
        self.check_mismatch(
            'Mismatched ALLGATHER tensor shapes: One rank sent a tensor with dimension 1 equal',
            lambda odd: hvd.allgather(torch.ones(2, 3 if odd else 2), name='inner'))

    def test_failed_gradient_leaves_the_optimizer_usable(self):
        if self.alone:
            self.skipTest('one rank cannot disagree')
        sizes = (2, 3)
        wrong = torch.nn.Parameter(torch.ones(sizes[hvd.rank() > 0]))
        right = torch.nn.Parameter(torch.ones(4))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([wrong, right], 1.0),
                                             [('wrong', wrong), ('right', right)])
        for _ in range(2):
            (wrong.sum() + right.sum()).backward()
            with self.assertRaisesRegex(hvd.HorovodInternalError, 'Mismatched ALLREDUCE'):
                optimizer.step()
            optimizer.zero_grad()
        self.check_job_goes_on()
