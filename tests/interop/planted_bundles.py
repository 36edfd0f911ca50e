"""What a forger plants in a published bundle, whose every hash is made to fit again, and damage of every kind.

PLANTED has for each: what it is, the change, the verdict that `ostro verify` and tools/verify_chain.py must both give, and a part of what
the latter says. LISTED: it says equal, and names the file among those that it compared with bundle.json alone. DAMAGED: files that are no
longer what they should be; whatever the two programs say, it is a verdict in one line, and not *equal*. ENTRIES: the same, of what is no
file at all.
"""
import json
import os
import pathlib
import shutil
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fault"))
import forger

DIFFERS, CANNOT_CHECK, LISTED = "differs", "cannot check", "listed"
DEEP = b"[" * 100000 + b"]" * 100000


def edited(name, change):
    """Changes a file of canonical JSON of a bundle."""
    def make(bundle):
        value = json.loads((bundle / name).read_text())
        change(value)
        (bundle / name).write_text(forger.canonical(value) + "\n")
    return make


def written(name, data="x"):
    def make(bundle):
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return make


def config_with(**members):
    return edited("config.json", lambda value: value.update(members))


def listed(bundle, *names):
    """provenance.json has these files, too."""
    edited("provenance.json", lambda value: value["files"].update({name: forger.digest(bundle / name) for name in names}))(bundle)


def reseal(bundle):
    """All hashes of files that a forger can make; what bundle.json says of the chain stays."""
    forger.reseal_provenance(bundle)
    files = (path for path in sorted(bundle.rglob("*")) if path.is_file())
    names = [name for name in (path.relative_to(bundle).as_posix() for path in files) if not name.startswith(("SHA256SUMS", "bundle.json"))]
    edited("bundle.json", lambda value: value.update(files={name: forger.digest(bundle / name) for name in names}))(bundle)
    value = json.loads((bundle / "bundle.json").read_text())
    sums = {name: file["sha256"] for name, file in value["files"].items()}
    sums["bundle.json"] = forger.digest(bundle / "bundle.json")["sha256"]
    (bundle / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))


# ---------------------------------------------------------------- weights


def write_tensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name], at = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}, at + len(data)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data for _, _, data in tensors.values()))


def shadow(name, in_provenance=True):
    """Other weights, all zero, in one more file."""
    def make(bundle):
        tensors = forger.tensors(min(bundle.glob("model*.safetensors")))
        write_tensors(bundle / name, {tensor: (dtype, shape, bytes(len(data))) for tensor, (dtype, shape, data) in tensors.items()})
        if in_provenance:
            listed(bundle, name)
    return make


def moved_in_index(bundle):
    """The index takes a tensor from another file, which has zeros of that name; the honest one is left where it is."""
    index = bundle / "model.safetensors.index.json"
    value = json.loads(index.read_text())
    tensor, place = next(iter(value["weight_map"].items()))
    other = next(name for name in value["weight_map"].values() if name != place)
    dtype, shape, data = forger.tensors(bundle / place)[tensor]
    write_tensors(bundle / other, forger.tensors(bundle / other) | {tensor: (dtype, shape, bytes(len(data)))})
    value["weight_map"][tensor] = other
    index.write_text(json.dumps(value))


def adapter(in_provenance):
    def make(bundle):
        (bundle / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "target_modules": ["q_proj"]}')
        write_tensors(bundle / "adapter_model.safetensors", {"base_model.model.norm.weight": ("F32", [2], bytes(8))})
        if in_provenance:
            listed(bundle, "adapter_config.json", "adapter_model.safetensors")
    return make


def first_weight(bundle):
    path = min(bundle.glob("model*.safetensors"))
    name, (_, _, data) = next(iter(forger.tensors(path).items()))
    forger.replace_tensor(path, name, bytes([data[0] ^ 1]) + data[1:])


def header_with(**members):
    """The first tensor of the weights claims something else."""
    def make(bundle):
        path = min(bundle.glob("model*.safetensors"))
        header, start = forger.header_of(path.read_bytes())
        header[next(name for name in header if name != "__metadata__")].update(members)
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + path.read_bytes()[start:])
    return make


