# SPDX-License-Identifier: Apache-2.0
"""A job for elastic_check.py: elastic_job.py STORY DIRECTORY. STORY is the name of a scenario, in
which slot 1 fails or slot 2 is late."""

import atexit
import os
import sys
import time

import torch

import horovod.torch as hvd

STORY, DIRECTORY = sys.argv[1:3]
SLOT = int(os.environ['HOROVOD_RANK'])
IS_FIRST = not os.path.exists(os.path.join(DIRECTORY, f'was.{SLOT}'))
SAMPLES, BATCH, FATAL_BATCH, EPOCHS = 240, 4, 5, 3


def come_to_grief(model):
    if STORY in ('exit', 'again'):
        os._exit(3)
    if STORY == 'exception':
        raise SystemError('a mistake of this rank alone')
    if STORY == 'backward':  # exits in backward(), while the other ranks wait for its gradients
        list(model.parameters())[0].register_hook(lambda gradient: os._exit(3))
    if STORY == 'disagree':
        hvd.allreduce(torch.ones(7), name='shape')


def leave_mark(name):
    open(os.path.join(DIRECTORY, name), 'w').close()


def wait_for_mark(name):
    while not os.path.exists(os.path.join(DIRECTORY, name)):
        time.sleep(0.05)


def wait_for_others(state):
    """Waits until slot 1 is back, as Horovod's integration scripts do."""
    while state._host_messages.empty():
        time.sleep(0.02)
    state.check_host_updates()


@hvd.elastic.run
def train(state, dataset, log):
    while state.epoch < EPOCHS:
        loader = torch.utils.data.DataLoader(dataset, BATCH, sampler=state.sampler)
        for index, samples in enumerate(loader):
            if (SLOT, state.epoch, index) == (1, 0, FATAL_BATCH) and IS_FIRST and STORY != 'late':
                come_to_grief(state.model)
            if STORY == 'disagree' and index == FATAL_BATCH and SLOT != 1:
                hvd.allreduce(torch.ones(8), name='shape')
            state.optimizer.zero_grad()
            state.model(samples.float().unsqueeze(1)).mean().backward()
            state.optimizer.step()
            state.sampler.record_batch(index, BATCH)
            state.steps += 1
            state.commit()
            for sample in samples.tolist():
                log.write(f'{state.epoch} {sample}\n')
            log.flush()
        if STORY == 'again' and hvd.size() < 3 and state.epoch == 1:
            wait_for_others(state)
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()


def main():
    if STORY == 'late' and SLOT == 2:
        wait_for_mark('done')
        atexit.register(leave_mark, 'gone')
    hvd.init()
    leave_mark(f'was.{SLOT}')
    torch.manual_seed(SLOT)
    model = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Linear(4, 1))
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), 0.01))
    dataset = list(range(SAMPLES))
    state = hvd.elastic.TorchState(model, optimizer, epoch=0, steps=0,
                                   sampler=hvd.elastic.ElasticSampler(dataset))
    sizes = [hvd.size()]
    state.register_reset_callbacks([lambda: sizes.append(hvd.size())])
    with open(os.path.join(DIRECTORY, f'log.{SLOT}'), 'a') as log:
        train(state, dataset, log)
    weights = [tensor.tolist() for tensor in model.state_dict().values()]
    same = all(other == weights for other in hvd.allgather_object(weights))
    print(f'slot {SLOT} ended: sizes {sizes}, steps {state.steps}, same {same}', flush=True)
    hvd.shutdown()
    leave_mark('done')
    if STORY == 'late' and SLOT == 1:
        wait_for_mark('gone')


if __name__ == '__main__':
    main()
