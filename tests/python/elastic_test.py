# SPDX-License-Identifier: Apache-2.0
"""The state of a training, and the division of samples among ranks, in a job that is not
elastic."""

import queue
from unittest import mock

import torch

import horovod.torch as hvd
from case import Case
import horovod_itself
from functions_test import flat, make_model, train
from horovod.common.elastic import HOSTS_ADDED, HOSTS_REMOVED, State, begin_anew, run_fn
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.common.library import lib
from horovod.torch.elastic.state import (ModelStateHandler, OptimizerStateHandler,
                                         SamplerStateHandler, StateHandler, get_handler_registry,
                                         set_handler_registry)


class Counter:

    def __init__(self, count):
        self.count = count


class CounterHandler(StateHandler):
    """A handler that creates its storage only after the constructor of the base class."""

    def __init__(self, value):
        super().__init__(value)
        self._saved = []
        self.save()

    def save(self):
        self._saved.append(self.value.count)

    def restore(self):
        self.value.count = self._saved[-1]

    def sync(self):
        self.value.count = hvd.broadcast_object(self.value.count)
        self.save()


class ObjectStates(Case):

    def make(self, **values):
        return hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, **values)

    def test_restore_goes_back_to_the_last_commit(self):
        state = self.make(epoch=1, losses=[3.0])
        state.epoch, state.other = 2, 'not kept'
        state.losses.append(2.0)
        state.commit()
        state.epoch = 7
        state.losses.append(1.0)
        for _ in range(2):  # changes of restored values must not change the saved ones
            state.restore()
            self.assertEqual((state.epoch, state.losses, state.other), (2, [3.0, 2.0], 'not kept'))
            state.losses.clear()

    def test_restore_before_any_commit_goes_back_to_the_beginning(self):
        state = self.make(epoch=1)
        state.epoch = 5
        state.restore()
        self.assertEqual(state.epoch, 1)

    def test_sync_takes_the_values_of_rank_0_and_keeps_them(self):
        state = self.make(epoch=hvd.rank() + 10, name=f'rank {hvd.rank()}')
        state.epoch += 1
        state.sync()
        self.assertEqual((state.epoch, state.name), (11, 'rank 0'))
        state.epoch = 99
        state.restore()
        self.assertEqual(state.epoch, 11)

    def test_callbacks_are_called_when_the_ranks_have_changed(self):
        state, calls = self.make(), []
        state.reset = lambda: calls.append(0)
        state.register_reset_callbacks([lambda: calls.append(1), lambda: calls.append(2)])
        state.register_reset_callbacks([lambda: calls.append(3)])
        state.on_reset()
        self.assertEqual(calls, [0, 1, 2, 3])

    def test_a_change_of_hosts_interrupts_at_the_next_commit(self):
        for changes, skip_sync in (((HOSTS_ADDED,), False), ((HOSTS_REMOVED,), True),
                                   ((HOSTS_REMOVED, HOSTS_ADDED), False)):
            with self.subTest(changes=changes):
                state = self.make(epoch=1)
                state.commit()
                for change in changes:
                    state.on_hosts_updated(0, change)
                state.epoch = 2
                with self.assertRaises(HostsUpdatedInterrupt) as raised:
                    state.commit()
                self.assertEqual(raised.exception.skip_sync, skip_sync)
                state.restore()
                self.assertEqual(state.epoch, 2)
                state.check_host_updates()

    def test_changes_of_hosts_are_in_the_queue_that_horovods_scripts_poll(self):
        state = self.make()
        self.assertTrue(state._host_messages.empty())
        with mock.patch.object(lib, 'hvd_elastic_updates', lambda: HOSTS_REMOVED):
            self.assertFalse(state._host_messages.empty())
            self.assertEqual(state._host_messages.get()[1], HOSTS_REMOVED)
            self.assertTrue(state._host_messages.empty())
            with self.assertRaises(queue.Empty):
                state._host_messages.get_nowait()
        with mock.patch.object(lib, 'hvd_elastic_updates', lambda: HOSTS_REMOVED | HOSTS_ADDED):
            self.assertEqual(state._host_messages.qsize(), 1)
            self.assertEqual(state._host_messages.get(timeout=1)[1], HOSTS_ADDED)
            with self.assertRaises(queue.Empty):
                state._host_messages.get(timeout=0.01)
            with self.assertRaises(HostsUpdatedInterrupt):
                state.check_host_updates()

    def test_methods_of_the_base_class_are_not_implemented(self):
        state = State(hvd.broadcast_object, hvd.rank)
        for function in (state.save, state.restore, state.sync, state.commit):
            with self.assertRaises(NotImplementedError):
                function()


