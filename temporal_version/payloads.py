"""Payloads on the wire: pydantic JSON, then optionally a shared store, then optionally a cipher.

The server refuses a payload above 2 MB and ends a run whose history passes 50 MB. Three guards:
steps travel by reference (`step_call.py`), so a growing transcript is in history once; results
above `PAYLOAD_LIMIT` fail their step with a clear message instead of being refused for ever; and a
`payload_store`, if there is one, keeps large payloads outside of history altogether.

With a `codec_key` the server, its database and its UI hold ciphertext only. Search attributes are
never encrypted (the server indexes them), so tenant, kind, state and cost stay readable, as do
step kinds and fingerprints.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import (
    DataConverter,
    ExternalStorage,
    PayloadCodec,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from temporal_version.settings import Settings
from two_workers.errors import BadInput


def data_converter(settings: Settings) -> DataConverter:
    """The converter that client, worker, Replayer and tests must share."""
    converter = pydantic_data_converter
    if settings.codec_key is not None:
        cipher = Cipher(settings.codec_key.get_secret_value())
        converter = dataclasses.replace(converter, payload_codec=cipher)
    if settings.payload_store is not None:
        storage = ExternalStorage(
            drivers=[Directory(settings.payload_store)],
            payload_size_threshold=settings.reference_above,
        )
        converter = dataclasses.replace(converter, external_storage=storage)
    return converter


class Cipher(PayloadCodec):
    """AES-256-GCM with one key. Raises `BadInput` for a key that is none."""

    ENCODING = b"binary/encrypted"

    def __init__(self, key: str) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ModuleNotFoundError as error:
            raise BadInput("encryption needs: pip install 'two-workers[encryption]'") from error
        try:
            raw = base64.b64decode(key, validate=True)
            if len(raw) != 32:
                raise ValueError(f"{len(raw)} bytes")
        except ValueError as error:
            raise BadInput(
                f"TEMPORAL_VERSION_CODEC_KEY: expected base64 of 32 bytes, found {error}"
            ) from error
        self._cipher = AESGCM(raw)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Each payload, metadata included, sealed under a fresh nonce."""
        return [self._seal(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """The opposite; what is not ours passes, so that encryption can be switched on later."""
        return [self._open(payload) for payload in payloads]

    def _seal(self, payload: Payload) -> Payload:
        nonce = os.urandom(12)
        sealed = nonce + self._cipher.encrypt(nonce, payload.SerializeToString(), None)
        return Payload(metadata={"encoding": self.ENCODING}, data=sealed)

    def _open(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != self.ENCODING:
            return payload
        nonce, sealed = payload.data[:12], payload.data[12:]
        return Payload.FromString(self._cipher.decrypt(nonce, sealed, None))


class Directory(StorageDriver):
    """Large payloads as files named by their digest, in a directory that all workers share.

    For several hosts use a network file system, or the S3 or GCS driver of the SDK in this
    class's place. Files are never deleted here: what is older than the retention may go.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def name(self) -> str:
        """How claims name this driver."""
        return "two-workers-directory"

    async def store(
        self, context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        """Write what is not there yet; the same content is stored once."""
        return [await asyncio.to_thread(self._write, p.SerializeToString()) for p in payloads]

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """Read. A missing file fails the task, which is tried again: it may come back."""
        return [await asyncio.to_thread(self._read, claim) for claim in claims]

    def _write(self, content: bytes) -> StorageDriverClaim:
        digest = hashlib.sha256(content).hexdigest()
        path = self._root / digest[:2] / digest
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}.{os.urandom(4).hex()}")
            draft.write_bytes(content)
            draft.replace(path)  # atomic: a reader sees the whole content or no file
        return StorageDriverClaim(claim_data={"sha256": digest})

    def _read(self, claim: StorageDriverClaim) -> Payload:
        digest = claim.claim_data["sha256"]
        return Payload.FromString((self._root / digest[:2] / digest).read_bytes())
