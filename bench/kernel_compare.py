"""Our matrix products and attention beside PyTorch's, turn by turn in one run.

    kernel_compare.py --benches FOLDER_OF_kernel_bench [--quick] [--only TEXT] [--threads 1 2]

A turn is one short batch of calls of each side, one after the other; every ratio is taken within a turn and the
figure is the median over the turns, so that a change of the machine's load between turns does not reach it. On an
AMD processor PyTorch runs twice, with and without peers/mkl_intel.c, which makes MKL use its better kernels there.
Weights of forward products and data gradients (fwd, dgrad) are packed before the turns, as a step with several uses of
them could; our steps pack them at each product, a few per cent of its time, which training.py counts. wgrad packs both
operands within the turn. "Agree" means that the sums of the results' magnitudes do, to 0.1 % in f32 and 2 % in bf16.
measure() returns the report's lines, a summary, and the cases whose results differ, which fail a run.
"""
import argparse, math, os, pathlib, statistics, subprocess, sys, tempfile, time

from report import mkl_shim

HERE = pathlib.Path(__file__).resolve().parent
# tokens, out, in of a linear layer.
SHAPES = [(2048, 512, 512), (1024, 768, 768), (1024, 1024, 1024), (1024, 2048, 768), (1024, 1024, 4096),
          (1024, 2048, 2048), (1024, 4096, 1024), (1024, 1408, 512), (1024, 512, 1408), (512, 32000, 512)]
QUICK_SHAPES = [SHAPES[i] for i in (0, 2, 8)]
LENGTHS, QUICK_LENGTHS = (512, 1024, 2048, 4096), (512, 2048)
TURN_S = 0.015  # a turn lasts about this long at least
QUIET_S = 0.005  # a peer's threads go on spinning for a while behind a call


