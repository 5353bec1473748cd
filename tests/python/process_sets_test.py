# SPDX-License-Identifier: Apache-2.0
"""Process sets: their registration and removal, and rejected arguments."""

import os
import unittest
import unittest.mock

import torch

import horovod.torch as hvd
from basics_test import in_child
from case import Case
from horovod.common import process_sets

VARIABLE = 'HOROVOD_DYNAMIC_PROCESS_SETS'


def table():
    """Returns {id: ranks} of all process sets, through the function that Horovod's tests call."""
    return hvd.mpi_ops._basics._get_process_set_ids_and_ranks()


def begin_again(**options):
    """Calls shutdown() together with all ranks, and then init() with these options."""
    if hvd.is_initialized():
        hvd.barrier()
        hvd.shutdown()
    hvd.init(**options)


class JobCase(Case):
    """The base of tests that call shutdown() and init(). After the tests it calls init() again with
    the original environment."""

    @classmethod
    def setUpClass(cls):
        cls.environment = unittest.mock.patch.dict(os.environ)
        cls.environment.start()
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        cls.environment.stop()
        begin_again()

    def need(self, ranks):
        if hvd.size() < ranks:
            self.skipTest(f'takes {ranks} ranks')


class Description(unittest.TestCase):

    def test_ranks_may_be_any_iterable_in_any_order(self):
        for ranks in ([2, 0, 1], range(3), reversed(range(3)), {1, 2, 0}, torch.arange(3)):
            self.assertEqual(hvd.ProcessSet(ranks).ranks, [0, 1, 2])

    def test_an_argument_that_is_not_a_set_of_ranks_is_rejected(self):
        for wrong in (None, 3, 'ab', [0.5], [[0]]):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(
                    ValueError, 'list of process ranks or an mpi4py Comm'):
                hvd.ProcessSet(wrong)

    def test_repr_has_number_ranks_and_communicator(self):
        self.assertEqual(str(hvd.ProcessSet([1, 0])),
                         'ProcessSet(process_set_id=None, ranks=[0, 1], mpi_comm=None)')


class Static(JobCase):

    def test_sets_are_numbered_in_the_order_given(self):
        self.need(2)
        rest = list(range(1, hvd.size()))
        # The ranks may list the members in different orders.
        sets = [hvd.ProcessSet([0]), hvd.ProcessSet(rest[hvd.rank() % len(rest):] +
                                                    rest[:hvd.rank() % len(rest)])]
        begin_again(process_sets=sets)
        self.assertEqual(table(), {0: list(range(hvd.size())), 1: [0], 2: rest})
        self.assertEqual([each.process_set_id for each in sets], [1, 2])
        self.assertEqual(str(sets[0]), 'ProcessSet(process_set_id=1, ranks=[0], mpi_comm=None)')

    def test_duplicates_are_named_and_the_job_goes_on(self):
        self.need(2)
        rest = range(1, hvd.size())
        sets = [hvd.ProcessSet([0]), hvd.ProcessSet(rest), hvd.ProcessSet(range(hvd.size())),
                hvd.ProcessSet([0])]
        with self.assertRaisesRegex(ValueError, 'entry number 2 is a duplicate'):
            begin_again(process_sets=sets)
        self.assertEqual([each.process_set_id for each in sets], [1, 2, None, None])
        hvd.init(process_sets=sets[:2])
        again = hvd.ProcessSet(rest)
        hvd.init(process_sets=[again])
        self.assertEqual(again.process_set_id, 2)
        with self.assertRaisesRegex(ValueError, 'duplicate'):
            hvd.init(process_sets=[hvd.global_process_set])
        self.assertEqual(hvd.global_process_set.process_set_id, 0)
        with self.assertRaisesRegex(ValueError, 'use hvd.add_process_set'):
            hvd.init(process_sets=[hvd.ProcessSet([])])

    def test_sets_end_with_the_job_and_can_be_given_again(self):
        self.need(2)
        alone = hvd.ProcessSet([hvd.size() - 1])
        for _ in range(3):
            begin_again(process_sets=[alone])
            self.assertEqual(alone.size(), 1)
            begin_again()
            self.assertIsNone(alone.process_set_id)
            self.assertIsNone(alone.size())
            self.assertEqual(table(), {0: list(range(hvd.size()))})

    def test_impossible_ranks_end_the_job_everywhere(self):
        for ranks in ([hvd.size()], [-1], [], [0, 0]):
            with self.subTest(ranks=ranks):
                with self.assertRaisesRegex(ValueError, 'different ranks from 0 to'):
                    begin_again(process_sets=[hvd.ProcessSet(ranks)])
                self.assertFalse(hvd.is_initialized())
        hvd.init()

    def test_ranks_that_give_different_sets_are_refused_everywhere(self):
        self.need(3)
        with self.assertRaisesRegex(ValueError, 'failed'):
            begin_again(process_sets=[hvd.ProcessSet([hvd.rank() % 2])])
        self.assertFalse(hvd.is_initialized())
        hvd.init()

    def test_an_argument_that_is_not_a_list_of_sets_is_rejected(self):
        for wrong in ([[0]], 'static', [None], hvd.ProcessSet([0])):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(ValueError, 'process_sets'):
                hvd.init(process_sets=wrong)

    def test_nothing_can_be_added_or_removed(self):
        self.need(2)
        alone = hvd.ProcessSet([0])
        os.environ.pop(VARIABLE, None)
        begin_again(process_sets=[alone])
        with self.assertRaisesRegex(ValueError, 'Set HOROVOD_DYNAMIC_PROCESS_SETS=1 to allow '
                                    'adding process sets'):
            hvd.add_process_set([1])
        with self.assertRaisesRegex(ValueError, 'Set HOROVOD_DYNAMIC_PROCESS_SETS=1 to allow '
                                    'removing process sets'):
            hvd.remove_process_set(alone)
        self.assertEqual(alone.process_set_id, 1)

    def test_static_and_added_sets_go_together(self):
        self.need(2)
        first = hvd.ProcessSet([0])
        os.environ[VARIABLE] = '1'
        begin_again(process_sets=[first])
        second = hvd.add_process_set([1])
        self.assertEqual((first.process_set_id, second.process_set_id), (1, 2))
        self.assertTrue(hvd.remove_process_set(first))
        self.assertEqual(set(table()), {0, 2})


