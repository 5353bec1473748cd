# SPDX-License-Identifier: Apache-2.0
# Scripts also call "python -m horovod.tensorflow.data.compute_worker".

def main(dispatchers, dispatcher_side, configfile, timeout): ...
