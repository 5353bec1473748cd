# SPDX-License-Identifier: Apache-2.0
"""Runs one rank of a training that lab.py measures: random pictures, SGD with momentum, and the same
model on each backend.

    lab_train.py BACKEND MODEL DIRECTORY LAYOUT [--batch N] [--steps N]

LAYOUT, such as "2,2", has the number of ranks of each node. All ranks see DIRECTORY; each writes
result.RANK.json there: the seconds of a step, and the sum of all parameters, which is null if each
rank trains a model of its own.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import time

# hvd sets it, too (see horovod.torch): the lab compares how libraries communicate, not how torch allocates memory.
os.environ.setdefault('THP_MEM_ALLOC_ENABLE', '1')

import torch

import interface

HERE = os.path.dirname(os.path.abspath(__file__))


def number(*names):
    """Returns the number in the first of these variables that is set."""
    return next((int(os.environ[name]) for name in names if name in os.environ), None)


RANK = number('HOROVOD_RANK', 'PMIX_RANK', 'SLURM_PROCID') or 0
SIZE = number('HOROVOD_SIZE', 'OMPI_COMM_WORLD_SIZE', 'SLURM_STEP_NUM_TASKS') or 1


# --- models ---

def linear_layers(pixels, width, count):
    """Returns a perceptron with `count` hidden layers."""
    sizes = [3 * pixels * pixels, *[width] * count]
    hidden = [each for pair in zip(sizes, sizes[1:])
              for each in (torch.nn.Linear(*pair), torch.nn.ReLU())]
    return torch.nn.Sequential(torch.nn.Flatten(), *hidden, torch.nn.Linear(width, 1000))


def conv(pixels):
    """Returns a model whose computation takes longer than the reduction of its gradients."""
    layers, channels = [], 3
    for width in (32, 64, 64):
        layers += [torch.nn.Conv2d(channels, width, 3, padding=1), torch.nn.BatchNorm2d(width),
                   torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        channels = width
    return torch.nn.Sequential(*layers, torch.nn.Flatten(),
                               torch.nn.Linear(channels * (pixels // 8) ** 2, 10))


def resnet50(_):
    """Returns the ResNet-50 of the examples, because Debian has no torchvision. Works only in the source
    tree, because the examples are not installed."""
    sys.path.append(os.path.join(HERE, '..', '..', 'examples', 'pytorch'))
    import networks
    return networks.resnet50(1000)


# mlp has 13 million gradients, wide 50 million: reducing them takes longer than computing them.
MODELS = {'mlp': (lambda pixels: linear_layers(pixels, 2048, 2), 32),
          'wide': (lambda pixels: linear_layers(pixels, 4096, 3), 32),
          'conv': (conv, 32), 'resnet50': (resnet50, 64)}


# --- backends ---

class Alone:
    """Does not communicate: measures a step on an equally busy machine."""

    trains_together = False

    def __init__(self, options):
        self.options = options

    def join(self):
        pass

    def distribute(self, model):
        """Returns the model and the optimizer to train with."""
        return model, torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def total(self, model):
        """Returns the sum of all parameters."""
        return sum(each.detach().double().sum().item() for each in model.parameters())

    def leave(self):
        pass


class Hvd(Alone):
    """Uses DistributedOptimizer of the horovod.torch that Python finds: hvd's or Horovod's."""

    trains_together = True

    def join(self):
        import horovod.torch
        self.hvd = horovod.torch
        self.hvd.init()

    def distribute(self, model):
        self.hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        optimizer = super().distribute(model)[1]
        return model, self.hvd.DistributedOptimizer(
            optimizer, named_parameters=model.named_parameters())

    def leave(self):
        self.hvd.shutdown()


class Horovod(Hvd):
    """Uses Horovod 0.28.1 with Gloo; rank 0 runs the rendezvous server."""

    def join(self):
        from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
        from horovod.runner.gloo_run import create_slot_env_vars
        from horovod.runner.http.http_server import RendezvousServer
        own = interface.choose()
        place = os.path.join(self.options.directory, 'server')
        hosts = ','.join(f'node{node}:{count}'
                         for node, count in enumerate(self.options.layout.split(',')))
        slots = get_host_assignments(parse_hosts(hosts), SIZE, SIZE)
        if RANK == 0:
            self.server = RendezvousServer()
            port = self.server.start()
            self.server.init(slots)
            with open(f'{place}.new', 'w') as file:
                json.dump((own, port), file)
            os.rename(f'{place}.new', place)
        while not os.path.exists(place):
            time.sleep(0.01)
        with open(place) as file:
            address, port = json.load(file)
        if 'HVD_TWO_NODES' in os.environ:
            socket.sethostname(own)  # Gloo looks up the host's name
        os.environ.update(
            create_slot_env_vars(slots[RANK]), HOROVOD_CONTROLLER='gloo',
            HOROVOD_CPU_OPERATIONS='gloo', HOROVOD_GLOO_RENDEZVOUS_ADDR=address,
            HOROVOD_GLOO_RENDEZVOUS_PORT=str(port),
            HOROVOD_GLOO_IFACE=os.environ.get('GLOO_SOCKET_IFNAME', ''))
        super().join()


class Ddp(Alone):
    """Uses torch's DistributedDataParallel."""

    trains_together = True

    def __init__(self, options, library, views=False):
        super().__init__(options)
        self.library, self.views = library, views

    def join(self):
        import torch.distributed
        interface.choose()
        if self.library == 'hvd':
            __import__('horovod.torch.distributed')  # registers the backend
        torch.distributed.init_process_group(
            self.library, init_method=f'file://{os.path.abspath(self.options.directory)}/meeting',
            rank=RANK, world_size=SIZE)

    def distribute(self, model):
        optimizer = super().distribute(model)[1]
        return torch.nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=self.views), optimizer

    def leave(self):
        torch.distributed.destroy_process_group()


