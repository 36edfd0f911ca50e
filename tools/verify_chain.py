#!/usr/bin/env python3
"""Checks a bundle, or the record of a run, without any code of Ostro: only docs/reference/formats, Python's hashes and NumPy.

Of a run: the chain keeps its rules; each checkpoint is the state that the chain names (the hash of every cell, computed from the
files), and has the chain's fingerprint; the tokenizer is the chain's. With --store also the store's ledger and tree of rows; with
--model that a model's weights are the cast of a state. Of a bundle: all of that, every file's hash, the tree of the data ledger,
bundle.json against the chain, and the signature (if Python's `cryptography` is there). Nothing is trained: see verify_step.py.
Prints a line for each finding; exits with 0 equal, 1 differs, 3 incomplete, 4 cannot check (docs/reference/verdicts.md).
Usage: verify_chain.py RUN|BUNDLE [--run_hash H] [--key PUB.pem] [--store DIR ...] [--model DIR]
"""
import argparse, functools, hashlib, itertools, json, math, pathlib, re, struct, sys

import numpy as np

DIFFERS, CANNOT_CHECK, INCOMPLETE = "differs", "cannot check", "incomplete"
ORDER, EXIT_CODES = (DIFFERS, CANNOT_CHECK, INCOMPLETE), {"equal": 0, DIFFERS: 1, INCOMPLETE: 3, CANNOT_CHECK: 4}
FLOAT = re.compile(r"-?0x[01](\.[0-9a-f]*[1-9a-f])?p[+-](0|[1-9][0-9]*)")
GENESIS = {"format", "numerics", "program", "config", "data", "tokenizer"}  # and of format 1 perhaps the next; format 2 has all fields
OPTIONAL, NEW = {"initial", "origin", "reference", "fork"}, {"numerics_options", "data_roots", "maker"}
FIELDS = {"step": {"step", "loss", "tokens", "batch", "state", "leaves"}, "amend": {"step", "difference"}, "checkpoint": {"step", "name"}}
# Name: NumPy's type of the same size, the elements in a word of a fingerprint (N14), the name in zarr.json.
TYPES = {"f32": ("<u4", 2, "float32"), "bf16": ("<u2", 4, "bfloat16"), "f64": ("<u8", 1, "float64"), "i32": ("<u4", 2, "int32"),
         "i64": ("<u8", 1, "int64"), "u32": ("<u4", 2, "uint32"), "bool": ("u1", 8, "bool"), "i8": ("u1", 8, "int8")}
LANES = ((0x767891433a2f877d, 0x3fd5a02d9e3d4385, 0xd91b0b73b755caa3), (0xfca36a40cf18ce43, 0xc13f61c4b95866cb, 0x5108c6bc88663951))
BUNDLE_FILES = {"bundle.json", "bundle.json.sig", "bundle.json.pub", "bundle.json.tsq", "bundle.json.tsr", "SHA256SUMS"}  # not listed in it
MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError, struct.error)  # what a record without a field, or of other types, raises

class Finding(Exception):
    """What ends a check: a verdict and the sentence that says why."""
    verdict, text = (property(lambda self, i=i: self.args[i]) for i in range(2))

def require(condition, text, verdict=DIFFERS):
    if not condition:
        raise Finding(verdict, text)

def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

def sha(data):
    return hashlib.sha256(data).digest()

