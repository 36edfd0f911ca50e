#!/usr/bin/env python3
"""Checks a bundle, or the record of a run, without any code of Ostro: only docs/reference/formats, Python's hashes and NumPy.

Of a run: the chain keeps its rules; each checkpoint is the state that the chain names (the hash of every cell, computed from the
files), and has the chain's fingerprint; the tokenizer is the chain's. With --store also the store's ledger and tree of rows; with
--model that a model's weights are the cast of a state. Of a bundle: all of that, every file's hash, the tree of the data ledger,
bundle.json against the chain, and the signature (if Python's `cryptography` is there). Nothing is trained: see verify_step.py.
Prints a line for each finding; exits with 0 equal, 1 differs, 3 incomplete, 4 cannot check (docs/reference/verdicts.md).
Usage: verify_chain.py RUN|BUNDLE [--run_hash H] [--key PUB.pem] [--store DIR ...] [--model DIR]
"""
import argparse, functools, hashlib, json, math, pathlib, re, struct, sys

import numpy as np

DIFFERS, CANNOT_CHECK, INCOMPLETE = "differs", "cannot check", "incomplete"
ORDER, EXIT_CODES = (DIFFERS, CANNOT_CHECK, INCOMPLETE), {"equal": 0, DIFFERS: 1, INCOMPLETE: 3, CANNOT_CHECK: 4}
FLOAT = re.compile(r"-?0x[01](\.[0-9a-f]*[1-9a-f])?p[+-](0|[1-9][0-9]*)")
GENESIS = {"format", "numerics", "program", "config", "data", "tokenizer"}  # and of format 1 perhaps the next; format 2 has all fields
OPTIONAL, NEW = {"initial", "origin", "reference", "fork"}, {"numerics_options", "data_roots", "maker"}
FIELDS = {"step": {"step", "loss", "tokens", "batch", "state", "leaves"}, "amend": {"step", "difference"}, "checkpoint": {"step", "name"}}
BUNDLE = {"genesis", "head", "step", "state", "numerics", "amends", "lineage", "files", "ledger", "checkpoints", "moments", "licenses",
          "made_by"}
PROVENANCE = {"made", "numerics", "files", "weights", "sources"}
# Name: NumPy's type of the same size, the elements in a word of a fingerprint (N14), the name in zarr.json.
TYPES = {"f32": ("<u4", 2, "float32"), "bf16": ("<u2", 4, "bfloat16"), "f64": ("<u8", 1, "float64"), "i32": ("<u4", 2, "int32"),
         "i64": ("<u8", 1, "int64"), "u32": ("<u4", 2, "uint32"), "bool": ("u1", 8, "bool"), "i8": ("u1", 8, "int8")}
LANES = ((0x767891433a2f877d, 0x3fd5a02d9e3d4385, 0xd91b0b73b755caa3), (0xfca36a40cf18ce43, 0xc13f61c4b95866cb, 0x5108c6bc88663951))
# Files that bundle.json does not list; that an export writes; that may be beside an export; whose content this program compares.
SEAL = {"bundle.json", "bundle.json.sig", "bundle.json.pub", "bundle.json.tsq", "bundle.json.tsr", "SHA256SUMS"}
EXPORT = re.compile(r"(generation_|tokenizer_)?config\.json|tokenizer\.(json|model)|(chat_template|additional_chat_templates/\w+)\.jinja|"
                    r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json")
BESIDE = re.compile(r"provenance\.json|(record|ledger|licenses)/(?s:.*)|(README|LICENSE|NOTICE|USE_POLICY)\w*(\.md|\.txt)?|\.[^/]*")
COMPARED = re.compile(r"(ledger|record/(checkpoints|initial))/|(record/)?(chain\.jsonl|tokenizer\.json)|(config|provenance)\.json|"
                      r"model.*\.safetensors")

class Finding(Exception):
    """What ends a check: a verdict and the sentence that says why."""
    verdict, text = (property(lambda self, i=i: self.args[i]) for i in range(2))

class Findings(list):
    """What checks found: pairs of verdict and sentence. collect() gives what a check returns, or None when it ended with a finding."""
    def collect(self, check, *words):
        try:
            return check(*words)
        except Finding as finding:
            self.append((finding.verdict, finding.text))
        except MemoryError:
            self.append((CANNOT_CHECK, f"{words[0]}: it needs more memory than there is"))
        except Exception as error:  # of any type, by what is wrong with a file
            self.append((DIFFERS, f"{words[0]}: it is not what the format asks for: {error!r}"))

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
        require(path.is_file() or not path.exists(), f"{path}: it is not a file", CANNOT_CHECK)  # a pipe would never end
        return path.read_bytes()
    except OSError as error:
        raise Finding(INCOMPLETE, f"{path}: {error.strerror}") from error

def is_below(path):
    return not {"", ".", ".."} & set(path.split("/"))

def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}

