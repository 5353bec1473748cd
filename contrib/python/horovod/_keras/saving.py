# SPDX-License-Identifier: Apache-2.0
"""Loading a model so that its training goes on distributed."""


def loader(keras, Compression, distribute, module):
    """The function load_model of this module. ``distribute`` is its DistributedOptimizer."""

    def load_model(filepath, custom_optimizers=None, custom_objects=None,
                   compression=Compression.none, legacy_opts=False):
        """A saved model whose optimizer is a DistributedOptimizer and goes on from its saved state.

        custom_optimizers: classes of optimizers that are not of Keras.
        custom_objects: what else keras.models.load_model() needs by name.
        legacy_opts: accepted for compatibility and has no effect.
        """
        objects = {kind.__name__: kind for kind in custom_optimizers or ()}
        objects.update(custom_objects or {})
        model = keras.models.load_model(filepath, custom_objects=objects)
        optimizer = getattr(model, 'optimizer', None)
        if optimizer is not None:  # the new one shares the state that was saved with it
            model.optimizer = distribute(optimizer, compression=compression)
        return model

    load_model.__module__, load_model.__qualname__ = module, 'load_model'
    return load_model
