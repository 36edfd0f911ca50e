#!/usr/bin/env python3
"""Derives clauses of docs/spec/numerics.md again in NumPy, from the text alone, and compares every bit.

Shares no code with the library: fma and flushing are done with exact fractions, coefficients are read from the
document. Inputs and results come from the programs `numerics_clauses` (the scalar functions) and `expert_helper` (the
interpreter, for products of experts).

  python3 scripts/check_numerics_clauses.py build/release/ostro/numerics/numerics_clauses \
      build/release/tests/interop/expert_helper [seed]
"""
import json
import pathlib
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np

DOCUMENT = (pathlib.Path(__file__).resolve().parent.parent / "docs/spec/numerics.md").read_text()
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def number(bits):
    """The f32 with these bits as np.float32."""
    return np.array([bits], np.uint32).view(np.float32)[0]


def bits(x):
    return int(np.array([x], np.float32).view(np.uint32)[0])


def to_f32(exact, negative_zero=False):
    """An exact fraction rounded once to f32 bits (nearest even), tiny results flushed after rounding (N0)."""
    if exact == 0:
        return 0x80000000 if negative_zero else 0
    sign, x = (0x80000000, -exact) if exact < 0 else (0, exact)
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if Fraction(2) ** exponent > x:
        exponent -= 1
    mantissa = round(x / Fraction(2) ** (exponent - 23))  # Python rounds a fraction half to even
    if mantissa == 1 << 24:
        mantissa, exponent = 1 << 23, exponent + 1
    if exponent < -126:
        return sign
    if exponent > 127:
        return sign | 0x7F800000
    return sign | (exponent + 127) << 23 | (mantissa & 0x7FFFFF)


def exact(b):
    """The fraction of finite f32 bits; denormals read as zero."""
    e, m = (b >> 23) & 255, b & 0x7FFFFF
    value = Fraction(0) if e == 0 else Fraction((1 << 23) | m) * Fraction(2) ** (e - 150)
    return -value if b >> 31 else value


def is_minus_zero(b):
    return b >> 31 == 1 and (b >> 23) & 255 == 0


def add(x, y):
    return to_f32(exact(x) + exact(y), is_minus_zero(x) and is_minus_zero(y))


def mul(x, y):
    return to_f32(exact(x) * exact(y), (x ^ y) >> 31 == 1)


def fma(x, y, z):
    product_negative = (x ^ y) >> 31 == 1
    total = exact(x) * exact(y) + exact(z)
    return to_f32(total, product_negative and exact(x) * exact(y) == 0 and is_minus_zero(z))


def coefficients(name):
    body = re.search(rf"\b{name}(?:\[\])? = (.*?);", DOCUMENT, re.S).group(1)
    return [float.fromhex(v.rstrip("f") if "p" in v else v) for v in re.findall(r"-?0x[0-9a-f.]+p[+-]\d+", body)]


def bf16(case):
    out = []
    for b in case["in"]:
        if b & 0x7FFFFFFF > 0x7F800000:
            out.append(b >> 16 | 0x40)
        elif (b >> 23) & 255 == 0:
            out.append(b >> 31 << 15)
        else:
            out.append(((b + 0x7FFF + ((b >> 16) & 1)) >> 16) & 0xFFFF)
    return out


def striped_sum(case):
    x = np.array(case["in"], np.uint32).view(np.float32)
    rows = np.concatenate([x, np.zeros(-len(x) % 64, np.float32)]).reshape(-1, 64)
    lane = np.zeros(64, np.float32)
    for row in rows:
        lane = lane + row
    v = (lane[:16] + lane[16:32]) + (lane[32:48] + lane[48:])
    for half in (8, 4, 2, 1):
        v = v[:half] + v[half : 2 * half]
    return [bits(v[0])]


def tree(case):
    def root(x):
        if len(x) == 1:
            return x[0]
        left = 1
        while left * 2 < len(x):
            left *= 2
        return np.float32(root(x[:left]) + root(x[left:]))

    return [bits(root(np.array(case["in"], np.uint32).view(np.float32)))]


def dot_f32(case):
    acc = 0
    for a, b in zip(case["in"], case["in2"]):
        acc = fma(a, b, acc)
    return [acc]