# ---------------------------------------------------------------- the record and what is said of it


def earlier_state(bundle):
    chain = [json.loads(line) for line in (bundle / "record/chain.jsonl").read_text().splitlines()]
    first = next(entry for entry in chain if entry["kind"] == "checkpoint")
    edited("bundle.json", lambda value: value.update(step=first["step"], state=first["name"]))(bundle)


def second_ledger(bundle):
    for end in ("rows", "content.json", "sources"):
        shutil.copy(bundle / f"ledger/train.{end}", bundle / f"ledger/more.{end}")
    edited("bundle.json", lambda value: value["ledger"].update(more=value["ledger"]["train"]))(bundle)


def checkpoint_with(change):
    def make(bundle):
        folder = min((bundle / "record/checkpoints").iterdir())
        manifest = forger.read_manifest(folder)
        change(manifest)
        forger.write_manifest(folder, manifest)
    return make


def manifest_with(**members):
    return checkpoint_with(lambda manifest: manifest["tensors"][0].update(members))


def array_with(**members):
    """The description of an array claims something else."""
    def make(bundle):
        folder = min((bundle / "record/checkpoints").iterdir())
        path = folder / forger.read_manifest(folder)["tensors"][0]["path"] / "zarr.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | members))
    return make


def member(name, value):
    return edited("bundle.json", lambda bundle: bundle.update({name: value}))


def no_head(bundle):
    edited("provenance.json", lambda value: value["sources"][0].update(head="0" * 64))(bundle)


PLANTED = [
    ("an earlier state published", earlier_state, DIFFERS, "provenance.json: of step"),
    ("another head in provenance.json", no_head, DIFFERS, "its head is"),
    ("weights in a second file", shadow("model-00001-of-00001.safetensors"), DIFFERS, "stands in"),
    ("weights in a file of another name", shadow("other.safetensors"), DIFFERS, "other.safetensors"),
    ("weights that only bundle.json lists", shadow("weights.safetensors", False), DIFFERS, "weights.safetensors"),
    ("weights called README", shadow("README.safetensors", False), DIFFERS, "README.safetensors"),
    ("an index beside whole weights", written("model.safetensors.index.json", '{"weight_map": {}}'), DIFFERS, "index.json"),
    ("an adapter", adapter(False), DIFFERS, "adapter_config.json"),
    ("an adapter that provenance.json lists", adapter(True), DIFFERS, "adapter_config.json"),
    ("a program", written("custom_generate/generate.py"), DIFFERS, "custom_generate/generate.py"),
    ("a model of another form", written("onnx/model.onnx"), DIFFERS, "onnx/model.onnx"),
    ("a file that bundles do not have", written("notes.txt"), DIFFERS, "notes.txt"),
    ("another rope", config_with(rope_theta=5e5), DIFFERS, "rope_theta"),
    ("another epsilon", config_with(rms_norm_eps=0.5), DIFFERS, "rms_norm_eps"),
    ("code to be loaded", config_with(auto_map={"AutoModel": "x.Y"}), DIFFERS, "auto_map"),
    ("settings of generation", written("generation_config.json", '{"do_sample": true}'), LISTED, "generation_config.json"),
    ("another configuration in the record", written("record/config.yaml", "{}"), LISTED, "record/config.yaml"),
    ("a ledger that the chain lacks", second_ledger, DIFFERS, "ledger: it has"),
    ("a member that bundle.json does not have", member("note", "x"), DIFFERS, "members"),
    ("a later version", member("format_version", 2), CANNOT_CHECK, "version 2"),
    ("no state", member("state", None), DIFFERS, "its state is"),
    ("checkpoints that are not listed", member("checkpoints", []), DIFFERS, "record/checkpoints: "),
    ("a folder beside the checkpoints", written("record/checkpoints/step-00000002.tmp/x"), DIFFERS, "step-00000002.tmp"),
    ("a state without what was measured", checkpoint_with(lambda manifest: manifest.pop("measured")), DIFFERS, "the fingerprint of"),
    ("a key without a signature", written("bundle.json.pub"), DIFFERS, "there is a key"),
    ("a signature without a key", written("bundle.json.sig", b"x" * 64), CANNOT_CHECK, "there is no key"),
    ("a time stamp's request of another bundle", written("bundle.json.tsq"), DIFFERS, "bundle.json.tsq"),
]
JSON_FILES = ("record/chain.jsonl", "config.json", "provenance.json", "bundle.json", "tokenizer.json")
DAMAGED = [
    *((f"{what} in {name}", written(name, data)) for name in JSON_FILES for what, data in
      (("no UTF-8", b"\xff\xfe\n"), ("deep JSON", DEEP), ("a list", b"[1]\n"), ("nothing", b""))),
    *((f"no UTF-8 in {name}", written(name, b"\xff\n")) for name in ("ledger/train.sources", "ledger/train.content.json")),
    ("a number without an end", written("bundle.json", b'{"format":' + b"9" * 5000 + b"}\n")),
    ("an infinite number", written("provenance.json", b'{"format_version":1e999}\n')),
    ("weights of a huge header", written("model.safetensors", b"\xff" * 16)),
    ("weights of 7 bytes", written("model.safetensors", b"\0" * 7)),
    ("a tensor of a huge shape", header_with(shape=[2**40, 2**40])),
    ("a tensor of a huge length", header_with(data_offsets=[0, 2**62])),
    ("a tensor in front of the file", header_with(data_offsets=[-8, 0])),
    ("an array of a huge shape", manifest_with(shape=[2**50, 16])),
    ("an array of no type", manifest_with(dtype=None)),
    ("cells of size 0", manifest_with(cell=[0, 0])),
    ("an array without axes", manifest_with(axes=[])),
    ("chunks of a huge size", array_with(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2**60, 2**60]}})),
    ("chunks of size 0", array_with(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 16]}})),
    ("a huge step", checkpoint_with(lambda manifest: manifest.update(step=10**30))),
    ("a ledger that leaves its folder", edited("bundle.json", lambda b: b["ledger"].update({"../ledger/train": b["ledger"].pop("train")}))),
    ("rows of a huge number", edited("bundle.json", lambda value: value["ledger"]["train"].update(train=2**62))),
    ("rows of a negative number", edited("bundle.json", lambda value: value["ledger"]["train"].update(train=-1))),
    ("a file outside", edited("provenance.json", lambda value: value["files"].update({"../x": {"bytes": 1, "sha256": "0" * 64}}))),
    ("a file of no name", edited("provenance.json", lambda value: value["files"].update({"a\0b": {"bytes": 1, "sha256": "0" * 64}}))),
]


