# SPDX-License-Identifier: Apache-2.0
"""The device that probes run on: the first CUDA GPU, or the CPU to rehearse them."""

import contextlib
import time

import torch


class Accelerator:
    """The device that probes run on. On the CPU, streams do nothing."""

    def __init__(self, kind):
        self.name = kind
        self.is_cuda = kind == 'cuda'
        self._cycles_per_us = 0
        if self.is_cuda:
            torch.cuda.set_device(0)
            self._cycles_per_us = self._measure_clock()
        else:
            torch.set_num_threads(1)

    def _measure_clock(self):
        cycles = 100000000
        torch.cuda._sleep(cycles // 100)
        self.synchronize()
        begin = time.perf_counter()
        torch.cuda._sleep(cycles)
        self.synchronize()
        return cycles / ((time.perf_counter() - begin) * 1e6)

    def synchronize(self):
        """Waits for all work on the device."""
        if self.is_cuda:
            torch.cuda.synchronize()

    def sleep(self, us):
        """Lets the current stream sleep, or the process on the CPU."""
        if self.is_cuda:
            torch.cuda._sleep(int(us * self._cycles_per_us))
        else:
            time.sleep(us / 1e6)

    def new_stream(self):
        """Returns a stream for ``on``."""
        return torch.cuda.Stream() if self.is_cuda else None

    def on(self, stream):
        """Returns a context in which ``stream`` is the current one."""
        return torch.cuda.stream(stream) if self.is_cuda else contextlib.nullcontext()

    def free_bytes(self):
        """Returns the free bytes of the device's memory; 0 on the CPU."""
        return torch.cuda.mem_get_info()[0] if self.is_cuda else 0

    def time(self, call, count):
        """Returns the milliseconds of a call, measured by ``count`` calls with the work that they start."""
        self.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        self.synchronize()
        return (time.perf_counter() - begin) / count * 1e3

    def queue(self, call, count, sleep_us=0):
        """Returns the microseconds that a call takes the caller, and those that it takes on the stream. The
        stream sleeps first, so that all calls are queued. On the CPU both are the caller's."""
        first, last = (torch.cuda.Event(enable_timing=True) if self.is_cuda else None
                       for _ in range(2))
        if self.is_cuda:
            self.sleep(sleep_us)
            first.record()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        took = (time.perf_counter() - begin) / count * 1e6
        if not self.is_cuda:
            return took, took
        last.record()
        last.synchronize()
        return took, first.elapsed_time(last) / count * 1e3
