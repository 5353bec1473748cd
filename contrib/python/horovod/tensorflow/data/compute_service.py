# SPDX-License-Identifier: Apache-2.0
"""Moves the work of tf.data to the ranks of another job, which
``hvdrun -np N python -m horovod.tensorflow.data.compute_worker FILE`` starts:

    config = TfDataServiceConfig.read(FILE, wait_for_file_creation=True)
    dataset = dataset.map(...).send_to_data_service(config, hvd.rank(), hvd.size())

What the dataset does before that call is done there.
"""

import contextlib
import dataclasses
import errno
import json
import os
import stat
import tempfile
import time
from typing import Any, Mapping, Sequence, Tuple

import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.tensorflow.data.registry import RegistryClient, ServiceIsOver, own_host

_POLL_SECONDS = 0.2


def _open_own(filename):
    """Opens a file that this user has written and that nobody else can read or change. A file of
    another user would lead us to that user's service; a file that others can read shows them our
    key. Raises PermissionError for such files."""
    remedy = ('the job that provides the service, as this user, must have written it there; is it '
              'in a folder of yours?')
    try:
        number = os.open(filename, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise PermissionError(f'{filename} is a symbolic link: {remedy}') from error
    status = os.fstat(number)
    wrong = ''
    if not stat.S_ISREG(status.st_mode):
        wrong = 'is not a regular file'
    elif status.st_uid != os.geteuid():
        wrong = f'belongs to user {status.st_uid}, not to {os.geteuid()}'
    elif status.st_mode & 0o077:
        wrong = f'has mode {stat.S_IMODE(status.st_mode):04o}, not 0600'
    if wrong:
        os.close(number)
        raise PermissionError(f'{filename} {wrong}: {remedy}')
    return open(number)


@dataclasses.dataclass(frozen=True)
class TfDataServiceConfig:
    """How to reach a service. The job that provides the service writes this into a file that only
    its user can read: the file has the key of the service.

    dispatchers: how many; 1, or one for each rank that trains.
    workers_per_dispatcher: how many ranks work for each.
    dispatcher_side: where dispatchers run, 'compute' or 'training'.
    addresses: of the registry: {name: [(host, port), ...]}.
    timeout: in seconds, for all parts of the service to be there.
    """
    dispatchers: int
    workers_per_dispatcher: int
    dispatcher_side: str
    addresses: Mapping[str, Sequence[Tuple[str, int]]]
    key: bytes
    timeout: int = 60

    def compute_client(self, verbose=1):
        """The registry; its shutdown() ends the service."""
        return RegistryClient(self.addresses, self.key)

    def to_dict(self) -> Mapping[str, Any]:
        return {**dataclasses.asdict(self), 'key': self.key.hex()}

    @staticmethod
    def from_dict(config: Mapping[str, Any]) -> 'TfDataServiceConfig':
        addresses = {name: [tuple(place) for place in places]
                     for name, places in config['addresses'].items()}
        return TfDataServiceConfig(**{**config, 'addresses': addresses,
                                      'key': bytes.fromhex(config['key'])})

    def write(self, filename):
        """Writes a new file of mode 0600. Readers see the complete file or none."""
        place, name = os.path.split(os.path.abspath(filename))
        number, unfinished = tempfile.mkstemp(prefix=name, dir=place)
        try:
            with open(number, 'w') as file:
                json.dump(self.to_dict(), file)
            os.replace(unfinished, filename)
        except BaseException:
            os.unlink(unfinished)
            raise

    @staticmethod
    def read(filename, wait_for_file_creation=False) -> 'TfDataServiceConfig':
        """wait_for_file_creation: waits, as long as it takes, for the service to begin.
        PermissionError for a file that another user could have written or read."""
        while True:
            try:
                with _open_own(filename) as file:
                    return TfDataServiceConfig.from_dict(json.load(file))
            except FileNotFoundError:
                if not wait_for_file_creation:
                    raise
            time.sleep(_POLL_SECONDS)


def _go_without_proxy():
    """Keeps gRPC from using the proxy of http_proxy for nodes of the cluster: an empty grpc_proxy
    means none. This affects all of gRPC in this process and its children; no_grpc_proxy would need
    the names of all workers, which only dispatchers know."""
    os.environ.setdefault('grpc_proxy', '')


@contextlib.contextmanager
def _dispatcher(registry, number):
    """A dispatcher in this process, registered under an address that other nodes can use.
    TensorFlow's own address is "localhost"."""
    server = tf.data.experimental.service.DispatchServer()
    try:
        protocol, address = server.target.split('://')
        registry.register_dispatcher(
            number, f'{protocol}://{own_host()}:{address.rsplit(":", 1)[1]}')
        yield
    finally:
        server.stop()
        server.join()


@contextlib.contextmanager
def _worker(dispatcher_address, timeout):
    """A worker in this process."""
    protocol, address = dispatcher_address.split('://')
    server = tf.data.experimental.service.WorkerServer(
        tf.data.experimental.service.WorkerConfig(
            dispatcher_address=address, worker_address=f'{own_host()}:%port%', protocol=protocol,
            heartbeat_interval_ms=1000, dispatcher_timeout_ms=timeout * 1000))
    try:
        yield
    finally:
        server.stop()
        server.join()


@contextlib.contextmanager
def tf_data_service(compute_config, rank):
    """A context with the address of this rank's dispatcher, for
    tf.data.experimental.service.distribute(). Waits until all parts of the service are there.

    A dispatcher of the training's side, of each rank or of rank 0, runs as long as the context:
    data can be had from it within only.
    """
    _go_without_proxy()
    registry = compute_config.compute_client()
    number = rank if compute_config.dispatchers > 1 else 0
    with contextlib.ExitStack() as stack:
        if compute_config.dispatcher_side == 'training' and number == rank:
            stack.enter_context(_dispatcher(registry, number))
        address = registry.wait_for_dispatcher_registration(number, compute_config.timeout)
        registry.wait_for_dispatcher_worker_registration(number, compute_config.timeout)
        yield address


def send_to_data_service(dataset, compute_config, rank, size=None,
                         processing_mode='distributed_epoch', reuse_dataset=False,
                         round_robin=False):
    """The dataset, computed by the service. Also a method of tf.data.Dataset.

    processing_mode: as of tf.data.experimental.service.distribute().
    reuse_dataset: the ranks of the training share one iteration of the data; otherwise each has
        its own.
    round_robin: they take turns in it, so that each gets equally many batches at the same time;
        for data without end, with their number in ``size``.
    """
    if compute_config.dispatcher_side == 'training':
        raise RuntimeError('training side dispatcher not supported, use tf_data_service context '
                           'manager instead')
    in_turn = reuse_dataset and round_robin
    with tf_data_service(compute_config, rank) as address:
        return dataset.apply(tf.data.experimental.service.distribute(
            processing_mode=processing_mode, service=address,
            job_name='job' if reuse_dataset else None,
            consumer_index=rank if in_turn else None, num_consumers=size if in_turn else None))


tf.data.Dataset.send_to_data_service = send_to_data_service


def compute_worker_fn(compute_config):
    """Works for the service until it is shut down. Each rank of its job calls this."""
    _go_without_proxy()
    hvd.init()
    registry = compute_config.compute_client()
    number, index = divmod(hvd.rank(), compute_config.workers_per_dispatcher)
    # It may be over before all its workers are there.
    with contextlib.suppress(ServiceIsOver), contextlib.ExitStack() as stack:
        if compute_config.dispatcher_side == 'compute' and index == 0:
            stack.enter_context(_dispatcher(registry, number))
        address = registry.wait_for_dispatcher_registration(number, compute_config.timeout)
        stack.enter_context(_worker(address, compute_config.timeout))
        registry.register_worker_for_dispatcher(number, hvd.rank())
        registry.wait_for_shutdown()
