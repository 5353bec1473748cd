# SPDX-License-Identifier: Apache-2.0
"""HVD_STORE: a folder on a file system that all ranks share, through which they find each other if
no launcher of hvd has started them. The rank and the number of ranks are in the variables of the
launcher, such as TF_CONFIG under YARN."""

import json
import os
import stat
import time

# Variables with the rank and the number of ranks; the first pair that is set decides.
_PAIRS = (
    ('RANK', 'WORLD_SIZE'),
    ('HOROVOD_RANK', 'HOROVOD_SIZE'),
    ('RANK', 'WORLD'),  # TonY, for PyTorch
    ('FLUX_TASK_RANK', 'FLUX_JOB_SIZE'),
    ('PMI_RANK', 'PMI_SIZE'),
    ('JSM_NAMESPACE_RANK', 'JSM_NAMESPACE_SIZE'),
    ('SLURM_PROCID', 'SLURM_STEP_NUM_TASKS'),
)
_TYPES = ('chief', 'master', 'worker')  # the tasks that become ranks, in this order

# Seconds that a rank sleeps after it has looked for a file in vain.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def _whole(name, text):
    try:
        return int(text)
    except (TypeError, ValueError):
        raise ValueError(f'{name} is {text!r}: expected a whole number') from None


def _in_cluster(name, cluster, task_type, index):
    """Returns the rank of a task of TensorFlow's cluster, and the number of ranks."""
    if not isinstance(cluster, dict) or not all(isinstance(each, list) for each in cluster.values()):
        raise ValueError(f'{name} has no lists of tasks: expected {{"worker": ["HOST:PORT", ...]}}')
    if task_type not in _TYPES or not 0 <= index < len(cluster.get(task_type, ())):
        raise ValueError(f'{name} does not have this task, {task_type} {index}, among those that '
                         f'become ranks: {", ".join(_TYPES)}')
    before = _TYPES[:_TYPES.index(task_type)]
    return (sum(len(cluster.get(each, ())) for each in before) + index,
            sum(len(cluster.get(each, ())) for each in _TYPES))


def _json(name, text):
    try:
        return json.loads(text)
    except ValueError as failure:
        raise ValueError(f'{name} is not JSON: {failure}') from None


def _of_tf_config(text):
    config = _json('TF_CONFIG', text)
    task = config.get('task') if isinstance(config, dict) else None
    if not isinstance(task, dict) or 'type' not in task or 'index' not in task:
        raise ValueError('TF_CONFIG does not name this task: expected {"cluster": {...}, "task": '
                         '{"type": "worker", "index": 0}}')
    return _in_cluster('TF_CONFIG', config.get('cluster'), task['type'],
                       _whole('the index in TF_CONFIG', task['index']))


def find_rank():
    """Returns the rank of this process and the number of ranks, from the variables of its launcher;
    None if there are none."""
    environment = os.environ
    for rank, size in _PAIRS:
        if environment.get(rank) and environment.get(size):
            return _whole(rank, environment[rank]), _whole(size, environment[size])
    if environment.get('TF_CONFIG'):
        return _of_tf_config(environment['TF_CONFIG'])
    if all(environment.get(each) for each in ('CLUSTER_SPEC', 'JOB_NAME', 'TASK_INDEX')):
        return _in_cluster('CLUSTER_SPEC', _json('CLUSTER_SPEC', environment['CLUSTER_SPEC']),
                           environment['JOB_NAME'], _whole('TASK_INDEX', environment['TASK_INDEX']))
    return None


def _name(key):
    return key.replace('/', '_')


class FileStore:
    """A store of files in a folder, with those methods of torch's stores that hvd calls. Each key
    has one writer."""

    def __init__(self, folder):
        """Opens the folder and checks what was opened: the name may stand for another one later."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._pause = _SHORTEST_PAUSE
        status = os.fstat(self._folder)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            os.close(self._folder)
            self._folder = None
            raise ValueError(f'HVD_STORE is {folder}: expected a folder of your own, to which nobody '
                             'else can write')

    def __del__(self):
        if getattr(self, '_folder', None) is not None:
            os.close(self._folder)

    def _open(self, name, flags):
        return os.open(name, flags, 0o600, dir_fd=self._folder)

    def set(self, key, value):
        """Writes a new file and renames it: other ranks see a complete file or none. Only the user
        can read it, because the values of rank 0 contain the secret of the job."""
        name = _name(key)
        unfinished = f'{name}.new'
        with open(unfinished, 'wb', opener=lambda path, _: self._open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)) as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        os.rename(unfinished, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def get(self, key):
        with open(_name(key), 'rb', opener=self._open) as file:
            return file.read()

    def add(self, key, number):
        total = number + (int(self.get(key)) if self._has([key]) else 0)
        self.set(key, str(total).encode())
        return total

    def _has(self, keys):
        names = os.listdir(self._folder)  # makes NFS look for new files
        return all(_name(key) in names or self._is_file(_name(key)) for key in keys)

    def _is_file(self, name):
        try:
            os.stat(name, dir_fd=self._folder)
        except FileNotFoundError:
            return False
        return True

    def check(self, keys):
        """Whether all keys are there. Sleeps after a miss, longer each time: the ranks of a large
        job would load the file system otherwise."""
        if self._has(keys):
            self._pause = _SHORTEST_PAUSE
            return True
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return False
