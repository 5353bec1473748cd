# SPDX-License-Identifier: Apache-2.0

from shared import is_homogeneous, _basics