def put_pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def put_socket(path):
    path.unlink(missing_ok=True)
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


# Entries that are no files, in place of files and beside them; and names that are no text.
ENTRIES = [
    *((f"a pipe called {name}", lambda bundle, name=name: put_pipe(bundle / name)) for name in
      ("record/chain.jsonl", "bundle.json", "bundle.json.sig", "bundle.json.tsr", "config.json", "README.md", "SHA256SUMS", "record/pipe")),
    ("a socket called tokenizer.json", lambda bundle: put_socket(bundle / "tokenizer.json")),
    ("a socket", lambda bundle: put_socket(bundle / "socket")),
    ("a link to itself", lambda bundle: (bundle / "loop").symlink_to("loop")),
    ("a folder in place of a file", lambda bundle: ((bundle / "config.json").unlink(), (bundle / "config.json").mkdir())),
    ("a name that is no UTF-8", lambda bundle: (bundle / os.fsdecode(b"\xff")).write_text("x")),
    ("a name of two lines", lambda bundle: (bundle / "a\nequal: b").write_text("x")),
]


def make(bundle, change, to):
    """A copy of a bundle with a change, sealed again as far as that is possible: what bundle.json and provenance.json say of a file that
    is damaged themselves stays."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(bundle, to)
    change(to)
    if not all(path.is_file() or path.is_dir() for path in to.rglob("*")):
        return to  # a pipe would be waited for
    try:
        reseal(to)
    except (ValueError, TypeError, KeyError, AttributeError, OSError, RecursionError):
        pass
    return to