def parse(data, where, exact=False):
    """The JSON value of `data`, in which no key stands twice. `exact`: it is canonical JSON (chain.md), whose only numbers are integers."""
    def pairs(items):
        require(len({key for key, _ in items}) == len(items), f"{where}: a key stands twice")
        return dict(items)
    def number(text):
        require(not exact, f"{where}: {text} is no integer")
        return float(text)
    try:
        value = json.loads(data.decode(), object_pairs_hook=pairs, parse_float=number, parse_constant=number)
        require(not exact or data == canonical(value).encode(), f"{where}: not canonical JSON")
        return value
    except (ValueError, RecursionError) as error:
        raise Finding(DIFFERS, f"{where}: not JSON: {error}") from error

def parse_file(path, form, members):
    """The object in a file of canonical JSON and a line feed, of version 1 of its format."""
    data = read(path)
    require(data.endswith(b"\n"), f"{path.name}: it does not end in a line feed")
    value = parse(data[:-1], path.name, exact=True)
    require(value["format"] == form, f"{path.name}: its format is not {form}")
    require(value["format_version"] == 1, f"{path.name}: version {value['format_version']} is not known", CANNOT_CHECK)
    require(set(value) == members | {"format", "format_version"}, f"{path.name}: not the members of this format")
    return value

# ---- The chain.
def option_at(config, path):
    return functools.reduce(lambda value, part: value.get(part) if isinstance(value, dict) else None, path.split("."), config)

