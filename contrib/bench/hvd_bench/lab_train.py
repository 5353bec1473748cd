# SPDX-License-Identifier: Apache-2.0
"""One rank of the training of lab.py: random pictures, plain SGD, the same model on each backend.

    lab_train.py BACKEND MODEL DIRECTORY [--batch N] [--steps N]

BACKEND: hvd (horovod.torch's DistributedOptimizer), gloo (torch's DistributedDataParallel).
MODEL: mlp, whose gradients take longer than its arithmetic; conv, where it is the other way
round. Rank 0 writes DIRECTORY/result.json.
"""

import argparse
import fcntl
import json
import os
import socket
import statistics
import struct
import time

import torch

CLASSES = 10
PIXELS = 32


def mlp():
    width = 2048
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(3 * PIXELS * PIXELS, width), torch.nn.ReLU(),
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, CLASSES))


def conv():
    layers, channels = [], 3
    for width in (32, 64, 64):
        layers += [torch.nn.Conv2d(channels, width, 3, padding=1), torch.nn.BatchNorm2d(width),
                   torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        channels = width
    return torch.nn.Sequential(*layers, torch.nn.Flatten(),
                               torch.nn.Linear(channels * (PIXELS // 8) ** 2, CLASSES))


MODELS = {'mlp': mlp, 'conv': conv}


def number(*names):
    """Of the launcher: the first of these that is set."""
    return next((int(os.environ[name]) for name in names if name in os.environ), None)


def with_hvd(model, _):
    import horovod.torch as hvd
    hvd.init()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01),
                                         named_parameters=model.named_parameters())
    return hvd.rank(), hvd.size(), model, optimizer, hvd.shutdown


def has_address(interface):
    """An IPv4 one, by which others may reach us."""
    get_flags, get_address, up, loopback = 0x8913, 0x8915, 1, 8
    request = struct.pack('16s16x', interface.encode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            flags = struct.unpack_from('H', fcntl.ioctl(one, get_flags, request), 16)[0]
            fcntl.ioctl(one, get_address, request)
        except OSError:
            return False
    return flags & up and not flags & loopback


def choose_interface():
    """Gloo takes the address of this host's name, which often is none or 127.0.1.1."""
    try:
        if not socket.gethostbyname(socket.gethostname()).startswith('127.'):
            return
    except OSError:
        pass
    found = [name for _, name in socket.if_nameindex() if has_address(name)]
    os.environ.setdefault('GLOO_SOCKET_IFNAME', found[0] if found else 'lo')


def with_gloo(model, directory):
    choose_interface()
    rank = number('HOROVOD_RANK', 'PMIX_RANK', 'SLURM_PROCID') or 0
    size = number('HOROVOD_SIZE', 'OMPI_COMM_WORLD_SIZE', 'SLURM_STEP_NUM_TASKS') or 1
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{os.path.abspath(directory)}/meeting', rank=rank,
        world_size=size)
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return rank, size, model, optimizer, torch.distributed.destroy_process_group


BACKENDS = {'hvd': with_hvd, 'gloo': with_gloo}


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
    parser.add_argument('--batch', type=int, default=32)
    parser.add_argument('--steps', type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = MODELS[options.model]()
    rank, size, model, optimizer, leave = BACKENDS[options.backend](model, options.directory)
    torch.manual_seed(2 + rank)
    data = (torch.rand(options.batch, 3, PIXELS, PIXELS),
            torch.randint(CLASSES, (options.batch,)))
    for _ in range(5):
        train_step(model, optimizer, *data)
    times = [train_step(model, optimizer, *data) for _ in range(options.steps)]
    if rank == 0:
        with open(os.path.join(options.directory, 'result.json'), 'w') as file:
            json.dump({'ranks': size, 'step_s': statistics.median(times)}, file)
    leave()


if __name__ == '__main__':
    main()