class Restored(JobCase):

    def test_sets_are_restored_unless_a_graph_has_an_old_number(self):
        self.need(2)
        begin_again(process_sets='dynamic')
        first, second = hvd.add_process_set([0]), hvd.add_process_set(range(1, hvd.size()))
        second.note_graph()
        kept = process_sets.kept()
        begin_again(process_sets='dynamic')
        self.assertIsNone(second.process_set_id)
        process_sets.restore(kept)
        self.assertEqual((first.process_set_id, second.process_set_id), (1, 2))
        hvd.remove_process_set(first)
        kept = process_sets.kept()
        begin_again(process_sets='dynamic')
        with self.assertRaisesRegex(RuntimeError, 'now has the number 1, but a tf.function'):
            process_sets.restore(kept)


class Dynamic(JobCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        begin_again(process_sets='dynamic')

    def setUp(self):
        self.need(2)
        self.rest = list(range(1, hvd.size()))

    def add(self, ranks):
        made = hvd.add_process_set(ranks)
        self.addCleanup(hvd.remove_process_set, made)
        return made

    def test_added_set_has_the_same_number_everywhere(self):
        first = self.add([0])
        second = hvd.ProcessSet(reversed(self.rest))
        self.assertIs(self.add(second), second)
        self.assertEqual(table(), {0: list(range(hvd.size())), first.process_set_id: [0],
                                   second.process_set_id: self.rest})
        numbers = hvd.allgather_object((first.process_set_id, second.process_set_id))
        self.assertEqual(len(set(numbers)), 1)

    def test_removed_set_is_gone_and_its_number_is_used_again(self):
        first, second = self.add([0]), self.add(self.rest)
        clone = hvd.ProcessSet([0])
        hvd.init(process_sets=[clone])
        number = first.process_set_id
        self.assertTrue(hvd.remove_process_set(first))
        self.assertIsNone(first.process_set_id)
        self.assertIsNone(clone.process_set_id)
        self.assertNotIn(number, table())
        with self.assertRaisesRegex(ValueError, 'Allreduce: Process set provided does not exist, '
                                    'or has not been registered'):
            hvd.allreduce(torch.ones(1), process_set=first)
        self.add(first)
        self.assertEqual(first.process_set_id, number)
        self.assertEqual(table()[second.process_set_id], self.rest)

    def test_a_reused_number_does_not_mix_up_unnamed_tensors(self):
        self.need(3)
        pair = self.add([0, 1])
        if pair.included():
            for _ in range(3):
                hvd.allreduce(torch.ones(1), process_set=pair)
        number = pair.process_set_id
        hvd.remove_process_set(pair)
        pair = self.add([1, 2])
        self.assertEqual(pair.process_set_id, number)
        if pair.included():
            result = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=pair)
            self.assertEqual(result.item(), 2)

    def test_duplicates_are_refused(self):
        self.add(self.rest)
        for ranks in (reversed(self.rest), range(hvd.size())):
            with self.assertRaisesRegex(ValueError, 'Attempted to add a duplicate process set'):
                hvd.add_process_set(ranks)

    def test_global_and_unregistered_sets_are_not_removed(self):
        self.assertIs(hvd.remove_process_set(hvd.global_process_set), False)
        self.assertIs(hvd.remove_process_set(hvd.ProcessSet([0])), False)

    def test_impossible_ranks_are_refused(self):
        for ranks in ([hvd.size()], [-1], [], [0, 0]):
            with self.subTest(ranks=ranks), self.assertRaisesRegex(ValueError, 'ranks from 0 to'):
                hvd.add_process_set(ranks)

    def test_size_and_rank_are_those_in_the_set(self):
        rest = self.add(self.rest)
        self.assertEqual((rest.size(), rest.included()), (hvd.size() - 1, hvd.rank() > 0))
        if hvd.rank() > 0:
            self.assertEqual(rest.rank(), hvd.rank() - 1)
        else:
            with self.assertRaisesRegex(ValueError, 'Process is not part of provided process set'):
                rest.rank()

    def test_ranks_outside_are_refused_by_every_collective(self):
        rest = self.add(self.rest)
        row = torch.ones(hvd.size(), 2)
        options = dict(process_set=rest)
        for word, call in (
                ('Allreduce', lambda: hvd.allreduce(row, **options)),
                ('Allreduce', lambda: hvd.grouped_allreduce_([row], **options)),
                ('Allgather', lambda: hvd.allgather(row, **options)),
                ('Allgather', lambda: hvd.grouped_allgather([row], **options)),
                ('Broadcast', lambda: hvd.broadcast_(row, 1, **options)),
                ('Alltoall', lambda: hvd.alltoall(row, **options)),
                ('Reducescatter', lambda: hvd.reducescatter(row, **options)),
                ('Barrier', lambda: hvd.barrier(**options)),
                ('Broadcast', lambda: hvd.broadcast_object(1, 1, **options)),
                ('Allgather', lambda: hvd.sparse_allreduce_async(row.to_sparse(), **options))):
            if hvd.rank() == 0:
                with self.subTest(word=word), self.assertRaisesRegex(
                        ValueError, f'{word}: Rank 0 is not a member of the provided process set'):
                    call()

    def test_sets_of_an_earlier_job_are_not_registered(self):
        alone = self.add([0])
        begin_again(process_sets='dynamic')
        self.add([1])
        self.assertIsNone(alone.process_set_id)
        with self.assertRaisesRegex(ValueError, 'not been registered'):
            hvd.barrier(process_set=alone)

    def test_forked_child_knows_the_sets_and_cannot_change_them(self):
        rest = self.add(self.rest)
        self.assertEqual(in_child(lambda: (rest.size(), rest.included())),
                         (rest.size(), rest.included()))
        for call in (lambda: hvd.add_process_set([0]), lambda: hvd.remove_process_set(rest),
                     lambda: hvd.barrier(process_set=rest)):
            self.assertIsInstance(in_child(call), (hvd.HorovodInternalError, ValueError))
        self.assertEqual(table()[rest.process_set_id], self.rest)


class WithoutJob(JobCase):

    def test_queries_fail_before_init(self):
        known = hvd.ProcessSet([0])
        hvd.barrier()
        hvd.shutdown()
        for call in (table, known.included, lambda: hvd.add_process_set([0]),
                     hvd.global_process_set.size, hvd.global_process_set.rank):
            with self.assertRaisesRegex(ValueError, 'not been initialized; use hvd.init'):
                call()
        hvd.init()
