"""Checks the ledger and the tree of rows of a token store or a bundle, and reads the training tokens of a store, as
docs/reference/formats/token_store.md and bundle.md describe them: sharded Zarr, blosc, LZ4."""
import struct

import numpy as np

import verify_chain as record
from verify_chain import CANNOT_CHECK, INCOMPLETE, require


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
        found = record.text_hash(record.canonical(ledger["content"]))
        require(found == genesis["data"], f"{folder}: its ledger hash is {found}, the genesis has {genesis['data']}", CANNOT_CHECK)
        self.all = read_elements(folder / "train/input_ids/data", ledger["content"]["splits"]["train"]["tokens"])

    def sequences(self, numbers, length):
        """Inputs and targets of the sequences with these numbers."""
        rows = np.stack([self.all[i * length:(i + 1) * length + 1] for i in numbers])
        return rows[:, :-1], rows[:, 1:]


def root_of(hashes):
    while len(hashes) > 1:
        pairs = [record.sha(b"\x01" + a + b) for a, b in zip(hashes[::2], hashes[1::2])]
        hashes = pairs + hashes[len(pairs) * 2:]
    return hashes[0] if hashes else record.sha(b"")


def root_of_splits(counts, roots):
    return record.sha(b"\x02" + b"".join(struct.pack("<q", n) + r for n, r in zip(counts, roots))).hex()


def check_store(folder):
    """A store's ledger and tree of rows; returns the ledger's hash and its root."""
    ledger = record.parse(record.read(folder / "ledger.json"), f"{folder}/ledger.json")
    require(ledger.get("format") == "ostro token store 4", f"{folder}: {ledger.get('format')} has no tree of rows", CANNOT_CHECK)
    rest = {key: value for key, value in ledger.items() if key != "sha256"}
    require(record.text_hash(record.canonical(rest)) == ledger["sha256"], f"{folder}: ledger.json was altered")
    content = record.text_hash(record.canonical(ledger["content"]))
    require(content == ledger["hash"], f"{folder}: the ledger's hash is not that of its content")
    tree = record.read(folder / "rows.tree")
    require(len(tree) >= 48 and record.sha(tree[:-32]) == tree[-32:], f"{folder}: rows.tree was altered")
    rows, blocks = struct.unpack("<qq", tree[:16]), [tree[i:i + 32] for i in range(16, len(tree) - 32, 32)]
    first = -(-rows[0] // 1024)
    require(len(blocks) == first + -(-rows[1] // 1024), f"{folder}: rows.tree has {len(blocks)} blocks for {rows} rows")
    root = root_of_splits(rows, (root_of(blocks[:first]), root_of(blocks[first:])))
    require(root == ledger["root"], f"{folder}: the tree of rows has the root {root}, the ledger {ledger['root']}")
    return content, root


def check_stores(folders, chain):
    genesis, found = chain.genesis, [check_store(folder) for folder in folders]
    roots, named = sorted(root for _, root in found), sorted((chain.roots or {}).values())
    require(genesis["format"] == 1 or roots == named, f"the stores have the roots {roots}, the chain {named}")
    if list(genesis.get("data_roots", {"": 0})) == [""]:
        require(found[0][0] == genesis["data"], f"{folders[0]}: the ledger hash is {found[0][0]}, the genesis has {genesis['data']}")


def check_ledger(folder, claims, chain):
    """The rows and source files of each component against bundle.json and the chain (format 1 has no roots)."""
    require(claims, "the bundle has no ledger of its data", INCOMPLETE)
    own = {"" if [*claims] == ["train"] else name: claim["root"] for name, claim in claims.items()}
    roots = own if chain.roots is None else chain.roots
    named = {component or "train": component for component in roots}
    require(set(claims) <= set(named), f"ledger: it has {sorted(claims)}, the chain {sorted(named)}")
    require(set(claims) == set(named), f"ledger: it has {sorted(claims)}, the chain {sorted(named)}", INCOMPLETE)
    hashes = {}
    for name, component in named.items():
        require(record.is_below(name), f"ledger: {name} is no file below it")
        rows, content, claim = record.read(folder / f"{name}.rows"), record.read(folder / f"{name}.content.json"), claims[name]
        counts, at, splits = (claim["train"], claim["validation"]), 0, []
        require(len(rows) == 40 * sum(counts), f"ledger/{name}.rows: it has {len(rows) // 40} rows, bundle.json {sum(counts)}")
        for count in counts:
            splits.append(root_of([record.sha(b"\0" + rows[i:i + 40]) for i in range(at, at + 40 * count, 40)]))
            at += 40 * count
        found, claimed = root_of_splits(counts, splits), roots[component]
        fits = found == claimed == claim["root"]
        require(fits, f"ledger/{name}.rows: its tree has the root {found}, the chain {claimed}, bundle.json {claim['root']}")
        files, first = [], [0, 0]
        for file in record.parse(content, f"ledger/{name}.content.json").get("files", []):
            files.append({"sha256": file["sha256"], "rows": file["rows"], "first_row": first})
            first = [a + b for a, b in zip(first, file["rows"])]
        sources = [record.parse(line, f"ledger/{name}.sources") for line in record.read(folder / f"{name}.sources").splitlines()]
        fits = all(type(source.pop("file")) is str for source in sources) and sources == files
        require(fits, f"ledger/{name}.sources: other files than {name}.content.json has")
        hashes[component] = record.sha(content).hex()
    for where, components, claimed in chain.data:
        data = hashes[""] if "" in hashes else record.text_hash(record.canonical({name: hashes[name] for name in components & set(hashes)}))
        require(data == claimed, f"ledger: the hash of its contents is {data}, {where} has {claimed}")