class Fsdp(Ddp):
    """Uses torch's fully_shard on each layer."""

    def distribute(self, model):
        from torch.distributed.fsdp import fully_shard
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer)
        fully_shard(model)
        return Alone.distribute(self, model)

    def total(self, model):
        return sum(each.detach().full_tensor().double().sum().item()
                   for each in model.parameters())


BACKENDS = {'alone': Alone, 'hvd': Hvd, 'horovod': Horovod,
            'gloo': lambda options: Ddp(options, 'gloo'),
            'gloo-views': lambda options: Ddp(options, 'gloo', views=True),
            'gloo-fsdp': lambda options: Fsdp(options, 'gloo'),
            'ddp': lambda options: Ddp(options, 'hvd'),
            'ddp-views': lambda options: Ddp(options, 'hvd', views=True),
            'fsdp': lambda options: Fsdp(options, 'hvd')}


# --- training ---

def train_step(model, optimizer, pictures, labels):
    begin = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(pictures), labels).backward()
    optimizer.step()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('backend', choices=BACKENDS)
    parser.add_argument('model', choices=MODELS)
    parser.add_argument('directory')
    parser.add_argument('layout')
    parser.add_argument('--batch', type=int, default=32)
    parser.add_argument('--steps', type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    backend = BACKENDS[options.backend](options)
    backend.join()
    torch.manual_seed(1)
    make, pixels = MODELS[options.model]
    model, optimizer = backend.distribute(make(pixels))
    torch.manual_seed(2 + RANK)
    data = (torch.rand(options.batch, 3, pixels, pixels), torch.randint(10, (options.batch,)))
    for _ in range(5):
        train_step(model, optimizer, *data)
    times = [train_step(model, optimizer, *data) for _ in range(options.steps)]
    total = backend.total(model) if backend.trains_together else None
    place = os.path.join(options.directory, f'result.{RANK}.json')
    with open(f'{place}.new', 'w') as file:
        json.dump({'step_s': statistics.median(times), 'sum': total}, file)
    os.rename(f'{place}.new', place)
    backend.leave()


if __name__ == '__main__':
    main()
