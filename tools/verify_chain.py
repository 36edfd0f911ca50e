#!/usr/bin/env python3
"""Checks the record of a run without any code of Ostro: only docs/reference/formats, Python's hashes and NumPy.

It checks that the chain is one and keeps its rules, that each checkpoint is the state that the chain names (the hash of
every cell, computed from the files), that the chain's fingerprint of each such state is that of its arrays, and that the
tokenizer is the chain's. With --store also the ledger, the tree of rows and the root that the genesis has.
It trains nothing, so it cannot say that a training gave these numbers: `ostro verify` replays steps.

Prints the verdict first, then one line a finding; exits with 0 equal, 1 differs, 3 incomplete, 4 cannot check
(docs/reference/verdicts.md).

Usage: verify_chain.py RUN [--run_hash H] [--store DIR ...]
"""
import argparse
import hashlib
import itertools
import json
import math
import pathlib
import re
import struct
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("error: this program needs NumPy: pip install numpy")

DIFFERS, CANNOT_CHECK, INCOMPLETE = "differs", "cannot check", "incomplete"
EXIT_CODES = {"equal": 0, DIFFERS: 1, INCOMPLETE: 3, CANNOT_CHECK: 4}
FLOAT = re.compile(r"-?0x[01](\.[0-9a-f]*[1-9a-f])?p[+-](0|[1-9][0-9]*)")
HEX = re.compile(r"[0-9a-f]+")
GENESIS = {"format", "numerics", "program", "config", "data", "tokenizer"}
OPTIONAL = {"initial", "origin", "reference", "fork"}  # of format 1; format 2 has all fields
NEW = OPTIONAL | {"numerics_options", "data_roots", "maker"}
FIELDS = {"step": {"step", "loss", "tokens", "batch", "state", "leaves"}, "amend": {"step", "difference"},
          "checkpoint": {"step", "name"}}
# Name: NumPy's type of the same size, the elements in a word of a fingerprint (N14), the name in zarr.json.
TYPES = {"f32": ("<u4", 2, "float32"), "bf16": ("<u2", 4, "bfloat16"), "f64": ("<u8", 1, "float64"), "i32": ("<u4", 2, "int32"),
         "i64": ("<u8", 1, "int64"), "u32": ("<u4", 2, "uint32"), "bool": ("u1", 8, "bool"), "i8": ("u1", 8, "int8")}
LANES = ((0x767891433a2f877d, 0x3fd5a02d9e3d4385, 0xd91b0b73b755caa3),
         (0xfca36a40cf18ce43, 0xc13f61c4b95866cb, 0x5108c6bc88663951))


MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError)  # what a record without a field, or of other types, raises


class Finding(Exception):
    """What ends a check: a verdict and the sentence that says why."""
    def __init__(self, verdict, text):
        super().__init__(text)
        self.verdict, self.text = verdict, text


def require(condition, text, verdict=DIFFERS):
    if not condition:
        raise Finding(verdict, text)


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha(data):
    return hashlib.sha256(data).digest()


