# SPDX-License-Identifier: Apache-2.0
"""load_model(), which loads a model with a DistributedOptimizer."""


def loader(keras, Compression, distribute, module):
    """Returns the function load_model of the package ``module``. ``distribute``: the package's
    DistributedOptimizer."""

    def load_model(filepath, custom_optimizers=None, custom_objects=None,
                   compression=Compression.none, legacy_opts=False):
        """Loads a saved model and makes its optimizer a DistributedOptimizer, which continues from
        the saved state.

        filepath, custom_objects: as for keras.models.load_model().
        custom_optimizers: a list of optimizer classes that are not part of Keras.
        compression: a member of hvd.Compression, for the DistributedOptimizer.
        legacy_opts: accepted for compatibility and has no effect.
        """
        objects = {kind.__name__: kind for kind in custom_optimizers or ()}
        objects.update(custom_objects or {})
        model = keras.models.load_model(filepath, custom_objects=objects)
        optimizer = getattr(model, 'optimizer', None)
        if optimizer is not None:  # the new optimizer shares the state of the saved one
            model.optimizer = distribute(optimizer, compression=compression)
        return model

    load_model.__module__, load_model.__qualname__ = module, 'load_model'
    return load_model
