# SPDX-License-Identifier: Apache-2.0
# The other names of this module are those of the package.

from shared import _basics

def handle_average_backwards_compatibility(op, average): ...
