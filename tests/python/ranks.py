# SPDX-License-Identifier: Apache-2.0
"""Functions about ranks that the tests of all front ends use."""

from horovod.common.basics import basics
from horovod.common.objects import allgather_object
from horovod.common.process_sets import global_process_set


def own_part(whole, members=global_process_set):
    """Returns this rank's rows of a reducescatter: the first dim0 % size ranks get one more."""
    few, more = divmod(len(whole), members.size())
    begin = members.rank() * few + min(members.rank(), more)
    return whole[begin:begin + few + (members.rank() < more)]


def leave():
    """Calls shutdown() when all ranks are ready to leave; does nothing before init()."""
    if basics.is_initialized():
        allgather_object(None)
        basics.shutdown()
