# SPDX-License-Identifier: Apache-2.0
# What Horovod's distributed optimizers of Keras have and scripts call.

class Distributed:
    _agg_helper: object
    def _allreduce(self, grads, vars): ...
    def register_local_var(self, var): ...
