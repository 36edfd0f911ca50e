"""Products of int8 blocks (docs/spec/numerics.md, N20), by every kernel with instructions of its own, beside f32's FMA peak.

int8_dot_bench.cc says how each round takes the peak and the product in turn. The goals are for one thread and operands packed
before; figures of quantising are nanoseconds an element of bf16.
"""
import re, subprocess

SHAPES = [(2040, 2048, 2048), (2040, 1408, 512), (512, 2048, 8192)]  # tokens, outputs, inputs; the last a weight gradient
GOALS = {"vnni512": 3.6, "vnni256": 3.6, "avx2": 1.7}


def run(b, kernel, m, n, k):
    rounds = 7 if b.quick else 15
    words = [b.benches / "int8_dot_bench", "--kernel", kernel, "--rounds", rounds, "--m", m, "--n", n, "--k", k]
    text = subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout
    peak = re.search(r"FMA peak of (\w+) (\d+) GFLOP/s \((\d+) to (\d+)\)", text)
    products = re.findall(r"^(.*): (\d+) Gop/s \(best \d+\), ([0-9.]+) of the peak", text, re.M)
    elements = re.findall(r"^(.*): ([0-9.]+) ns an element", text, re.M)
    return peak.groups(), products, elements


def kernels(b):
    refused = subprocess.run([str(b.benches / "int8_dot_bench"), "--kernel", "none"], capture_output=True, text=True).stderr
    return [name for name in re.search(r"--kernel takes (.*)", refused)[1].split(" or ") if name != "generic"]


def report(b):
    rows, quantisers = [], []
    for kernel in kernels(b):
        for m, n, k in SHAPES:
            (isa, peak, low, high), products, elements = run(b, kernel, m, n, k)
            packed = products[0]
            rows.append([kernel, f"{m} x {n} x {k}", f"{peak} ({low}-{high}), {isa}",
                         *(f"{rate}; {ratio}x" for _, rate, ratio in products)])
            quantisers.append([kernel, f"{m} x {k}", *(ns for _, ns in elements)])
            goal = next((GOALS[name] for name in GOALS if kernel.startswith(name)), None)
            if goal:
                b.goal(f"int8 product, {kernel}, {m} x {n} x {k} / FMA peak", f">= {goal}x", f"{packed[2]}x",
                       float(packed[2]) >= goal, "one thread, operands packed before")
    b.table(["kernel", "size", "FMA peak, GFLOP/s", *(f"{name}: Gop/s; of the peak" for name, _, _ in products)], rows)
    b.table(["kernel", "elements", *(f"{name}, ns" for name, _ in elements)], quantisers)
