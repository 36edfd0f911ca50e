"""Reads the training tokens of a token store as docs/reference/formats/token_store.md describes it: sharded Zarr, blosc, LZ4."""
import hashlib
import struct

import numpy as np

import verify_chain as record
from verify_chain import CANNOT_CHECK, require


def lz4(data, size):
    """One LZ4 block: literals, then a copy of what is already there, and so on."""
    out, at = bytearray(), 0

    def length(nibble):
        nonlocal at
        total = nibble
        while nibble == 15:
            total, at = total + data[at], at + 1
            if data[at - 1] != 255:
                break
        return total

    while at < len(data):
        token, at = data[at], at + 1
        literals = length(token >> 4)
        out += data[at:at + literals]
        at += literals
        if at >= len(data):
            break
        back, at = data[at] | data[at + 1] << 8, at + 2
        count = length(token & 15) + 4
        while count > 0:
            piece = out[-back:][:count]
            out += piece
            count -= len(piece)
    require(len(out) == size, f"an LZ4 block has {len(out)} bytes, not {size}")
    return bytes(out)


def blosc(data):
    """One chunk of blosc 1: blocks of LZ4, each perhaps in as many streams as an element has bytes, shuffled."""
    flags, item, size, block = data[2], data[3], *struct.unpack_from("<ii", data, 4)
    if flags & 2:
        return data[16:16 + size]
    out = b""
    for i, start in enumerate(struct.unpack_from(f"<{-(-size // block)}i", data, 16)):
        length = min(block, size - i * block)
        streams = 1 if flags & 16 or length < block else item
        raw = b""
        for _ in range(streams):
            (packed,) = struct.unpack_from("<i", data, start)
            piece = data[start + 4:start + 4 + packed]
            raw += piece if packed == length // streams else lz4(piece, length // streams)
            start += 4 + packed
        if flags & 1:
            whole = length // item * item
            raw = np.frombuffer(raw[:whole], np.uint8).reshape(item, -1).T.tobytes() + raw[whole:]
        out += raw
    return out


def read_elements(folder, count):
    """The first `count` elements of an array of a store."""
    meta = record.parse(record.read(folder / "zarr.json"), f"{folder}/zarr.json")
    shard = meta["chunk_grid"]["configuration"]["chunk_shape"][0]
    inner = meta["codecs"][0]["configuration"]["chunk_shape"][0]
    out = []
    for first in range(0, count, inner):
        data = record.read(folder / f"c/{first // shard}")
        index = np.frombuffer(data[-(shard // inner * 16 + 4):-4], "<u8").reshape(-1, 2)
        at, length = (int(x) for x in index[first % shard // inner])
        out.append(np.frombuffer(blosc(data[at:at + length]), meta["data_type"]))
    return np.concatenate(out)[:count].astype(np.int64)


class Tokens:
    """The training tokens of a store, all documents one after the other."""
    def __init__(self, folder, genesis):
        ledger = record.parse(record.read(folder / "ledger.json"), f"{folder}/ledger.json")
        found = hashlib.sha256(record.canonical(ledger["content"]).encode()).hexdigest()
        require(found == genesis["data"], f"{folder}: its ledger hash is {found}, the genesis has {genesis['data']}", CANNOT_CHECK)
        self.all = read_elements(folder / "train/input_ids/data", ledger["content"]["splits"]["train"]["tokens"])

    def sequences(self, numbers, length):
        """Inputs and targets of the sequences with these numbers."""
        rows = np.stack([self.all[i * length:(i + 1) * length + 1] for i in numbers])
        return rows[:, :-1], rows[:, 1:]
