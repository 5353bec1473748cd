# SPDX-License-Identifier: Apache-2.0
"""DistributedGradientTape: a tf.GradientTape whose gradients are those of all ranks."""

import tensorflow as tf

from horovod.common.basics import Average
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.gradients import Reduction, variable_key


class _DistributedGradientTape(tf.GradientTape):
    """What DistributedGradientTape makes of a tape."""

    def _distribute(self, tape, reduction, scale_local_gradients):
        self.__dict__ = tape.__dict__  # one state: the caller may go on with either
        self._hvd_reduction = reduction
        self._hvd_scales_local = scale_local_gradients
        self._hvd_local = set()
        return self

    def register_local_source(self, source):
        """The gradient of this variable stays this rank's own."""
        self._hvd_local.add(variable_key(source))

    def gradient(self, target, sources, output_gradients=None, use_generic_names=False,
                 unconnected_gradients=tf.UnconnectedGradients.NONE):
        """The gradients of all ranks in the structure of the sources. use_generic_names: the
        ranks match them by their positions, for graphs that name tensors differently."""
        own = super().gradient(target, sources, output_gradients, unconnected_gradients)
        return tf.nest.pack_sequence_as(
            sources, self._share(tf.nest.flatten(sources), tf.nest.flatten(own),
                                 use_generic_names))

    def get_local_and_global_gradients(self, target, sources, output_gradients=None,
                                       use_generic_names=False):
        """Two lists of pairs of a source and its gradient: those of the local sources, and those
        that all ranks share."""
        sources = tf.nest.flatten(sources)
        gradients = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(sources, gradients))
        return ([pair for pair in pairs if self._is_local(pair[0])],
                [pair for pair in pairs if not self._is_local(pair[0])])

    def _is_local(self, source):
        return variable_key(source) in self._hvd_local

    def _share(self, sources, gradients, use_generic_names):
        shared = [index for index, source in enumerate(sources) if not self._is_local(source)]
        reduced = self._hvd_reduction([gradients[index] for index in shared],
                                      [sources[index] for index in shared], use_generic_names)
        result = [self._hvd_reduction.scale_local(each) if self._hvd_scales_local else each
                  for each in gradients]
        for index, each in zip(shared, reduced):
            result[index] = each
        return result


def DistributedGradientTape(gradtape, device_dense='', device_sparse='',
                            compression=Compression.none, sparse_as_dense=False, op=Average,
                            gradient_predivide_factor=1.0, num_groups=0, groups=None,
                            process_set=global_process_set, scale_local_gradients=True):
    """The tape with gradients that are reduced over all ranks.

    device_dense, device_sparse: where to place the reductions, as in tf.device.
    compression: a member of hvd.Compression, for the way between ranks.
    sparse_as_dense: reduces tf.IndexedSlices as dense tensors.
    op: Average, Sum, Min, Max, Product or Adasum.
    gradient_predivide_factor: splits Average's division: 1/f before the sum, f/size after it.
    groups: a number of groups, or lists of variables, to be reduced as one. num_groups is its
        deprecated name.
    process_set: whose ranks share gradients; on other ranks they stay as they are.
    scale_local_gradients: divides gradients of registered local sources by the number of ranks,
        so that they fit the others' averages.
    """
    reduction = Reduction(op, gradient_predivide_factor, compression, sparse_as_dense,
                          device_dense, device_sparse, num_groups, groups, process_set)
    kind = type(gradtape)
    mixed = type(kind.__name__, (_DistributedGradientTape, kind), {})
    return mixed.__new__(mixed)._distribute(gradtape, reduction, scale_local_gradients)


def PartialDistributedGradientTape(gradtape, device_dense='', device_sparse='',
                                   compression=Compression.none, sparse_as_dense=False,
                                   op=Average, gradient_predivide_factor=1.0, num_groups=0,
                                   groups=None, process_set=global_process_set,
                                   local_layers=None, scale_local_gradients=True):
    """As DistributedGradientTape; the gradients of the weights of ``local_layers``, a Keras layer
    or several, stay this rank's own."""
    tape = DistributedGradientTape(
        gradtape, device_dense, device_sparse, compression, sparse_as_dense, op,
        gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients)
    for layer in _layers(local_layers):
        for weight in layer.trainable_weights:
            tape.register_local_source(weight)
    return tape


def _layers(local_layers):
    layers = ([] if local_layers is None else
              [local_layers] if isinstance(local_layers, tf.keras.layers.Layer) else
              list(local_layers))
    if not all(isinstance(layer, tf.keras.layers.Layer) for layer in layers):
        raise ValueError('All local layers must be of tf.keras.layers.Layer type.')
    return layers
