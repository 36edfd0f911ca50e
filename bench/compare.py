"""Runs the training benchmark beside PyTorch, turn by turn, and writes the figures as markdown.

Each pair is one process of ours and one of PyTorch's, in alternating order, from the same weights and batches; the
ratio is taken within a pair, so that a change of the machine's load between pairs does not reach it.
Run by scripts/bench.sh.
"""
import argparse, datetime, json, os, pathlib, platform, re, statistics, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent


def cpu_name():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    return re.search(r"model name\s*: (.*)", text)[1], "AuthenticAMD" in text


def last_json(command, env):
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def four_digits(a, b):
    return all(abs(x - y) <= 1e-4 * abs(y) for x, y in zip(a, b)) and len(a) == len(b)


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


class Bench:
    def __init__(self, a):
        self.a, self.folder = a, pathlib.Path(tempfile.mkdtemp(prefix="ostro_bench_"))
        self.env = dict(os.environ, OSTRO_CACHE_DIR=str(self.folder / "warm"))
        self.torch_env = dict(os.environ)
        self.cpu, amd = cpu_name()
        if amd:  # else MKL chooses its slower kernels there
            shim = self.folder / "libmklintel.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, HERE / "peers/mkl_intel.c"], check=True)
            self.torch_env["LD_PRELOAD"] = str(shim)
        self.lines, self.failed = [], []

    def say(self, line=""):
        self.lines.append(line)
        print(line, flush=True)

    def ours(self, start, dtype, steps, env):
        return last_json([self.a.train_bench, "--start", start, "--dtype", dtype, "--steps", steps, "--threads",
                          self.a.threads], env)

    def torch(self, size, dtype, steps):
        return last_json([sys.executable, HERE / "peers/torch_llama.py", "--size", size, "--dtype", dtype, "--steps",
                          steps, "--threads", self.a.threads], self.torch_env)

    def case(self, size, dtype, pairs, steps):
        start = self.folder / f"{size}.safetensors"
        if not start.exists():
            subprocess.run([sys.executable, HERE / "peers/start_file.py", "--size", size, "--steps", str(steps),
                            "--out", start], check=True)
        cold = self.ours(start, dtype, 2, dict(os.environ, OSTRO_CACHE_DIR=str(self.folder / f"cold_{size}_{dtype}")))
        self.ours(start, dtype, 2, self.env)
        rows = []
        for i in range(pairs):
            turns = [lambda: self.ours(start, dtype, steps, self.env), lambda: self.torch(size, dtype, steps)]
            done = [turns[i % 2](), turns[1 - i % 2]()]
            mine, theirs = done if i % 2 == 0 else done[::-1]
            rows.append((mine, theirs))
            # bf16 rounds at other places there, so only f32 must agree.
            if dtype == "f32" and not four_digits(mine["losses"], theirs["losses"]):
                self.failed.append(f"{size} {dtype}: losses {mine['losses']} and {theirs['losses']}")
        mine, theirs = [r[0] for r in rows], [r[1] for r in rows]
        of = lambda runs, key: [r[key] for r in runs]
        ratio = [m["tok_s"] / t["tok_s"] for m, t in rows]
        cpu = [t["cpu_s_per_step"] / m["cpu_s_per_step"] for m, t in rows]
        memory = [m["peak_rss_MiB"] / t["peak_rss_MiB"] for m, t in rows]
        self.say(f"### {size} {dtype}: {statistics.median(ratio):.2f} x PyTorch eager ({pairs} pairs of {steps} steps)")
        self.say()
        self.say(f"{mine[0]['peer']}; {theirs[0]['peer']}; {mine[0]['batch']} x {mine[0]['seq']} tokens a step")
        self.say()
        self.say("| median (lowest-highest) | ostro | PyTorch | ratio within pairs |")
        self.say("|---|---|---|---|")
        self.say(f"| tokens/s | {spread(of(mine, 'tok_s'), 0)} | {spread(of(theirs, 'tok_s'), 0)} | {spread(ratio, 2)} |")
        self.say(f"| CPU seconds a step | {spread(of(mine, 'cpu_s_per_step'), 3)} | "
                 f"{spread(of(theirs, 'cpu_s_per_step'), 3)} | {spread(cpu, 2)} times less |")
        self.say(f"| peak memory, MiB | {spread(of(mine, 'peak_rss_MiB'), 0)} | {spread(of(theirs, 'peak_rss_MiB'), 0)} "
                 f"| {spread(memory, 2)} |")
        self.say(f"| process start to end of first step, s | {spread(of(mine, 'start_to_first_step_s'), 2)}; "
                 f"{cold['start_to_first_step_s']:.2f} with nothing compiled | "
                 f"{spread(of(theirs, 'start_to_first_step_s'), 2)} | |")
        last = f"{mine[0]['losses'][-1]:.4f} and {theirs[0]['losses'][-1]:.4f}"
        self.say(f"| loss of step {steps} | {last.replace(' and ', ' | ')} | |")
        self.say()
        if dtype == "f32" and statistics.median(ratio) < 0.5:
            self.failed.append(f"{size}: {statistics.median(ratio):.2f} x PyTorch, 0.5 is the goal")
        if dtype == "f32" and statistics.median(memory) > 1:
            self.failed.append(f"{size}: {statistics.median(memory):.2f} x PyTorch's memory")

    def tool(self, title, command):
        self.say(f"### {title}")
        self.say()
        self.say("```")
        for line in subprocess.run([str(w) for w in command], capture_output=True, text=True, check=True,
                                   cwd=self.folder).stdout.splitlines():
            self.say(line)
        self.say("```")
        self.say()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("--benches", required=True, help="folder of train_bench, gemm_bench and data_bench")
    ap.add_argument("--out", required=True)
    ap.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    ap.add_argument("--sizes", nargs="+", default=["nano", "small58"])
    a = ap.parse_args()
    benches = pathlib.Path(a.benches).resolve()
    a.train_bench = benches / "train_bench"
    b = Bench(a)
    load = os.getloadavg()[0]
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, cwd=HERE,
                            check=False).stdout.strip()
    b.say("# Benchmark results")
    b.say()
    b.say("Written by `scripts/bench.sh" + (" --quick" if a.quick else "") + "`. What the figures mean and how they are taken: the "
          "comments of `bench/compare.py`, `train_bench.cc`, `gemm_bench.cc` and `data_bench.cc`. Compare ratios, not "
          "absolute figures: they move with whatever else runs on the machine.")
    b.say()
    b.say(f"{datetime.date.today()}, commit {commit}, {b.cpu}, {a.threads} threads, Linux {platform.release()}, "
          f"{subprocess.run(['cc', '--version'], capture_output=True, text=True).stdout.splitlines()[0]}, "
          f"Python {platform.python_version()}; load average before: {load:.1f} on {os.cpu_count()} processors")
    b.say()
    b.say("## Training beside PyTorch eager")
    b.say()
    pairs, steps = (3, 4) if a.quick else (7, 6)
    for size in a.sizes:
        b.case(size, "f32", pairs, steps)
    for size in a.sizes:
        b.case(size, "bf16", 3, steps)
    b.say("## Parts")
    b.say()
    rounds = 3 if a.quick else 7
    for dtype in ("f32", "bf16"):
        b.tool(f"Matrix products, {dtype}, one thread, share of the instruction's peak",
               [benches / "gemm_bench", "--in", dtype, "--rounds", rounds])
    b.tool("One batch from nothing in memory", [benches / "data_bench", b.folder / "store"])
    b.say(f"Load average behind: {os.getloadavg()[0]:.1f}")
    b.say()
    for line in b.failed or ["All goals met: losses equal to 4 digits, half of PyTorch's speed, no more memory (f32)."]:
        b.say(f"**{'missed: ' if b.failed else ''}{line}**")
    pathlib.Path(a.out).write_text("\n".join(b.lines) + "\n")
    subprocess.run(["rm", "-rf", b.folder], check=False)
    sys.exit(1 if b.failed else 0)


main()
