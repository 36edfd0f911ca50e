"""The arithmetic of docs/spec/numerics.md in NumPy, written from its clauses (N0, N1, ...) alone.

A value of type f32 is kept as an f64 that has the bits of an f32. So `f32(a * b)` is one multiplication that rounds once:
the f64 product of two f32 is exact, and a sum, quotient or root of f32 that is rounded to f64 and then to f32 is the same
as one that is rounded to f32 at once. Only fma, which adds to an exact product, needs more.

Coefficients are read from the document beside this folder.
"""
import math
import pathlib
import re

import numpy as np

TINY = 2.0**-126 - 2.0**-151  # from here on a value rounds to a normal f32; below, to the zero of its sign (N0)
np.seterr(all="ignore")


# ---------------------------------------------------------------- rounding (N0, N1, N2)


def f32(x):
    """Rounds to f32, once, to nearest even; tiny results become zeros."""
    y = np.asarray(x).astype(np.float32).astype(np.float64)
    return np.where(np.abs(x) < TINY, np.copysign(0.0, x), y)


def bf16(x):
    """Rounds the value of an f32 to bf16."""
    bits = np.asarray(x).astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.abs(x) < 2.0**-126, np.copysign(0.0, x), kept.view(np.float32).astype(np.float64))


def exact_sum(a, b):
    """s + e = a + b without rounding: s is the f64 sum, e what it lost (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def sum_to_odd(a, b):
    """The f64 sum, whose last bit is set when it is not exact: rounding it again rounds as if once."""
    s, e = exact_sum(a, b)
    odd = np.asarray(s).view(np.int64) & 1
    return np.where((e != 0) & (odd == 0), np.nextafter(s, np.copysign(np.inf, e)), s)


def fma(a, b, c):
    """a * b + c of f32, rounded once. Two roundings differ from one only if the first ends in the middle of two f32."""
    s = a * b + c
    if ((s.view(np.int64) & 0x1FFFFFFF) == 0x10000000).any():
        s = sum_to_odd(a * b, c)
    return f32(s)


def halves(a):
    """a as the sum of two numbers of 26 bits (Veltkamp)."""
    t = a * 134217729.0
    high = t - (t - a)
    return high, a - high


def fma64(a, b, c):
    """a * b + c of f64, rounded once (Boldo and Melquiond: the small parts are added rounding to odd)."""
    a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
    (ah, al), (bh, bl), product = halves(a), halves(b), a * b
    lost = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    t, u = exact_sum(c, lost)
    v, w = exact_sum(product, t)
    return v + sum_to_odd(u, w)


# ---------------------------------------------------------------- functions (N3, N9)

SPEC = pathlib.Path(__file__).resolve().parent.parent / "docs/spec/numerics.md"
if not SPEC.is_file():
    print(f"cannot check: {SPEC} is missing, from which coefficients are read; take tools and docs of Ostro's sources together")
    raise SystemExit(4)


def coefficients(name):
    """A row of Appendix A of numerics.md, lowest power first."""
    body = re.search(rf"\b{name}(?:\[\])? = (.*?);", SPEC.read_text(), re.S).group(1)
    return [float.fromhex(v) for v in re.findall(r"-?0x[0-9a-f.]+p[+-]\d+", body)]


(LOG2E_32,), (HI_32,), (LO_32,) = (coefficients(k) for k in ("kLog2eF32", "kLn2HiF32", "kLn2LoF32"))
(LOG2E,), (HI,), (LO,) = (coefficients(k) for k in ("kLog2eF64", "kLn2HiF64", "kLn2LoF64"))
(SQRT2,), (ERF_3_SIGMA,), (TWO_OVER_PI,) = (coefficients(k) for k in ("kSqrt2", "kErf3Sigma", "kTwoOverPi"))
EXP_32, EXPM1, LOG, HALF_PI, SIN, COS, NEAR, FAR = (coefficients(k) for k in (
    "kExpF32", "kExpm1", "kLog", "kHalfPi", "kSin", "kCos", "kErfinvNear", "kErfinvFar"))
BLOCK = [float.fromhex(v) for v in ("1", "0x1.62e42ap-1", "0x1.ebf9c2p-3", "0x1.c6b6dap-5", "0x1.3ce8b2p-7", "0x1.5bd97cp-10")]


def horner(c, x, multiply_add):
    y = np.full_like(x, c[-1])
    for k in reversed(c[:-1]):
        y = multiply_add(y, x, np.float64(k))
    return y


def scale(y, n):
    """y * 2^n for an f32 y: by halves, of which only the second can round."""
    half = np.floor(n / 2)
    return f32(f32(y * 2.0**half) * 2.0 ** (n - half))


def exp(x):
    """exp of an f32 in f32 arithmetic."""
    x = np.clip(x, -104.0, 89.0)
    n = np.rint(f32(x * LOG2E_32))
    r = fma(-n, np.float64(LO_32), fma(-n, np.float64(HI_32), x))
    tail = fma(horner(EXP_32, r, fma), f32(r * r), r)
    return scale(f32(1 + tail), n)


def block_exp(x, y, kappa):
    """E of N9: 2^((x - y) kappa), never above 1 for x <= y."""
    t = f32(f32(x - y) * kappa)
    n = np.rint(np.maximum(t, -126.0))
    return np.where(t < -126, 0.0, scale(horner(BLOCK, np.maximum(t, -126.0) - n, fma), n))


def log64(x):
    bits = np.asarray(x, np.float64).view(np.int64)
    k = (bits - 0x3FE6A09E667F3BCD) >> 52
    m = (bits - (k << 52)).view(np.float64)
    f, k = m - 1, k.astype(np.float64)
    s = f / (2 + f)
    w = s * s
    i = fma64(-w, horner(LOG, w, fma64), f)
    return fma64(k, HI, fma64(k, LO, fma64(-s, i, f)))


def exp64(x):
    x = np.clip(np.float64(x), -750.0, 710.0)
    n = np.rint(x * LOG2E)
    r = fma64(-n, LO, fma64(-n, HI, x))
    tail = fma64(horner(EXPM1, r, fma64), r * r, r)
    half = np.floor(n / 2)
    return ((1 + tail) * 2.0**half) * 2.0 ** (n - half)


def sin_cos64(x):
    n = np.rint(x * TWO_OVER_PI)
    r = x
    for part in HALF_PI:
        r = fma64(-n, np.float64(part), r)
    z = r * r
    s, c = fma64(r * z, horner(SIN, z, fma64), r), fma64(z, horner(COS, z, fma64), 1.0)

    def choose(q):
        y = np.where(q % 2 == 1, c, s)
        return np.where(q % 4 >= 2, -y, y)
    return np.where(x == 0, x, choose(n)), choose(n + 1)


def erfinv(x):
    w = -log64(fma64(-x, x, 1.0))
    return np.where(w < 5, x * horner(NEAR, w - 2.5, fma64), x * horner(FAR, w - 11.0, fma64))


def power(base, n):
    """An integer power by squaring, in f64."""
    p, b = 1.0, base
    while n:
        if n & 1:
            p = p * b
        n >>= 1
        if n:
            b = b * b
    return p


# ---------------------------------------------------------------- sums and products (N4 to N8)


def striped(x, round_to=f32):
    """The sum along the last axis: 64 lanes, then halves of them (N4)."""
    n = x.shape[-1]
    rows = np.concatenate([x, np.zeros(x.shape[:-1] + (-n % 64,))], -1).reshape(x.shape[:-1] + (-1, 64))
    lane = np.zeros(x.shape[:-1] + (64,))
    for r in range(rows.shape[-2]):
        lane = round_to(lane + rows[..., r, :])
    v = round_to(round_to(lane[..., :16] + lane[..., 16:32]) + round_to(lane[..., 32:48] + lane[..., 48:]))
    for half in (8, 4, 2, 1):
        v = round_to(v[..., :half] + v[..., half:2 * half])
    return v[..., 0]


def serial(x, axis, round_to=f32):
    """The sum along one axis, one element after the other, from +0 (N5)."""
    total = 0.0
    for part in np.moveaxis(x, axis, 0):
        total = round_to(total + part)
    return total


def dot(a, b, over):
    """a [..., k] times b [..., k, n]: one chain of fmas an output, k ascending (N6). `over` is the length of k."""
    total = np.zeros(np.broadcast_shapes(a.shape[:-1] + (1,), b.shape[:-2] + (1, b.shape[-1])))
    for k in range(over):
        total = fma(a[..., k, None], b[..., k, :] if b.ndim == 2 else b[..., None, k, :], total)
    return total


def tree(parts, round_to=f32):
    """The balanced tree over the parts: the left one is the largest power of two below their number (N8)."""
    if len(parts) == 1:
        return parts[0]
    left = 1 << (len(parts) - 1).bit_length() - 1
    return round_to(tree(parts[:left], round_to) + tree(parts[left:], round_to))


def tree_of_groups(parts, groups):
    """The tree over leaves that are cut into groups: the largest subtrees with leaves of one group only are rounded (N8)."""
    n, count = len(parts), min(len(parts), groups)
    group_of = [g for g in range(count) for _ in range(n * g // count, n * (g + 1) // count)]

    def node(first, end):
        if group_of[first] == group_of[end - 1]:
            return bf16(tree(parts[first:end]))
        middle = first + (1 << (end - first - 1).bit_length() - 1)
        return f32(node(first, middle) + node(middle, end))
    return node(0, n)


def same(x):
    """No rounding but that of f64 itself."""
    return x


# ---------------------------------------------------------------- random numbers and the order of data (N12)


def threefry(key, x0, x1):
    k0, k1 = (np.uint32(k) for k in key)
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = np.asarray(x0, np.uint32) + k0, np.asarray(x1, np.uint32) + k1
    for group in range(1, 6):
        for r in (13, 15, 26, 6) if group % 2 else (17, 29, 16, 24):
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))) ^ x0
        x0, x1 = x0 + keys[group % 3], x1 + keys[(group + 1) % 3] + np.uint32(group)
    return x0, x1


def key_of(seed, *path):
    """The key of a path of names and numbers."""
    key = (seed >> 32, seed & 0xFFFFFFFF)
    for part in path:
        number = part
        if isinstance(part, str):
            number = 0x811C9DC5
            for byte in part.encode():
                number = ((number ^ byte) * 0x01000193) & 0xFFFFFFFF
        key = tuple(int(x) for x in threefry(key, 0, number))
    return key


def truncated_normal(key, shape):
    index = np.arange(math.prod(shape), dtype=np.uint64)
    x0, x1 = threefry(key, (index >> np.uint64(32)).astype(np.uint32), index.astype(np.uint32))
    uniform = (((x0 ^ x1) >> np.uint32(9)) | np.uint32(0x3F800000)).view(np.float32).astype(np.float64) - 1
    u = np.maximum(-ERF_3_SIGMA, f32(f32(uniform * (2 * ERF_3_SIGMA)) - ERF_3_SIGMA))
    return np.clip(f32(SQRT2 * erfinv(u)), -3.0, 3.0).reshape(shape)


def permuted(key, x, n):
    """Where the keyed bijection on [0, n) takes x."""
    h = max(1, -(-(n - 1).bit_length() // 2))
    while True:
        left, right = x >> h, x & ((1 << h) - 1)
        for i in range(8):
            y0, y1 = (int(y) for y in threefry(key, i, right & 0xFFFFFFFF))
            left, right = right, left ^ ((y0 ^ y1) & ((1 << h) - 1))
        x = left << h | right
        if x < n:
            return x