def dot_bf16(case):
    out = []
    for n in (0, 1, 31, 32, 33, 64, 100, 333):
        pad = [0] * (-n % 32)
        a, b = case["in"][:n] + pad, case["in2"][:n] + pad
        c = 0
        for g in range(0, len(a), 32):
            e = o = 0
            for j in range(16):
                e = fma(a[g + 2 * j], b[g + 2 * j], e)
                o = fma(a[g + 2 * j + 1], b[g + 2 * j + 1], o)
            c = add(c, add(e, o))
        out.append(c)
    return out


def scale(y, n):
    half = n >> 1
    return mul(mul(y, to_f32(Fraction(2) ** half)), to_f32(Fraction(2) ** (n - half)))


def nearest(b):
    return round(exact(b))  # half to even


def block_exponential(case):
    chain = [bits(np.float32(float.fromhex(v))) for v in
             ("0x1.5bd97cp-10", "0x1.3ce8b2p-7", "0x1.c6b6dap-5", "0x1.ebf9c2p-3", "0x1.62e42ap-1", "1")]
    kappa = bits(np.float32(float.fromhex("0x1.715476p+0")))
    out = []
    for x, y in zip(case["in"], case["in2"]):
        t = mul(add(x, y ^ 0x80000000), kappa)
        if exact(t) < -126 or exact(t) >= 128 or t & 0x7F800000 == 0x7F800000:
            out.append(0 if t >> 31 else 0x7F800000)
            continue
        n = nearest(t)
        f = to_f32(exact(t) - n)
        p = chain[0]
        for c in chain[1:]:
            p = fma(p, f, c)
        out.append(scale(p, n))
    return out


def exponential(case):
    (log2e,), (hi,), (lo,) = (coefficients(k) for k in ("kLog2eF32", "kLn2HiF32", "kLn2LoF32"))
    log2e, hi, lo = (bits(np.float32(v)) for v in (log2e, hi, lo))
    chain = [bits(np.float32(v)) for v in coefficients("kExpF32")][::-1]
    out = []
    for x in case["in"]:
        value = exact(x)
        if value < -104 or value > 89:
            x = bits(np.float32(-104 if value < 0 else 89))
        n = nearest(mul(x, log2e))
        minus_n = to_f32(Fraction(-n))
        r = fma(minus_n, lo, fma(minus_n, hi, x))
        p = chain[0]
        for c in chain[1:]:
            p = fma(p, r, c)
        out.append(scale(add(bits(np.float32(1)), fma(p, mul(r, r), r)), n))
    return out


def threefry(key, x0, x1):
    k = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA]
    x0, x1 = (x0 + k[0]) & M32, (x1 + k[1]) & M32
    for group in range(1, 6):
        for r in (13, 15, 26, 6) if group % 2 else (17, 29, 16, 24):
            x0 = (x0 + x1) & M32
            x1 = ((x1 << r | x1 >> (32 - r)) & M32) ^ x0
        x0, x1 = (x0 + k[group % 3]) & M32, (x1 + k[(group + 1) % 3] + group) & M32
    return x0, x1


def random_words(case):
    seed = case["in"][0]
    key = (seed >> 32, seed & M32)
    name = 0x811C9DC5
    for byte in b"params":
        name = ((name ^ byte) * 0x01000193) & M32
    key = threefry(threefry(key, 0, name), 0, 7)
    words = []
    for i in case["in2"]:
        x0, x1 = threefry(key, i >> 32, i & M32)
        words.append(x0 ^ x1)
    uniforms = [bits(number(w >> 9 | 0x3F800000) - np.float32(1)) for w in words]
    return [*key, *words, *uniforms]


