#!/usr/bin/env python3
"""Training on a GPU beside PyTorch on the same one: tokens a second of both, and their ratio.

  bench/gpu.py --program OSTRO [--device cuda] [--cases 58M:f32,374M:int8] [--steps 8] [--out bench/RESULTS.MACHINE.md]

Nothing is built. The peer is bench/peers/torch_gpu.py, where `python3` has PyTorch: compiled, flash attention, fused AdamW; f32
stands beside f32 without TF32, bf16 and int8 beside bf16. Each case runs ours, then the peer's, then ours again; a figure is the
median of all steps but the first, 7 or more of each. Ours trains as a user's run does, with its data, metrics and hash chain; a
leaf is four sequences (of the largest model one), so a step may be several leaves and the sum of their gradients. The page is written
anew after every case, the rows lie beside it as JSON lines.
"""
import argparse, datetime, json, os, pathlib, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
# embed, layers, heads, heads of keys, mlp; sequences a step in f32, and in bf16 and int8
SIZES = {"58M": ((512, 8, 8, 8, 1408), 16, 64), "374M": ((1024, 24, 16, 16, 2816), 4, 16), "1.1B": ((2048, 22, 32, 4, 5632), 4, 8)}
LENGTH, VOCAB = 2048, 32000
WORDS = "the of and a to in is you that it he was for on are as with his they at be this have from or one had by but not".split()

HEAD = """# Benchmark results: training on a GPU

`bench/gpu.py` writes this page; its first lines say what the figures mean. Compare ratios of one row.

"""


