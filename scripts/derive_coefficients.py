#!/usr/bin/env python3
"""Derives every coefficient of ostro/numerics/functions.cc and writes ostro/numerics/coefficients.h.

Needs mpmath. Taylor coefficients where a short series is enough; otherwise interpolation at Chebyshev nodes
with 60 digits, each coefficient then rounded once. Prints the largest relative error of every fit.

  python3 scripts/derive_coefficients.py | clang-format-19 --assume-filename=x.h > ostro/numerics/coefficients.h

The header is part of the numerics version: running this again must give the same file.
"""
import struct
import sys

import mpmath as m

m.mp.dps = 60


def f64(x):
    return float(m.mpf(x))


def f32(x):
    return struct.unpack("f", struct.pack("f", float(m.mpf(x))))[0]


def chebyshev(f, a, b, degree, rounding, centre=None):
    """Monomial coefficients in t = x - centre of the polynomial that meets f at the Chebyshev nodes of [a, b]."""
    a, b = m.mpf(a), m.mpf(b)
    mid, half = (a + b) / 2, (b - a) / 2
    centre = mid if centre is None else m.mpf(centre)
    nodes = [mid + half * m.cos(m.pi * (2 * i + 1) / (2 * (degree + 1))) for i in range(degree + 1)]
    matrix = m.matrix(degree + 1, degree + 1)
    for i, x in enumerate(nodes):
        for j in range(degree + 1):
            matrix[i, j] = (x - centre) ** j
    exact = m.lu_solve(matrix, m.matrix([f(x) for x in nodes]))
    rounded = [rounding(c) for c in exact]
    error = 0
    for i in range(1001):
        x = a + (b - a) * i / 1000
        y = f(x)
        error = max(error, abs((m.polyval([m.mpf(c) for c in rounded[::-1]], x - centre) - y) / y))
    return rounded, float(error)


def expm1_tail(r):
    """(e^r - 1 - r) / r^2"""
    if abs(r) < m.mpf(10) ** -15:
        return m.mpf(1) / 2 + r / 6
    return (m.exp(r) - 1 - r) / r**2


def erfinv_ratio(w):
    """erfinv(u) / u as a function of w = -log(1 - u^2)"""
    if w < m.mpf(10) ** -30:
        return m.sqrt(m.pi) / 2
    u = m.sqrt(-m.expm1(-w))
    return m.erfinv(u) / u


def pieces(x, count):
    """x as an unevaluated sum of `count` doubles."""
    out = []
    for _ in range(count):
        out.append(f64(x))
        x = x - m.mpf(out[-1])
    return out


def emit(kind, name, values, comment):
    suffix = "f" if kind == "float" else ""
    if comment:
        print(f"// {comment}")
    if len(values) == 1:
        print(f"inline constexpr {kind} {name} = {shorten(values[0])}{suffix};")
        return
    print(f"inline constexpr {kind} {name}[] = {{")
    for v in values:
        print(f"    {shorten(v)}{suffix},")
    print("};")


def shorten(v):
    mantissa, exponent = float(v).hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


def main():
    print("""// kExpF32, kLog, kErfNear, ...: constants and polynomials of the functions of functions.h. Every number is part
// of the numerics version (docs/spec/numerics.md, N3). Polynomials list the coefficient of the lowest power first.
// Written by scripts/derive_coefficients.py; do not edit.
#pragma once

namespace ostro::numerics::coefficients {
""")
    ln2 = m.log(2)
    emit("float", "kLog2eF32", [f32(1 / ln2)], "f32(log2 e); also the kappa of N11")
    hi = f32(ln2)
    emit("float", "kLn2HiF32", [hi], "ln 2 in two f32 terms")
    emit("float", "kLn2LoF32", [f32(ln2 - m.mpf(hi))], "")
    h = m.mpf("0.3468")
    values, error = chebyshev(expm1_tail, -h, h, 4, f32, 0)
    print(f"exp f32: {error:.3g} relative, times r^2", file=sys.stderr)
    emit("float", "kExpF32", values, "(e^r - 1 - r) / r^2 on |r| <= 0.3468")
    print()
    emit("double", "kLog2eF64", [f64(1 / ln2)], "f64(log2 e)")
    hi, lo = pieces(ln2, 2)
    emit("double", "kLn2HiF64", [hi], "ln 2 in two f64 terms")
    emit("double", "kLn2LoF64", [lo], "")
    emit("double", "kExpm1", [f64(1 / m.factorial(k)) for k in range(2, 14)], "(e^r - 1 - r) / r^2: 1/k!, k = 2..13")
    emit("double", "kLog", [f64(m.mpf(2) / (2 * k + 1)) for k in range(1, 12)],
         "(2 atanh(s) - 2 s) / s^3 in s^2: 2/(2k+1), k = 1..11")
    print()
    emit("double", "kTwoOverPi", [f64(2 / m.pi)], "f64(2 / pi)")
    emit("double", "kHalfPi", pieces(m.pi / 2, 3), "pi / 2 in three f64 terms")
    emit("double", "kSin", [f64((-1) ** k / m.factorial(2 * k + 1)) for k in range(1, 9)],
         "(sin r - r) / r^3 in r^2: (-1)^k/(2k+1)!, k = 1..8")
    emit("double", "kCos", [f64((-1) ** k / m.factorial(2 * k)) for k in range(1, 9)],
         "(cos r - 1) / r^2 in r^2: (-1)^k/(2k)!, k = 1..8")
    print()
    two_over_root_pi = 2 / m.sqrt(m.pi)
    near = [f64(two_over_root_pi * (-1) ** k / (m.factorial(k) * (2 * k + 1))) for k in range(23)]
    emit("double", "kErfNear", near, "erf(a) / a in a^2, 0 <= a < 1: 2/sqrt(pi) (-1)^k/(k! (2k+1)), k = 0..22")
    values, error = chebyshev(m.erf, 1, 4, 22, f64, "2.5")
    print(f"erf on [1, 4]: {error:.3g}", file=sys.stderr)
    emit("double", "kErfFar", values, "erf(a) in a - 2.5, 1 <= a <= 4")
    print()
    values, error = chebyshev(erfinv_ratio, 0, 5, 18, f64, "2.5")
    print(f"erfinv on w in [0, 5]: {error:.3g}", file=sys.stderr)
    emit("double", "kErfinvNear", values, "erfinv(u) / u in w - 2.5, w = -log(1 - u^2) in [0, 5)")
    values, error = chebyshev(erfinv_ratio, 5, 17, 18, f64, 11)
    print(f"erfinv on w in [5, 17]: {error:.3g}", file=sys.stderr)
    emit("double", "kErfinvFar", values, "erfinv(u) / u in w - 11, w in [5, 17]")
    emit("float", "kErf3Sigma", [f32(m.erf(3 / m.sqrt(2)))], "f32(erf(3 / sqrt 2)), the truncated normal's bound")
    emit("double", "kSqrt2", [f64(m.sqrt(2))], "f64(sqrt 2)")
    print()
    emit("float", "kRootHalfF32", [f32(1 / m.sqrt(2))], "gelu: f32(1 / sqrt 2), f32(sqrt(2 / pi)), f32(0.044715)")
    emit("float", "kGeluScale", [f32(m.sqrt(2 / m.pi))], "")
    emit("float", "kGeluCubic", [f32(m.mpf("0.044715"))], "")
    print("""
}  // namespace ostro::numerics::coefficients""")


main()