class Chain:
    """Checks the entries one after another. `first` and `head`: hashes of the first and the last; `heads`: of steps; `names`: of states;
    `models`: the options of the model that these states were made with; `data`: of the genesis and of each amend that adds
    components, in which entry it stands, the names of all components and the hash of their data; `roots`: of all components."""
    def __init__(self, path):
        self.head, self.steps, self.names, self.models, self.heads, self.amends, last = "", {}, {}, {}, {}, [], None
        *lines, _ = read(path).split(b"\n")  # the last is empty, or was being written when the process was killed
        require(lines, f"{path}: no complete line", INCOMPLETE)
        for number, line in enumerate(lines, 1):
            where = f"chain.jsonl, line {number}"
            entry = parse(line, where, exact=True)
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
                require(entry["state"], f"{where}: the fingerprint of the state is empty")
                self.steps[self.step], self.heads[self.step] = entry, self.head
            else:
                require(entry["step"] == self.step, f"{where}: it says step {entry['step']} behind step {self.step}")
                require(self.steps, f"{where}: an entry of kind {kind} before any step")  # the genesis says how a run begins
                if kind == "checkpoint":
                    require(self.step not in self.names and last != "amend", f"{where}: a checkpoint entry in a wrong place")
                    self.names[self.step], self.models[self.step] = entry["name"], dict(self.config["model"])
                else:
                    self.amend(entry["difference"], where)
            last = kind

    def begin(self, entry, where):
        require(entry.pop("kind") == "genesis", f"{where}: not a genesis")
        require(entry.get("format") in (1, 2), f"{where}: format {entry.get('format')} is not known", CANNOT_CHECK)
        known = GENESIS | OPTIONAL
        fits = GENESIS <= set(entry) <= known if entry["format"] == 1 else set(entry) == known | NEW
        require(fits, f"{where}: not the fields of a genesis of format {entry['format']}")
        roots = list(entry.get("data_roots", {}))  # files have these names, so none leads out of a directory
        plain = roots == [""] or all(re.fullmatch(r"(?!\.)[A-Za-z0-9_.-]+(/(?!\.)[A-Za-z0-9_.-]+)*", name) for name in roots)
        require(plain, f"{where}: data_roots has names that no component of data has: {roots}")
        origin, maker = entry.get("origin"), entry.get("maker")
        began = entry.get("initial") and not entry.get("fork")
        require(began or not (origin or maker), f"{where}: it has an origin or a maker, and began with no model")
        source = (origin.get("from") or {}) if isinstance(origin, dict) else {}
        same = not (origin and maker) or all(source.get(key) == maker[key] for key in ("head", "state"))
        require(same, f"{where}: it contradicts itself: its maker is {maker}, its origin is from {source}")
        self.genesis, self.config, self.program, self.first = entry, json.loads(canonical(entry["config"])), entry["program"], self.head
        self.roots, self.data = entry.get("data_roots"), [("the genesis", self.components(), entry["data"])]
        self.step = (entry.get("fork") or {"step": 0})["step"]
        self.heads[self.step] = self.head

    def components(self):
        return set(option_at(self.config, "data.components") or {""})

    def length(self):
        return option_at(self.config, "trainer.num_train_steps")

    def amend(self, difference, where):
        require(isinstance(difference, dict) and difference, f"{where}: the amend changes nothing")
        self.amends.append({"difference": difference, "step": self.step})
        own, roots = {"program": self.program, "data": self.data[-1][2], "data_roots": self.roots}, self.roots
        for path, change in difference.items():
            require(isinstance(change, dict) and set(change) <= {"from", "to"}, f"{where}: {path} has other members than from and to")
            now = own[path] if path in own else option_at(self.config, path)
            require(change.get("from") == now, f"{where}: {path} was {canonical(now)} until then, not {canonical(change.get('from'))}")
            require(change.get("from") != change.get("to"), f"{where}: {path} does not change")
            *parents, name = path.split(".")
            if path in own:
                own[path] = change["to"]
            else:
                functools.reduce(lambda section, part: section.setdefault(part, {}), parents, self.config)[name] = change.get("to")
        self.program, self.roots, (_, before, data), after = own["program"], own["data_roots"], self.data[-1], self.components()
        require((before == after) == (data == own["data"]) and before <= after, f"{where}: the data are not those of its components")
        grown = roots == self.roots if before == after or roots is None else set(self.roots) == after and roots.items() <= self.roots.items()
        require(grown, f"{where}: its data_roots are not those of before with one for each component that it adds")
        if before != after:
            self.data.append((f"the amend after step {self.step}", after, own["data"]))
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

