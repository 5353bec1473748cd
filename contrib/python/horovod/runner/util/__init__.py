# SPDX-License-Identifier: Apache-2.0
"""What tools import of Horovod's launcher."""
