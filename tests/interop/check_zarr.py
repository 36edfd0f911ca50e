#!/usr/bin/env python3
"""Compares our Zarr v3 and safetensors with Python's zarr, tensorstore and safetensors, in both directions.

What ours writes (every dtype and codec, shards, a token store, a checkpoint, weights) must be read there with the same
bits, and a token store must open with the very spec Levanter uses; what they write must be read by ours. tensorstore is
optional and its absence is said. Usage: check_zarr.py --helper build/.../array_helper
"""
import argparse
import hashlib
import itertools
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import safetensors
import safetensors.numpy
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec

from checks import check, summary

try:
    import tensorstore
except ImportError:
    tensorstore = None


def expected(dtype, count, begin=0):
    """Element i is the low bytes of i * 2654435761; bool its lowest bit. As raw unsigned integers."""
    values = (np.arange(begin, begin + count, dtype=np.uint64) * np.uint64(2654435761))
    if dtype == "bool":
        return (values & np.uint64(1)).astype(np.uint8)
    size = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8}.get(dtype) or np.dtype(dtype).itemsize
    return values.astype(f"u{size}")


def raw(array):
    array = np.ascontiguousarray(array)
    return array.view(f"u{array.dtype.itemsize}").ravel()


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def ts_open(path):
    return tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}).result()


def levanter_spec(path, dtype):
    return {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": str(path)},
        "metadata": {
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [134217728]}},
            "codecs": [{
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [262144],
                    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                               {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5}}],
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                },
            }],
            "data_type": dtype,
            "shape": [2**54],
        },
        "open": True,
    }


def check_ours(helper, root):
    out = subprocess.run([helper, "write", root], check=True, capture_output=True, text=True).stdout
    arrays = root / "arrays"
    for path in sorted(p for p in arrays.iterdir() if p.is_dir()):
        meta = json.loads((path / "zarr.json").read_text())
        dtype, shape = meta["data_type"], meta["shape"]
        want = expected(dtype, int(np.prod(shape)))
        if dtype != "bfloat16":  # Python's zarr has no bfloat16
            array = zarr.open_array(path, mode="r")
            check(list(array.shape) == shape and np.array_equal(raw(array[...]), want), f"zarr reads {path.name}")
        if tensorstore:
            check(np.array_equal(raw(ts_open(path).read().result()), want), f"tensorstore reads {path.name}")
    for dtype in ["int32", "int64", "uint16"]:
        path, n = root / "tokens" / dtype, 825288
        check(np.array_equal(raw(zarr.open_array(path, mode="r")[:n]), expected(dtype, n)), f"zarr reads tokens {dtype}")
        if tensorstore:
            store = tensorstore.open(levanter_spec(path, dtype)).result()
            check(np.array_equal(raw(store[:n].read().result()), expected(dtype, n)), f"Levanter's spec opens {dtype}")
            store[n:n + 5].write(expected(dtype, 5, n).view(dtype)).result()  # and appends to it
            got = subprocess.run([helper, "hash_1d", path, "3", str(n + 2)], check=True, capture_output=True, text=True)
            check(got.stdout.strip() == digest(expected(dtype, n + 2, 3)), f"ours reads what was appended to {dtype}")
    check_checkpoint(root / "checkpoints" / "step-00000007", out.split()[-1])
    for name, keys in [("one", ["w", "half", "ids", "none"]), ("many", ["w", "half", "ids", "none"])]:
        found = {}
        for file in sorted((root / "weights" / name).glob("*.safetensors")):
            with safetensors.safe_open(file, framework="np") as f:
                check(f.metadata() == {"format": "pt"}, "safetensors metadata")
                for key in f.keys():
                    if key != "half":  # numpy has no bfloat16
                        found[key] = f.get_tensor(key)
                    else:
                        check(f.get_slice(key).get_dtype() == "BF16" and f.get_slice(key).get_shape() == [5], "bf16 entry")
                        found[key] = None
        check(set(found) == set(keys), f"safetensors names of {name}")
        check(np.array_equal(raw(found["w"]), expected("float32", 12)) and found["w"].shape == (3, 4), "safetensors w")
        check(np.array_equal(raw(found["ids"]), expected("int64", 3)) and found["none"].shape == (0, 2), "safetensors ids")
    index = json.loads((root / "weights" / "many" / "model.safetensors.index.json").read_text())
    check(index["metadata"]["total_size"] == 48 + 10 + 24 and set(index["weight_map"]) == set(found), "safetensors index")


