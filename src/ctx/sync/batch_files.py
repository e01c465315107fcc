"""A batch as the bytes of a file that strangers may see.

    CTXS  format  salt 16  nonce 12  ChaCha20-Poly1305 of the batch, bound to the name of the file

Keys are derived from a passphrase with scrypt. The salt is in each file, so a target needs no file
that two machines could create at once: the first one to write chooses a salt, and the others take
it over. If two machines begin a target at the same time, or one begins it again after it was
emptied, it has two salts: `ctx sync add` with the passphrase derives the second key, and writes the
batches of its machine again with it.

The name of a file is a keyed hash of its content and its replica. So without the key, a target
shows how many batches there are, their sizes and their times, and nothing else.
"""

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from ctx.errors import CtxError, InvalidEnvelope
from ctx.sync import sync_batch
from ctx.sync.sync_batch import DecodedBatch, SyncBatch

MAGIC = b"CTXS"
_PLAIN, _ENCRYPTED = b"\x00", b"\x01"
_SALT, _NONCE = 16, 12
_HEADER = len(MAGIC) + 1 + _SALT + _NONCE
_NAME = re.compile("[0-9a-f]{64}")
# 32 MiB of memory and about 0.1 s: what OWASP recommends for scrypt, or more.
_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 2**15, 8, 3

Keys = Mapping[bytes, bytes]
"""The keys of a target by salt; the first one is used for writing. Without one, nothing is
encrypted."""


class BatchFile(NamedTuple):
    name: str
    data: bytes


class UnreadableFile(InvalidEnvelope):
    """A file that is no batch, or one that cannot be read; the message is the reason."""


class OtherKey(UnreadableFile):
    """A batch that this replica has no key for."""


def is_batch_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def new_salt() -> bytes:
    return os.urandom(_SALT)


def derive_key(secret: bytes, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=32, n=_SCRYPT_N, r=_SCRYPT_R, p=_SCRYPT_P).derive(secret)


def salt_of(data: bytes) -> bytes | None:
    """The salt of an encrypted batch; None for a plain one."""
    kind = data[4:5]
    is_cut = kind == _ENCRYPTED and len(data) < _HEADER
    if not data.startswith(MAGIC) or kind not in (_PLAIN, _ENCRYPTED) or is_cut:
        raise UnreadableFile("it is not a batch of ctx")
    return data[5 : 5 + _SALT] if kind == _ENCRYPTED else None


def seal(batch: SyncBatch, keys: Keys) -> BatchFile:
    plain = sync_batch.encode(batch)
    salt, key = next(iter(keys.items()), (b"", b""))
    name = _name(key, sync_batch.identity(batch))
    if not key:
        return BatchFile(name, MAGIC + _PLAIN + plain)
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    nonce = os.urandom(_NONCE)
    sealed = ChaCha20Poly1305(_subkey(key, b"content")).encrypt(nonce, plain, name.encode())
    return BatchFile(name, MAGIC + _ENCRYPTED + salt + nonce + sealed)


def unseal(name: str, data: bytes, keys: Keys) -> DecodedBatch:
    """Read a file of a target; `UnreadableFile` if it is damaged or not a batch, or if it has the
    name of another one."""
    salt = salt_of(data)
    if salt is None and keys:
        # Anybody who can write to the target may have put it there.
        raise UnreadableFile("it is not encrypted")
    if salt and not keys:
        raise OtherKey("it is encrypted")
    plain = data[5:] if salt is None else _decrypt(name, data, salt, keys)
    try:
        if salt is None and name != _name(b"", sync_batch.encoded_identity(plain)):
            raise UnreadableFile("its name does not match its content")
        return sync_batch.decode(name, plain)
    except CtxError as error:
        raise UnreadableFile(error.message) from error


def _decrypt(name: str, data: bytes, salt: bytes, keys: Keys) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if salt not in keys:
        raise OtherKey("another passphrase or key was used for it")
    cipher = ChaCha20Poly1305(_subkey(keys[salt], b"content"))
    try:
        return cipher.decrypt(data[_HEADER - _NONCE : _HEADER], data[_HEADER:], name.encode())
    except (InvalidTag, ValueError):
        raise UnreadableFile("it is damaged, or its name was changed") from None


def _name(key: bytes, identity: bytes) -> str:
    return hmac.new(_subkey(key, b"name"), identity, hashlib.sha256).hexdigest()


def _subkey(key: bytes, purpose: bytes) -> bytes:
    return hmac.new(key, b"ctx sync " + purpose, hashlib.sha256).digest()
