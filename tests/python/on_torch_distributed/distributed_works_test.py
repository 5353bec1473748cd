# SPDX-License-Identifier: Apache-2.0
"""Calls of the backend hvd that are under way, their futures and their errors."""

import threading
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist

from distributed_case import IS_ALONE, Case, gather_into_one, scatter_from_one, wait_until
from inputs import values

MANY = 50  # more than the calls of one kind that libhvd is given at once


class Works(Case):

    def start(self, number):
        tensor = self.mine((5,), salt=number)
        return tensor, dist.all_reduce(tensor, async_op=True)

    def check_sum(self, tensor, number):
        self.check_same(tensor, self.whole((5,), salt=number).sum(0))

    def test_many_of_one_kind_are_waited_for_in_any_order(self):
        orders = {'first to last': list(range(MANY)), 'last to first': list(range(MANY))[::-1],
                  'inside out': sorted(range(MANY), key=lambda number: abs(number - MANY // 2))}
        for name, order in orders.items():
            with self.subTest(order=name):
                started = [self.start(number) for number in range(MANY)]
                for number in order:
                    tensor, work = started[number]
                    self.assertTrue(work.wait())
                    self.check_sum(tensor, number)

    def test_ranks_wait_in_different_orders(self):
        started = [self.start(number) for number in range(MANY)]
        for step in range(MANY):
            number = (step * (2 * self.rank + 1) + self.rank) % MANY
            tensor, work = started[number]
            work.wait()
            self.check_sum(tensor, number)
        for _, work in started:
            self.assertTrue(work.wait())

    def test_kinds_are_mixed(self):
        works, results = [], []
        for number in range(MANY):
            tensor, work = self.start(number)
            sent, gathered = self.mine((2,), salt=number), torch.zeros(self.size, 2)
            root = number % self.size
            works += [work, dist.broadcast(sent, root, async_op=True),
                      gather_into_one(gathered, self.mine((2,), salt=number), async_op=True)]
            results.append((tensor, sent, gathered))
        for work in works[::-1]:
            work.wait()
        for number, (tensor, sent, gathered) in enumerate(results):
            self.check_sum(tensor, number)
            self.check_same(sent, values(number % self.size, (2,), salt=number))
            self.check_same(gathered, self.whole((2,), salt=number))

    def test_a_call_after_many_that_nobody_waited_for(self):
        started = [self.start(number) for number in range(MANY)]
        tensor = self.mine((5,))
        dist.all_reduce(tensor)
        self.check_sum(tensor, 0)
        for number, (tensor, work) in enumerate(started):
            work.wait()
            self.check_sum(tensor, number)

    @unittest.skipUnless(IS_ALONE, 'torch asks no backend in Python beside others')
    def test_asking_is_enough(self):
        started = [self.start(number) for number in range(MANY)]
        for number, (tensor, work) in enumerate(started):
            wait_until(work.is_completed, 'the end of a call')
            self.assertTrue(work.is_success())
            self.check_sum(tensor, number)

    def test_tensors_of_a_call_stay_alive(self):
        works = [dist.all_reduce(torch.full((1000,), float(number)), async_op=True)
                 for number in range(MANY)]
        trash = [torch.full((1000,), -1.0) for _ in range(2 * MANY)]
        for number, work in enumerate(works):
            future = work.get_future()
            self.assertEqual(future.wait()[0].tolist(), [float(number * self.size)] * 1000)
        del trash

    def test_any_thread_waits(self):
        started = [self.start(number) for number in range(MANY)]
        threads = [threading.Thread(target=work.wait) for _, work in started[::-1]]
        threads += [threading.Thread(target=work.wait) for _, work in started]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, (tensor, _) in enumerate(started):
            self.check_sum(tensor, number)

    def test_a_barrier_is_a_work_too(self):
        store = self.store('barriers')
        store.add('come', 1)
        works = [dist.barrier(async_op=True) for _ in range(MANY)]
        for work in works[::-1]:
            work.wait()
        self.assertEqual(store.add('come', 0), self.size)


class Futures(Case):

    def test_they_complete_by_themselves(self):
        tensors = [self.mine((5,), salt=number) for number in range(MANY)]
        futures = [dist.all_reduce(tensor, async_op=True).get_future() for tensor in tensors]
        for number, future in enumerate(futures):
            wait_until(future.done, 'a future')
            whole = self.whole((5,), salt=number).sum(0)
            self.check_same(tensors[number], whole)
            self.check_same(future.value()[0], whole)

    def test_functions_are_chained_to_them(self):
        told = threading.Event()

        def average(future):
            told.set()
            return future.value()[0] / self.size

        future = dist.all_reduce(self.mine((4,)), async_op=True).get_future().then(average)
        self.assertTrue(told.wait(200))
        self.check(future.wait(), self.whole((4,)).sum(0) / self.size)

    def test_of_a_call_that_has_ended(self):
        tensor = self.mine((4,))
        work = dist.all_reduce(tensor, async_op=True)
        work.wait()
        future = work.get_future()
        self.assertTrue(future.done())
        self.assertIs(future.value()[0], tensor)

    def test_both_are_waited_for(self):
        tensor = self.mine((4,))
        work = dist.all_reduce(tensor, async_op=True)
        future = work.get_future()
        work.wait()
        self.assertEqual(future.wait()[0].data_ptr(), tensor.data_ptr())
        self.check_same(tensor, self.whole((4,)).sum(0))


class Errors(Case):
    """After each of them the group is as before."""

    def tearDown(self):
        self.check_job_goes_on()

    def test_wrong_sizes_are_refused(self):
        row, rows = torch.zeros(3), torch.zeros(self.size + 1, 3)
        for name, call in {
            'all_gather': lambda: gather_into_one(rows, row),
            'reduce_scatter': lambda: scatter_from_one(row, rows),
            'splits': lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3), [7] * self.size,
                                                     [7] * self.size),
            'too few': lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3), None,
                                                      [3] + [1] * (self.size - 1) + [1]),
        }.items():
            with self.subTest(call=name):
                with self.assertRaises((ValueError, RuntimeError)):
                    call()

    def test_the_message_has_both_numbers(self):
        with self.assertRaisesRegex(ValueError, f'{3 * self.size + 3} elements.* {3 * self.size}'):
            dist.group.WORLD._reduce_scatter_base(torch.zeros(3), torch.zeros(self.size + 1, 3))

    def test_what_does_not_divide_is_refused(self):
        if self.size == 1:
            self.skipTest('everything divides by 1')
        with self.assertRaisesRegex((ValueError, RuntimeError), 'divide'):
            dist.all_to_all_single(torch.zeros(self.size + 1), torch.zeros(self.size + 1))

    def test_a_short_timeout_names_the_call(self):
        if self.size == 1:
            self.skipTest('no other rank to be late')
        store = self.store('timeout')
        options = dist.AllreduceOptions()
        options.timeout = timedelta(seconds=0.1)
        tensor = self.mine((7,))
        if self.rank == 0:
            pattern = 'all_reduce sum float32 7#.*: Timed out after 0.1 s: some ranks .* have not called it'
            work = dist.group.WORLD.allreduce([tensor], options)
            with self.assertRaisesRegex(RuntimeError, pattern):
                work.wait()
            with self.assertRaisesRegex(RuntimeError, pattern.replace('0.1', '0.2')):
                work.wait(timedelta(seconds=0.2))
            store.set('raised', 'yes')
            self.assertTrue(work.wait(timedelta(seconds=200)))
        else:
            store.wait(['raised'])
            dist.all_reduce(tensor)
        self.check_same(tensor, self.whole((7,)).sum(0))


if __name__ == '__main__':
    unittest.main()
