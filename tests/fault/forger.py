"""Forges checkpoints, chains, models and bundles as docs/reference/formats describes them: whatever is changed, every hash that
lies in the same directory (or the same file) is made to fit again."""

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


def heads_of(run):
    """The chain's hash of every step."""
    return {e["step"]: e["h"] for e in map(json.loads, (run / "chain.jsonl").read_text().splitlines()) if e["kind"] == "step"}


def refit(run, **changes):
    """The checkpoints of a run name the hashes of its chain, which was written anew."""
    heads = heads_of(run)
    for checkpoint in (run / "checkpoints").iterdir():
        seal(checkpoint, chain_head=heads[read_manifest(checkpoint)["step"]], **changes)


def shortened(entry, steps):
    """An entry of a chain that ends after `steps` steps and says so; None for one behind them."""
    if entry["kind"] == "genesis":
        entry["config"]["trainer"]["num_train_steps"] = steps
        return entry
    return entry if entry["step"] <= steps else None


def zero_moments(checkpoint):
    for tensor in read_manifest(checkpoint)["tensors"]:
        if tensor["path"].startswith("optimizer/"):
            for name in cell_names(tensor):
                file = checkpoint / tensor["path"] / name
                file.write_bytes(bytes(file.stat().st_size))


# Models and bundles.


def header_of(data):
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8:8 + length]), 8 + length


def tensors(path):
    """Name -> (type, shape, bytes) of a safetensors file."""
    data = path.read_bytes()
    header, start = header_of(data)
    return {name: (info["dtype"], info["shape"], data[start + info["data_offsets"][0]:start + info["data_offsets"][1]])
            for name, info in header.items() if name != "__metadata__"}


def replace_tensor(path, name, content):
    data = bytearray(path.read_bytes())
    header, start = header_of(data)
    begin, end = header[name]["data_offsets"]
    assert end - begin == len(content), f"{name}: {len(content)} bytes for {end - begin}"
    data[start + begin:start + end] = content
    path.write_bytes(bytes(data))


def change_tensor(path, name, index):
    """One bit of one f32 element."""
    content = bytearray(tensors(path)[name][2])
    content[4 * index] ^= 1
    replace_tensor(path, name, bytes(content))


def twice(base, merged):
    """f32 elements: what was added to the base is added once more."""
    count = len(base) // 4
    pairs = zip(struct.unpack(f"<{count}f", base), struct.unpack(f"<{count}f", merged))
    return struct.pack(f"<{count}f", *(b + 2 * (m - b) for b, m in pairs))


def digest(path):
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": sha(data)}


def reseal_provenance(model):
    """provenance.json lists the files as they are."""
    path = model / "provenance.json"
    if not path.exists():  # the record alone was published
        return
    value = json.loads(path.read_text())
    value["files"] = {name: digest(model / name) for name in value["files"]}
    path.write_text(canonical(value) + "\n")


def refit_provenance(bundle):
    """provenance.json names the entries of the record's chain, which was written anew."""
    path, chain = bundle / "provenance.json", bundle / "record/chain.jsonl"
    value = json.loads(path.read_text())
    source = value["sources"][0]
    source |= {"genesis": json.loads(chain.read_text().splitlines()[0])["h"], "head": heads_of(bundle / "record")[source["step"]]}
    path.write_text(canonical(value) + "\n")


def reseal(bundle):
    """bundle.json and SHA256SUMS list the files as they are, and what bundle.json says of the chain is the chain's. The signature, which
    a forger cannot make, is removed, and so is the token of a time."""
    reseal_provenance(bundle)
    for path in bundle.glob("bundle.json.*"):
        path.unlink()
    value = json.loads((bundle / "bundle.json").read_text())
    chain = [json.loads(line) for line in (bundle / "record/chain.jsonl").read_text().splitlines()]
    names = {e["step"]: e["name"] for e in chain if e["kind"] == "checkpoint"}
    step = max(s for s in names if (bundle / f"record/checkpoints/step-{s:08}").is_dir())
    value |= {"genesis": chain[0]["h"], "head": chain[-1]["h"], "step": step, "state": names[step],
              "checkpoints": sorted(int(p.name[5:]) for p in (bundle / "record/checkpoints").iterdir())}
    for name, claim in value["ledger"].items():
        splits = json.loads((bundle / f"ledger/{name}.content.json").read_text())["splits"]
        claim |= {split: splits[split]["rows"] for split in ("train", "validation")}
    files = (p for p in sorted(bundle.rglob("*")) if p.is_file() and p.name not in ("SHA256SUMS", "bundle.json"))
    value["files"] = {p.relative_to(bundle).as_posix(): digest(p) for p in files}
    text = canonical(value) + "\n"
    (bundle / "bundle.json").write_text(text)
    sums = {path: file["sha256"] for path, file in value["files"].items()} | {"bundle.json": sha(text.encode())}
    (bundle / "SHA256SUMS").write_text("".join(f"{sums[path]}  {path}\n" for path in sorted(sums)))


def remove_document(ledger, number, content_too):
    """Takes a source file out of a bundle's ledger: its rows and its line, and its entry in the store's content, whose hash the genesis
    has. What the line said."""
    (sources,) = ledger.glob("*.sources")
    name = sources.name.removesuffix(".sources")
    lines = [json.loads(line) for line in sources.read_text().splitlines()]
    gone = lines.pop(number)
    rows = bytearray((ledger / f"{name}.rows").read_bytes())
    train = sum(line["rows"][0] for line in lines) + gone["rows"][0]
    for split, before in ((1, train), (0, 0)):
        at, count = before + gone["first_row"][split], gone["rows"][split]
        del rows[40 * at:40 * (at + count)]
    for line in lines[number:]:
        line["first_row"] = [a - b for a, b in zip(line["first_row"], gone["rows"])]
    if content_too:
        content = json.loads((ledger / f"{name}.content.json").read_text())
        file = content["files"].pop(number)
        for split, place in (("train", 0), ("validation", 1)):
            content["splits"][split]["rows"] -= file["rows"][place]
        (ledger / f"{name}.content.json").write_text(canonical(content))
    (ledger / f"{name}.rows").write_bytes(bytes(rows))
    sources.write_text("".join(canonical(line) + "\n" for line in lines))
    return gone