class Side:
    """A program that answers the lines described in kernel_bench.cc."""

    def __init__(self, command, env):
        self.p = subprocess.Popen([str(w) for w in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env=env)

    def ask(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        answer = self.p.stdout.readline().split()
        if not answer:
            sys.exit(f"{self.p.args}: no answer to '{line}', exit {self.p.wait()}")
        return answer

    def run(self, times):
        seconds, peak, total = map(float, self.ask(f"run {times}"))
        return seconds / times, peak, total

    def close(self):
        self.p.stdin.close()
        self.p.wait()


class Compare:
    def __init__(self, benches, quick, threads, only=""):
        self.quick, self.threads, self.only = quick, threads, only
        self.turns = 3 if quick else 7
        self.folder = tempfile.TemporaryDirectory(prefix="ostro_kernels_")
        torch = [sys.executable, HERE / "peers/torch_kernels.py"]
        self.ours = Side([pathlib.Path(benches) / "kernel_bench"], dict(os.environ))
        self.plain = self.torch = Side(torch, dict(os.environ))
        shim = mkl_shim(self.folder.name)
        self.amd = shim is not None
        if self.amd:
            self.torch = Side(torch, dict(os.environ, LD_PRELOAD=str(shim)))
        self.wrong, self.summaries = [], []

    def close(self):
        for side in {self.ours, self.torch, self.plain}:
            side.close()
        self.folder.cleanup()

    def case(self, line, sides):
        """Median share of the peak, and median ratio to each of the other sides."""
        flops = float(self.ours.ask(line)[1])
        for side in sides[1:]:
            side.ask(line)
        times = max(1, round(TURN_S / self.ours.run(1)[0]))
        shares, ratios, sums = [], [[] for _ in sides[1:]], None
        for turn in range(self.turns):
            order = list(range(len(sides)))
            done = [None] * len(sides)
            for i in order if turn % 2 == 0 else order[::-1]:
                time.sleep(QUIET_S)
                done[i] = sides[i].run(times)
            shares.append(flops / done[0][0] / done[0][1])
            for i in range(1, len(sides)):
                ratios[i - 1].append(done[i][0] / done[0][0])
            sums = [d[2] for d in done]
        tolerance = 2e-2 if " bf16 " in line else 1e-3
        if not all(abs(s - sums[0]) <= tolerance * abs(sums[0]) for s in sums):  # so that NaN differs too
            self.wrong.append(f"different results: {line}: sums of the results' magnitudes {sums}")
            print(self.wrong[-1], file=sys.stderr, flush=True)
        return statistics.median(shares), [statistics.median(r) for r in ratios]

    def table(self, title, cases, sides, names):
        """cases: (label, request). One row a case, and the geometric means and lowest ratios."""
        lines = [f"### {title}", "", "| case | share of the FMA peak | " + " | ".join(f"x {n}" for n in names) + " |",
                 "|---|---|" + "---|" * len(names)]
        rows = []
        for label, request in cases:
            if self.only not in f"{title} {label}":
                continue
            share, ratios = self.case(request, sides)
            rows.append((share, ratios))
            lines.append(f"| {label} | {share:.0%} | " + " | ".join(f"{r:.2f}" for r in ratios) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
        if not rows:
            return []
        columns = list(zip(*(r for _, r in rows)))
        mean = lambda values: math.exp(statistics.fmean(map(math.log, values)))
        lines.append(f"| **geometric mean** | {mean([s for s, _ in rows]):.0%} | "
                     + " | ".join(f"**{mean(c):.2f}**" for c in columns) + " |")
        lines.append(f"| lowest | {min(s for s, _ in rows):.0%} | "
                     + " | ".join(f"{min(c):.2f}" for c in columns) + " |")
        self.summaries.append(dict(
            title=title, share=mean([s for s, _ in rows]), least_share=min(s for s, _ in rows),
            ratio={n: mean(c) for n, c in zip(names, columns)}, least={n: min(c) for n, c in zip(names, columns)}))
        return lines + [""]

    def linear(self, dtype, threads):
        sides, names = [self.ours, self.torch], ["PyTorch"]
        if self.amd and dtype == "f32":
            sides, names = sides + [self.plain], ["PyTorch, MKL told Intel", "PyTorch"]
        cases = [(f"{m} x {n} x {k} {layout}", f"linear {dtype} {layout} {m} {n} {k} {threads}")
                 for m, n, k in (QUICK_SHAPES if self.quick else SHAPES) for layout in ("fwd", "dgrad", "wgrad")]
        return self.table(f"Products, {dtype}, {threads} threads (tokens x out x in)", cases, sides, names)

    def attention(self, dtype, threads, which):
        cases = [(f"head_dim {dims}, length {length}",
                  f"attention {dtype} {which} {2 if length > 2048 else 4} {dims} {length} {threads}")
                 for dims in ((64,) if self.quick else (64, 128))
                 for length in (QUICK_LENGTHS if self.quick else LENGTHS)]
        return self.table(f"Causal attention {which}, {dtype}, {threads} threads", cases, [self.ours, self.torch],
                          ["PyTorch"])


def measure(benches, quick=False, threads=(1, 2), only="", dtypes=("f32", "bf16")):
    """The report's lines, one dict a table (title, shares of the peak, ratios by side: geometric mean, lowest), and a line
    for every case whose results differ."""
    c = Compare(benches, quick, threads, only)
    lines = []
    for n in threads:
        for dtype in dtypes:
            lines += c.linear(dtype, n)
            for which in ("forward", "backward"):
                lines += c.attention(dtype, n, which)
    if not c.wrong:
        lines += ["Both sides' results agree.", ""]
    c.close()
    return lines, c.summaries, c.wrong


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--benches", required=True)
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("--only", default="", help="cases whose title or label contains this")
    ap.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    a = ap.parse_args()
    report, _, wrong = measure(a.benches, a.quick, a.threads, a.only)
    print("\n".join(report + [f"**{text}**" for text in wrong]))
    sys.exit(1 if wrong else 0)
