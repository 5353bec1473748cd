# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmark, with plain torch: Debian has no torchvision.

resnet50 computes long for its 25.6 million parameters (161 tensors, 102 MB); mlp has 10.5 million
(6 tensors, 42 MB), whose gradients take longer to exchange than to compute.
"""

import os
import sys

from torch import nn

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'examples',
                             'pytorch'))
import networks  # noqa: E402

CLASSES = 1000


def resnet50(_):
    return networks.resnet50(CLASSES)


def mlp(pixels):
    width = 2048
    inputs = 3 * pixels * pixels
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, width), nn.ReLU(),
                         nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


# name: (function of the picture's side, default side, default batch of a rank)
MODELS = {'mlp': (mlp, 32, 2), 'resnet50': (resnet50, 64, 32)}
