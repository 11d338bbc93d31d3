"""The zip of a saved Inspection: written so that it unpacks to little more, and held to that when read."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from collections.abc import Mapping

from donation_inspector.common.units import format_bytes
from donation_inspector.errors import IRError
from donation_inspector.program.reading import opened

MOST = 10
"""A file unpacks to at most so many times its size."""
SMALL = 4 << 20
"""To that many bytes any file may unpack: a small one from an earlier version is packed tighter."""
_ENTRIES = 10_000
_TIGHT = 6
"""What deflates to less than this part of it is kept as it is in a file that is not small, far below `MOST`."""

Damage = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What zipfile raises on a file that is no zip, is cut short or is changed; RuntimeError where it asks a password."""


def write(path: str | os.PathLike[str], parts: Mapping[str, bytes]) -> None:
    """Write the parts by their names. Raises OSError."""
    large = sum(map(len, parts.values())) > SMALL
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            packs_tighter = large and len(zlib.compress(data)) * _TIGHT < len(data)
            archive.writestr(name, data, zipfile.ZIP_STORED if packs_tighter else zipfile.ZIP_DEFLATED)


def read(path: str | os.PathLike[str], wanted: str) -> dict[str, bytes]:
    """The parts by their names, each whole and held to its checksum.

    Raises IRError: as `reading.opened`; no zip, a damaged one, or one that unpacks to more than `MOST` times its size.
    """
    with opened(path, wanted) as file:
        allowed = max(MOST * os.fstat(file.fileno()).st_size, SMALL)
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                unpacked = sum(entry.file_size for entry in entries)
                if unpacked > allowed or len(entries) > _ENTRIES:
                    raise IRError(
                        f"{os.fspath(path)} would unpack to {format_bytes(unpacked)} in {len(entries)} parts, more "
                        f"than a saved Inspection of its size has: it is damaged, or made to fill the memory. {wanted}"
                    )
                return {entry.filename: _unpacked(archive, entry) for entry in entries}
        except Damage as error:
            raise IRError(
                f"{os.fspath(path)} is no saved Inspection, or a damaged one: {error or type(error).__name__}. {wanted}"
            ) from None


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """A part as long as the directory says, held to its checksum: read to its end, one that lies would be all there."""
    with archive.open(entry) as part:
        data = part.read(entry.file_size)
    if len(data) < entry.file_size:
        raise EOFError(f"{entry.filename} ends after {len(data)} of {entry.file_size} bytes")
    return data
