# SPDX-License-Identifier: Apache-2.0
# The image of mpijob.yaml: the MPI operator's image with Debian's Open MPI and sshd, PyTorch and hvd's wheel. Open MPI
# brings libpmix, by which the ranks find each other. Copy the wheel and digits/train.py beside this file, then:
# docker build -f mpi.Dockerfile -t REGISTRY/hvd-mpi:0.1.0 .
FROM mpioperator/openmpi
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip && rm -rf /var/lib/apt/lists/*
COPY hvd-*.whl train.py /hvd/
RUN pip install --no-cache-dir --break-system-packages torch scikit-learn /hvd/*.whl
