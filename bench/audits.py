"""What audits cost: training with chain.leaf_gradients beside training without it, and the price that `ostro verify --sample`
says before its work beside the CPU time that the work took.

Leaf gradients: runs of the same configuration, one with and one without, take turns; the ratio is that of the seconds that
their steps took (run.json). leaves.jsonl is what such a run has more on disk.
Price: runs of several sizes, and of each several samples; |estimated - spent| / spent. The estimate is measured in the same
process, so other load on the machine counts for both.
"""
import json, random, statistics, subprocess

from report import spread

WORDS = "the sun and moon of a star in winds that rain for if return to be or not so it goes on by day night".split()
# name: sequences of how many tokens, width, layers, batch, sequences in a leaf, steps
SIZES = {"tiny": (16, 16, 2, 6, 3, 200), "small": (64, 64, 2, 16, 4, 80), "middle": (128, 128, 4, 16, 4, 30),
         "wide": (128, 256, 4, 16, 8, 20), "one leaf": (128, 256, 2, 4, 4, 20)}
WITHIN = 0.25


class Runs:
    def __init__(self, bench):
        self.b, self.ostro = bench, bench.benches.parent / "ostro" / "cli" / "ostro"
        self.folder = bench.folder / "audits"
        (self.folder / "corpus").mkdir(parents=True)
        rng = random.Random(7)
        for i in range(9):
            text = " ".join(rng.choice(WORDS) + (rng.choice("abcdefgh") if rng.random() < 0.3 else "") for _ in range(30000))
            (self.folder / "corpus" / f"{i}.txt").write_text(text + "\n")
        self.ostro_says("tokenizer", "train", "--input", "corpus/*.txt", "--vocab_size", "300", "--out", "tokenizer.json")

    def ostro_says(self, *words):
        return subprocess.run([str(self.ostro), *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              check=True, env=dict(self.b.env, OSTRO_THREADS=str(self.b.threads))).stdout

    def train(self, name, size, leaf_gradients=False, every=None, steps=None):
        """Seconds that the steps of the run took."""
        seq, width, layers, batch, leaf, most = SIZES[size]
        values = {
            "data": {"tokenizer": "tokenizer.json", "cache_dir": "cache", "train_urls": ["corpus/*.txt"]},
            "model": {"type": "llama", "seq_len": seq, "hidden_dim": width, "intermediate_dim": 3 * width, "num_layers": layers,
                      "num_heads": 4 if width > 16 else 2, "num_kv_heads": 1},
            "chain": {"leaf_gradients": leaf_gradients},
            "trainer": {"id": name, "log_dir": "runs", "train_batch_size": batch, "num_train_steps": steps or most,
                        "steps_per_eval": 0, "checkpointer": {"keep": [{"every": every or most}]}},
            "numerics": {"leaf_examples": leaf},
        }
        (self.folder / f"{name}.yaml").write_text(json.dumps(values))
        self.ostro_says("train", "--config", f"{name}.yaml")
        sessions = json.loads((self.folder / "runs" / name / "run.json").read_text())["sessions"]
        return sum(s["seconds"]["step"] for s in sessions)


def leaf_gradients(b, runs):
    for size in ("small", "middle", "wide"):
        ratios, steps = [], SIZES[size][5]
        for turn in range(3 if b.quick else 7):
            both = (False, True) if turn % 2 == 0 else (True, False)
            seconds = {on: runs.train(f"{size}-{turn}-{on}", size, on) for on in both}
            ratios.append(seconds[True] / seconds[False])
        kept = (runs.folder / "runs" / f"{size}-0-True" / "leaves.jsonl").stat().st_size
        leaves = SIZES[size][3] // SIZES[size][4]
        b.goal(f"chain.leaf_gradients on / off, {size}", "<= 1.05x time", spread(ratios, 3) + "x",
               statistics.median(ratios) <= 1.05,
               f"{len(ratios)} pairs of {steps} steps of {leaves} leaves; leaves.jsonl {kept // (steps * leaves)} bytes a leaf")


def prices(b, runs):
    rows, worst = [], 0
    for size, (*_, steps) in SIZES.items():
        every = steps // 5
        runs.train(f"priced-{size}", size, every=every)
        for count in (1, steps // 10, steps // 2):
            errors, spent, replayed = [], [], []
            for turn in range(1 if b.quick else 3):
                words = ["verify", f"runs/priced-{size}", "--sample", count, "--challenge", f"{size} {count} {turn}", "--json"]
                s = json.loads(runs.ostro_says(*words))["sample"]
                errors.append(s["estimated_cpu_seconds"] / s["cpu_seconds"] - 1)
                spent.append(s["cpu_seconds"]), replayed.append(s["replayed"])
            rows.append([size, steps, count, statistics.median(replayed), spread(spent, 3), ", ".join(f"{e:+.0%}" for e in errors)])
            worst = max(worst, *map(abs, errors))
    b.table(["size", "steps", "drawn", "replayed", "CPU time, s", "price less CPU time"], rows)
    b.goal("price of a sampled audit beside its CPU time", f"within {WITHIN:.0%}", f"{worst:.0%} at most", worst <= WITHIN,
           f"{len(rows)} samples, each of {1 if b.quick else 3} challenges")


def report(b):
    with b.section("Audits"):
        runs = Runs(b)
        leaf_gradients(b, runs)
        prices(b, runs)