def boxes(shape, part):
    """The boxes of size `part` that an array is cut into, those at its ends smaller: their numbers, and the slices."""
    for at in np.ndindex(*(-(-size // step) for size, step in zip(shape, part, strict=True))):
        yield at, tuple(slice(i * step, min((i + 1) * step, size)) for i, step, size in zip(at, part, shape))

def load(folder, tensor, where):
    """The elements of one array as raw unsigned integers, put together from its chunk files."""
    meta = parse(read(folder / "zarr.json"), f"{where}/zarr.json")
    kind, _, zarr_type = TYPES[tensor["dtype"]]
    chunk = meta["chunk_grid"]["configuration"]["chunk_shape"]
    plain = meta["codecs"] in ([{"name": "bytes", "configuration": {"endian": "little"}}], [{"name": "bytes"}])
    same = meta["shape"] == tensor["shape"] and meta["data_type"] == zarr_type
    require(same, f"{where}/zarr.json: it has another shape or type than the manifest")
    require(plain and all(size > 0 for size in chunk), f"{where}/zarr.json: other codecs or chunks than this program reads", CANNOT_CHECK)
    array = np.zeros(tensor["shape"], kind)
    for at, box in boxes(tensor["shape"], chunk):
        data = read(folder / ".".join(["c", *map(str, at)]))
        require(len(data) == math.prod(chunk) * array.itemsize, f"{where}: chunk {at} has {len(data)} bytes")
        array[box] = np.frombuffer(data, kind).reshape(chunk)[tuple(slice(0, b.stop - b.start) for b in box)]
    return array

def check_cells(array, tensor, where):
    """Compares the hashes of an array and of its cells with the manifest."""
    cells = []
    for at, box in boxes(tensor["shape"], tensor["cell"]):
        cells.append(sha(np.ascontiguousarray(array[box]).tobytes()))
        claimed = tensor["cells"][len(cells) - 1] if len(cells) <= len(tensor["cells"]) else "missing"
        require(cells[-1].hex() == claimed, f"{where}, cell {list(at)}: its hash is {cells[-1].hex()}, the manifest's {claimed}")
    require(sha(b"".join(cells)).hex() == tensor["sha256"], f"{where}: the hash of the array is not the manifest's")

def check_tensor(folder, tensor, where, absent):
    """Compares an array with the manifest; returns its line in the state's name and in the fingerprint.
    `absent`: moments are not there, and the hash that the manifest has stands for them in the name."""
    path, shape = tensor["path"], tensor["shape"]
    require(tensor["dtype"] in TYPES, f"{where}: type {tensor['dtype']} is not known", CANNOT_CHECK)
    safe = all(re.fullmatch(r"(?!\.|__)[A-Za-z0-9_.-]+", part) for part in path.split("/"))
    require(safe, f"{where}: {path!r} is no path of a tensor")
    kind, where = f"{tensor['dtype']}[{', '.join(f'{a}:{n}' for a, n in zip(tensor['axes'], shape))}]", f"{where}: {path}"
    name = f"{path} {kind} {tensor['sha256']}\n"
    if absent and path.startswith("optimizer/") and not path.startswith("optimizer/average/"):
        return name, ""
    array = load(folder / path, tensor, where)
    check_cells(array, tensor, where)
    first, second = lanes(array, tensor["dtype"])
    return name, f"{path} {kind} {first:016x} {second:016x}\n" if path.startswith("model/") else ""

def check_checkpoint(folder, chain, absent=False):
    """One checkpoint against its own hashes and the chain; returns whether the chain has its name."""
    where, text = folder.name, read(folder / "manifest.json")
    manifest = parse(text, f"{where}/manifest.json")
    checksum = sha(text[:text.rfind(b",\n  \"checksum\"")]).hex()
    require(checksum == manifest.get("checksum"), f"{where}: the manifest's checksum is another one")
    require(manifest["format_version"] == 1, f"{where}: format {manifest['format_version']} is not known", CANNOT_CHECK)
    step, is_first = manifest["step"], folder.parent.name == "initial"
    require(where == f"step-{step:08}", f"{where}: its manifest says step {step}")
    head = manifest["chain_head"]
    require(is_first or head == chain.heads.get(step), f"{where}: its chain_head is not the chain's hash of step {step}")
    lines = [check_tensor(folder, tensor, where, absent) for tensor in manifest["tensors"]]
    name, claimed = text_hash("".join(line for line, _ in lines)), chain.genesis.get("initial") if is_first else chain.names.get(step)
    require(name == manifest["name"], f"{where}: the name of its state is {name}, its manifest says {manifest['name']}")
    require(name == claimed or not (claimed or is_first), f"{where}: the name of its state is {name}, the chain's {claimed}")
    measured = manifest.get("measured", "")
    require("\n" not in measured, f"{where}: its \"measured\" is more than one line")
    if step in chain.steps and (measured or chain.genesis["format"] == 2 or not claimed):  # named states of format 1 may lack it
        claimed, state = chain.steps[step]["state"], text_hash("".join(line for _, line in lines) + measured + "\n")
        require(state[:len(claimed)] == claimed, f"{where}: the fingerprint of its state is {state[:len(claimed)]}, the chain's {claimed}")
    return is_first or step in chain.names

# ---- Models, bundles and runs.
def check_model(model, run, chain, published, collect):
    """A model directory: its files are those of provenance.json, its state is the chain's, its weights are the cast of that state.
    `published`: step and state in bundle.json, or None."""
    value = parse_file(model / "provenance.json", "ostro provenance", PROVENANCE)
    files, source, step = value["files"], value["sources"][0], value["sources"][0]["step"]
    for path, claim in files.items():
        if not BESIDE.fullmatch(path):  # texts for people may be rewritten
            collect(check_file, model, path, claim, "provenance.json")
    for what, own in {"genesis": chain.first, "head": chain.heads.get(step), "state": chain.names.get(step)}.items():
        require(own is not None and source[what] == own,
                f"provenance.json: of another run or step: its {what} is {source[what]}, the chain's at step {step} {own}")
    require(published in (None, (step, source["state"])), f"provenance.json: of step {step}, bundle.json publishes {published}")
    made, options = f"{value['made']}, layout {value['weights']['layout']}", chain.models[step]
    require(made == "export, layout hf", f"the weights ({made}): this program knows those of a plain export to hf", CANNOT_CHECK)
    strange = [path for path in files_below(model) - SEAL if not BESIDE.fullmatch(path) and not (path in files and EXPORT.fullmatch(path))]
    collect(require, not strange, f"{sorted(strange)[:3]}: not of the export: programs that load the model might read it, too")
    plain = options["type"] == "llama" and not (options.get("qkv_bias") or options.get("mlp_bias"))
    require(plain, f"the weights of a {options['type']}: this program knows those of a Llama without biases", CANNOT_CHECK)
    llama_weights.check(model, sorted(files), run / f"checkpoints/step-{step:08}", value["weights"]["dtype"], options)

def check_file(folder, path, claim, where):
    require(is_below(path) and not (folder / path).is_symlink(), f"{where}: {path} is no file below it")
    data = read(folder / path)
    found = {"bytes": len(data), "sha256": sha(data).hex()}
    require(found == claim, f"{path}: {canonical(found)}; {where} has {canonical(claim)}")

def check_signature(bundle, data, key):
    """What can be said of the signature of bundle.json."""
    mark, own = bundle / "bundle.json.sig", bundle / "bundle.json.pub"
    keys = [path for path in (own if own.exists() else None, key) if path]
    if not mark.exists():
        require(not keys, "bundle.json: it is not signed, and there is a key")
        return "bundle.json is not signed"
    require(keys, "bundle.json.sig: there is no key to check it with; name it with --key", CANNOT_CHECK)
    try:
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        require(key is None, "the signature of bundle.json: pip install cryptography", CANNOT_CHECK)
        return "not checked: the signature of bundle.json (pip install cryptography)"
    for path in keys:
        pem, signature = read(path), read(mark)
        try:
            load_pem_public_key(pem).verify(signature, data)
        except Exception as error:  # of many types, by what is wrong with key or signature
            raise Finding(DIFFERS, f"bundle.json.sig: it is not a signature of bundle.json by the key in {path}: {error!r}") from error
    return "bundle.json is signed by " + ("the key that was given" if key else "the key in bundle.json.pub; whose it is, nothing here says")

def check_bundle(bundle, value, chain, key, collect):
    """All of a bundle but the record in it; returns lines about what was not compared."""
    data, files = read(bundle / "bundle.json"), value["files"]
    note = collect(check_signature, bundle, data, key) or "bundle.json is not shown to be signed"
    for path, claim in files.items():
        collect(check_file, bundle, path, claim, "bundle.json")
    for path in sorted((files_below(bundle) - set(files) - SEAL) | {path for path in files if path.startswith("bundle.json")}):
        collect(require, False, f"{path}: bundle.json does not list it, or must not")
    sums = {path: claim["sha256"] for path, claim in files.items()} | {"bundle.json": sha(data).hex()}
    lines = "".join(f"{sums[path]}  {path}\n" for path in sorted(sums)).encode()
    stamps = sorted(bundle.glob("bundle.json.ts[qr]"))
    stamp = "".join(f"{sha(read(path)).hex()}  {path.name}\n" for path in stamps if path.suffix == ".tsr").encode()  # came later
    collect(require, read(bundle / "SHA256SUMS") in (lines, lines + stamp), "SHA256SUMS: not the hashes of the files in bundle.json")
    for path in stamps:
        collect(require, sha(data) in read(path), f"{path.name}: it is about another bundle.json")
    facts = {"genesis": chain.first, "head": chain.head, "numerics": chain.genesis["numerics"], "amends": chain.amends,
             "state": chain.names.get(value["step"]), "lineage": {k: chain.genesis.get(k) for k in ("fork", "maker", "origin")}}
    for name, fact in facts.items():
        said, fact = canonical(value[name]), canonical(fact)
        collect(require, said == fact, f"bundle.json: its {name} is {said}, the chain's is {fact}")
    collect(store_reader.check_ledger, bundle / "ledger", value["ledger"], chain)
    there, said = {path.name for path in (bundle / "record/checkpoints").glob("*")}, {f"step-{step:08}" for step in value["checkpoints"]}
    collect(require, not said - there, f"the checkpoints {sorted(said - there)} are not there", INCOMPLETE)
    unnamed = (there - said) | (said - {f"step-{step:08}" for step in chain.names})
    collect(require, not unnamed, f"record/checkpoints: bundle.json or the chain does not name {sorted(unnamed)}")
    rest = sorted({"/".join(path.split("/")[:2]) for path in files if not COMPARED.match(path)})
    return f"{note}\ncompared with bundle.json alone: {printable(', '.join(rest))}{' and the time stamp' if stamps else ''}\n"

def check_all(top, options, findings):
    """Adds all findings about a run or a bundle; returns the sentences for the case that there are none."""
    collect, run, value, note, counts = findings.collect, top, None, "", {True: 0, False: 0, None: 0}
    if (top / "bundle.json").exists():
        run, value = top / "record", collect(parse_file, top / "bundle.json", "ostro bundle", BUNDLE)
    def tokenizer(path):
        found = text_hash(canonical(parse(read(path), path.name)))
        require(found == chain.genesis["tokenizer"], f"{path.name}: its hash is {found}, the chain's {chain.genesis['tokenizer']}")
    chain = collect(Chain, run / "chain.jsonl")
    if chain is None:
        return ""
    collect(require, options.run_hash in (None, chain.head), f"the run hash is {chain.head}, not {options.run_hash}")
    if value:
        note = collect(check_bundle, top, value, chain, options.key, collect) or ""
    collect(require, run != top or options.key is None, "bundle.json: a key was given, and there is no bundle.json")
    for folder in sorted([*(run / "checkpoints").glob("step-*[0-9]"), *(run / "initial").glob("step-*[0-9]")]):
        counts[collect(check_checkpoint, folder, chain, value is not None and value["moments"] is False)] += 1
    lost = ", ".join(str(step) for step in chain.names if not (run / f"checkpoints/step-{step:08}").is_dir())
    collect(require, run != top or not lost, f"checkpoints that the chain names are not there: steps {lost}", INCOMPLETE)
    first = f"initial/step-{min(chain.heads):08}"
    begun = (run / first).is_dir() or not chain.genesis.get("initial")
    collect(require, begun, f"{first}, which the genesis names, is not there", INCOMPLETE)
    collect(require, chain.step >= chain.length(), f"the chain ends at step {chain.step} of {chain.length()}", INCOMPLETE)
    if options.store:
        collect(store_reader.check_stores, options.store, chain)
        note += f"the rows of {len(options.store)} token stores were compared with the genesis's roots\n"
    models = [model for model in (options.model, top if run != top else None) if model]
    for folder in (run, *models):
        collect(tokenizer, folder / "tokenizer.json")
    for model in models:
        collect(check_model, model, run, chain, (value["step"], value["state"]) if value and model == top else None, collect)
    return (f"steps {min(chain.steps, default=1)} to {chain.step}, {len(chain.amends)} amends, {counts[True]} checkpoints that the chain "
            f"names and {counts[False]} others; nothing was replayed\n{note}run hash: {chain.head}")

def check_run(top, options):
    findings = Findings()
    return findings, findings.collect(check_all, top, options, findings) or ""

def printable(text):
    """One line, whatever a stranger's file brings into it."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:2000])

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="the run's directory, or a bundle")
    parser.add_argument("--run_hash", help="the published run hash")
    parser.add_argument("--key", type=pathlib.Path, help="the public key (PEM) that must have signed a bundle")
    parser.add_argument("--store", type=pathlib.Path, action="append", help="a token store of the run; once for each component")
    parser.add_argument("--model", type=pathlib.Path, help="a model directory that must be made of this run")
    options = parser.parse_args()
    findings, summary = check_run(options.run, options)
    sys.stdout.reconfigure(errors="backslashreplace")
    for verdict, text in sorted(findings, key=lambda finding: ORDER.index(finding[0])):
        print(f"{verdict}: {printable(text)}")
    worst = min((verdict for verdict, _ in findings), key=ORDER.index, default="equal")
    print(f"equal: {summary}" if worst == "equal" else summary)
    return EXIT_CODES[worst]

sys.modules.setdefault("verify_chain", sys.modules[__name__])  # these import this file
import llama_weights, store_reader
if __name__ == "__main__":
    sys.exit(main())
