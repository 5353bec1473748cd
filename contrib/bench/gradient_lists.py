# SPDX-License-Identifier: Apache-2.0
"""The gradients of well-known models as (name, shape) in the order of the forward pass.

ResNet-50 and ResNet-101 as torchvision names them: 161 tensors, 25,557,032 elements; 314,
44,549,160. VGG-16 likewise: 32 tensors, 138,357,544 elements. BERT-base as its PyTorch versions
name it, with the pooler: 199 tensors, 109,482,240 elements. The narrow ones of VGG-16 and BERT
have as many tensors and about a quarter of the elements.
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


def _resnet(depths):
    gradients = [('conv1.weight', (64, 3, 7, 7)), *_batch_norm('bn1', 64)]
    channels = 64
    for stage, blocks in enumerate(depths, 1):
        width = 32 * 2 ** stage
        for block in range(blocks):
            gradients += _bottleneck(f'layer{stage}.{block}', channels, width, block == 0)
            channels = 4 * width
    return gradients + [('fc.weight', (1000, channels)), ('fc.bias', (1000,))]


def resnet50():
    return _resnet((3, 4, 6, 3))


def resnet101():
    return _resnet((3, 4, 23, 3))


def _linear(name, inputs, outputs):
    return [(f'{name}.weight', (outputs, inputs)), (f'{name}.bias', (outputs,))]


def vgg16(classifier=4096):
    gradients, channels, place = [], 3, 0
    for width, depth in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(depth):
            gradients += [(f'features.{place}.weight', (width, channels, 3, 3)),
                          (f'features.{place}.bias', (width,))]
            channels = width
            place += 2
        place += 1
    sizes = (channels * 49, classifier, classifier, 1000)
    for place, (inputs, outputs) in zip((0, 3, 6), zip(sizes, sizes[1:])):
        gradients += _linear(f'classifier.{place}', inputs, outputs)
    return gradients


def _encoder_layer(name, hidden):
    for part in 'query', 'key', 'value':
        yield from _linear(f'{name}.attention.self.{part}', hidden, hidden)
    yield from _linear(f'{name}.attention.output.dense', hidden, hidden)
    yield from _batch_norm(f'{name}.attention.output.LayerNorm', hidden)
    yield from _linear(f'{name}.intermediate.dense', hidden, 4 * hidden)
    yield from _linear(f'{name}.output.dense', 4 * hidden, hidden)
    yield from _batch_norm(f'{name}.output.LayerNorm', hidden)


def bert_base(hidden=768):
    gradients = [(f'embeddings.{part}_embeddings.weight', (rows, hidden))
                 for part, rows in (('word', 30522), ('position', 512), ('token_type', 2))]
    gradients += _batch_norm('embeddings.LayerNorm', hidden)
    for layer in range(12):
        gradients += _encoder_layer(f'encoder.layer.{layer}', hidden)
    return gradients + _linear('pooler.dense', hidden, hidden)


def small(count):
    """``count`` tensors of 1 KiB of float32."""
    return [(f'small.{index}', (256,)) for index in range(count)]


LISTS = {'resnet50': resnet50, 'resnet101': resnet101, 'vgg16': vgg16, 'bert_base': bert_base,
         'vgg16_narrow': lambda: vgg16(1024), 'bert_narrow': lambda: bert_base(384),
         'small': lambda: small(1000)}

if __name__ == '__main__':
    for label, make in LISTS.items():
        gradients = make()
        print(label, len(gradients), 'tensors,', sum(math.prod(s) for _, s in gradients), 'elements')
