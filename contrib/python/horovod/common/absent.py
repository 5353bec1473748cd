# SPDX-License-Identifier: Apache-2.0
"""Modules of Horovod that hvd lacks. Their import raises an error that names the replacement."""

import sys

_JOBS = 'horovod.run() starts a job from Python, hvdrun or srun --hvd from the shell'
_ELASTIC = 'srun --hvd=elastic, or hvdrun --min-np and --host-discovery-script, runs elastic jobs'
_EXTENSION = 'the collectives are in horovod.{0}.mpi_ops, over libhvd.so; nothing is compiled'

# The replacement for each module and its submodules; the longest matching name wins.
_INSTEAD = {
    'horovod.spark': 'in place of an estimator, write the data with Spark, and read and train in '
                     'a function that horovod.spark.run() calls on all ranks',
    'horovod.ray': 'horovod.ray.RayExecutor starts ranks in Ray\'s actors',
    'horovod.runner.common.service': 'horovod.tensorflow.data.compute_service has the tf.data '
                                     f'service; {_JOBS}',
    'horovod.runner.common.util.config_parser': 'hvdrun --config-file reads such files',
    'horovod.runner.common.util.host_hash': 'hvd.local_rank() and hvd.cross_rank() tell who '
                                            'shares a node',
    'horovod.runner.common.util.network': 'Python\'s multiprocessing.connection is as good',
    'horovod.runner.common.util.safe_shell_exec': 'use subprocess.run()',
    'horovod.runner.common.util.settings': 'horovod.run() takes the settings as arguments',
    'horovod.runner.common.util.tiny_shell_exec': 'use subprocess.run()',
    'horovod.runner.driver': _JOBS,
    'horovod.runner.elastic': _ELASTIC,
    'horovod.runner.gloo_run': _JOBS,
    'horovod.runner.http': f'srun --hvd and hvdrun start a rendezvous server themselves; {_JOBS}',
    'horovod.runner.js_run': _JOBS,
    'horovod.runner.mpi_run': f'mpirun starts scripts that use hvd as they are; {_JOBS}',
    'horovod.runner.run_task': _JOBS,
    'horovod.runner.task': _JOBS,
    'horovod.runner.task_fn': _JOBS,
    'horovod.runner.util.cache': 'hvdrun keeps no results of checks',
    'horovod.runner.util.lsf': 'under LSF, hvdrun starts the ranks, and jsrun where LSF has it',
    'horovod.runner.util.network': 'hvdrun --network-interfaces chooses the interfaces',
    'horovod.runner.util.remote': _JOBS,
    'horovod.runner.util.streams': 'use subprocess.PIPE',
    'horovod.mxnet.mpi_lib': _EXTENSION.format('mxnet'),
    'horovod.tensorflow.mpi_lib': _EXTENSION.format('tensorflow'),
    'horovod.torch.mpi_lib': _EXTENSION.format('torch'),
    'horovod.torch.mpi_lib_v2': _EXTENSION.format('torch'),
}


class AbsentModuleError(ModuleNotFoundError):
    """Horovod has this module, but hvd does not.

    The attribute ``name`` stays unset: ``from package import module`` swallows a
    ModuleNotFoundError that has the module's name and reports "cannot import name" instead.
    """


class _Finder:
    """The last finder in sys.meta_path, so that Python finds existing modules first."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        parts = name.split('.')
        for count in range(len(parts), 1, -1):
            instead = _INSTEAD.get('.'.join(parts[:count]))
            if instead is not None:
                raise AbsentModuleError(f'hvd has no {name}: {instead}')
        return None


def announce():
    """Registers the finder. The package calls this once."""
    sys.meta_path.append(_Finder)
