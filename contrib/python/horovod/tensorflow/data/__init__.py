# SPDX-License-Identifier: Apache-2.0
"""tf.data on the ranks of a separate job: compute_worker starts it, compute_service uses it."""
