"""The error of attention on integers (N21) beside N9's in bf16, both against f64, in NumPy.

One head, causal. Relative error: the norm of the difference over the norm of the f64 result, of the output and of
the three gradients, before they are rounded to bf16. Inputs are bf16. Kinds of scores: random (standard normal q and
k), peaked (q times 6: rows look at few keys), outliers (one of 64 channels of q, k and v is 20 times larger).

Usage: .venv/bin/python bench/int8_attention.py [--rows 1024] [--head_dim 64] [--seeds 3]
"""

import argparse

import numpy as np

KEYS = 128  # of a block, and queries of one in the gradients
F32 = np.float32


def bf16(x):
    """N1's cast, as f32."""
    bits = np.ascontiguousarray(x, F32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(F32)


def quantise(x, slices):
    """x in blocks along the last axis: the slices as integers, and the scale of each block. N20's scale, to nearest."""
    x = np.asarray(x, F32)
    largest = np.abs(x).max(axis=-1, keepdims=True)
    e = np.maximum(np.frexp(largest)[1] - 1, -120 if slices == 1 else -113)
    e = np.where(largest > 127 * np.ldexp(1.0, e - 6), e + 1, e)
    scale = np.where(largest == 0, 0, np.ldexp(1.0, e - 6)).astype(F32)
    t = x * np.ldexp(1.0, 6 - e).astype(F32)
    high = np.rint(t)
    parts = [high]
    if slices == 2:
        parts.append(np.rint((t - high) * F32(128)))
    return parts, scale


def dot(a, b, scale, acc):
    """acc + scale * (a b^T): exact sums of integers, one fma for the high slices and one for the mixed ones."""
    one = (a[0].astype(np.float64) @ b[0].astype(np.float64).T).astype(F32)
    acc = fma(one, scale, acc)
    mixed = 0
    if len(a) == 2:
        mixed = mixed + a[1].astype(np.float64) @ b[0].astype(np.float64).T
    if len(b) == 2:
        mixed = mixed + a[0].astype(np.float64) @ b[1].astype(np.float64).T
    if np.ndim(mixed):
        acc = fma(mixed.astype(F32), scale / F32(128), acc)
    return acc


def fma(x, y, z):
    return (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)).astype(F32)


def integer_rows(x, y, slices):
    """x y^T, both quantised by row over all columns: scores, and dp."""
    (qx, sx), (qy, sy) = quantise(x, slices), quantise(y, slices)
    return dot(qx, qy, (sx * sy.T).astype(F32), np.zeros((len(x), len(y)), F32))


def integer_sum(w, y, slices, rescale=None):
    """w y over blocks of KEYS; y is quantised row by row, and its scales go into w, which is quantised by row and
    block. `rescale(b)`: what the sum is multiplied by before block b."""
    acc = np.zeros((len(w), y.shape[1]), F32)
    qy, sy = quantise(y, slices)
    for b in range(0, len(y), KEYS):
        block = slice(b, b + KEYS)
        if rescale is not None:
            acc = acc * rescale(b)
        qw, sw = quantise(w[:, block] * sy[block].T, slices)
        acc = dot(qw, [part[block].T for part in qy], sw, acc)
    return acc


class Floats:
    """N9 in bf16: operands rounded to bf16, sums in f32 (here per block in f64, rounded once: fewer roundings)."""

    def rows(self, x, y):
        return (x.astype(np.float64) @ y.astype(np.float64).T).astype(F32)

    def sum(self, w, y, rescale=None):
        acc = np.zeros((len(w), y.shape[1]), F32)
        w = bf16(w)
        for b in range(0, len(y), 32 if rescale is None else KEYS):
            step = 32 if rescale is None else KEYS
            if rescale is not None:
                acc = acc * rescale(b)
            acc = acc + (w[:, b : b + step].astype(np.float64) @ y[b : b + step].astype(np.float64)).astype(F32)
        return acc


