#!/usr/bin/env python3
"""Compares the fits of scaling plans with the truth, which NumPy draws, and with SciPy.

Surfaces without noise: exponents within 1e-6. With noise: how often the 90 % intervals hold the truth. Exponents beyond
what is searched: the fit is at that end. The objective is compared with the best of 50 starts of
scipy.optimize.least_squares in the same bounds, and with the sum of squares in NumPy at the same surface; a fit that is a
little wrong must be found. A sample draws few of each; in full there are 50 surfaces without noise, 400 with, 50 for SciPy
and 20 at an end.

Usage: check_scaling.py --helper build/.../scaling_helper [--full] [--log FILE]
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys

import checks
from checks import check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed as suite  # noqa: E402

try:
    import numpy as np
    from scipy.optimize import least_squares
except ImportError as e:
    print(f"SKIPPED: {e}. scripts/setup.sh --python installs NumPy and SciPy; without them nothing is compared")
    sys.exit(77)

BOUNDS = 0.02, 3.0  # of the exponents, as in ostro/scaling/surface.h
NOISE = 0.01


class Drawn:
    """A surface, a plan of 3 budgets and 5 sizes, and a target of 3 times the largest budget."""

    def __init__(self, random, noise):
        self.E = random.uniform(0.5, 2.5)
        self.a, self.b = random.uniform(0.2, 0.6, 2)
        self.A = random.uniform(0.5, 2) * 1e5**self.a
        self.B = random.uniform(0.5, 2) * 2e6**self.b
        self.runs = []
        for i in range(3):
            for j in range(5):
                n, c = 3e4 * 10 ** (j / 4) * 2**i, 1e12 * 4**i
                d = c / 6 / n
                self.runs.append([n, d, c, self.at(n, d) + noise * random.standard_normal()])
        n, c = 3e4 * 10**0.5 * 4 * 1.7, 1e12 * 4**2 * 3
        self.target = [n, c / 6 / n, c]
        self.observed = self.at(*self.target[:2]) + noise * random.standard_normal()

    def at(self, n, d):
        return self.E + self.A / n**self.a + self.B / d**self.b


class AtEnd(Drawn):
    """A surface on which the loss follows from N more steeply than any exponent that is searched says, or bends less."""

    def __init__(self, random, noise, steep):
        self.steep = steep
        super().__init__(random, noise)

    def at(self, n, d):
        n = n / 1e5
        return self.E + self.B / d**self.b + (n**-4.5 if self.steep else 100 - n**0.5)


def squares(runs, s):
    """The sum of squared errors, in more digits than a double has."""
    n, d, _, loss = np.array(runs, dtype=np.longdouble).T
    s = {k: np.longdouble(v) for k, v in s.items()}
    return np.sum((loss - s["E"] - s["A"] / n ** s["a"] - s["B"] / d ** s["b"]) ** 2)


def scipy_best(runs, random, starts=50):
    """The lowest sum of squares of all starts, over E, A and B (at the middle of N and D), a and b."""
    n, d, _, loss = np.array(runs).T
    n_mean, d_mean = np.log(n).mean(), np.log(d).mean()
    n, d = np.log(n) - n_mean, np.log(d) - d_mean

    def residuals(p):
        return p[0] + p[1] * np.exp(-p[3] * n) + p[2] * np.exp(-p[4] * d) - loss

    best = np.inf
    for _ in range(starts):
        start = [random.uniform(0, loss.min()), random.uniform(0, 2), random.uniform(0, 2), *np.exp(
            random.uniform(np.log(BOUNDS[0]), np.log(BOUNDS[1]), 2))]
        found = least_squares(residuals, start, bounds=([0, 0, 0, BOUNDS[0], BOUNDS[0]], [np.inf] * 3 + [BOUNDS[1]] * 2),
                              xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=2000)
        p = found.x.astype(np.longdouble)
        best = min(best, squares(runs, {"E": p[0], "A": p[1] * np.exp(p[3] * n_mean), "a": p[3],
                                        "B": p[2] * np.exp(p[4] * d_mean), "b": p[4]}))
    return best


class Helper:
    def __init__(self, path):
        self.path, self.hash = path, hashlib.sha256()

    def ask(self, questions):
        done = subprocess.run([self.path], input="".join(json.dumps(q) + "\n" for q in questions), text=True,
                              capture_output=True, check=True)
        self.hash.update(done.stdout.encode())
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        check(len(answers) == len(questions), "an answer is missing")
        return [{k: v if k in ("fit", "forecast", "error") else float.fromhex(v) for k, v in a.items()} for a in answers]


def check_exact(helper, random, count, say):
    drawn = [Drawn(random, 0) for _ in range(count)]
    worst = 0.0
    for truth, fit in zip(drawn, helper.ask([{"runs": d.runs} for d in drawn]), strict=True):
        worst = max(worst, abs(fit["a"] - truth.a), abs(fit["b"] - truth.b))
    check(worst < 1e-6, f"an exponent of a surface without noise is off by {worst}")
    say(f"{count} surfaces without noise: exponents within {worst:.1e}")


def check_scipy(helper, random, count, say):
    drawn = [Drawn(random, NOISE) for _ in range(count)]
    worst, lower = -np.inf, 0
    for truth, fit in zip(drawn, helper.ask([{"runs": d.runs} for d in drawn]), strict=True):
        ours = squares(truth.runs, fit)
        check(abs(ours - fit["objective"]) <= 1e-9 * ours, f"the objective is {fit['objective']}, NumPy says {ours}")
        best = scipy_best(truth.runs, random)
        worst = max(worst, ours / best - 1)
        lower += ours <= best
        # The negative control: an exponent beside the one that was found.
        check(squares(truth.runs, fit | {"a": fit["a"] * 1.001}) > ours * (1 + 1e-9), "another exponent is as good")
    check(worst <= 1e-12, f"SciPy finds a sum of squares that is lower by a share of {worst}")
    say(f"{count} surfaces with noise: never above SciPy's best of 50 starts by more than a share of {max(worst, 0.0):.1e}; "
        f"not above at all in {lower}")


def check_ends(helper, random, count, say):
    """The exponent is at an end of what is searched, and the fit is still the best one within."""
    drawn = [AtEnd(random, NOISE, i % 2 == 0) for i in range(count)]
    worst = -np.inf
    for truth, fit in zip(drawn, helper.ask([{"runs": d.runs} for d in drawn]), strict=True):
        end = BOUNDS[1] if truth.steep else BOUNDS[0]
        check(abs(fit["a"] / end - 1) < 1e-9, f"an exponent that should be at the end {end} is {fit['a']}")
        ours = squares(truth.runs, fit)
        check(abs(ours - fit["objective"]) <= 1e-9 * ours, f"the objective is {fit['objective']}, NumPy says {ours}")
        worst = max(worst, ours / scipy_best(truth.runs, random) - 1)
    check(worst <= 1e-12, f"at an end SciPy finds a sum of squares that is lower by a share of {worst}")
    say(f"{count} surfaces with an exponent at an end of what is searched: never above SciPy's best of 50 starts by more than a "
        f"share of {max(worst, 0.0):.1e}")


def check_coverage(helper, random, count, say):
    drawn = [Drawn(random, NOISE) for _ in range(count)]
    held = dict.fromkeys(("E", "a", "b", "loss of a run of 3 times the compute"), 0)
    answers = helper.ask([{"runs": d.runs, "target": d.target, "count": 1} for d in drawn])
    for truth, answer in zip(drawn, answers, strict=True):
        check("error" not in answer, str(answer))
        fit, forecast = json.loads(answer["fit"]), json.loads(answer["forecast"])

        def holds(interval, value):
            return float.fromhex(interval["low"]) <= value <= float.fromhex(interval["high"])

        for name, interval, value in zip(held, (fit["floor"], fit["size_exponent"], fit["data_exponent"], forecast["loss"]),
                                         (truth.E, truth.a, truth.b, truth.observed), strict=True):
            held[name] += holds(interval, value)
    say(f"{count} surfaces with noise of {NOISE}; the 90 % intervals hold the truth: " + ", ".join(
        f"{name} {100 * n / count:.1f} %" for name, n in held.items()))
    if count >= 400:
        for name, n in held.items():
            check(0.85 <= n / count <= 0.95, f"the intervals of {name} hold the truth in {100 * n / count:.1f} %")
    else:
        check(all(n >= count / 2 for n in held.values()), f"the intervals hold the truth too seldom: {held}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--full", action="store_true", help="as OSTRO_TEST_SIZE=full")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    full = args.full or suite.size() != "sample"
    number = suite.seed() if not args.full else 2026
    random, helper = np.random.default_rng(number), Helper(args.helper)
    lines = [f"seed {number}"]
    check_exact(helper, random, 50, lines.append)
    check_scipy(helper, random, 50 if full else 3, lines.append)
    check_ends(helper, random, 20 if full else 2, lines.append)
    # Fixed draws: how many intervals hold the truth is itself a matter of chance, and no commit may fail by that.
    check_coverage(helper, np.random.default_rng(2026), 400 if full else 5, lines.append)
    lines.append(f"SHA-256 of all answers: {helper.hash.hexdigest()}")
    print("\n".join(lines))
    if args.log:
        with args.log.open("a") as file:
            file.write("\n".join(lines) + "\n")
    checks.summary()


if __name__ == "__main__":
    main()
