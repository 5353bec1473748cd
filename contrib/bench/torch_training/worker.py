# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that bench.py measures: random pictures, SGD with momentum.

    worker.py SOCKET BACKEND MODEL --batch N --pixels N

It says to the socket who it is, then takes steps when it is told to. Messages are JSON, one a
line:  {"rank", "pid", "meet"} up, {"meet"} down;  then, as often as wanted, {"steps"} down and
{"wall", "cpu"} (seconds of the steps) up;  {"steps": 0} down, {"sum"} of all parameters up (null
where ranks train a model each), end.
"""

import argparse
import fcntl
import json
import os
import socket
import struct
import time

import torch

from models import CLASSES, MODELS

RANK = int(os.environ['HOROVOD_RANK'])  # all jobs are started by hvdrun
SIOCGIFADDR = 0x8915


def interface():
    """The name and address of the only network but the loopback, where ranks have their own; else
    of that one."""
    names = [name for _, name in socket.if_nameindex() if name.startswith('hvd')]
    name = names[0] if names and os.environ.get('HVD_TWO_NODES') else 'lo'
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack('256s', name.encode()))
    return name, socket.inet_ntoa(answer[20:24])


class Alone:
    """No communication: what the step costs on a machine that is as busy."""

    trains_together = False

    def __init__(self, options):
        self.options = options

    def offer(self):
        """What all ranks have to know to meet; rank 0 is asked."""

    def join(self, meet):
        pass

    def distribute(self, model, optimizer):
        """The model and optimizer to train with."""
        return model, optimizer

    def leave(self):
        pass

    def total(self, model):
        """Of all parameters."""
        return sum(each.detach().double().sum().item() for each in model.parameters())


class Ddp(Alone):
    """torch's DistributedDataParallel on Gloo, of GPUs on NCCL."""

    trains_together = True
    views = False

    def offer(self):
        return f'file://{os.path.abspath(self.options.socket)}.{self.options.backend}'

    def join(self, meet):
        torch.distributed.init_process_group(self.library(), init_method=meet, rank=RANK,
                                             world_size=self.options.ranks)

    def library(self):
        os.environ['GLOO_SOCKET_IFNAME'] = interface()[0]
        return 'nccl' if self.options.device == 'cuda' else 'gloo'

    def distribute(self, model, optimizer):
        return torch.nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=self.views), optimizer

    def leave(self):
        torch.distributed.destroy_process_group()


class DdpViews(Ddp):
    views = True


class Fsdp(Ddp):
    """torch's fully_shard, of each layer."""

    def distribute(self, model, optimizer):
        from torch.distributed.fsdp import fully_shard
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer)
        fully_shard(model)
        return model, torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def total(self, model):
        return sum(each.detach().full_tensor().double().sum().item()
                   for each in model.parameters())


class OverHvd:
    """The same over torch.distributed's backend hvd."""

    def library(self):
        import horovod.torch.distributed  # noqa: F401
        return 'hvd'


class DdpHvd(OverHvd, Ddp):
    pass


class DdpViewsHvd(OverHvd, DdpViews):
    pass


class FsdpHvd(OverHvd, Fsdp):
    pass


class Hvd(Alone):
    """hvd, or Horovod where that is what Python finds."""

    trains_together = True

    def join(self, meet):
        import horovod.torch
        self.hvd = horovod.torch
        self.hvd.init()

    def distribute(self, model, optimizer):
        self.hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        return model, self.hvd.DistributedOptimizer(
            optimizer, named_parameters=model.named_parameters())

    def leave(self):
        self.hvd.shutdown()


class InStep(Hvd):
    """No gradients are exchanged, but all ranks wait for the slowest before every update."""

    trains_together = False

    def distribute(self, model, optimizer):
        update = optimizer.step

        def update_together():
            self.hvd.barrier()
            update()

        optimizer.step = update_together
        return model, optimizer


