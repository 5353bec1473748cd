# SPDX-License-Identifier: Apache-2.0
# The image of trainjob.yaml: PyTorch and hvd's wheel (contrib/docs/wheel.md). Copy the wheel and digits/train.py beside
# this file, then: docker build -f torch.Dockerfile -t REGISTRY/hvd-torch:0.1.0 .
FROM pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime
COPY hvd-*.whl train.py /hvd/
RUN pip install --no-cache-dir scikit-learn /hvd/*.whl
