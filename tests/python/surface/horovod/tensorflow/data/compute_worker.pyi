# SPDX-License-Identifier: Apache-2.0
# Also "python -m horovod.tensorflow.data.compute_worker".

def main(dispatchers, dispatcher_side, configfile, timeout): ...