class Integers:
    def __init__(self, scores, sums):
        self.scores, self.sums = scores, sums

    def rows(self, x, y):
        return integer_rows(x, y, self.scores)

    def sum(self, w, y, rescale=None):
        return integer_sum(w, y, self.sums, rescale=rescale)


def exp2(t):
    """2^t where t <= 0; masked scores may be larger."""
    return np.exp2(np.minimum(t, 0))


def attention(how, q, k, v, do, scale):
    """Output and gradients by N9's steps with the products of `how`."""
    rows = len(q)
    seen = np.tril(np.ones((rows, rows), bool))
    kappa = F32(np.float64(scale) * np.log2(np.e))
    s = how.rows(q, k)
    masked = np.where(seen, s, F32(-1e30))
    m, l, before = np.full((rows, 1), F32(-1e30)), np.zeros((rows, 1), F32), []
    p = np.zeros_like(s)
    for b in range(0, rows, KEYS):
        block = slice(b, b + KEYS)
        new = np.maximum(m, masked[:, block].max(axis=1, keepdims=True))
        c = exp2((m - new) * kappa).astype(F32)
        p[:, block] = np.where(seen[:, block], exp2((s[:, block] - new) * kappa), 0)
        l = l * c + p[:, block].sum(axis=1, keepdims=True, dtype=F32)
        before.append(c)
        m = new
    r = 1 / l
    o = how.sum(p, v, rescale=lambda b: before[b // KEYS]) * r
    p = np.where(seen, exp2((s - m) * kappa), 0).astype(F32) * r
    delta = (do * bf16(o)).sum(axis=1, keepdims=True, dtype=F32)
    ds = p * (how.rows(do, v) - delta)
    return {
        "output": o,
        "dq": how.sum(ds, k) * F32(scale),
        "dk": how.sum(ds.T.copy(), q) * F32(scale),
        "dv": how.sum(p.T.copy(), do),
    }


def exact(q, k, v, do, scale):
    q, k, v, do = (x.astype(np.float64) for x in (q, k, v, do))
    s = np.where(np.tril(np.ones((len(q), len(q)), bool)), q @ k.T * scale, -np.inf)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    o = p @ v
    ds = p * (do @ v.T - (do * o).sum(axis=1, keepdims=True))
    return {"output": o, "dq": ds @ k * scale, "dk": ds.T @ q * scale, "dv": p.T @ do}


def inputs(kind, rows, head_dim, seed):
    random = np.random.default_rng(seed)
    q, k, v, do = (random.standard_normal((rows, head_dim)) for _ in range(4))
    if kind == "peaked":
        q = q * 6
    if kind == "outliers":
        for x in (q, k, v):
            x[:, 7] *= 20
    return [bf16(x) for x in (q, k, v, do)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--head_dim", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    ways = {
        "N9, bf16": Floats(),
        "one slice everywhere": Integers(1, 1),
        "two slices in scores and dp, one in sums over keys and queries": Integers(2, 1),
        "one in scores and dp, two in sums": Integers(1, 2),
        "two slices everywhere": Integers(2, 2),
    }
    print(f"{options.rows} rows, head_dim {options.head_dim}, mean of {options.seeds} seeds; NumPy {np.__version__}")
    print("| scores | products | output | dq | dk | dv |\n|---|---|---|---|---|---|")
    for kind in ("random", "peaked", "outliers"):
        for name, how in ways.items():
            errors = {}
            for seed in range(options.seeds):
                given = inputs(kind, options.rows, options.head_dim, seed)
                scale = options.head_dim**-0.5
                want, got = exact(*given, scale), attention(how, *given, scale)
                for key in want:
                    error = np.linalg.norm(got[key] - want[key]) / np.linalg.norm(want[key])
                    errors.setdefault(key, []).append(error)
            print(f"| {kind} | {name} | " + " | ".join(f"{np.mean(e):.2e}" for e in errors.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
