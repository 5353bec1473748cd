# SPDX-License-Identifier: Apache-2.0
"""Keys, and message digests made with them."""

import hashlib
import hmac
import secrets

SECRET_LENGTH = 32
DIGEST_LENGTH = 32
HOROVOD_SECRET_KEY = '_HOROVOD_SECRET_KEY'


def make_secret_key():
    """Returns a random key of SECRET_LENGTH bytes."""
    return secrets.token_bytes(SECRET_LENGTH)


def compute_digest(key, message):
    """Returns the HMAC-SHA256 of the message (bytes), DIGEST_LENGTH bytes long."""
    return hmac.new(key, message, hashlib.sha256).digest()


def check_digest(key, message, digest):
    """Whether the digest is that of the message. Takes the same time for all wrong digests."""
    return hmac.compare_digest(compute_digest(key, message), digest)
