"""Forges checkpoints and chains as docs/reference/formats/checkpoint.md and chain.md describe them: whatever is changed, every hash
that lies in the same directory (or the same file) is made to fit again."""

import hashlib
import itertools
import json
import struct

CHECKSUM = ',\n  "checksum": "'


def sha(data):
    return hashlib.sha256(data).hexdigest()


def type_text(tensor):
    axes = ", ".join(f"{axis}:{size}" for axis, size in zip(tensor["axes"], tensor["shape"]))
    return f"{tensor['dtype']}[{axes}]"


def state_name(tensors):
    return sha("".join(f"{t['path']} {type_text(t)} {t['sha256']}\n" for t in tensors).encode())


def cell_names(tensor):
    """The chunk file of each cell, in the manifest's order. Cells of these small models are one chunk each."""
    counts = [-(-size // cell) for size, cell in zip(tensor["shape"], tensor["cell"])]
    return [".".join(["c", *map(str, index)]) for index in itertools.product(*map(range, counts))]


def read_manifest(checkpoint):
    return json.loads((checkpoint / "manifest.json").read_text())


def write_manifest(checkpoint, manifest):
    """Writes it with a checksum that fits."""
    manifest.pop("checksum", None)
    body = json.dumps(manifest, indent=2, ensure_ascii=False)[: -len("\n}")]
    (checkpoint / "manifest.json").write_text(f'{body}{CHECKSUM}{sha(body.encode())}"\n}}\n')


def change_value(checkpoint, path):
    """Adds 1 to the first value of a float32 array, on disk alone. The array's chunk file."""
    tensor = next(t for t in read_manifest(checkpoint)["tensors"] if t["path"] == path)
    chunk = checkpoint / path / cell_names(tensor)[0]
    data = bytearray(chunk.read_bytes())
    struct.pack_into("<f", data, 0, struct.unpack_from("<f", data)[0] + 1)
    chunk.write_bytes(data)
    return chunk


def seal(checkpoint, **changes):
    """Makes every hash of the directory fit what it holds; `changes` are fields of the manifest. Its new name."""
    manifest = read_manifest(checkpoint) | changes
    for tensor in manifest["tensors"]:
        files = [checkpoint / tensor["path"] / name for name in cell_names(tensor)]
        tensor["cells"] = [sha(file.read_bytes()) for file in files]
        tensor["sha256"] = sha(b"".join(map(bytes.fromhex, tensor["cells"])))
    manifest["name"] = state_name(manifest["tensors"])
    write_manifest(checkpoint, manifest)
    return manifest["name"]


def forge(checkpoint, path="model/layers/mlp/down/weight"):
    """Another value in a sound directory; its new name."""
    old = read_manifest(checkpoint)["name"]
    assert seal(checkpoint) == old, "seal() does not give an untouched checkpoint its own name"
    change_value(checkpoint, path)
    new = seal(checkpoint)
    assert new != old
    return new


def rewrite_chain(path, edit):
    """Lets `edit(entry)` change each entry, or drop it by giving None, and hashes the chain again."""
    lines, head = [], ""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        del entry["h"]
        entry = edit(entry)
        if entry is None:
            continue
        head = sha((head + canonical(entry)).encode())
        lines.append(canonical(entry | {"h": head}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def canonical(entry):
    return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def hex_float(value):
    """As the chain writes it: C's %a with the shortest fraction."""
    mantissa, exponent = float(value).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}"


def claim(run, section, key, value):
    """The record of `run` says that an option had another value: in its config, its chain and its manifests, every
    hash of which fits again."""

    def edited(text):
        begin = text.index(f"\n{section}:") + 1
        at = text.index(f"\n  {key}:", begin) + 1
        end = text.index("\n", at)
        assert text[at:end] != f"  {key}: {value}", f"{section}.{key} is {value} already"
        return f"{text[:at]}  {key}: {value}{text[end:]}"

    def edit(entry):
        if entry["kind"] == "genesis":
            assert key in entry["config"][section], f"{section}.{key} is not in the chain"
            number = value.replace(".", "").replace("e-", "").isdigit()
            entry["config"][section][key] = hex_float(value) if number else value
        return entry

    (run / "config.yaml").write_text(edited((run / "config.yaml").read_text()))
    rewrite_chain(run / "chain.jsonl", edit)
    heads = {e["step"]: e["h"] for e in map(json.loads, (run / "chain.jsonl").read_text().splitlines())
             if e["kind"] == "step"}
    for checkpoint in (run / "checkpoints").iterdir():
        manifest = read_manifest(checkpoint)
        seal(checkpoint, chain_head=heads[manifest["step"]], config=edited(manifest["config"]))
