# SPDX-License-Identifier: Apache-2.0
"""tf.data on ranks of a job of its own: compute_worker starts it, compute_service uses it."""
