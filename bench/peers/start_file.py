"""Writes what bench/train_bench starts from: a safetensors file with the weights of common.init in Ostro's names
and layout, the batches of the first steps, and the sizes as metadata.

    python start_file.py --size nano --steps 10 --out nano.safetensors
"""
import argparse
import numpy as np
from safetensors.numpy import save_file
import common as C


def fused(c, w):
    """Ostro's weights: q, k and v along one axis per key-value head, gate and up along another, [in, ..., out]."""
    L, H, NH, KV = c["L"], c["H"], c["heads"], c["kv"]
    D, G = H // NH, NH // KV
    q = w["q"].reshape(L, KV, G, D, H)
    k, v = (w[n].reshape(L, KV, 1, D, H) for n in "kv")
    if "experts" in c:
        mlp = {"model/layers/moe/router/weight": w["router"].transpose(0, 2, 1),
               "model/layers/moe/gate_up": np.stack([w["gate"], w["up"]], 2).transpose(0, 1, 4, 2, 3),
               "model/layers/moe/down": w["down"].transpose(0, 1, 3, 2)}
    else:
        mlp = {"model/layers/mlp/gate_up/weight": np.stack([w["gate"], w["up"]], 1).transpose(0, 3, 1, 2),
               "model/layers/mlp/down/weight": w["down"].transpose(0, 2, 1)}
    return mlp | {
        "model/embedding/weight": w["emb"],
        "model/layers/attention_norm/weight": w["n1"],
        "model/layers/attention/qkv/weight": np.concatenate([q, k, v], 2).transpose(0, 4, 1, 2, 3),
        "model/layers/attention/o/weight": w["o"].reshape(L, H, KV, G, D).transpose(0, 2, 3, 4, 1),
        "model/layers/mlp_norm/weight": w["n2"],
        "model/norm/weight": w["norm"],
        "model/head/weight": w["head"].T,
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", default="nano", help="as in common.size")
    ap.add_argument("--steps", type=int, default=10)
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    c = C.size(a.size)
    out = {n: np.ascontiguousarray(x) for n, x in fused(c, C.init(c)).items()}
    for i in range(a.steps):
        x, y = C.batch(c, c["batch"], c["seq"], i)
        out[f"tokens/{i}"], out[f"targets/{i}"] = np.ascontiguousarray(x), np.ascontiguousarray(y)
    save_file(out, a.out, metadata={"size": a.size, **{k: str(v) for k, v in c.items()}})


main()
