"""The body of an HTTP request, whichever way the client packed it."""

from __future__ import annotations

import gzip
import importlib
import zlib
from email.message import Message
from io import BufferedIOBase


class NotReadable(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def read_body(stream: BufferedIOBase, headers: Message) -> bytes:
    """Raises NotReadable."""
    try:
        if str(headers.get("transfer-encoding", "")).lower() == "chunked":
            body = b"".join(iter(lambda: _chunk(stream), b""))
        else:
            body = stream.read(int(headers.get("content-length") or 0))
        return _unpacked(body, str(headers.get("content-encoding") or "identity").lower())
    except (ValueError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, ConnectionError):
            raise
        raise NotReadable(400, f"the body cannot be read: {error}") from None


def _chunk(stream: BufferedIOBase) -> bytes:
    """Nothing at the end, when the trailing headers have been read as well."""
    size = int(stream.readline().split(b";")[0], 16)
    data = stream.read(size)
    while stream.readline().strip() and not size:
        pass
    return data


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        return body
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding == "zstd":
        try:
            zstandard = importlib.import_module("zstandard")
        except ImportError:
            raise NotReadable(415, "zstd needs the Python package zstandard here") from None
        return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(body))
    raise NotReadable(415, f"the content encoding {encoding} is not understood here")
