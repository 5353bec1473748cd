# SPDX-License-Identifier: Apache-2.0
"""Where Ray places the ranks."""

import ray
from ray.util.placement_group import get_current_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def create_placement_group(resources_per_bundle, num_bundles, pg_timeout, pg_strategy):
    """Reserves the bundles; returns Ray's placement group and the list of bundles. TimeoutError if
    the cluster does not have them within ``pg_timeout`` seconds."""
    bundles = [dict(resources_per_bundle) for _ in range(num_bundles)]
    group = ray.util.placement_group(bundles, strategy=pg_strategy)
    try:
        ray.get(group.ready(), timeout=pg_timeout)
    except BaseException as failure:  # also an interrupt such as Ctrl-C
        ray.util.remove_placement_group(group)
        if not isinstance(failure, ray.exceptions.GetTimeoutError):
            raise
        spread = ', each on a node of its own' if pg_strategy == 'STRICT_SPREAD' else ''
        raise TimeoutError(
            f'Ray did not reserve {num_bundles} times {resources_per_bundle}{spread} within '
            f'{pg_timeout} s; available: {ray.available_resources()}. Start fewer workers, add '
            'nodes, or raise placement_group_timeout_s') from None
    return group, bundles


class Placement:
    """The reservation of an executor: the current placement group of the caller, or a new one.

    The workers are packed on few nodes; if ``num_hosts`` is given, each of that many nodes gets
    ``num_workers_per_host`` workers.
    """

    def __init__(self, params, timeout_s):
        self._resources = {'CPU': params.cpus_per_worker}
        if params.use_gpu:
            self._resources['GPU'] = params.gpus_per_worker
        per_host = params.num_workers_per_host or 1
        self.num_workers = params.num_workers or params.num_hosts * per_host
        self._group = get_current_placement_group() if params.use_current_placement_group else None
        self._created_placement_group = self._group is None
        self._bundles = [-1] * self.num_workers  # any bundle
        if self._group is None and params.num_workers:
            self._group, _ = create_placement_group(self._resources, self.num_workers, timeout_s,
                                                    'PACK')
            self._bundles = range(self.num_workers)
        elif self._group is None:
            of_host = {name: count * per_host for name, count in self._resources.items()}
            self._group, _ = create_placement_group(of_host, params.num_hosts, timeout_s,
                                                    'STRICT_SPREAD')
            self._bundles = [index // per_host for index in range(self.num_workers)]

    def create_workers(self, worker_class):
        """Returns the actors, which may still be starting."""
        actor = ray.remote(worker_class)
        return [actor.options(
            num_cpus=self._resources['CPU'], num_gpus=self._resources.get('GPU', 0),
            scheduling_strategy=PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=bundle)).remote()
            for bundle in self._bundles]

    def remove(self):
        """Gives the reservation back, unless it is the caller's."""
        if self._created_placement_group and self._group:
            ray.util.remove_placement_group(self._group)
        self._group = None