def write_corpus(folder):
    state = 12345
    for number in range(4):
        words = []
        for _ in range(120_000):
            state = (state * 1103515245 + 12345) % 2**31
            words.append(WORDS[state // 65536 % len(WORDS)])
        (folder / f"{number}.txt").write_text("\n".join(" ".join(words[i : i + 12]) for i in range(0, len(words), 12)) + "\n")


def ours(program, device, work, name, numbers, batch, steps):
    """Seconds of each step but the first."""
    embed, layers, heads, kv_heads, mlp = SIZES[name][0]
    run = f"{name}-{numbers}-{time.monotonic_ns()}"
    config = {"data": {"cache_dir": "cache", "train_urls": ["corpus/*.txt"], "vocab_size": 320},
              "model": {"type": "llama", "seq_len": LENGTH, "hidden_dim": embed, "intermediate_dim": mlp, "num_layers": layers,
                        "num_heads": heads, "num_kv_heads": kv_heads, "vocab_size": VOCAB},
              "optimizer": {"type": "adam", "learning_rate": 3e-4},
              "trainer": {"log_dir": "runs", "id": run, "mp": numbers, "device": device, "train_batch_size": batch,
                          "num_train_steps": steps + 1, "steps_per_eval": 0},
              "numerics": {"leaf_examples": 1 if name == "1.1B" else 4}}
    (work / "config.json").write_text(json.dumps(config))
    done = subprocess.run([program, "train", "--config", "config.json"], cwd=work, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(next((l for l in done.stderr.splitlines() if l.startswith("error")), "it failed"))
    rows = [json.loads(line) for line in (work / "runs" / run / "metrics.jsonl").read_text().splitlines()]
    rates = [row["throughput/tokens_per_second"] for row in rows if "throughput/tokens_per_second" in row]
    return [batch * LENGTH / r for r in rates[1:]]


def theirs(name, numbers, batch, steps):
    done = subprocess.run([sys.executable, HERE / "peers/torch_gpu.py", "--size", ",".join(map(str, SIZES[name][0])), "--batch",
                           str(batch), "--length", str(LENGTH), "--vocab", str(VOCAB), "--numbers", numbers, "--steps",
                           str(steps)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it failed"])[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def case(program, device, work, name, numbers, steps, log):
    peer_numbers = "f32" if numbers == "f32" else "bf16"
    batch = SIZES[name][1 if numbers == "f32" else 2]
    row = {"case": f"{name} {numbers}", "batch": f"{batch} x {LENGTH}"}
    try:
        first = ours(program, device, work, name, numbers, batch, steps)
        try:
            peer = theirs(name, peer_numbers, batch, max(steps, 7))
            row["peer"] = f"PyTorch {peer['torch']} {peer_numbers}"
            row["peer_tokens_per_s"] = round(batch * LENGTH / statistics.median(peer["seconds"]))
        except (OSError, RuntimeError) as e:
            row["peer"] = f"not run: {e}"
        seconds = first + ours(program, device, work, name, numbers, batch, steps)
        row["tokens_per_s"] = round(batch * LENGTH / statistics.median(seconds))
        row["spread"] = [round(batch * LENGTH / s) for s in (max(seconds), min(seconds))]
        row["steps"] = len(seconds)
        if "peer_tokens_per_s" in row:
            row["ratio"] = round(row["tokens_per_s"] / row["peer_tokens_per_s"], 3)
    except RuntimeError as e:
        row["failed"] = str(e)
    print(json.dumps(row), file=log, flush=True)
    print(json.dumps(row), flush=True)
    return row


def page(rows, machine):
    lines = [HEAD + machine, "", "| case | sequences a step | tokens/s (least to most, steps) | PyTorch tokens/s | ratio | peer |",
             "|---|---|---|---|---|---|"]
    for r in rows:
        if "failed" in r:
            lines.append(f"| {r['case']} | {r['batch']} | failed: {r['failed'][:200]} | | | |")
            continue
        theirs_said = f"{r['peer_tokens_per_s']:,}" if "peer_tokens_per_s" in r else ""
        lines.append(f"| {r['case']} | {r['batch']} | {r['tokens_per_s']:,} ({r['spread'][0]:,} to {r['spread'][1]:,}, {r['steps']}) | "
                     f"{theirs_said} | {r.get('ratio', '')} | {r['peer']} |")
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--program", required=True)
    p.add_argument("--device", default="cuda")
    p.add_argument("--cases", default="58M:f32,374M:f32,58M:bfloat16,374M:bfloat16,58M:int8,374M:int8")
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--out", type=pathlib.Path)
    a = p.parse_args()
    cases = [c.split(":") for c in a.cases.split(",")]
    for c in cases:
        if len(c) != 2 or c[0] not in SIZES or c[1] not in ("f32", "bfloat16", "int8"):
            p.error(f"--cases: {':'.join(c)}: a size ({', '.join(SIZES)}), a colon, and f32, bfloat16 or int8")
    program = os.path.abspath(a.program)
    say = lambda *words: subprocess.run([program, *words], capture_output=True, text=True).stdout
    gpu = next((l for l in say("devices").splitlines() if l.startswith("cuda")), "no GPU")
    version = dict(l.split(None, 1) for l in say("--version").splitlines() if " " in l)
    driver = next((l.split(None, 1)[1] for l in say("devices").splitlines() if l.startswith("driver ")), "")
    machine = (f"{gpu.split(None, 1)[1].split(': ')[0]}, driver {driver.rsplit(',', 1)[0]}, {os.cpu_count()} threads of its host; "
               f"{datetime.date.today()}, commit {version.get('commit', '?')[:12]}; `{' '.join(['bench/gpu.py', *sys.argv[1:]])}`")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "corpus").mkdir()
        write_corpus(work / "corpus")
        log = open(a.out.with_suffix(".jsonl"), "w") if a.out else open(os.devnull, "w")
        for name, numbers in cases:
            rows.append(case(program, a.device, work, name, numbers, a.steps, log))
            if a.out:
                a.out.write_text(page(rows, machine))
    if not a.out:
        print(page(rows, machine))
    sys.exit(any("failed" in r for r in rows))


if __name__ == "__main__":
    main()
