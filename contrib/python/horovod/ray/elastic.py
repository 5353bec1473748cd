# SPDX-License-Identifier: Apache-2.0
"""The older name of elastic executors. horovod.ray.runner says what elastic means here."""

import warnings

from horovod.ray.runner import MiniSettings, RayExecutor


class ElasticRayExecutor:
    """An elastic RayExecutor with the names that it had before Horovod 0.25.

    settings: the result of create_settings().
    use_gpu, cpus_per_slot, gpus_per_slot: use_gpu, cpus_per_worker and gpus_per_worker of
        RayExecutor.
    env_vars: variables of the ranks.
    override_discovery: without effect, because Ray itself chooses the nodes.
    """

    @staticmethod
    def create_settings(min_num_proc=1, max_num_proc=None, reset_limit=None, elastic_timeout=600,
                        timeout_s=30, ssh_identity_file=None, nics=None, min_np=None, max_np=None,
                        **kwargs):
        """Returns settings for an executor: the fewest and the most workers, and the settings of
        RayExecutor. min_np and max_np are deprecated names; other arguments are ignored."""
        for old, new, value in (('min_np', 'min_num_proc', min_np),
                                ('max_np', 'max_num_proc', max_np)):
            if value is not None:
                warnings.warn(f'{old} is deprecated, use {new} instead', DeprecationWarning,
                              stacklevel=2)
        settings = MiniSettings(nics, timeout_s=timeout_s, ssh_identity_file=ssh_identity_file,
                                elastic=True)
        settings.min_num_proc = min_num_proc if min_np is None else min_np
        settings.max_num_proc = max_num_proc if max_np is None else max_np
        settings.reset_limit = reset_limit
        settings.elastic_timeout = elastic_timeout
        return settings

    def __init__(self, settings, use_gpu=False, cpus_per_slot=1, gpus_per_slot=None, env_vars=None,
                 override_discovery=True):
        self.settings = settings
        self._env_vars = env_vars
        self._executor = RayExecutor(
            settings, min_workers=settings.min_num_proc, max_workers=settings.max_num_proc,
            reset_limit=settings.reset_limit, elastic_timeout=settings.elastic_timeout,
            cpus_per_worker=cpus_per_slot, use_gpu=use_gpu, gpus_per_worker=gpus_per_slot,
            use_current_placement_group=False)

    def start(self):
        """Starts the workers."""
        self._executor.start(extra_env_vars=self._env_vars)

    def run(self, worker_fn, callbacks=None):
        """Calls ``worker_fn()`` on all ranks; returns the list of results in rank order. The
        workers end with the call."""
        try:
            return self._executor.run(worker_fn, callbacks=callbacks)
        finally:
            self._executor.shutdown()