class TorchStates(Case):

    def setUp(self):
        self.model = make_model(hvd.rank())
        self.optimizer = hvd.DistributedOptimizer(
            torch.optim.Adam(self.model.parameters(), 0.1 * (hvd.rank() + 1)),
            self.model.named_parameters())

    def everything(self):
        return flat([self.model.state_dict(), self.optimizer.state_dict()])

    def test_model_and_optimizer_go_back_to_the_last_commit(self):
        state = hvd.elastic.TorchState(self.model, self.optimizer, epoch=0)
        self.assertIs(state.model, self.model)
        self.assertIs(state.optimizer, self.optimizer)
        train(self.model, self.optimizer, 2)
        state.commit()
        kept = self.everything()
        for _ in range(2):
            train(self.model, self.optimizer, 2)
            state.epoch = 3
            self.assertNotEqual(self.everything(), kept)
            state.restore()
            self.assertEqual(self.everything(), kept)
            self.assertEqual(state.epoch, 0)

    def test_optimizer_works_after_a_backward_pass_that_was_given_up(self):
        state = hvd.elastic.TorchState(self.model, self.optimizer)
        self.model(torch.randn(8, 4)).sum().backward()
        hvd.barrier()
        state.restore()
        begin_anew()
        self.optimizer.zero_grad()
        torch.manual_seed(hvd.rank())
        train(self.model, self.optimizer, 1)
        given_up = self.everything()
        self.setUp()
        torch.manual_seed(hvd.rank())
        train(self.model, self.optimizer, 1)
        self.assertEqual(given_up, self.everything())

    def test_sync_takes_rank_0s_model_and_optimizer(self):
        state = hvd.elastic.TorchState(self.model, self.optimizer, epoch=hvd.rank())
        train(self.model, self.optimizer, 1)
        state.sync()
        everyone = hvd.allgather_object((self.everything(), state.epoch))
        for other in everyone:
            self.assertEqual(other, everyone[0])
        train(self.model, self.optimizer, 1)
        state.restore()
        self.assertEqual((self.everything(), state.epoch), everyone[0])

    def test_another_model_takes_the_place_of_the_first(self):
        state = hvd.elastic.TorchState(self.model)
        second = make_model(5)
        state.model = second
        with torch.no_grad():
            next(second.parameters()).zero_()
        state.restore()
        self.assertEqual(flat(second.state_dict()), flat(make_model(5).state_dict()))
        self.assertIs(state.model, second)

    def test_a_script_may_handle_other_kinds_of_values(self):
        registry = get_handler_registry()
        self.assertEqual([handler for _, handler in registry],
                         [SamplerStateHandler, ModelStateHandler, OptimizerStateHandler])
        self.addCleanup(set_handler_registry, registry)
        set_handler_registry([(Counter, CounterHandler), *registry])
        state = hvd.elastic.TorchState(self.model, counter=Counter(3))
        state.counter.count = 4
        state.restore()
        self.assertEqual(state.counter.count, 3)
        state.counter.count = hvd.rank() + 5
        state.sync()
        self.assertEqual(state.counter.count, 5)
        state.counter = Counter(6)
        state.restore()
        self.assertEqual(state.counter.count, 6)

    def test_a_handler_takes_another_value(self):
        handler = CounterHandler(Counter(1))
        handler.set_value(Counter(7))
        handler.value.count = 8
        handler.restore()
        self.assertEqual(handler.value.count, 7)

    def test_further_models_are_kept_by_name(self):
        state = hvd.elastic.TorchState(generator=self.model, critic=make_model(7))
        self.assertIsNone(state.model)
        with torch.no_grad():
            next(state.critic.parameters()).zero_()
        state.restore()
        self.assertEqual(flat(state.critic.state_dict()), flat(make_model(7).state_dict()))


