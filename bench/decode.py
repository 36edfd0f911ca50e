"""One sequence of `ostro sample`, token by token, beside the rate at which memory is read: every token needs all weights once.

A Llama of 134 M parameters is trained one step on the LICENSE's text, in f32 and with products in bf16. Each turn takes
few_bench (the read rate) and then continues a text by FEW tokens and by MANY. A token's time is what the second takes more, for
each token more: for one thread the CPU time of the process, which other load on the machine disturbs least, for more threads the
time on the clock. Share: bytes of the weights in the type of the products (the embedding, of which a token
reads one row, left out), times tokens a second, of the read rate of the same turn.

base125 (peers/common.py: heads of keys and values are shared) in bf16 by one thread is also beside `sample` before rows of many
sequences went through a model together and few rows were multiplied with weights where they lie: an `ostro` of commit BEFORE
(--before), which trains a model of its own of the same shape and takes turns. Without it the row has the time alone.
"""
import json, pathlib, resource, shutil, statistics, subprocess, time

from report import spread

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, INNER, LAYERS, HEADS, VOCAB = 768, 2048, 12, 12, 32000
FEW, MANY = 8, 200
GOAL = 0.85
ROWS = (1, 2, 4, 8, 16)
SECTIONS = ("products", "tokens", "base125")
BEFORE, FASTER = "7c9bd2ba", 5
KEY_HEADS = 4  # of base125


def weights(key_heads):
    """Those that a token reads."""
    return LAYERS * (2 * WIDTH * WIDTH + 2 * WIDTH * (WIDTH // HEADS * key_heads) + 3 * WIDTH * INNER) + WIDTH * VOCAB


class Decoding:
    def __init__(self, bench, ostro=None):
        self.b, self.ostro = bench, ostro or bench.benches.parent / "ostro" / "cli" / "ostro"
        self.folder = bench.folder / ("decode_before" if ostro else "decode")
        (self.folder / "text").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "LICENSE", self.folder / "text" / "license.txt")

    def run(self, threads, *words):
        """What the program says on standard output."""
        env = dict(self.b.env, OSTRO_THREADS=str(threads))
        return subprocess.run([str(self.ostro), *map(str, words)], cwd=self.folder, check=True, errors="replace", env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def train(self, dtype, key_heads=HEADS):
        """The run of this name with so many heads of keys and values."""
        name = f"{dtype}-{key_heads}"
        values = {
            "data": {"cache_dir": "cache", "train_urls": ["text/*.txt"], "validation_fraction": 0, "vocab_size": 512},
            "model": {"type": "llama", "seq_len": 256, "vocab_size": VOCAB, "hidden_dim": WIDTH, "intermediate_dim": INNER,
                      "num_layers": LAYERS, "num_heads": HEADS, "num_kv_heads": key_heads, "tie_word_embeddings": False},
            "optimizer": {"type": "adam", "learning_rate": 1e-4},
            "trainer": {"id": name, "log_dir": "runs", "mp": f"p=f32,c={'f32' if dtype == 'f32' else 'bfloat16'}",
                        "train_batch_size": 1, "num_train_steps": 1, "steps_per_eval": 0},
            "numerics": {"leaf_examples": 1},
        }
        (self.folder / f"{name}.yaml").write_text(json.dumps(values))
        self.run(self.b.threads, "train", "--config", f"{name}.yaml")
        for threads in {1, self.b.threads}:  # kernels are compiled
            self.continued(name, threads, FEW)
        return name

    def continued(self, name, threads, count):
        """Seconds of a text that goes on by at most so many tokens, and their number."""
        def now():
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime if threads == 1 else time.monotonic()

        began = now()
        said = self.run(threads, "sample", "--checkpoint", f"runs/{name}", "--prompt", "The License ", "--json", "--max_new_tokens", count)
        return now() - began, len(json.loads(said)["ids"])

    def seconds_a_token(self, name, threads):
        (short, few), (long, many) = (self.continued(name, threads, count) for count in (FEW, MANY))
        if many - few < (MANY - FEW) / 2:
            raise RuntimeError(f"the text ends after {many} tokens, so a token's time cannot be told; train on another text")
        return (long - short) / (many - few)


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
        name = decoding.train(dtype)
        size = weights(HEADS) * (4 if dtype == "f32" else 2)
        for threads in sorted({1, b.threads}):
            speeds, reads, shares = [], [], []
            for _ in range(3 if b.quick else 7):
                reads.append(rates(b, dtype, threads, rounds=3)["read"])
                speeds.append(1 / decoding.seconds_a_token(name, threads))
                shares.append(size * speeds[-1] * 1e-9 / reads[-1])
            table.append([dtype, threads, spread(speeds, 1), spread(reads, 1), f"{size / 1e6:.0f}", spread(shares, 2)])
            share = statistics.median(shares)
            b.goal(f"decoding, {dtype}, {threads} thread{'s' * (threads > 1)} / memory's read rate", f">= {GOAL}",
                   spread(shares, 2), share >= GOAL, f"{len(shares)} turns; 134 M parameters")
    b.table(["products", "threads", "tokens/s", "memory read, GB/s", "weights a token, MB", "of the read rate"], table)


def base125(b, before):
    decoding = Decoding(b)
    name, size = decoding.train("bf16", KEY_HEADS), 2 * weights(KEY_HEADS)
    old = Decoding(b, before) if before else None
    if old:
        old.train("bf16", KEY_HEADS)
    seconds, reads, ratios = [], [], []
    for _ in range(3 if b.quick else 7):
        reads.append(rates(b, "bf16", 1, rounds=3)["read"])
        seconds.append(decoding.seconds_a_token(name, 1))
        if old:
            ratios.append(old.seconds_a_token(name, 1) / seconds[-1])
    shares = [size / one * 1e-9 / read for one, read in zip(seconds, reads)]
    b.table(["base125, bf16, one thread", "ms a token", "memory read, GB/s", "weights a token, MB", "of the read rate"],
            [["`ostro sample`", spread([1e3 * one for one in seconds], 2), spread(reads, 1), f"{size / 1e6:.0f}", spread(shares, 2)]])
    case = "decoding, base125, bf16, 1 thread / sample before"
    if not old:
        return b.goal(case, f">= {FASTER}x", f"{1e3 * statistics.median(seconds):.1f} ms a token", None, f"no program of commit {BEFORE} (--before)")
    faster = statistics.median(ratios)
    b.say(f"`ostro sample` of commit {BEFORE}, CPU time in turns: {spread(ratios, 2)} times as long a token.")
    b.say()
    b.goal(case, f">= {FASTER}x", f"{faster:.1f}x", faster >= FASTER, f"{len(ratios)} turns")


def report(b, sections=SECTIONS, before=None):
    parts = {"products": ("Products of few rows", products), "tokens": ("Decoding", tokens),
             "base125": ("Decoding: base125", lambda b: base125(b, before))}
    for name in sections:
        title, measure = parts[name]
        with b.section(title):
            measure(b)
