# SPDX-License-Identifier: Apache-2.0
"""Base classes of data loaders, one of which reads ahead in a thread."""

import queue
import threading

_END = object()  # in the queue: the end of a pass over the batches


class BaseDataLoader:
    """Iterates over the batches that a derived class yields in _iterate()."""

    def __len__(self):
        """The number of batches."""
        raise NotImplementedError()

    def _iterate(self):
        """Yields the batches of one pass."""
        raise NotImplementedError()

    def _process_batch(self, batch):
        """Returns the batch to yield instead of this one. Derived classes may override this."""
        return batch

    def __iter__(self):
        for batch in self._iterate():
            yield self._process_batch(batch)


class _Failure:

    def __init__(self, error):
        self.error = error


class AsyncDataLoaderMixin:
    """Reads batches ahead in a thread. List it before a BaseDataLoader among the base classes.

    async_loader_queue_size: how many batches to read ahead; 0: no thread. The thread reads pass
        after pass over the data until close_async_loader(). debug_data_loader: prints the length of
        the queue.
    """

    def __init__(self, async_loader_queue_size=64, debug_data_loader=False, *args, **kwargs):
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        super().__init__(*args, **kwargs)
        self.started = False
        if async_loader_queue_size > 0:
            self.finished_event = threading.Event()
            self.queue = queue.Queue(async_loader_queue_size)
            self.thread = threading.Thread(target=self._async_worker, daemon=True)

    def close_async_loader(self):
        """Ends the thread and drops the batches that it has read."""
        if not self.started:
            return
        self.finished_event.set()
        while self.thread.is_alive():
            try:
                self.queue.get(timeout=0.1)  # the thread may be waiting for room in the queue
            except queue.Empty:
                pass
        self.thread.join()

    def _async_worker(self):
        while not self.finished_event.is_set():
            try:
                for batch in self._iterate():
                    if self.finished_event.is_set():
                        return
                    self._put(batch)
            except Exception as error:  # raised again where the batches are used
                self._put(_Failure(error))
                return
            self._put(_END)

    def _put(self, batch):
        self.queue.put(batch)
        if self.debug_data_loader:
            print(f'{type(self).__name__}: {self.queue.qsize()} batches are read ahead')

    def __iter__(self):
        if self.async_loader_queue_size <= 0:
            yield from super().__iter__()
            return
        if not self.started:
            self.started = True
            self.thread.start()
        while True:
            batch = self.queue.get()
            if batch is _END:
                return
            if isinstance(batch, _Failure):
                raise batch.error
            yield self._process_batch(batch)