def text_hash(text):
    return sha(text.encode()).hex()

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
        return json.loads(text.decode() if isinstance(text, bytes) else text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        raise Finding(DIFFERS, f"{where}: not JSON: {error}") from error

# ---- The chain.
def option_at(config, path):
    return functools.reduce(lambda value, part: value.get(part) if isinstance(value, dict) else None, path.split("."), config)

class Chain:
    """Checks the entries one after another. `first` and `head`: hashes of the first and the last; `heads`: of steps; `names`: of states."""
    def __init__(self, path):
        self.head, self.steps, self.names, self.heads, self.amends, last = "", {}, {}, {}, [], None
        *lines, _ = read(path).split(b"\n")  # the last is empty, or was being written when the process was killed
        require(lines, f"{path}: no complete line", INCOMPLETE)
        for number, line in enumerate(lines, 1):
            where = f"chain.jsonl, line {number}"
            entry = parse(line, where)
            require(line == canonical(entry).encode(), f"{where}: not canonical JSON")
            claimed, kind = entry.pop("h", None), entry["kind"]
            self.head = text_hash(self.head + canonical(entry))
            require(self.head == claimed, f"{where}: it was altered: its hash is {self.head}, it says {claimed}")
            if number == 1:
                self.begin(entry, where)
                continue
            require(set(entry) - {"kind"} == FIELDS.get(kind), f"{where}: not the fields of an entry of kind {kind}")
            require(type(entry["step"]) is int, f"{where}: the step is not an integer")
            if kind == "step":
                self.step += 1
                require(entry["step"] == self.step, f"{where}: step {entry['step']} where step {self.step} should stand")
                require(self.step <= self.length(), f"{where}: step {self.step} of {self.length()}")
                require(FLOAT.fullmatch(str(entry["loss"])), f"{where}: the loss {entry['loss']} is not a finite number")
                self.steps[self.step], self.heads[self.step] = entry, self.head
            else:
                require(entry["step"] == self.step and self.steps, f"{where}: it says step {entry['step']} behind step {self.step}")
                if kind == "checkpoint":
                    require(self.step not in self.names and last != "amend", f"{where}: a checkpoint entry in a wrong place")
                    self.names[self.step] = entry["name"]
                else:
                    self.amend(entry["difference"], where)
            last = kind

    def begin(self, entry, where):
        require(entry.pop("kind") == "genesis", f"{where}: not a genesis")
        require(entry.get("format") in (1, 2), f"{where}: format {entry.get('format')} is not known", CANNOT_CHECK)
        known = GENESIS | OPTIONAL
        fits = GENESIS <= set(entry) <= known if entry["format"] == 1 else set(entry) == known | NEW
        require(fits, f"{where}: not the fields of a genesis of format {entry['format']}")
        self.genesis, self.config, self.program, self.first = entry, json.loads(canonical(entry["config"])), entry["program"], self.head
        self.step = (entry.get("fork") or {"step": 0})["step"]
        self.heads[self.step] = self.head

    def length(self):
        return option_at(self.config, "trainer.num_train_steps")

    def amend(self, difference, where):
        require(isinstance(difference, dict) and difference, f"{where}: the amend changes nothing")
        self.amends.append({"difference": difference, "step": self.step})
        for path, change in difference.items():
            require(isinstance(change, dict) and set(change) <= {"from", "to"}, f"{where}: {path} has other members than from and to")
            now = self.program if path == "program" else option_at(self.config, path)
            require(change.get("from") == now, f"{where}: {path} was {canonical(now)} until then, not {canonical(change.get('from'))}")
            require(change.get("from") != change.get("to"), f"{where}: {path} does not change")
            *parents, name = path.split(".")
            if path == "program":
                self.program = change["to"]
            else:
                functools.reduce(lambda section, part: section.setdefault(part, {}), parents, self.config)[name] = change.get("to")
        require(self.length() > self.step, f"{where}: the run would end before this amend")

# ---- Checkpoints.
def lanes(array, dtype):
    """Both lanes of N14 of an array of raw unsigned elements."""
    per_word, shift = TYPES[dtype][1], np.uint64
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    padded = np.zeros((rows.shape[0], -(-rows.shape[1] // per_word) * per_word), array.dtype)
    padded[:, :rows.shape[1]] = rows
    word, sums = padded.view("<u8").reshape(-1), []
    for k, m1, m2 in (map(np.uint64, lane) for lane in LANES):
        x = (word ^ (np.arange(word.size, dtype=np.uint64) * k)) * m1
        x = (x ^ (x >> shift(32))) * m2
        sums.append(int(np.add.reduce(x ^ (x >> shift(29)), dtype=np.uint64)))
    return sums

def load(folder, tensor, where):
    """The elements of one array as raw unsigned integers, put together from its chunk files."""
    meta = parse(read(folder / "zarr.json"), f"{where}/zarr.json")
    kind, _, zarr_type = TYPES[tensor["dtype"]]
    chunk = meta["chunk_grid"]["configuration"]["chunk_shape"]
    same = meta["shape"] == tensor["shape"] and meta["data_type"] == zarr_type and len(chunk) == len(meta["shape"])
    plain = meta["codecs"] in ([{"name": "bytes", "configuration": {"endian": "little"}}], [{"name": "bytes"}])
    require(same, f"{where}/zarr.json: it has another shape or type than the manifest")
    require(plain and all(size > 0 for size in chunk), f"{where}/zarr.json: other codecs or chunks than this program reads", CANNOT_CHECK)
    array = np.zeros(tensor["shape"], kind)
    for at in itertools.product(*(range(-(-size // part)) for size, part in zip(tensor["shape"], chunk))):
        data = read(folder / ".".join(["c", *map(str, at)]))
        require(len(data) == math.prod(chunk) * array.itemsize, f"{where}: chunk {at} has {len(data)} bytes")
        box = tuple(slice(i * part, min((i + 1) * part, size)) for i, part, size in zip(at, chunk, tensor["shape"]))
        array[box] = np.frombuffer(data, kind).reshape(chunk)[tuple(slice(0, b.stop - b.start) for b in box)]
    return array

def check_tensor(folder, tensor, where, absent):
    """Compares the hashes of cells and array; returns the array's line in the state's name and in the fingerprint.
    `absent`: moments are not there, and the hash that the manifest has stands for them in the name."""
    path, shape, cells = tensor["path"], tensor["shape"], []
    require(tensor["dtype"] in TYPES, f"{where}: type {tensor['dtype']} is not known", CANNOT_CHECK)
    safe = all(re.fullmatch(r"(?!\.|__)[A-Za-z0-9_.-]+", part) for part in path.split("/"))
    require(safe, f"{where}: {path!r} is no path of a tensor")
    kind, where = f"{tensor['dtype']}[{', '.join(f'{a}:{n}' for a, n in zip(tensor['axes'], shape))}]", f"{where}: {path}"
    if absent and path.startswith("optimizer/"):
        return f"{path} {kind} {tensor['sha256']}\n", ""
    array = load(folder / path, tensor, where)
    for at in itertools.product(*(range(-(-size // cell)) for size, cell in zip(shape, tensor["cell"]))):
        box = tuple(slice(i * cell, (i + 1) * cell) for i, cell in zip(at, tensor["cell"]))
        cells.append(sha(np.ascontiguousarray(array[box]).tobytes()))
        claimed = tensor["cells"][len(cells) - 1] if len(cells) <= len(tensor["cells"]) else "missing"
        require(cells[-1].hex() == claimed, f"{where}, cell {list(at)}: its hash is {cells[-1].hex()}, the manifest's {claimed}")
    whole = sha(b"".join(cells)).hex()
    require(whole == tensor["sha256"], f"{where}: the hash of the array is not the manifest's")
    first, second = lanes(array, tensor["dtype"])
    return f"{path} {kind} {whole}\n", f"{path} {kind} {first:016x} {second:016x}\n" if path.startswith("model/") else ""

def check_checkpoint(folder, chain, absent=False):
    """One checkpoint against its own hashes and the chain; returns whether the chain has its name."""
    where, text = folder.name, read(folder / "manifest.json").decode("utf-8", "replace")
    manifest = parse(text, f"{where}/manifest.json")
    require(text_hash(text[:text.rfind(",\n  \"checksum\"")]) == manifest.get("checksum"), f"{where}: the manifest's checksum is another one")
    require(manifest["format_version"] == 1, f"{where}: format {manifest['format_version']} is not known", CANNOT_CHECK)
    step = manifest["step"]
    require(where == f"step-{step:08}", f"{where}: its manifest says step {step}")
    require(manifest["chain_head"] == chain.heads.get(step), f"{where}: its chain_head is not the chain's hash of step {step}")
    lines = [check_tensor(folder, tensor, where, absent) for tensor in manifest["tensors"]]
    name = text_hash("".join(line for line, _ in lines))
    require(name == manifest["name"], f"{where}: the name of its state is {name}, its manifest says {manifest['name']}")
    require(name == chain.names.get(step, name), f"{where}: the name of its state is {name}, the chain's {chain.names.get(step)}")
    if step in chain.steps and "measured" in manifest:
        claimed, state = chain.steps[step]["state"], text_hash("".join(line for _, line in lines) + manifest["measured"] + "\n")
        require(state[:len(claimed)] == claimed, f"{where}: the fingerprint of its state is {state[:len(claimed)]}, the chain's {claimed}")
    return step in chain.names

# ---- The data ledger of a bundle; store_reader.py checks stores.
def root_of(hashes):
    while len(hashes) > 1:
        pairs = [sha(b"\x01" + a + b) for a, b in zip(hashes[::2], hashes[1::2])]
        hashes = pairs + hashes[len(pairs) * 2:]
    return hashes[0] if hashes else sha(b"")

def root_of_splits(counts, roots):
    return sha(b"\x02" + b"".join(struct.pack("<q", n) + r for n, r in zip(counts, roots))).hex()

def check_ledger(folder, claims, genesis):
    """The rows and source files of each component against bundle.json and the genesis."""
    hashes = {}
    require(claims, "the bundle has no ledger of its data", INCOMPLETE)
    for name, claim in claims.items():
        component = name if name in genesis["data_roots"] else ""  # the only store of a configuration without components
        rows, content, at, roots = read(folder / f"{name}.rows"), read(folder / f"{name}.content.json"), 0, []
        counts = claim["train"], claim["validation"]
        require(len(rows) == 40 * sum(counts), f"ledger/{name}.rows: it has {len(rows) // 40} rows, bundle.json {sum(counts)}")
        for count in counts:
            roots.append(root_of([sha(b"\0" + rows[i:i + 40]) for i in range(at, at + 40 * count, 40)]))
            at += 40 * count
        found, claimed = root_of_splits(counts, roots), genesis["data_roots"].get(component)
        require(found == claimed == claim["root"], f"ledger/{name}.rows: its tree has the root {found}, the genesis {claimed}, bundle.json {claim['root']}")
        files = [(f["sha256"], f["rows"]) for f in parse(content, f"ledger/{name}.content.json").get("files", [])]
        lines = [parse(line, f"ledger/{name}.sources") for line in read(folder / f"{name}.sources").splitlines()]
        require([(s["sha256"], s["rows"]) for s in lines] == files, f"ledger/{name}.sources: other files than {name}.content.json has")
        hashes[component] = sha(content).hex()
    require(set(hashes) == set(genesis["data_roots"]), f"ledger: it has {sorted(hashes)}, the genesis {sorted(genesis['data_roots'])}")
    data = hashes[""] if "" in hashes else text_hash(canonical(hashes))
    require(data == genesis["data"], f"ledger: the hash of its contents is {data}, the genesis has {genesis['data']}")

# ---- Models.
def safetensors(path):
    """Name -> (type, shape, bytes) of a file of weights."""
    data = read(path)
    start = 8 + struct.unpack_from("<Q", data)[0]
    header = {name: info for name, info in parse(data[8:start], path.name).items() if name != "__metadata__"}
    out = {n: (i["dtype"], i["shape"], data[start + i["data_offsets"][0]:start + i["data_offsets"][1]]) for n, i in header.items()}
    require(sum(len(d) for _, _, d in out.values()) == len(data) - start, f"{path.name}: its tensors do not fill it")
    return out

def cast(words, dtype):
    """The bytes of f32 words (u4) in another type, rounded to nearest even (N1)."""
    if dtype == "F16":
        return words.view("<f4").astype("<f2").tobytes()
    if dtype == "BF16":
        rounded = (words.astype(np.uint64) + 0x7FFF + ((words >> 16) & 1)) >> 16
        rounded = np.where((words & 0x7F800000) == 0, words >> 31 << 15, rounded)
        return np.where((words & 0x7FFFFFFF) > 0x7F800000, words >> 16 | 0x40, rounded).astype("<u2").tobytes()
    require(dtype == "F32", f"weights of type {dtype}: this program knows F32, BF16 and F16", CANNOT_CHECK)
    return words.astype("<u4").tobytes()

def llama_tensors(p):  # of Hugging Face, from the parameters by path (docs/spec/decoder_step.md)
    yield "model.embed_tokens", p["embedding"]
    for i, qkv in enumerate(p["layers/attention/qkv"]):
        heads, embed, at = np.moveaxis(qkv, 0, -1), qkv.shape[0], f"model.layers.{i}."  # heads: kv_heads, qkv, head_dim, embed
        yield at + "input_layernorm", p["layers/attention_norm"][i]
        yield at + "post_attention_layernorm", p["layers/mlp_norm"][i]
        for name, part in (("q", heads[:, :-2]), ("k", heads[:, -2]), ("v", heads[:, -1])):
            yield f"{at}self_attn.{name}_proj", part.reshape(-1, embed)
        yield at + "self_attn.o_proj", p["layers/attention/o"][i].reshape(-1, embed).T
        yield from ((f"{at}mlp.{name}_proj", p["layers/mlp/gate_up"][i][:, half].T) for half, name in enumerate(("gate", "up")))
        yield at + "mlp.down_proj", p["layers/mlp/down"][i].T
    yield "model.norm", p["norm"]
    if "head" in p:
        yield "lm_head", p["head"].T

def check_model(model, run, chain, collect):
    """A model directory: its files are those of provenance.json, its state is the chain's, its weights are the cast of that state."""
    text = read(model / "provenance.json")
    value = parse(text, "provenance.json")
    require(text == canonical(value).encode() + b"\n", "provenance.json: not canonical JSON and a line feed")
    require(value["format_version"] == 1, f"provenance.json: version {value['format_version']} is not known", CANNOT_CHECK)
    collect(check_files, model, value["files"], "provenance.json")
    source, step = value["sources"][0], value["sources"][0]["step"]
    for what, own in {"genesis": chain.first, "head": chain.heads.get(step), "state": chain.names.get(step)}.items():
        require(own is not None and source[what] == own, f"provenance.json: of another run or step: its {what} is {source[what]}, the chain's at step {step} {own}")
    made = f"{value['made']}, layout {value['weights']['layout']}"
    require(made == "export, layout hf", f"the weights ({made}): this program knows those of a plain export to hf", CANNOT_CHECK)
    config = parse(read(model / "config.json"), "config.json")
    plain = config["model_type"] == "llama" and not (config["attention_bias"] or config["mlp_bias"])
    require(plain, f"the weights of a {config['model_type']}: this program knows those of a Llama without biases", CANNOT_CHECK)
    folder = run / f"checkpoints/step-{step:08}"
    tensors = [t for t in parse(read(folder / "manifest.json"), folder.name)["tensors"] if t["path"].startswith("model/")]
    known = {t["path"][6:].removesuffix("/weight"): load(folder / t["path"], t, t["path"]) for t in tensors}
    found = {name: tensor for path in model.glob("model*.safetensors") for name, tensor in safetensors(path).items()}
    for name, words in llama_tensors(known):
        require(f"{name}.weight" in found, f"the weights lack {name}.weight")
        dtype, shape, data = found.pop(f"{name}.weight")
        expected = cast(np.ascontiguousarray(words), dtype)
        require(shape == list(words.shape), f"{name}.weight: its shape is {shape}, not {list(words.shape)}")
        at = next((i for i in range(len(expected)) if data[i:i + 1] != expected[i:i + 1]), 0) if data != expected else 0
        require(data == expected, f"{name}.weight: from byte {at} on not the cast to {dtype} of the state of step {step}")
    require(not found, f"the weights have {', '.join(sorted(found)[:3])}, which the state lacks")

# ---- Bundles and runs.
def check_files(folder, files, where):
    for path, claim in files.items():
        inside = not path.startswith("/") and ".." not in path.split("/") and not (folder / path).is_symlink()
        require(inside, f"{where}: {path} is no file below it")
        data = read(folder / path)
        size, found = len(data), sha(data).hex()
        require((size, found) == (claim["bytes"], claim["sha256"]), f"{path}: {size} bytes, hash {found}; {where} has {claim['bytes']}, {claim['sha256']}")

def check_signature(bundle, data, key):
    """What can be said of the signature of bundle.json."""
    if not (bundle / "bundle.json.sig").exists():
        require(key is None, "bundle.json: it is not signed, and a key was given")
        return "bundle.json is not signed"
    pem, mark = read(bundle / "bundle.json.pub"), read(bundle / "bundle.json.sig")
    require(key is None or read(key).split() == pem.split(), "bundle.json: it is signed by another key than the one given")
    try:
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
        load_pem_public_key(pem).verify(mark, data)
    except ImportError:
        require(key is None, "the signature of bundle.json: pip install cryptography", CANNOT_CHECK)
        return "not checked: the signature of bundle.json (pip install cryptography)"
    except Exception as error:  # of many types, by what is wrong with key or signature
        raise Finding(DIFFERS, f"bundle.json: its signature is not one by bundle.json.pub: {error!r}") from error
    return "bundle.json is signed by " + ("the key that was given" if key else "the key in bundle.json.pub; whose it is, nothing here says")

def check_bundle(bundle, value, data, chain, key, collect):
    """All of a bundle but the record in it; returns a line about its signature."""
    require(data == canonical(value).encode() + b"\n", "bundle.json: not canonical JSON and a line feed")
    require((value["format"], value["format_version"]) == ("ostro bundle", 1), "bundle.json: not a bundle of version 1", CANNOT_CHECK)
    note = collect(check_signature, bundle, data, key)
    for path, claim in value["files"].items():
        collect(check_files, bundle, {path: claim}, "bundle.json")
    there = {p.relative_to(bundle).as_posix() for p in bundle.rglob("*") if p.is_symlink() or not p.is_dir()}
    for path in sorted(there - set(value["files"]) - BUNDLE_FILES):
        collect(require, False, f"{path}: bundle.json does not list it")
    sums = {path: claim["sha256"] for path, claim in value["files"].items()} | {"bundle.json": sha(data).hex()}
    lines = "".join(f"{sums[path]}  {path}\n" for path in sorted(sums)).encode()
    stamp = "".join(f"{sha(read(path)).hex()}  {path.name}\n" for path in bundle.glob("bundle.json.tsr")).encode()  # came later
    collect(require, read(bundle / "SHA256SUMS") in (lines, lines + stamp), "SHA256SUMS: not the hashes of the files that bundle.json lists")
    facts = {"genesis": chain.first, "head": chain.head, "numerics": chain.genesis["numerics"], "amends": chain.amends,
             "state": chain.names.get(value["step"]), "lineage": {k: chain.genesis.get(k) for k in ("fork", "maker", "origin")}}
    for key, fact in facts.items():
        collect(require, value[key] == fact, f"bundle.json: its {key} is {canonical(value[key])}, the chain's is {canonical(fact)}")
    collect(check_ledger, bundle / "ledger", value["ledger"], chain.genesis)
    missing = [s for s in value["checkpoints"] if not (bundle / f"record/checkpoints/step-{s:08}").is_dir()]
    collect(require, not missing, f"the checkpoints of steps {missing} are not there", INCOMPLETE)
    return note and note + "\n"

class Findings(list):
    """What checks found: pairs of verdict and sentence. collect() gives what a check returns, or None when it ended with a finding."""
    def collect(self, check, *words):
        try:
            return check(*words)
        except Finding as finding:
            self.append((finding.verdict, finding.text))
        except MALFORMED as error:
            self.append((DIFFERS, f"{words[0]}: it lacks what the format asks for: {error!r}"))

def check_run(top, options):
    """All findings about a run or a bundle, and the sentences for the case that there are none."""
    findings, counts, note, value = Findings(), {True: 0, False: 0, None: 0}, "", None
    collect, run = findings.collect, top / "record" if (top / "bundle.json").exists() else top
    def tokenizer(path):
        found = text_hash(canonical(parse(read(path), path.name)))
        require(found == chain.genesis["tokenizer"], f"{path.name}: its hash is {found}, the chain's {chain.genesis['tokenizer']}")
    chain = collect(Chain, run / "chain.jsonl")
    if chain is None:
        return findings, ""
    collect(require, options.run_hash in (None, chain.head), f"the run hash is {chain.head}, not {options.run_hash}")
    if run != top:
        data = read(top / "bundle.json")
        value = collect(parse, data, "bundle.json")
        collect(require, type(value) is dict, "bundle.json: it is no JSON object")
        note = type(value) is dict and collect(check_bundle, top, value, data, chain, options.key, collect) or ""
    collect(require, run != top or options.key is None, "bundle.json: a key was given, and there is no bundle.json")
    for folder in sorted((run / "checkpoints").glob("step-*[0-9]")):
        counts[collect(check_checkpoint, folder, chain, type(value) is dict and value.get("moments") is False)] += 1
    lost = ", ".join(str(step) for step in chain.names if not (run / f"checkpoints/step-{step:08}").is_dir())
    collect(require, run != top or not lost, f"checkpoints that the chain names are not there: steps {lost}", INCOMPLETE)
    collect(require, chain.step >= chain.length(), f"the chain ends at step {chain.step} of {chain.length()}", INCOMPLETE)
    if options.store:
        from store_reader import check_stores
        collect(check_stores, options.store, chain.genesis)
    models = [model for model in (options.model, top if run != top else None) if model]
    for folder in (run, *models):
        collect(tokenizer, folder / "tokenizer.json")
    for model in models:
        collect(check_model, model, run, chain, collect)
    return findings, (f"steps {min(chain.steps, default=1)} to {chain.step}, {len(chain.amends)} amends, {counts[True]} checkpoints that the chain names and "
                      f"{counts[False]} others; nothing was replayed\n{note}run hash: {chain.head}")
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="the run's directory, or a bundle")
    parser.add_argument("--run_hash", help="the published run hash")
    parser.add_argument("--key", type=pathlib.Path, help="the public key (PEM) that must have signed a bundle")
    parser.add_argument("--store", type=pathlib.Path, action="append", help="a token store of the run; once for each component")
    parser.add_argument("--model", type=pathlib.Path, help="a model directory that must be made of this run")
    options = parser.parse_args()
    findings, summary = check_run(options.run, options)
    for verdict, text in sorted(findings, key=lambda finding: ORDER.index(finding[0])):
        print(f"{verdict}: {text}")
    worst = min((verdict for verdict, _ in findings), key=ORDER.index, default="equal")
    print(f"equal: {summary}" if worst == "equal" else summary)
    return EXIT_CODES[worst]
sys.modules.setdefault("verify_chain", sys.modules[__name__])  # store_reader.py imports this file
if __name__ == "__main__":
    sys.exit(main())