def read(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise Finding(INCOMPLETE, f"{path}: {error.strerror}") from error


def parse(text, where):
    """The JSON value of `text`; a key that stands twice, or a text that is no JSON, is a finding."""
    def pairs(items):
        keys = [key for key, _ in items]
        require(len(set(keys)) == len(keys), f"{where}: a key stands twice")
        return dict(items)
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        raise Finding(DIFFERS, f"{where}: not JSON: {error}") from error


# ---------------------------------------------------------------- the chain


def option_at(config, path):
    for part in path.split("."):
        if not isinstance(config, dict) or part not in config:
            return None
        config = config[part]
    return config


def set_option(config, path, value):
    *parents, name = path.split(".")
    for part in parents:
        config = config.setdefault(part, {})
    if value is None:
        config.pop(name, None)
    else:
        config[name] = value


class Chain:
    """The entries of chain.jsonl, checked one after another; `head` is the run hash."""
    def __init__(self, path):
        self.head, self.steps, self.names, self.heads, self.amends, step, last = "", {}, {}, {}, 0, 0, None
        lines = read(path).split(b"\n")
        lines.pop()  # empty, or a line that was being written when the process was killed
        require(lines, f"{path}: no complete line", INCOMPLETE)
        for number, line in enumerate(lines, 1):
            where = f"chain.jsonl, line {number}"
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise Finding(DIFFERS, f"{where}: not UTF-8") from error
            entry = parse(text, where)
            require(isinstance(entry, dict) and isinstance(entry.get("kind"), str), f"{where}: not an entry")
            require(text == canonical(entry), f"{where}: not canonical JSON")
            claimed, kind = entry.pop("h", None), entry.pop("kind")
            self.head = hashlib.sha256((self.head + canonical({**entry, "kind": kind})).encode()).hexdigest()
            require(self.head == claimed, f"{where}: it was altered: its hash is {self.head}, it says {claimed}")
            if number == 1:
                self.begin(entry, kind, where)
                step = last = (entry.get("fork") or {"step": 0})["step"]
                self.heads[step] = self.head
                continue
            require(set(entry) == FIELDS.get(kind), f"{where}: not the fields of an entry of kind {kind}")
            require(type(entry["step"]) is int, f"{where}: the step is not an integer")
            if kind == "step":
                step += 1
                require(entry["step"] == step, f"{where}: step {entry['step']} where step {step} should stand")
                require(step <= self.length(), f"{where}: step {step} of {self.length()}")
                require(FLOAT.fullmatch(str(entry["loss"])), f"{where}: the loss {entry['loss']} is not a finite number")
                self.steps[step] = entry
                self.heads[step] = self.head
            else:
                require(entry["step"] == step and step > 0, f"{where}: it says step {entry['step']} behind step {step}")
                if kind == "checkpoint":
                    require(step not in self.names and last != "amend", f"{where}: a checkpoint entry in a wrong place")
                    self.names[step] = entry["name"]
                else:
                    self.amend(entry["difference"], where)
            last = kind
        self.step = step

    def begin(self, entry, kind, where):
        require(kind == "genesis", f"{where}: not a genesis")
        require(entry.get("format") in (1, 2), f"{where}: format {entry.get('format')} is not known", CANNOT_CHECK)
        fields = set(entry)
        fits = GENESIS <= fields <= GENESIS | OPTIONAL if entry["format"] == 1 else fields == GENESIS | NEW
        require(fits, f"{where}: not the fields of a genesis of format {entry['format']}")
        self.genesis, self.config, self.program = entry, json.loads(canonical(entry["config"])), entry["program"]

    def length(self):
        return option_at(self.config, "trainer.num_train_steps")

    def amend(self, difference, where):
        require(isinstance(difference, dict) and difference, f"{where}: the amend changes nothing")
        self.amends += 1
        for path, change in difference.items():
            require(isinstance(change, dict) and set(change) <= {"from", "to"}, f"{where}: {path} has other members than from and to")
            now = self.program if path == "program" else option_at(self.config, path)
            require(change.get("from") == now, f"{where}: {path} was {canonical(now)} until then, not {canonical(change.get('from'))}")
            require(change.get("from") != change.get("to"), f"{where}: {path} does not change")
            if path == "program":
                self.program = change["to"]
            else:
                set_option(self.config, path, change.get("to"))
        require(self.length() > self.step_before(), f"{where}: the run would end before this amend")

    def step_before(self):
        return max(self.steps, default=0)


# ---------------------------------------------------------------- checkpoints


def mix(word, index, constants):
    k, m1, m2 = (np.uint64(c) for c in constants)
    x = (word ^ (index * k)) * m1
    x ^= x >> np.uint64(32)
    x *= m2
    return x ^ (x >> np.uint64(29))


def lanes(array, dtype):
    """Both lanes of N14 of an array of raw unsigned elements."""
    per_word = TYPES[dtype][1]
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    words = -(-rows.shape[1] // per_word)
    padded = np.zeros((rows.shape[0], words * per_word), array.dtype)
    padded[:, :rows.shape[1]] = rows
    word = padded.view("<u8").reshape(-1)
    index = np.arange(word.size, dtype=np.uint64)
    return [int(np.add.reduce(mix(word, index, c), dtype=np.uint64)) if word.size else 0 for c in LANES]


def load(folder, tensor, where):
    """The elements of one array as raw unsigned integers, put together from its chunk files."""
    meta = parse(read(folder / "zarr.json"), f"{where}/zarr.json")
    kind, _, zarr_type = TYPES[tensor["dtype"]]
    try:
        chunk = meta["chunk_grid"]["configuration"]["chunk_shape"]
        same = meta["shape"] == tensor["shape"] and meta["data_type"] == zarr_type and len(chunk) == len(meta["shape"])
        plain = meta["codecs"] == [{"name": "bytes", "configuration": {"endian": "little"}}] or meta["codecs"] == [{"name": "bytes"}]
    except (KeyError, TypeError) as error:
        raise Finding(DIFFERS, f"{where}/zarr.json: not the metadata of an array") from error
    require(same, f"{where}/zarr.json: it has another shape or type than the manifest")
    require(plain and all(size > 0 for size in chunk), f"{where}/zarr.json: other codecs or chunks than this program reads", CANNOT_CHECK)
    array = np.zeros(tensor["shape"], kind)
    for at in itertools.product(*(range(-(-size // part)) for size, part in zip(tensor["shape"], chunk))):
        data = read(folder / ".".join(["c", *map(str, at)]))
        require(len(data) == math.prod(chunk) * array.itemsize, f"{where}: chunk {at} has {len(data)} bytes")
        box = tuple(slice(i * part, min((i + 1) * part, size)) for i, part, size in zip(at, chunk, tensor["shape"]))
        array[box] = np.frombuffer(data, kind).reshape(chunk)[tuple(slice(0, b.stop - b.start) for b in box)]
    return array


def check_tensor(folder, tensor, where):
    """Compares the hashes of cells and array; returns the array's line in the state's name and in the fingerprint."""
    require(tensor.get("dtype") in TYPES, f"{where}: type {tensor.get('dtype')} is not known", CANNOT_CHECK)
    safe = all(re.fullmatch(r"(?!\.|__)[A-Za-z0-9_.-]+", part) for part in tensor["path"].split("/"))
    require(safe, f"{where}: {tensor['path']!r} is no path of a tensor")
    array, digests = load(folder / tensor["path"], tensor, f"{where}: {tensor['path']}"), []
    for at in itertools.product(*(range(-(-size // cell)) for size, cell in zip(tensor["shape"], tensor["cell"]))):
        box = tuple(slice(i * cell, (i + 1) * cell) for i, cell in zip(at, tensor["cell"]))
        digests.append(sha(np.ascontiguousarray(array[box]).tobytes()))
        claimed = tensor["cells"][len(digests) - 1] if len(digests) <= len(tensor["cells"]) else "missing"
        require(digests[-1].hex() == claimed, f"{where}: {tensor['path']}, cell {list(at)}: its hash is {digests[-1].hex()}, the manifest's {claimed}")
    whole = sha(b"".join(digests)).hex()
    require(whole == tensor["sha256"], f"{where}: {tensor['path']}: the hash of the array is not the manifest's")
    kind = f"{tensor['dtype']}[{', '.join(f'{a}:{n}' for a, n in zip(tensor['axes'], tensor['shape']))}]"
    line = f"{tensor['path']} {kind} {whole}\n"
    if not tensor["path"].startswith("model/"):
        return line, ""
    first, second = lanes(array, tensor["dtype"])
    return line, f"{tensor['path']} {kind} {first:016x} {second:016x}\n"


def check_checkpoint(folder, chain):
    """One checkpoint against its own hashes and the chain; returns whether the chain has its name."""
    where, text = folder.name, read(folder / "manifest.json").decode("utf-8", "replace")
    manifest = parse(text, f"{where}/manifest.json")
    end = text.rfind(",\n  \"checksum\"")
    require(hashlib.sha256(text[:end].encode()).hexdigest() == manifest.get("checksum"), f"{where}: the manifest's checksum is another one")
    require(manifest["format_version"] == 1, f"{where}: format {manifest['format_version']} is not known", CANNOT_CHECK)
    step = manifest["step"]
    require(folder.name == f"step-{step:08}", f"{where}: its manifest says step {step}")
    require(manifest["chain_head"] == chain.heads.get(step), f"{where}: its chain_head is not the chain's hash of step {step}")
    lines = [check_tensor(folder, tensor, where) for tensor in manifest["tensors"]]
    name = hashlib.sha256("".join(line for line, _ in lines).encode()).hexdigest()
    require(name == manifest["name"], f"{where}: the name of its state is {name}, its manifest says {manifest['name']}")
    if step in chain.names:
        require(name == chain.names[step], f"{where}: the name of its state is {name}, the chain's {chain.names[step]}")
    if step in chain.steps and "measured" in manifest:
        state = hashlib.sha256(("".join(line for _, line in lines) + manifest["measured"] + "\n").encode()).hexdigest()
        claimed = chain.steps[step]["state"]
        require(state[:len(claimed)] == claimed, f"{where}: the fingerprint of its state is {state[:len(claimed)]}, the chain's {claimed}")
    return step in chain.names


# ---------------------------------------------------------------- tokenizer and stores


def root_of(hashes):
    if not hashes:
        return sha(b"")
    while len(hashes) > 1:
        pairs = [sha(b"\x01" + a + b) for a, b in zip(hashes[::2], hashes[1::2])]
        hashes = pairs + hashes[len(pairs) * 2:]
    return hashes[0]


def check_store(folder):
    """A store's ledger and tree of rows; returns the ledger's hash and its root."""
    ledger = parse(read(folder / "ledger.json"), f"{folder}/ledger.json")
    require(ledger.get("format") == "ostro token store 4", f"{folder}: {ledger.get('format')} has no tree of rows", CANNOT_CHECK)
    rest = {key: value for key, value in ledger.items() if key != "sha256"}
    require(hashlib.sha256(canonical(rest).encode()).hexdigest() == ledger["sha256"], f"{folder}: ledger.json was altered")
    content = hashlib.sha256(canonical(ledger["content"]).encode()).hexdigest()
    require(content == ledger["hash"], f"{folder}: the ledger's hash is not that of its content")
    tree = read(folder / "rows.tree")
    require(len(tree) >= 48 and sha(tree[:-32]) == tree[-32:], f"{folder}: rows.tree was altered")
    rows, blocks = struct.unpack("<qq", tree[:16]), [tree[i:i + 32] for i in range(16, len(tree) - 32, 32)]
    first = -(-rows[0] // 1024)
    require(len(blocks) == first + -(-rows[1] // 1024), f"{folder}: rows.tree has {len(blocks)} blocks for {rows} rows")
    roots = root_of(blocks[:first]), root_of(blocks[first:])
    root = sha(b"\x02" + b"".join(struct.pack("<q", n) + r for n, r in zip(rows, roots))).hex()
    require(root == ledger["root"], f"{folder}: the tree of rows has the root {root}, the ledger {ledger['root']}")
    return content, root


def check_stores(folders, genesis):
    found = [check_store(folder) for folder in folders]
    roots, named = sorted(root for _, root in found), sorted(genesis.get("data_roots", {}).values())
    if genesis["format"] == 2:
        require(roots == named, f"the stores have the roots {roots}, the genesis {named}")
    if list(genesis.get("data_roots", {"": 0})) == [""]:
        require(found[0][0] == genesis["data"], f"{folders[0]}: the ledger hash is {found[0][0]}, the genesis has {genesis['data']}")


def check_run(run, options):
    """All findings about a run, and the sentence for the case that there are none."""
    chain, findings, named, others = Chain(run / "chain.jsonl"), [], 0, 0
    require(options.run_hash in (None, chain.head), f"the run hash is {chain.head}, not {options.run_hash}")
    def collect(check, *words):
        try:
            return check(*words)
        except Finding as finding:
            findings.append((finding.verdict, finding.text))
        except MALFORMED as error:
            findings.append((DIFFERS, f"{words[0]}: it lacks what the format asks for: {error!r}"))
    for folder in sorted((run / "checkpoints").glob("step-*[0-9]")):
        in_chain = collect(check_checkpoint, folder, chain)
        named, others = named + (in_chain is True), others + (in_chain is False)
    missing = [step for step in chain.names if not (run / "checkpoints" / f"step-{step:08}").is_dir()]
    if missing:
        findings.append((INCOMPLETE, f"{len(missing)} checkpoints that the chain names are not there: steps {', '.join(map(str, missing))}"))
    if chain.step < chain.length():
        findings.append((INCOMPLETE, f"the chain ends at step {chain.step} of {chain.length()}"))
    def tokenizer(path):
        value = parse(read(path), path.name)
        found = hashlib.sha256(canonical(value).encode()).hexdigest()
        require(found == chain.genesis["tokenizer"], f"tokenizer.json: its hash is {found}, the chain's {chain.genesis['tokenizer']}")
    collect(tokenizer, run / "tokenizer.json")
    if options.store:
        collect(check_stores, options.store, chain.genesis)
    return findings, (f"steps 1 to {chain.step}, {chain.amends} amends, {named} checkpoints that the chain names and {others} others; nothing was replayed\n"
                      f"run hash: {chain.head}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="the run's directory")
    parser.add_argument("--run_hash", help="the published run hash")
    parser.add_argument("--store", type=pathlib.Path, action="append", help="a token store of the run; once for each component")
    options = parser.parse_args()
    try:
        findings, summary = check_run(options.run, options)
    except Finding as finding:
        findings, summary = [(finding.verdict, finding.text)], ""
    except MALFORMED as error:
        findings, summary = [(DIFFERS, f"chain.jsonl: it lacks what the format asks for: {error!r}")], ""
    for verdict in (DIFFERS, CANNOT_CHECK, INCOMPLETE):
        texts = [text for kind, text in findings if kind == verdict]
        for text in texts:
            print(f"{verdict}: {text}")
    worst = next((v for v in (DIFFERS, CANNOT_CHECK, INCOMPLETE) if any(kind == v for kind, _ in findings)), "equal")
    print(f"equal: {summary}" if worst == "equal" else summary)
    return EXIT_CODES[worst]


if __name__ == "__main__":
    sys.exit(main())