class Horovod(Hvd):
    def slots(self):
        from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
        hosts = ','.join(f'node{node}:{count}' for node, count in enumerate(self.options.layout))
        return get_host_assignments(parse_hosts(hosts), self.options.ranks, self.options.ranks)

    def offer(self):
        from horovod.runner.http.http_server import RendezvousServer
        self.server = RendezvousServer()
        port = self.server.start()
        self.server.init(self.slots())
        return [interface()[1], port]

    def join(self, meet):
        from horovod.runner.gloo_run import create_slot_env_vars
        if len(self.options.layout) > 1:  # Gloo looks up a host's name
            socket.sethostname(interface()[1])
        os.environ.update(
            create_slot_env_vars(self.slots()[RANK]), HOROVOD_CONTROLLER='gloo',
            HOROVOD_CPU_OPERATIONS='gloo', HOROVOD_GLOO_IFACE=interface()[0],
            HOROVOD_GLOO_RENDEZVOUS_ADDR=meet[0], HOROVOD_GLOO_RENDEZVOUS_PORT=str(meet[1]))
        super().join(meet)


BACKENDS = {'alone': Alone, 'in-step': InStep, 'ddp': Ddp, 'ddp-views': DdpViews, 'fsdp': Fsdp,
            'ddp-hvd': DdpHvd, 'ddp-views-hvd': DdpViewsHvd, 'fsdp-hvd': FsdpHvd, 'hvd': Hvd,
            'horovod': Horovod}


def choose_device(options):
    """This rank's; what ranks on one GPU need besides."""
    if options.device == 'cpu':
        return torch.device('cpu')
    # NCCL takes several ranks on one GPU only where each says that it is on a host of its own.
    os.environ['NCCL_HOSTID'] = f'bench.{RANK}'
    torch.cuda.set_device(RANK % torch.cuda.device_count())
    return torch.device('cuda', torch.cuda.current_device())


def make_step(options, backend, device):
    torch.manual_seed(1)
    model = MODELS[options.model][0](options.pixels).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    model, optimizer = backend.distribute(model, optimizer)
    torch.manual_seed(2 + RANK)
    pictures = torch.rand(options.batch, 3, options.pixels, options.pixels).to(device)
    labels = torch.randint(CLASSES, (options.batch,)).to(device)

    def step():
        if options.set_to_none:  # Horovod's zero_grad has no such argument
            for parameter in model.parameters():
                parameter.grad = None
        elif options.set_to_zero:
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad.zero_()
        else:
            optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()

    return model, step


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument('socket')
    parser.add_argument('backend', choices=BACKENDS)
    parser.add_argument('model', choices=MODELS)
    parser.add_argument('--batch', type=int, required=True)
    parser.add_argument('--pixels', type=int, required=True)
    parser.add_argument('--layout', required=True)
    parser.add_argument('--device', choices=('cpu', 'cuda'), default='cpu')
    gradients = parser.add_mutually_exclusive_group()
    gradients.add_argument('--set-to-none', action='store_true')
    gradients.add_argument('--set-to-zero', action='store_true')
    options = parser.parse_args()
    options.layout = [int(count) for count in options.layout.split(',')]
    options.ranks = sum(options.layout)
    return options


def measure(step, count, device):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        step()
    if device.type == 'cuda':
        torch.cuda.synchronize()
    return {'wall': time.perf_counter() - wall, 'cpu': time.process_time() - cpu}


def main():
    options = parse()
    torch.set_num_threads(1)
    device = choose_device(options)
    backend = BACKENDS[options.backend](options)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(options.socket)
        talk = connection.makefile('rw')

        def say(**message):
            print(json.dumps(message), file=talk, flush=True)

        say(rank=RANK, pid=os.getpid(), backend=options.backend,
            meet=backend.offer() if RANK == 0 else None)
        backend.join(json.loads(talk.readline())['meet'])
        model, step = make_step(options, backend, device)
        while steps := json.loads(talk.readline())['steps']:
            say(**measure(step, steps, device))
        say(sum=backend.total(model) if backend.trains_together else None)
    backend.leave()


if __name__ == '__main__':
    main()
