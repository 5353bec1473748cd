# SPDX-License-Identifier: Apache-2.0
"""Moves the work of tf.data to the ranks of another job. This command starts that job:

    hvdrun -np N python -m horovod.tensorflow.data.compute_worker FILE

The training then reads its data from there:

    config = TfDataServiceConfig.read(FILE, wait_for_file_creation=True)
    dataset = dataset.map(...).send_to_data_service(config, hvd.rank(), hvd.size())

The other job runs all transformations of the dataset before that call.
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
    """Opens a file that this user has written and that no other user can read or change. Raises
    PermissionError for other files: a file of another user could lead to that user's service, and
    a file that others can read shows them the key."""
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
    """The address and key of a service. The job that provides the service writes them to a file
    that only its user can read.

    dispatchers: the number of dispatchers: 1, or one for each rank of the training.
    workers_per_dispatcher: the number of ranks that work for each dispatcher.
    dispatcher_side: the job in which dispatchers run: 'compute' or 'training'.
    addresses: the addresses of the registry: {name: [(host, port), ...]}.
    key: the key of the registry.
    timeout: seconds to wait for all parts of the service to register.
    """
    dispatchers: int
    workers_per_dispatcher: int
    dispatcher_side: str
    addresses: Mapping[str, Sequence[Tuple[str, int]]]
    key: bytes
    timeout: int = 60

    def compute_client(self, verbose=1):
        """Returns a client of the registry. Its shutdown() ends the service."""
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
        """Writes a new file with mode 0600. Readers see the complete file or no file."""
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
        """Reads the file that the service has written. wait_for_file_creation: waits, without a
        time limit, until the file exists. PermissionError for a file that another user could have
        written or read."""
        while True:
            try:
                with _open_own(filename) as file:
                    return TfDataServiceConfig.from_dict(json.load(file))
            except FileNotFoundError:
                if not wait_for_file_creation:
                    raise
            time.sleep(_POLL_SECONDS)


def _go_without_proxy():
    """Keeps gRPC from using the proxy in http_proxy for connections within the cluster: an empty
    grpc_proxy means no proxy. This affects all uses of gRPC in this process and its children. The
    alternative, no_grpc_proxy, needs the names of all workers, which only dispatchers know."""
    os.environ.setdefault('grpc_proxy', '')


@contextlib.contextmanager
def _dispatcher(registry, number):
    """A context manager that runs a dispatcher in this process and registers it under an address
    that other nodes can use: TensorFlow itself would call it "localhost"."""
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
    """A context manager that runs a worker in this process."""
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
    """A context manager that returns the address of this rank's dispatcher, for
    tf.data.experimental.service.distribute(). Waits until all parts of the service have registered.

    With dispatcher_side 'training', the dispatcher runs on this rank, or on rank 0, until the
    context ends: read the data within the context.
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
    """Returns the dataset, computed by the service. Also a method of tf.data.Dataset.

    compute_config: a TfDataServiceConfig.
    rank, size: the rank of this process in the training, and the number of ranks.
    processing_mode: as for tf.data.experimental.service.distribute().
    reuse_dataset: the ranks of the training share one iteration over the data; otherwise each rank
        has its own.
    round_robin: with reuse_dataset, the ranks take turns, so that all get the same number of
        batches. The dataset must be infinite, and ``size`` is needed.

    RuntimeError if dispatchers run in the training: use tf_data_service() then.
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
    """Runs a worker of the service, and where needed a dispatcher, until the service is shut down.
    Each rank of the job that provides the service calls this."""
    _go_without_proxy()
    hvd.init()
    registry = compute_config.compute_client()
    number, index = divmod(hvd.rank(), compute_config.workers_per_dispatcher)
    # The service may be shut down before all workers have registered.
    with contextlib.suppress(ServiceIsOver), contextlib.ExitStack() as stack:
        if compute_config.dispatcher_side == 'compute' and index == 0:
            stack.enter_context(_dispatcher(registry, number))
        address = registry.wait_for_dispatcher_registration(number, compute_config.timeout)
        stack.enter_context(_worker(address, compute_config.timeout))
        registry.register_worker_for_dispatcher(number, hvd.rank())
        registry.wait_for_shutdown()
