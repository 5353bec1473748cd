# SPDX-License-Identifier: Apache-2.0
"""Loading a model so that its training goes on distributed."""


def load_model(keras, filepath, custom_optimizers, custom_objects, distribute):
    """The saved model, with its optimizer given to ``distribute``. State that was saved with the
    optimizer is kept, since a distributed optimizer shares that of the one it is made of."""
    objects = {kind.__name__: kind for kind in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=objects)
    optimizer = getattr(model, 'optimizer', None)
    if optimizer is not None:
        model.optimizer = distribute(optimizer)
    return model
