# SPDX-License-Identifier: Apache-2.0
"""The gradients of two well-known models as (name, shape) in the order of the forward pass.

ResNet-50 as torchvision names it: 161 tensors, 25,557,032 elements. BERT-base as its PyTorch
versions name it, with the pooler: 199 tensors, 109,482,240 elements.
"""

import math


def _batch_norm(name, channels):
    return [(f'{name}.weight', (channels,)), (f'{name}.bias', (channels,))]


def _bottleneck(name, channels_in, width, has_shortcut):
    layers = [(channels_in, width, 1), (width, width, 3), (width, 4 * width, 1)]
    for number, (before, after, edge) in enumerate(layers, 1):
        yield f'{name}.conv{number}.weight', (after, before, edge, edge)
        yield from _batch_norm(f'{name}.bn{number}', after)
    if has_shortcut:
        yield f'{name}.downsample.0.weight', (4 * width, channels_in, 1, 1)
        yield from _batch_norm(f'{name}.downsample.1', 4 * width)


def resnet50():
    gradients = [('conv1.weight', (64, 3, 7, 7)), *_batch_norm('bn1', 64)]
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3), 1):
        width = 32 * 2 ** stage
        for block in range(blocks):
            gradients += _bottleneck(f'layer{stage}.{block}', channels, width, block == 0)
            channels = 4 * width
    return gradients + [('fc.weight', (1000, channels)), ('fc.bias', (1000,))]


def _linear(name, inputs, outputs):
    return [(f'{name}.weight', (outputs, inputs)), (f'{name}.bias', (outputs,))]


def _encoder_layer(name, hidden):
    for part in 'query', 'key', 'value':
        yield from _linear(f'{name}.attention.self.{part}', hidden, hidden)
    yield from _linear(f'{name}.attention.output.dense', hidden, hidden)
    yield from _batch_norm(f'{name}.attention.output.LayerNorm', hidden)
    yield from _linear(f'{name}.intermediate.dense', hidden, 4 * hidden)
    yield from _linear(f'{name}.output.dense', 4 * hidden, hidden)
    yield from _batch_norm(f'{name}.output.LayerNorm', hidden)


def bert_base():
    hidden = 768
    gradients = [(f'embeddings.{part}_embeddings.weight', (rows, hidden))
                 for part, rows in (('word', 30522), ('position', 512), ('token_type', 2))]
    gradients += _batch_norm('embeddings.LayerNorm', hidden)
    for layer in range(12):
        gradients += _encoder_layer(f'encoder.layer.{layer}', hidden)
    return gradients + _linear('pooler.dense', hidden, hidden)


def small(count):
    """``count`` tensors of 1 KiB of float32."""
    return [(f'small.{index}', (256,)) for index in range(count)]


LISTS = {'resnet50': resnet50, 'bert_base': bert_base, 'small': lambda: small(1000)}

if __name__ == '__main__':
    for label, make in LISTS.items():
        gradients = make()
        print(label, len(gradients), 'tensors,', sum(math.prod(s) for _, s in gradients), 'elements')
