# SPDX-License-Identifier: Apache-2.0
"""DistributedGradientTape: a tf.GradientTape whose gradients are reduced over all ranks."""

import tensorflow as tf

from horovod.common.basics import Average
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.gradients import Reduction, variable_key


class _DistributedGradientTape(tf.GradientTape):
    """A mix-in for the class of the user's tape."""

    def _distribute(self, tape, reduction, scale_local_gradients):
        self.__dict__ = tape.__dict__  # shared, so that the caller may continue with either tape
        self._hvd_reduction = reduction
        self._hvd_scales_local = scale_local_gradients
        self._hvd_local = set()
        return self

    def register_local_source(self, source):
        """Excludes the gradient of this variable from the reduction."""
        self._hvd_local.add(variable_key(source))

    def gradient(self, target, sources, output_gradients=None, use_generic_names=False,
                 unconnected_gradients=tf.UnconnectedGradients.NONE):
        """Returns the gradients reduced over all ranks, in the structure of ``sources``.

        target, sources, output_gradients, unconnected_gradients: as for tf.GradientTape.gradient.
        use_generic_names: the ranks match gradients by their positions, because their graphs name
            tensors differently.
        """
        own = super().gradient(target, sources, output_gradients, unconnected_gradients)
        return tf.nest.pack_sequence_as(
            sources, self._share(tf.nest.flatten(sources), tf.nest.flatten(own),
                                 use_generic_names))

    def get_local_and_global_gradients(self, target, sources, output_gradients=None,
                                       use_generic_names=False):
        """Returns two lists of pairs (source, gradient): first those of the local sources, then
        those that are reduced over all ranks."""
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
    """Returns a tape whose gradients are reduced over all ranks.

    gradtape: a tf.GradientTape; both tapes share their records.
    device_dense, device_sparse: where to place the reductions, as for tf.device.
    compression: a member of hvd.Compression: the type in which gradients travel between ranks.
    sparse_as_dense: reduces tf.IndexedSlices as dense tensors.
    op: Average, Sum, Min, Max, Product or Adasum.
    gradient_predivide_factor: splits the division of Average: the gradients are multiplied by 1/f
        before the sum and by f/size after it, to avoid overflow.
    groups: a number of groups, or lists of variables; the gradients of a group are reduced as one.
        num_groups is the deprecated name of this argument.
    process_set: the ranks that share gradients; on other ranks gradients are not changed.
    scale_local_gradients: divides the gradients of sources that register_local_source() has
        excluded by the number of ranks, to match the averages of the other gradients.
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
    """Like DistributedGradientTape, but does not reduce the gradients of the weights of
    ``local_layers``, a Keras layer or a list of them."""
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