def check_checkpoint(path, name):
    group = zarr.open_group(path, mode="r")
    w = group["model/layers/w"]
    check(w.metadata.dimension_names == ("layers", "embed", "mlp") and w.chunks == (1, 4, 5), "checkpoint dimension names")
    check(np.array_equal(raw(w[...]), expected("float32", 60)), "zarr reads a checkpoint")
    check(raw(group["step"][...])[0] == expected("int64", 1, 7)[0], "zarr reads a scalar of a checkpoint")
    if tensorstore:
        check(np.array_equal(raw(ts_open(path / "model/norm").read().result()), expected("bfloat16", 6)), "bf16 checkpoint")
    # The name again, from docs/reference/formats/checkpoint.md alone.
    lines = ""
    manifest = json.loads((path / "manifest.json").read_text())
    for tensor in manifest["tensors"]:
        axes = ", ".join(f"{a}:{n}" for a, n in zip(tensor["axes"], tensor["shape"]))
        if tensor["dtype"] == "bf16":
            data = expected("bfloat16", 6)
        else:
            data = raw(group[tensor["path"]][...])
        data = data.reshape(tensor["shape"])
        ranges = [range(0, n, c) for n, c in zip(tensor["shape"], tensor["cell"])]
        whole = hashlib.sha256()
        for start in itertools.product(*ranges):
            box = tuple(slice(s, s + c) for s, c in zip(start, tensor["cell"]))
            whole.update(hashlib.sha256(np.ascontiguousarray(data[box]).tobytes()).digest())
        lines += f"{tensor['path']} {tensor['dtype']}[{axes}] {whole.hexdigest()}\n"
    check(hashlib.sha256(lines.encode()).hexdigest() == name == manifest["name"], "the name of a state")
    body = (path / "manifest.json").read_text().rpartition(',\n  "checksum"')[0]
    check(hashlib.sha256(body.encode()).hexdigest() == manifest["checksum"], "the manifest's checksum")


def check_theirs(helper, root):
    rng = np.random.default_rng(1)
    little = BytesCodec(endian="little")
    chains = {
        "raw": [little],
        "zstd": [little, ZstdCodec(level=1)],
        "gzip": [little, GzipCodec(level=4)],
        "lz4": [little, BloscCodec(cname="lz4", shuffle="shuffle", clevel=5)],
        "bits": [little, BloscCodec(cname="zstd", shuffle="bitshuffle", clevel=3)],
        "lz4hc": [little, BloscCodec(cname="lz4hc", shuffle="noshuffle", clevel=9)],
        "crc": [little, ZstdCodec(level=0), Crc32cCodec()],
    }
    dtypes = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool"]
    for (chain, codecs), dtype, sharded in itertools.product(chains.items(), dtypes, [None, "end", "start"]):
        shape, path = (9, 40, 3), root / f"{chain}_{dtype}_{sharded}"
        values = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
        values[:4, :16] = 0  # chunks that zarr leaves out
        if sharded:
            codecs = [ShardingCodec(chunk_shape=(2, 8, 3), codecs=codecs, index_location=sharded)]
        array = zarr.create_array(
            path, shape=shape, dtype=dtype, chunks=(4, 16, 3), fill_value=0, serializer=codecs[0],
            compressors=codecs[1:] or None, filters=None,
            chunk_key_encoding={"name": "default", "separator": "/" if sharded else "."})
        array[...] = values
        got = subprocess.run([helper, "hash", path], capture_output=True, text=True)
        check(got.stdout.split() == [dtype, "[9,40,3]", digest(values)], f"ours reads {path.name}: {got.stdout}{got.stderr}")
    weights = {"a": rng.random((3, 4), dtype=np.float32), "b": np.arange(5, dtype=np.int64), "c": np.zeros((0, 3), np.float16)}
    safetensors.numpy.save_file(weights, root / "w.safetensors", metadata={"format": "np"})
    out = subprocess.run([helper, "hash_st", root / "w.safetensors"], check=True, capture_output=True, text=True).stdout
    check({l.split()[0]: l.split()[2] for l in out.splitlines()} == {k: digest(v) for k, v in weights.items()}, "their weights")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", required=True)
    helper = str(pathlib.Path(parser.parse_args().helper).resolve())
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / "theirs").mkdir()
        check_ours(helper, root / "ours")
        check_theirs(helper, root / "theirs")
    with_ts = f"tensorstore {tensorstore.__version__}" if tensorstore and hasattr(tensorstore, "__version__") else (
        "tensorstore" if tensorstore else "tensorstore is not installed: its checks did not run")
    summary(f" (zarr {zarr.__version__}, safetensors {safetensors.__version__}, {with_ts})")


if __name__ == "__main__":
    main()