def permutation(case):
    seed = case["in"][0]
    key = (seed >> 32, seed & M32)
    out, previous, i = [], None, 0
    for n in case["in2"]:
        i = i + 1 if n == previous else 0
        previous = n
        h = max(1, -(-(n - 1).bit_length() // 2))
        x = i
        while True:
            left, right = x >> h, x & ((1 << h) - 1)
            for r in range(8):
                y0, y1 = threefry(key, r, right)
                left, right = right, left ^ ((y0 ^ y1) & ((1 << h) - 1))
            x = left << h | right
            if x < n:
                break
        out.append(x)
    return out


def fingerprint(case):
    rows, length = case["in2"]
    lanes = [[int(v, 16) for v in re.findall(r"0x[0-9a-f]+", line)]
             for line in re.findall(r"^\| [01] \|.*$", DOCUMENT, re.M)]
    sums = [0, 0]
    for row in range(rows):
        elements = case["in"][row * length : (row + 1) * length] + [0] * (length % 2)
        for w in range(len(elements) // 2):
            word = elements[2 * w] | elements[2 * w + 1] << 32
            for lane, (k, m1, m2) in enumerate(lanes):
                x = word ^ ((row * (len(elements) // 2) + w) * k & M64)
                x = x * m1 & M64
                x ^= x >> 32
                x = x * m2 & M64
                x ^= x >> 29
                sums[lane] = (sums[lane] + x) & M64
    return sums


def leaves(case):
    out = []
    for granule, n, count in zip(*[iter(case["in"])] * 3):
        size = max(granule, -(-(-(-n // count)) // granule) * granule)
        for i in range(count):
            out += [min(n, i * size), min(n, (i + 1) * size)]
    return out


NAN = 0x7FC00000


def block_scale(row, least):
    """The exponent e of N20's scale for a row of finite bits, not below `least`; None for zeros alone."""
    largest = max(abs(exact(b)) for b in row)
    if largest == 0:
        return None
    e = max(max((b >> 23) & 255 for b in row) - 127, least)
    return e + 1 if largest > 127 * Fraction(2) ** (e - 6) else e


def draw(key, index):
    """N20: u of the element with this index."""
    number, quarter = divmod(index, 4)
    words = np.array(threefry(key, number >> 32, number & M32), "<u4")
    return to_f32(Fraction(2 * int(words.view("<u2")[quarter]) + 1, 1 << 17))


def cut(row, block, key=None, indices=()):
    """N20: the integers of a row and the scales of its blocks; with a key dithered by the indices of the elements, else to nearest."""
    q, scales = [], []
    for begin in range(0, len(row), block):
        part = row[begin : begin + block]
        if any((b >> 23) & 255 == 255 for b in part):
            q, scales = q + [0] * len(part), [*scales, NAN]
        elif (e := block_scale(part, -120)) is None:
            q, scales = q + [0] * len(part), [*scales, 0]
        else:
            t = [to_f32(exact(b) * Fraction(2) ** (6 - e)) for b in part]
            scales.append(to_f32(Fraction(2) ** (e - 6)))
            q += [round(exact(x)) if key is None else exact(add(x, draw(key, indices[begin + k]))).__floor__()
                  for k, x in enumerate(t)]
    return q, scales


def product(a, b, block):
    """N20: the product of two rows that are cut in blocks; a is the left operand."""
    c = 0
    for g, (sa, sb) in enumerate(zip(a[1], b[1])):
        ends = slice(g * block, (g + 1) * block)
        total = sum(x * y for x, y in zip(a[0][ends], b[0][ends]))
        c = NAN if NAN in (sa, sb, c) else fma(mul(to_f32(Fraction(total)), sb), sa, c)
    return c


def integers(case):
    """N20, of two rows of equal length: the first to nearest, the second dithered by its indices, from `first_index` on."""
    block, blocks, *key, first_index = case["in2"]
    size = len(case["in"]) // 2
    rows = [cut(case["in"][:size], block), cut(case["in"][size:], block, key, range(first_index, first_index + size))]
    out = []
    for q, scales in rows:
        for g in range(blocks):
            out += [scales[g]] + [v & 255 for v in q[g * block : (g + 1) * block]]
    for first in (0, 6):
        for n in (0, 5, 3 * block, 4 * block, size - first * block):
            count = min(n, size - first * block)
            parts = [(q[first * block :][:count], scales[first:][: -(-count // block)]) for q, scales in rows]
            out.append(product(*parts, block))
    return out


def expert_sums(case):
    """N20, the gradient of experts' matrices: sums over the rows that chose each, in blocks counted from its first row."""
    tokens, slots, ins, outs, experts, block, first, *rest = case["in2"]
    key, whole, origins, chosen = rest[:2], rest[2:5], rest[5:8], rest[8:]
    a, b = case["in"][: tokens * ins], case["in"][tokens * ins :]
    out = []
    for expert in range(first, first + experts):
        rows = [divmod(i, slots) for i, e in enumerate(chosen) if e == expert]
        left = [cut([a[t * ins + d] for t, _ in rows], block) for d in range(ins)]
        right = []
        for d in range(outs):
            indices = [((t + origins[0]) * whole[1] + s + origins[1]) * whole[2] + d + origins[2] for t, s in rows]
            right.append(cut([b[(t * slots + s) * outs + d] for t, s in rows], block, key, indices))
        out += [product(x, y, block) for x in left for y in right]
    return out


def expert_products(case):
    """N20, y = x w of experts: each row with the matrix that it chose; one outside the table gives +0."""
    tokens, slots, ins, outs, experts, block, first, *chosen = case["in2"]
    x, w = case["in"][: tokens * ins], case["in"][tokens * ins :]
    rows = [cut(x[t * ins : (t + 1) * ins], block) for t in range(tokens)]
    columns = [[cut([w[(e * ins + k) * outs + d] for k in range(ins)], block) for d in range(outs)] for e in range(experts)]
    out = []
    for i, e in enumerate(chosen):
        inside = first <= e < first + experts
        out += [product(rows[i // slots], columns[e - first][d], block) if inside else 0 for d in range(outs)]
    return out


def sliced(row):
    """N21: the high and the low slices of a row, and the bits of its scale."""
    if any((b >> 23) & 255 == 255 for b in row):
        return [0] * len(row), [0] * len(row), NAN
    e = block_scale(row, -113)
    if e is None:
        return [0] * len(row), [0] * len(row), 0
    t = [exact(to_f32(exact(b) * Fraction(2) ** (6 - e))) for b in row]
    high = [round(x) for x in t]
    return high, [round((x - h) * 128) for x, h in zip(t, high)], to_f32(Fraction(2) ** (e - 6))


def product_of_slices(a, b, c):
    """N21: the product of two sliced rows from c; a is the left operand."""
    (ah, al, sa), (bh, bl, sb) = a, b
    if NAN in (sa, sb, c):
        return NAN
    i = sum(x * y for x, y in zip(ah, bh))
    j = sum(x * y for x, y in zip(ah, bl)) + sum(x * y for x, y in zip(al, bh))
    c = fma(mul(to_f32(Fraction(i)), sb), sa, c)
    return fma(mul(to_f32(Fraction(j)), sb), mul(sa, bits(np.float32(1 / 128))), c)


def slices(case):
    """N21, of two rows in parts: slices of the parts, products of each with each, and a block of a sum of rows."""
    size, part = len(case["in"]) // 2, len(case["in"]) // 10
    out, parts = [], ([], [])
    for side in range(2):
        for begin in range(side * size, (side + 1) * size, part):
            parts[side].append(sliced(case["in"][begin : begin + part]))
            high, low, scale_bits = parts[side][-1]
            out += [scale_bits] + [v & 255 for v in high + low]
    for a in parts[0]:
        for b in parts[1]:
            out += [product_of_slices(a, b, bits(np.float32(c))) for c in (0, 1.5, -(2.0**-120))]
    rows = parts[1][:4]
    weights = sliced([0 if j == 2 else mul(f, rows[j][2]) for j, f in enumerate(case["in2"])])
    one = bits(np.float32(1))
    for left in (True, False):
        for d in range(part):
            column = ([0 if j == 2 else rows[j][0][d] for j in range(4)], [0 if j == 2 else rows[j][1][d] for j in range(4)], one)
            a, b = (column, weights) if left else (weights, column)
            out.append(product_of_slices(a, b, bits(np.float32(0.25))))
    return out


def of_fields(pattern, fraction):
    """N23: sign, m and e of a number with so many bits of fraction below its exponent field; m is None where it is not finite."""
    field, m = pattern >> fraction & 255, pattern & ((1 << fraction) - 1)
    sign = -1 if pattern >> (fraction + 8) else 1
    return (sign, None, m) if field == 255 else (sign, m | ((1 << fraction) if field else 0), max(field, 1) - 127)


def tensor_step(a, b, c):
    """N23: c, f32 bits, and the products of up to 16 bf16 numbers."""
    addends, infinities = [], set()
    for x, y in zip(a, b):
        (sx, mx, ex), (sy, my, ey) = of_fields(x, 7), of_fields(y, 7)
        if mx is None or my is None:
            if (mx is None and ex) or (my is None and ey) or 0 in (mx, my):
                return NAN
            infinities.add(sx * sy)
        elif mx * my:
            addends.append((sx * sy * mx * my * Fraction(2) ** (ex + ey - 14), ex + ey))
    sign, m, e = of_fields(c, 23)
    if m is None:
        if e:
            return NAN
        infinities.add(sign)
    elif m:
        addends.append((sign * m * Fraction(2) ** (e - 23), e))
    if infinities:
        return NAN if len(infinities) == 2 else 0x7F800000 if 1 in infinities else 0xFF800000
    unit = Fraction(2) ** (max([-133, *(e for _, e in addends)]) - 25)
    total = sum(int(x / unit) for x, _ in addends) * unit  # int() of a fraction cuts toward zero
    sign, total = (1 << 31, -total) if total < 0 else (0, total)
    if total >= Fraction(2) ** 128:
        return sign | 0x7F800000
    exponent = -126
    while Fraction(2) ** (exponent + 1) <= total:
        exponent += 1
    m = int(total / Fraction(2) ** (exponent - 23))
    return sign | (exponent + 126 << 23) + m if m else 0


def tensor_rule(case):
    out = []
    for begin in range(0, len(case["in"]), 70):
        for n in range(71):
            c, a, b = 0, case["in"][begin:][:n], case["in2"][begin:][:n]
            for k in range(0, n, 16):
                c = tensor_step(a[k : k + 16], b[k : k + 16], c)
            out.append(c)
    return out


# N23, probes: products, c and the result of one step, which are worked out by hand. They tell the rule from its neighbours.
PROBES = [
    ([(1, 1), (2.0**-25, 1), (-1, 1)], 0, 2.0**-25), ([(1, 1), (2.0**-26, 1), (-1, 1)], 0, 0), ([(-1, 1), (2.0**-25, 1)], 1, 2.0**-25),
    ([(1.5, 1.5), (-1.5, 1.5), (2.0**-25, 1)], 0, 2.0**-25), ([(1, 1), (-1, 1), (-1.5 * 2.0**-25, 1)], 0, -(2.0**-25)),
    ([(1, 1), (2.0**-24, 1), (2.0**-25, 1)], 0, 1), ([(2.0**100, 0), (2.0**-40, 1)], 0, 2.0**-40), ([], 2.0**-140, 2.0**-140),
    ([(2.0**-70, 2.0**-70)], 0, 2.0**-140), ([(2.0**-75, 2.0**-75)], 0, 0), ([(2.0**-130, 1)], 0, 2.0**-130),
    ([(2.0**127, 2), (-(2.0**127), 2), (1, 1)], 0, 0), ([(2.0**127, 2)], 0, np.inf), ([(2.0**102, 1)], (2 - 2.0**-23) * 2.0**127, (2 - 2.0**-23) * 2.0**127),
]


def check_probes():
    for products, c, result in PROBES:
        a, b = ([bits(np.float32(pair[side])) >> 16 for pair in products] for side in (0, 1))
        if (got := tensor_step(a, b, bits(np.float32(c)))) != bits(np.float32(result)):
            sys.exit(f"N23: {products} and {c} give {got:#010x}, not {result}")


CLAUSES = {"tensor_rule": tensor_rule, "slices": slices, "bf16": bf16, "striped_sum": striped_sum, "tree": tree, "dot_f32": dot_f32, "dot_bf16": dot_bf16,
           "dot_bf16_tiny": dot_bf16, "integers": integers, "E": block_exponential, "exp": exponential, "threefry": random_words,
           "permutation": permutation, "fingerprint": fingerprint, "leaves": leaves, "expert_sums": expert_sums,
           "expert_products": expert_products}


def main():
    programs, seed = [a for a in sys.argv[1:] if not a.isdigit()], [a for a in sys.argv[1:] if a.isdigit()]
    check_probes()
    cases = {}
    for program in programs:
        cases |= json.loads(subprocess.run([program, *seed], check=True, capture_output=True, text=True).stdout)
    failed = set(cases) ^ set(CLAUSES)
    for name in sorted(set(cases) & set(CLAUSES)):
        derived = [int(v) for v in CLAUSES[name](cases[name])]
        wrong = [i for i, (a, b) in enumerate(zip(derived, cases[name]["out"])) if a != b]
        same = len(derived) == len(cases[name]["out"]) and not wrong
        print(f"{name:16} {len(derived):5} values {'equal' if same else f'DIFFER first at {wrong[:1]}'}")
        if not same:
            failed.add(name)
    sys.exit(f"differ: {sorted(failed)}" if failed else 0)


if len(sys.argv) < 2:
    sys.exit(__doc__)
main()
