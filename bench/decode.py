"""One sequence of `ostro sample`, token by token, beside the rate at which memory is read: every token needs all weights once.

A Llama of 134 M parameters is trained one step on the LICENSE's text, in f32 and with products in bf16. Each turn takes
few_bench (the read rate) and then continues a text. A token's time is that of the steps of the program that makes it
(OSTRO_PLAN_TIMES, without its first run): for one thread their CPU time, which other load on the machine disturbs least, for
more threads the time on the clock. Share: bytes of the weights in the type of the products (the embedding, of which a token
reads one row, left out), times tokens a second, of the read rate of the same turn.
"""
import json, pathlib, re, shutil, statistics, subprocess

from report import spread

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, INNER, LAYERS, HEADS, VOCAB = 768, 2048, 12, 12, 32000
WEIGHTS = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * INNER) + WIDTH * VOCAB
TOKENS = 24
GOAL = 0.85
ROWS = (1, 2, 4, 8, 16)


class Decoding:
    def __init__(self, bench):
        self.b, self.ostro = bench, bench.benches.parent / "ostro" / "cli" / "ostro"
        self.folder = bench.folder / "decode"
        (self.folder / "text").mkdir(parents=True)
        shutil.copy(ROOT / "LICENSE", self.folder / "text" / "license.txt")

    def run(self, threads, *words):
        """What the program says, on both of its outputs."""
        env = dict(self.b.env, OSTRO_THREADS=str(threads), OSTRO_PLAN_TIMES="1")
        return subprocess.run([str(self.ostro), *map(str, words)], cwd=self.folder, check=True, errors="replace", env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    def train(self, dtype):
        values = {
            "data": {"cache_dir": "cache", "train_urls": ["text/*.txt"], "validation_fraction": 0, "vocab_size": 512},
            "model": {"type": "llama", "seq_len": 256, "vocab_size": VOCAB, "hidden_dim": WIDTH, "intermediate_dim": INNER,
                      "num_layers": LAYERS, "num_heads": HEADS, "num_kv_heads": HEADS, "tie_word_embeddings": False},
            "optimizer": {"type": "adam", "learning_rate": 1e-4},
            "trainer": {"id": dtype, "log_dir": "runs", "mp": f"p=f32,c={'f32' if dtype == 'f32' else 'bfloat16'}",
                        "train_batch_size": 1, "num_train_steps": 1, "steps_per_eval": 0},
            "numerics": {"leaf_examples": 1},
        }
        (self.folder / f"{dtype}.yaml").write_text(json.dumps(values))
        self.run(self.b.threads, "train", "--config", f"{dtype}.yaml")

    def seconds_a_token(self, dtype, threads):
        said = self.run(threads, "sample", "--checkpoint", f"runs/{dtype}", "--prompt", "The License ",
                        "--max_new_tokens", TOKENS)
        steps = re.findall(r"^ *[0-9.]+% +(\d+) +(\d+) +(\d+) ", said.split("decode: ")[-1], re.M)
        return sum(int(runs) * int(cpu if threads == 1 else wall) for runs, cpu, wall in steps) * 1e-6 / (TOKENS - 2)


def rates(b, dtype, threads, **options):
    """What few_bench says: the rates "read", "few" and "packed", in GB/s."""
    words = [b.benches / "few_bench", "--form", "json", "--in", dtype, "--threads", threads]
    for name, value in options.items():
        words += [f"--{name}", value]
    return json.loads(subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout)


def products(b):
    table = []
    for dtype in ("f32", "bf16"):
        for columns, k, n in (("together", WIDTH, 2 * INNER), ("together", INNER, WIDTH), ("apart", WIDTH, 2 * INNER)):
            for rows in ROWS:
                r = rates(b, dtype, 1, columns=columns, k=k, n=n, rows=rows, rounds=3 if b.quick else 7)
                table.append([dtype, f"{k} x {n}, {columns}", rows, *(f"{r[w]:.1f}" for w in ("read", "few", "packed")),
                              f"{r['few'] / r['read']:.0%}", f"{r['few'] / r['packed']:.1f}x"])
    b.table(["type", "weights, columns", "rows", "memory read, GB/s", "product in place", "packed first", "of the read rate",
             "in place / packed"], table)


def tokens(b):
    decoding, table = Decoding(b), []
    for dtype in ("f32", "bf16"):
        decoding.train(dtype)
        size = WEIGHTS * (4 if dtype == "f32" else 2)
        for threads in sorted({1, b.threads}):
            speeds, reads, shares = [], [], []
            for _ in range(3 if b.quick else 7):
                reads.append(rates(b, dtype, threads, rounds=3)["read"])
                speeds.append(1 / decoding.seconds_a_token(dtype, threads))
                shares.append(size * speeds[-1] * 1e-9 / reads[-1])
            table.append([dtype, threads, spread(speeds, 1), spread(reads, 1), f"{size / 1e6:.0f}", spread(shares, 2)])
            share = statistics.median(shares)
            b.goal(f"decoding, {dtype}, {threads} thread{'s' * (threads > 1)} / memory's read rate", f">= {GOAL}",
                   spread(shares, 2), share >= GOAL, f"{len(shares)} turns; 134 M parameters")
    b.table(["products", "threads", "tokens/s", "memory read, GB/s", "weights a token, MB", "of the read rate"], table)


def report(b):
    with b.section("Products of few rows"):
        products(b)
    with b.section("Decoding"):
        tokens(b)