class Samplers(Case):

    def make(self, length, **options):
        return hvd.elastic.ElasticSampler(range(length), **options)

    def drawn(self, sampler):
        """Returns the samples that all ranks draw, in rank order."""
        parts = hvd.allgather_object(list(sampler))
        self.assertEqual({len(part) for part in parts}, {len(sampler)})
        return [index for part in parts for index in part]

    def test_the_ranks_divide_the_samples(self):
        length = 12 * hvd.size()
        for shuffle in (True, False):
            sampler = self.make(length, shuffle=shuffle)
            self.assertEqual(sorted(self.drawn(sampler)), list(range(length)))
        self.assertEqual(list(self.make(length, shuffle=False)),
                         list(range(hvd.rank(), length, hvd.size())))

    def test_some_samples_are_drawn_twice_if_they_do_not_divide_evenly(self):
        for length in range(1, 10):
            drawn = self.drawn(self.make(length))
            self.assertEqual(set(drawn), set(range(length)))
            self.assertEqual(len(drawn), -(-length // hvd.size()) * hvd.size())

    def test_order_is_that_of_epoch_and_seed(self):
        first, again, other = self.make(100), self.make(100), self.make(100, seed=1)
        self.assertEqual(list(first), list(again))
        self.assertNotEqual(list(first), list(other))
        again.set_epoch(1)
        self.assertNotEqual(list(first), list(again))

    def test_recorded_samples_are_not_drawn_again(self):
        sampler = self.make(40 * hvd.size())
        mine = list(sampler)
        sampler.record_batch(0, 8)
        sampler.record_batch(1, 8)
        self.assertEqual(sampler.get_indices(1, 8), mine[8:16])
        self.assertEqual(sampler.processed_indices, set(mine[:16]))
        self.assertEqual(list(sampler), mine)  # the order stays the same until the ranks change
        state = sampler.state_dict()
        self.assertEqual(state, {'epoch': 0, 'processed_num': 16 * hvd.size(),
                                 'processed_indices': set(mine[:16])})
        other = self.make(40 * hvd.size())
        other.load_state_dict(state)
        everyones = {index for part in hvd.allgather_object(mine[:16]) for index in part}
        self.assertEqual(set(other.remaining_indices), set(range(40 * hvd.size())) - everyones)
        other.load_state_dict(dict(state, processed_indices={mine[-1]}))
        self.assertEqual(set(other.remaining_indices),
                         set(range(40 * hvd.size())) - {mine[-1]})
        other.set_epoch(1)
        self.assertEqual(len(other.remaining_indices), 40 * hvd.size())

    def test_the_last_batch_may_be_short_and_the_epoch_complete(self):
        sampler = self.make(10 * hvd.size())
        sampler.record_batch(1, 8)
        self.assertEqual(len(sampler.processed_indices), 2)
        sampler.load_state_dict({'epoch': 3, 'processed_indices': range(10 * hvd.size())})
        self.assertEqual((list(sampler), len(sampler), sampler.epoch), ([], 0, 3))

    def test_processed_num_counts_what_all_ranks_have_done(self):
        sampler = self.make(10 * hvd.size())
        self.assertEqual(sampler.processed_num, 0)
        sampler.record_batch(0, 8)
        self.assertEqual(sampler.processed_num, 8 * hvd.size())
        sampler.record_batch(1, 8)  # a short batch
        self.assertEqual(sampler.processed_num, 10 * hvd.size())
        sampler.set_epoch(1)
        self.assertEqual(sampler.processed_num, 0)

    def test_states_are_those_of_horovods_sampler(self):
        for options in (dict(), dict(shuffle=False), dict(seed=7)):
            theirs = horovod_itself.ask(
                f'sampler = hvd.elastic.ElasticSampler(range(50), **{options})\n'
                'sampler.set_epoch(2)\n'
                'sampler.record_batch(0, 6); sampler.record_batch(1, 6)\n'
                'answer = [sampler.state_dict()]\n'
                'sampler.load_state_dict(answer[0])\n'
                'answer += [sampler.remaining_indices, list(sampler), sampler.processed_num]')
            sampler = self.make(50, **options)
            sampler.load_state_dict(theirs[0])
            self.assertEqual(sampler.remaining_indices, theirs[1])
            self.assertEqual(sampler.processed_num, theirs[3])
            if hvd.size() == 1:
                self.assertEqual(list(sampler), theirs[2])

    def test_horovods_sampler_takes_our_states(self):
        sampler = self.make(50)
        sampler.set_epoch(2)
        sampler.record_batch(0, 3)
        state = sampler.state_dict()
        sampler.load_state_dict(state)
        theirs = horovod_itself.ask(
            'sampler = hvd.elastic.ElasticSampler(range(50))\n'
            f'sampler.load_state_dict({state})\n'
            'answer = [sampler.epoch, sampler.remaining_indices]')
        self.assertEqual(theirs, [2, sampler.remaining_indices])

    def test_sync_adds_up_what_all_ranks_have_processed(self):
        sampler = self.make(20 * hvd.size())
        state = hvd.elastic.TorchState(sampler=sampler)
        state.sync()
        drawn = hvd.allgather_object(list(sampler)[:4])
        sampler.record_batch(0, 4)
        state.commit()
        sampler.record_batch(1, 4)  # after the commit, so restore() forgets it
        state.restore()
        state.sync()
        processed = {index for part in drawn for index in part}
        self.assertEqual(sampler.processed_indices, processed)
        self.assertEqual(sorted(self.drawn(sampler)),
                         sorted(set(range(20 * hvd.size())) - processed))

    def test_samples_that_another_rank_has_processed_are_computed(self):
        sampler = self.make(20 * hvd.size())
        sampler.record_batch(0, 4)
        parts = hvd.allgather_object(sampler.processed_indices)
        for rank, part in enumerate(parts):
            self.assertEqual(sampler.processed_by(rank), part)


class Runs(Case):

    def test_training_begins_with_rank_0s_state(self):
        @hvd.elastic.run
        def train(state, factor, offset=0):
            return state.epoch * factor + offset

        state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, epoch=hvd.rank() + 5)
        self.assertEqual(train(state, 2, offset=1), 11)
        self.assertEqual(train.__name__, 'train')

    def test_a_failure_ends_a_job_that_is_not_elastic(self):
        @hvd.elastic.run
        def train(state):
            raise HorovodInternalError('somebody died')

        with self.assertRaisesRegex(HorovodInternalError, 'somebody died'):
            train(hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank))

    def test_other_exceptions_reach_the_script(self):
        @hvd.elastic.run
        def train(state):
            raise KeyError('a mistake')

        with self.assertRaises(KeyError):
            train(hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank))

    def test_the_front_end_decides_how_to_restart(self):
        calls = []

        def train(state):
            if not calls:
                raise HostsUpdatedInterrupt(False)
            return calls

        state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank)
        self.assertEqual(run_fn(train, lambda: calls.append('anew'))(state), ['anew'])

    def test_training_continues_without_restoring_when_hosts_are_added(self):
        entered = []

        @hvd.elastic.run
        def train(state):
            entered.append(state.epoch)
            if len(entered) == 1:
                state.epoch += 1
                state.on_hosts_updated(0, HOSTS_ADDED)
                hvd.barrier()
                state.check_host_updates()
            return hvd.allreduce(torch.ones(1), op=hvd.Sum).item()

        state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, epoch=0)
        self.assertEqual(train(state), hvd.size())
        self.assertEqual(entered, [0, 1])

    def test_a_failure_in_a_callback_restarts_again(self):
        failures = ['in training', 'in a callback']

        def fail(where):
            if failures[:1] == [where]:
                del failures[0]
                raise HorovodInternalError(where)

        @hvd.elastic.run
        def train(state):
            state.epoch += 1
            fail('in training')
            return state.epoch

        state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, epoch=0)
        state.register_reset_callbacks([lambda: fail('in a callback')])
        with mock.patch('horovod.common.elastic.is_elastic', return_value=True):
            self.assertEqual(train(state), 1)
        self.assertEqual(failures, [])
