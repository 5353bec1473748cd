# SPDX-License-Identifier: Apache-2.0
"""Asynchronous calls of the backend hvd, their futures and their errors."""

import contextlib
import threading
import unittest
from datetime import timedelta
from unittest import mock

import torch
import torch.distributed as dist

from distributed_case import IS_ALONE, VERSION, Case, gather_into_one, scatter_from_one, wait_until
from horovod.torch.distributed.waiter import Waiter
from inputs import values

MANY = 50  # more calls than run at once: _AT_ONCE of horovod/torch/distributed/calls.py


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

    def test_a_call_works_after_many_calls_without_a_wait(self):
        started = [self.start(number) for number in range(MANY)]
        tensor = self.mine((5,))
        dist.all_reduce(tensor)
        self.check_sum(tensor, 0)
        for number, (tensor, work) in enumerate(started):
            work.wait()
            self.check_sum(tensor, number)

    @unittest.skipUnless(IS_ALONE, 'torch asks no backend in Python beside others')
    def test_polling_is_enough_to_complete_a_call(self):
        started = [self.start(number) for number in range(MANY)]
        for number, (tensor, work) in enumerate(started):
            wait_until(work.is_completed, 'the end of a call')
            self.assertTrue(work.is_success())
            self.check_sum(tensor, number)

    @unittest.skipUnless(IS_ALONE, 'torch asks no backend in Python beside others')
    def test_polling_is_enough_while_a_future_waits_for_a_late_call(self):
        tensor = torch.zeros(3)
        late = dist.group.WORLD.recv([tensor], self.rank, 0)
        late.get_future()
        started = [self.start(number) for number in range(MANY)]
        wait_until(started[-1][1].is_completed, 'the end of the last call')
        for number, (result, work) in enumerate(started):
            wait_until(work.is_completed, 'the end of a call')
            self.check_sum(result, number)
        dist.group.WORLD.send([torch.ones(3)], self.rank, 0).wait()
        late.wait()
        self.assertEqual(tensor.tolist(), [1.0] * 3)

    @unittest.skipUnless(IS_ALONE, 'torch asks no backend in Python beside others')
    def test_calls_are_repeated_while_one_rank_has_a_future_under_way(self):
        """While the future exists, that rank marks its calls as unordered: libhvd does not compare
        their order. It must still be able to replay the repeated calls."""
        ones, tensor = torch.ones(10), torch.zeros(3)
        for number in range(800):
            if number == 400 and self.rank == 0:
                late = dist.group.WORLD.recv([tensor], self.rank, 0)
                late.get_future()
            dist.all_reduce(ones)
            self.assertEqual(ones.tolist(), [float(self.size)] * 10)
            ones.fill_(1)
        if self.rank == 0:
            dist.group.WORLD.send([ones[:3]], self.rank, 0).wait()
            late.wait()

    @unittest.skipUnless(IS_ALONE, 'torch asks no backend in Python beside others')
    def test_a_future_that_is_completed_while_it_is_made_leaves_calls_ordered(self):
        work = dist.group.WORLD.allreduce([torch.ones(3)])
        numbers, waiter = work._calls.numbers, work._calls.waiter()

        def is_idle():
            wait_until(work.is_completed, 'the end of the call')
            work.tell()
            return False

        with mock.patch.object(waiter, 'is_idle', is_idle):
            work.get_future().wait()
        wait_until(lambda: not numbers._futures, 'all futures to be completed')

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

    def test_futures_complete_without_a_wait(self):
        tensors = [self.mine((5,), salt=number) for number in range(MANY)]
        futures = [dist.all_reduce(tensor, async_op=True).get_future() for tensor in tensors]
        for number, future in enumerate(futures):
            wait_until(future.done, 'a future')
            whole = self.whole((5,), salt=number).sum(0)
            self.check_same(tensors[number], whole)
            self.check_same(future.value()[0], whole)

    def test_functions_can_be_chained_to_futures(self):
        told = threading.Event()

        def average(future):
            told.set()
            return future.value()[0] / self.size

        future = dist.all_reduce(self.mine((4,)), async_op=True).get_future().then(average)
        self.assertTrue(told.wait(200))
        self.check(future.wait(), self.whole((4,)).sum(0) / self.size)

    def test_a_future_of_an_ended_call_is_complete(self):
        tensor = self.mine((4,))
        work = dist.all_reduce(tensor, async_op=True)
        work.wait()
        future = work.get_future()
        self.assertTrue(future.done())
        self.assertIs(future.value()[0], tensor)

    def test_a_work_and_its_future_can_both_be_waited_for(self):
        tensor = self.mine((4,))
        work = dist.all_reduce(tensor, async_op=True)
        future = work.get_future()
        work.wait()
        self.assertEqual(future.wait()[0].data_ptr(), tensor.data_ptr())
        self.check_same(tensor, self.whole((4,)).sum(0))


    @contextlib.contextmanager
    def others_are_late(self, name):
        """A context manager whose block the other ranks enter only when rank 0 has left it."""
        store = self.store(name)
        if self.rank != 0:
            store.wait(['go on'])
        yield
        if self.rank == 0:
            store.set('go on', 'yes')

    def check_end(self, future, expected):
        wait_until(future.done, 'a future')
        self.check(future.value(), expected)

    def test_a_callback_waits_for_the_future_of_its_own_call(self):
        def again(future):
            return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

        def twice_more(future):
            return dist.all_reduce(future.value()[0], async_op=True).get_future().then(again).wait()

        with self.others_are_late('nested'):
            futures = [dist.all_reduce(torch.ones(number + 1), async_op=True).get_future().then(each)
                       for number, each in enumerate((again, twice_more, again))]
        for number, (future, power) in enumerate(zip(futures, (2, 3, 2))):
            self.check_end(future, torch.full((number + 1,), float(self.size ** power)))

    def test_a_callback_waits_for_a_call_of_another_group(self):
        group = dist.new_group(list(range(self.size)))

        def here(future):
            return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

        def there(future):
            return dist.all_reduce(future.value()[0], group=group,
                                   async_op=True).get_future().then(here).wait()

        with self.others_are_late('nested in groups'):
            future = dist.all_reduce(torch.ones(2), async_op=True).get_future().then(there)
        self.check_end(future, torch.full((2,), float(self.size ** 3)))

    def test_a_callback_waits_for_the_callback_of_a_later_call(self):
        with self.others_are_late('later call'):
            first = dist.all_reduce(torch.ones(2), async_op=True).get_future()
            later = dist.all_reduce(torch.ones(3), async_op=True).get_future()
            doubled = later.then(lambda future: 2 * future.value()[0])
            both = first.then(lambda future: future.value()[0].sum() + doubled.wait().sum())
        self.check_end(both, torch.tensor(8.0 * self.size))

    def test_a_callback_waits_for_a_later_work(self):
        with self.others_are_late('later work'):
            first = dist.all_reduce(torch.ones(2), async_op=True).get_future()
            tensor = torch.ones(3)
            later = dist.all_reduce(tensor, async_op=True)
            later.get_future()
            both = first.then(lambda future: later.wait() and tensor.sum())
        self.check_end(both, torch.tensor(3.0 * self.size))

    def test_barriers_meet_while_one_rank_runs_callbacks(self):
        if self.size == 1:
            self.skipTest('alone, callbacks run while they are given')
        may_end = threading.Event()
        with self.others_are_late('barrier'):
            work = dist.all_reduce(torch.ones(2), async_op=True)
            if self.rank == 0:
                ended = work.get_future().then(lambda _: may_end.wait(200))
        work.wait()
        dist.barrier()
        may_end.set()
        if self.rank == 0:
            self.assertTrue(ended.wait())

    def test_callbacks_are_called_in_the_order_of_the_calls(self):
        called = []
        with self.others_are_late('order'):
            works = [dist.all_reduce(torch.ones(100000 if number % 2 else 1), async_op=True)
                     for number in range(MANY)]
            futures = [work.get_future() for work in reversed(works)]
            for number, future in enumerate(reversed(futures)):
                future.add_done_callback(lambda future, number=number: called.append(number))
        for future in futures:
            future.wait()
        wait_until(lambda: len(called) == MANY, 'the last callback')
        if self.rank == 0 and self.size > 1:  # with one rank, calls end before get_future()
            self.assertEqual(called, sorted(called))

    def test_the_order_is_kept_if_the_first_future_is_asked_for_last(self):
        called, looked, may_end = [], threading.Event(), threading.Event()

        class Ended:
            """A work that ends while the waiter looks at it."""
            stream, is_over = None, True

            def __init__(self, number):
                self.number = number

            def look(self, patience_ms):
                looked.set()
                return may_end.wait(10)

            def has_future(self):
                return True

            def is_message(self):
                return False

            def tell(self):
                called.append(self.number)

        waiter = Waiter(0)
        waiter.add(Ended(1))
        looked.wait(10)
        waiter.add(Ended(0))
        may_end.set()
        wait_until(lambda: len(called) == 2, 'the last callback')
        waiter.end()
        self.assertEqual(called, [0, 1])

    def test_a_late_message_holds_nothing_up(self):
        tensor = torch.zeros(3)
        late = dist.group.WORLD.recv([tensor], self.rank, 0)
        received = late.get_future()
        self.check_end(dist.all_reduce(torch.ones(2), async_op=True).get_future().then(
            lambda future: future.value()[0]), torch.full((2,), float(self.size)))
        self.assertFalse(received.done())
        dist.group.WORLD.send([torch.ones(3)], self.rank, 0).wait()
        wait_until(received.done, 'a future')
        self.assertEqual(received.value()[0].tolist(), [1.0] * 3)

    @unittest.skipUnless(IS_ALONE, 'torch gives each caller another object')
    def test_threads_get_the_same_future(self):
        both = threading.Barrier(2)
        real, futures = torch.futures.Future.__init__, []

        def made_by_both(future, *arguments, **named):
            try:
                both.wait(0.2)
            except threading.BrokenBarrierError:
                pass  # the other thread is waiting, as expected
            real(future, *arguments, **named)

        work = dist.all_reduce(torch.ones(2), async_op=True)
        with mock.patch.object(torch.futures.Future, '__init__', made_by_both):
            threads = [threading.Thread(target=lambda: futures.append(work.get_future()))
                       for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertIs(futures[0], futures[1])
        self.check_same(futures[0].wait()[0], torch.full((2,), float(self.size)))

    def test_the_future_of_all_gather_has_the_tensors_of_all_ranks(self):
        outputs = [torch.zeros(2) for _ in range(self.size)]
        work = dist.all_gather(outputs, self.mine((2,)), async_op=True)
        self.check_same(torch.stack(work.get_future().wait()), self.whole((2,)))

    def test_strided_tensors_of_inference_mode(self):
        with self.others_are_late('inference'), torch.inference_mode():
            tensor = self.mine((3, 4)).t()
            future = dist.all_reduce(tensor, async_op=True).get_future()
        self.check_same(future.wait()[0], self.whole((3, 4)).sum(0).t())

    def test_results_outside_of_inference_mode_are_not_inference_tensors(self):
        tensor = self.mine((3, 4)).to_sparse()
        with torch.inference_mode():
            work = dist.all_reduce(tensor, async_op=True)
            work.wait()
        self.assertFalse(tensor._values().is_inference())
        self.check_same(tensor.to_dense(), self.whole((3, 4)).sum(0))

    @unittest.skipIf(VERSION < (2, 1), 'this torch does not tell that a group is destroyed')
    def test_the_future_of_a_destroyed_group_fails(self):
        group = dist.new_group(list(range(self.size)))
        future = group.recv([torch.zeros(3)], group.rank(), 0).get_future()
        dist.destroy_process_group(group)
        wait_until(future.done, 'the end of a future')
        with self.assertRaisesRegex(RuntimeError, 'destroyed|removed'):
            future.wait()


class Errors(Case):
    """Errors after which the group can still be used."""

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

    def test_sizes_that_do_not_divide_evenly_are_rejected(self):
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

    def test_a_call_whose_future_has_timed_out_may_be_waited_for(self):
        if self.size == 1:
            self.skipTest('no other rank to be late')
        store = self.store('timeout of a future')
        options = dist.AllreduceOptions()
        options.timeout = timedelta(seconds=0.1)
        tensor = self.mine((8,))
        if self.rank == 0:
            work = dist.group.WORLD.allreduce([tensor], options)
            future = work.get_future()
            wait_until(future.done, 'the timeout')
            with self.assertRaisesRegex(RuntimeError, 'Timed out after 0.1 s'):
                future.wait()
            store.set('raised', 'yes')
            self.assertTrue(work.wait(timedelta(seconds=200)))
        else:
            store.wait(['raised'])
            dist.all_reduce(tensor)
        self.check_same(tensor, self.whole((8,)).sum(0))
