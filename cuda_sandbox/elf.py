"""Read what a shared object needs and defines, without running any of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")
_SHT_DYNAMIC, _SHT_DYNSYM, _DT_NEEDED = 6, 11, 1


@dataclass(frozen=True, slots=True)
class Symbols:
    """A shared object's dynamic symbols and the libraries it names."""

    undefined: frozenset[str]
    defined: frozenset[str]
    needed: tuple[str, ...]


def read_symbols(path: Path) -> Symbols:
    """The dynamic symbols of a 64-bit little-endian ELF file.

    Raises:
        ValueError: the file is not one, or is damaged.
    """
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
    try:
        return _read(data)
    except (struct.error, IndexError) as error:
        raise ValueError(f"{path} is a damaged ELF file: {error}") from error


def _read(data: bytes) -> Symbols:
    start, size, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, start + i * size) for i in range(count)]
    undefined: set[str] = set()
    defined: set[str] = set()
    needed: list[str] = []
    for section in sections:
        strings = sections[section[6]][4]  # sh_link names the string table; its file offset
        body = data[section[4] : section[4] + section[5]]
        if section[1] == _SHT_DYNSYM:
            for name, _, _, index, _, _ in _SYMBOL.iter_unpack(body):
                (undefined if index == 0 else defined).add(_string(data, strings + name))
        elif section[1] == _SHT_DYNAMIC:
            entries = _DYNAMIC.iter_unpack(body)
            needed += [
                _string(data, strings + value) for tag, value in entries if tag == _DT_NEEDED
            ]
    return Symbols(frozenset(undefined - {""}), frozenset(defined - {""}), tuple(needed))


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode("ascii", "replace")
