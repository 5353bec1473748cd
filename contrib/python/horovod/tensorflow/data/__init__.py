# SPDX-License-Identifier: Apache-2.0
"""A tf.data service on the ranks of a separate job: compute_worker starts the service,
compute_service uses it."""
