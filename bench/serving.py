"""`ostro serve` beside llama.cpp's server: one request, load, the start, what receipts cost, what checking one does, and what
slow clients take from others.

Both serve the same random weights in bf16 (peers/llama_files.py); llama.cpp is that of the newest llama-cpp-python
(peers/llama_cpp.sh), built with -march=native, and once more for AVX2 alone. Both have the same number of threads, answers at a
time and positions of keys and values. Sides take turns; figures are medians of the turns, of ratios within a turn. All is seen by
a client: a prompt's rate is its tokens by the time to the first token, decoding's is that of the tokens behind the first.

The read rate is that of few_bench in the same turn. Bytes of a token: the weights in bf16 without the embedding, of which
one row is read. What a cache costs: the time of a token behind 4,000 tokens less that behind 16, beside the cache's bytes at the
read rate. The load is on small58, where seven turns of it take 15 to 45 minutes at each rate; everything else on a Llama of 1.1 B.
Decoding is judged by how near llama.cpp's server is to the read rate of the same turn: where it has a share of NEAR of it or more
(GGUF's weights are as many bytes), ours has to be as fast; where not, 1.4 times as fast.
Without llama.cpp (no --llama) our side runs alone, and goals beside it are not judged.
"""
import contextlib, json, os, random, statistics, subprocess, sys, time

import decode, serving_load, serving_slow
from peers.common import SIZES
from report import HERE, spread
from serving_sides import Ours, Theirs

SECTIONS = ("one", "avx2", "together", "load50", "load75", "load100", "turns", "start", "receipts", "checks", "slow")
LONG, RUNNING = 4000, 32
POOL = 600  # pages of 128 positions
MARGIN = 300 << 20
TURN = 100  # seconds in which the requests of a turn of the load arrive
NEAR = 0.85


def weight_bytes(c):
    keys = c["H"] // c["heads"] * c["kv"]
    return 2 * (c["L"] * c["H"] * (2 * c["H"] + 2 * keys + 3 * c["ffn"]) + c["V"] * c["H"])


def cache_bytes(c, positions):
    return 2 * 2 * c["L"] * (c["H"] // c["heads"] * c["kv"]) * positions


class Serving:
    def __init__(self, b, llama):
        self.b, self.llama = b, llama.resolve() if llama else None
        self.ostro = b.benches.parent / "ostro" / "cli" / "ostro"
        self.turns = 2 if b.quick else 7
        self.draw = random.Random(1)

    def files(self, size):
        folder = self.b.folder / size
        if not folder.exists():
            subprocess.run([sys.executable, HERE / "peers/llama_files.py", "--size", size, "--out", folder], check=True)
            subprocess.run([self.ostro, "import", "--from", "hf", folder / "hf", "--out", folder / "model"], check=True,
                           stdout=subprocess.DEVNULL)
        return folder

    def ours(self, size, *words, running=RUNNING, **env):
        folder = self.files(size)
        command = [self.ostro, "serve", folder / "model", "--mp", "bfloat16", "--running", running, "--cache_pages", POOL, *words]
        return Ours("ostro", command, dict(self.b.env, OSTRO_THREADS=str(self.b.threads)) | env, self.b.folder)

    def theirs(self, size, running=RUNNING, avx2=False):
        server, threads = self.llama / "native/bin/llama-server", self.b.threads
        env = dict(os.environ, LD_LIBRARY_PATH=str(self.llama / "avx2/bin")) if avx2 else dict(os.environ)
        command = [server, "-m", self.files(size) / "model.gguf", "-t", threads, "-tb", threads, "-np", running, "-kvu", "-c", 128 * POOL,
                   "--no-warmup", "-cram", 0]
        return Theirs("llama.cpp", command, env, self.b.folder)

    @contextlib.contextmanager
    def both(self, size, *words, avx2=False, **more):
        sides = [self.ours(size, *words, **more, **({"OSTRO_ISA": "avx2"} if avx2 else {}))]
        if self.llama:
            sides.append(self.theirs(size, avx2=avx2, **more))
        try:
            yield [side.start() for side in sides]
        finally:
            for side in sides:
                side.stop()

    def prompt(self, size, length):
        return [self.draw.randrange(259, SIZES[size]["V"]) for _ in range(length)]

    def in_turns(self, sides, measure):
        """For every turn what `measure` gives of each side, ours first, None for a peer that is not there; who begins alternates."""
        out = []
        for turn in range(self.turns):
            order = sides if turn % 2 == 0 else sides[::-1]
            seen = {side: measure(side, turn) for side in order}
            out.append([seen[side] for side in sides] + [None] * (2 - len(sides)))
        return out

    def ratio_row(self, name, goal, turns, of, unit, lower=False, note="", digits=1):
        """A row of the table and a goal: `of` gives a side's figure; ours by theirs, the median within turns."""
        words = f"{'<=' if lower else '>='} {goal}x"
        ours = [of(o) for o, _ in turns]
        if turns[0][1] is None:
            self.b.goal(f"serve {name} / llama.cpp", words, "", None, "llama.cpp is not built (peers/llama_cpp.sh)")
            return [f"{name}, {unit}", spread(ours, digits), "", ""]
        theirs = [of(t) for _, t in turns]
        ratios = [x / y for x, y in zip(ours, theirs)]
        ratio = statistics.median(ratios)
        self.b.goal(f"serve {name} / llama.cpp", words, f"{ratio:.2f}x", ratio <= goal if lower else ratio >= goal,
                    f"{len(turns)} turns" + (f"; {note}" if note else ""))
        return [f"{name}, {unit}", spread(ours, digits), spread(theirs, digits), spread(ratios, 2)]


def same_answers(s, sides, size):
    """Of both sides the same first tokens, or the weights are not the same. Rounding may part them later."""
    if len(sides) < 2:
        return
    same = 0
    prompts = [s.prompt(size, 40) for _ in range(4)]
    for prompt in prompts:
        ours, theirs = (side.one(prompt, 8).ids for side in sides)
        same += ours[0] == theirs[0]
    s.b.say(f"The first token of {same} of {len(prompts)} prompts is the same on both sides.")
    s.b.say()
    if same < len(prompts) / 2:
        s.b.failed.append(f"serving {size}: {len(prompts) - same} of {len(prompts)} answers begin otherwise than llama.cpp's")


def one(s, size="llama1b", avx2=False):
    b, c = s.b, SIZES[size]
    lengths = (512,) if avx2 or b.quick else (130, 512, 2048)  # 130: between two powers of two
    reads, seen = [], {}
    long_prompt = s.prompt(size, LONG)
    with s.both(size, avx2=avx2, running=4) as sides:
        same_answers(s, sides, size)

        def measure(side, turn):
            if side is sides[0]:
                reads.append(decode.rates(b, "bf16", b.threads, rounds=3)["read"] * 1e9)
            out = {"decode": side.one(s.prompt(size, 16), 24 if b.quick else 48).rate()}
            for length in lengths:
                out[length] = length / side.one(s.prompt(size, length), 1).first
            if not avx2 and side is sides[0]:  # from the second turn on the prompt's rows are there
                out["long"] = side.one(long_prompt, 24 if b.quick else 48).rate()
            return out

        turns = s.in_turns(sides, measure)
        resident = sides[0].resident()
        pool = sides[0].metrics()["ostro_cache_bytes"]
    isa = ", AVX2 alone" if avx2 else ""
    shares, their_shares = ([weight_bytes(c) * seen["decode"] / read for seen, read in zip(of_side, reads) if seen] for of_side in zip(*turns))
    near = not their_shares or statistics.median(their_shares) >= NEAR
    goal = 1.2 if avx2 else 1.0 if near else 1.4
    rows = [s.ratio_row(f"decoding {size} bf16{isa}", goal, turns, lambda side: side["decode"], "tokens/s", digits=2,
                          note=f"llama.cpp has {spread(their_shares, 2)} of the read rate" if their_shares else "")]
    for length in lengths:
        rows.append(s.ratio_row(f"prompt of {length}, {size} bf16{isa}", 1.2 if avx2 else 1.6, turns,
                                lambda side, n=length: side[n], "tokens/s"))
    b.table(["of one request", "ostro", "llama.cpp", "ratio"], rows)
    b.say(f"Memory is read at {spread([r / 1e9 for r in reads], 1)} GB/s, a token reads {weight_bytes(c) / 1e6:.0f} MB of weights; of that "
          f"rate {spread(shares, 2)}" + (f", llama.cpp {spread(their_shares, 2)}." if their_shares else "."))
    b.say()
    if avx2:
        return
    share = statistics.median(shares)
    b.goal(f"serve decoding {size} bf16 / memory's read rate", ">= 0.85", f"{share:.2f}", share >= 0.85, f"{len(shares)} turns")
    extra = [(1 / o["long"] - 1 / o["decode"]) / (cache_bytes(c, LONG) / read) for (o, _), read in zip(turns, reads)]
    b.say(f"A cache of {LONG} tokens has {cache_bytes(c, LONG) / 1e6:.0f} MB; a token takes {spread(extra, 2)} times longer for it than reading these.")
    b.say()
    b.goal(f"serve decoding {size} bf16 behind {LONG} tokens: time beyond / its bytes at the read rate", "<= 1.1x",
           f"{statistics.median(extra):.2f}x", statistics.median(extra) <= 1.1, f"{len(extra)} turns")
    allowed = weight_bytes(c) + 2 * c["V"] * c["H"] + pool + MARGIN
    b.say(f"Resident after that: {resident / 2**20:.0f} MiB, of which weights and pool are {(allowed - MARGIN) / 2**20:.0f}.")
    b.say()
    b.goal(f"serve {size} bf16: resident memory", "weights + pool + 300 MiB", f"+ {(resident - allowed + MARGIN) / 2**20:.0f} MiB",
           resident <= allowed, "ready, and after the requests of this section")


def conversation(s, side, size):
    """Times to the first token of two turns: 2,000 tokens, then these, the answer and 50 more."""
    first = s.prompt(size, 2000)
    told = side.one(first, 32)
    return side.one(first + told.ids + s.prompt(size, 50), 1).first / told.first


def four_prompts(s, side, size):
    tokens = 16 if s.b.quick else 48
    prompts = [s.prompt(size, 24) for _ in range(4)]
    began = time.monotonic()
    side.one(s.prompt(size, 24), tokens)
    middle = time.monotonic()
    side.together(prompts, tokens)
    return (time.monotonic() - middle) / (middle - began)


def together(s, size="small58"):
    b, vocab = s.b, SIZES[size]["V"]
    with s.both(size) as sides:
        same_answers(s, sides, size)
        turns = s.in_turns(sides, lambda side, turn: serving_load.rate_together(
            side.together([s.prompt(size, 16) for _ in range(RUNNING)], 96 if b.quick else 128)))
        b.table(["together", "ostro", "llama.cpp", "ratio"],
                [s.ratio_row(f"{RUNNING} answers at a time, {size} bf16", 2.0, turns, lambda side: side, "tokens/s")])


def load(s, share, size="small58"):
    """`share` of what the peer takes, which a burst of all clients shows. On a slow machine a turn has fewer requests (TURN)."""
    b, vocab = s.b, SIZES[size]["V"]
    clients, longest = (8, (200, 32)) if b.quick else (serving_load.CLIENTS, (1500, 256))
    with s.both(size) as sides:
        same_answers(s, sides, size)
        burst = serving_load.run(sides[-1], serving_load.drawn(9, clients, 0, vocab, longest))
        rate = share * clients / burst.seconds
        count = clients if b.quick else max(24, min(clients, round(rate * TURN)))
        seen = s.in_turns(sides, lambda side, turn: serving_load.run(side, serving_load.drawn(turn, count, rate, vocab, longest)))
        note = f"{count} requests of {clients} clients"
        name = f"{rate:.2f} requests/s, {share:.0%} of what {sides[-1].name} takes"
        rows = [s.ratio_row(f"{name}: time to the first token", 0.7, seen, lambda run: run.first, "s", True, note, 3),
                s.ratio_row(f"{name}: 99 % between tokens", 0.7, seen, lambda run: run.gap, "s", True, note, 3)]
        b.say(f"{name}: ostro {spread([o.rate for o, _ in seen], 1)} tokens/s" + (f", llama.cpp {spread([t.rate for _, t in seen], 1)}."
                                                                             if len(sides) > 1 else "."))
        b.say()
        b.table(["under load", "ostro", "llama.cpp", "ratio"], rows)


def turns_of_one(s):
    b, size = s.b, "base125" if s.b.quick else "llama1b"
    side = s.ours(size).start()
    try:
        turns = [conversation(s, side, size) for _ in range(s.turns)]
        fours = [four_prompts(s, side, size) for _ in range(s.turns)]
    finally:
        side.stop()
    b.say(f"{size}: the second turn of a conversation of 2,000 tokens waits {spread(turns, 3)} times as long for its first token as the first; "
          f"four prompts together take {spread(fours, 2)} times as long as one.")
    b.say()
    b.goal(f"serve second turn of 2,000 tokens, {size}: time to the first token / the first turn's", "<= 0.1x",
           f"{statistics.median(turns):.3f}x", statistics.median(turns) <= 0.1, f"{len(turns)} turns")
    b.goal(f"serve four prompts together, {size} / one", "<= 1.4x", f"{statistics.median(fours):.2f}x", statistics.median(fours) <= 1.4,
           f"{len(fours)} turns")


def start(s, size="llama1b"):
    size = "base125" if s.b.quick else size
    prompt = s.prompt(size, 16)

    def measure(make):
        side = make(size)
        side.start()
        try:
            answer = side.one(prompt, 1)
            return answer.times[0] - side.began
        finally:
            side.stop()

    makers = [s.ours, s.theirs] if s.llama else [s.ours]
    for make in makers:  # into the page cache, and kernels into theirs
        measure(make)
    turns = s.in_turns(makers, lambda make, turn: measure(make))
    s.b.table(["from the start of the process", "ostro", "llama.cpp", "ratio"],
              [s.ratio_row(f"first token, {size} bf16", 1.0, turns, lambda seconds: seconds, "s", True, "files in the page cache; ours checks all hashes, --no-warmup", 2)])


def receipts(s, size="llama1b"):
    size = "base125" if s.b.quick else size
    tokens = 16 if s.b.quick else 64
    side = s.ours(size).start()
    try:
        ratios = []
        for turn in range(s.turns):
            rates = {}
            for asked in ((False, True) if turn % 2 == 0 else (True, False)):
                prompts = [s.prompt(size, 16) for _ in range(16)]
                rates[asked] = serving_load.rate_of_all(side.together(prompts, tokens, receipt=asked))
            ratios.append(rates[True] / rates[False])
    finally:
        side.stop()
    share = 1 - statistics.median(ratios)
    s.b.say(f"{size}, 16 answers at a time: with receipts {spread(ratios, 3)} times the tokens/s without.")
    s.b.say()
    s.b.goal(f"serve receipts, {size}, 16 answers at a time", "< 1 % of tokens/s", f"{share:.1%}", share < 0.01, f"{len(ratios)} turns")


def checks(s, size="llama1b"):
    """An answer made alone, and `ostro verify --receipt` of it: a whole process, which also reads and hashes the weights."""
    size = "base125" if s.b.quick else size
    tokens = 32 if s.b.quick else 256
    side = s.ours(size, running=1).start()
    receipt = s.b.folder / "receipt.json"
    try:
        made, ratios = [], []
        for _ in range(s.turns):
            began = time.monotonic()
            choice = side.whole(s.prompt(size, 16), tokens, receipt=True)
            middle = time.monotonic()
            receipt.write_text(json.dumps(choice["receipt"]))
            # The server waits meanwhile, so both have the same cores.
            subprocess.run([s.ostro, "verify", "--receipt", receipt, "--checkpoint", s.files(size) / "model"], check=True,
                           env=side.env, stdout=subprocess.DEVNULL)
            made.append(middle - began)
            ratios.append((time.monotonic() - middle) / (middle - began))
    finally:
        side.stop()
    s.b.say(f"{size}: {tokens} tokens made alone in {spread(made, 1)} s; the whole of `ostro verify --receipt` takes {spread(ratios, 3)} times as long.")
    s.b.say()
    s.b.goal(f"serve checking a receipt of {tokens} tokens, {size} / making them", "<= 0.3x", f"{statistics.median(ratios):.2f}x",
             statistics.median(ratios) <= 0.3, f"{len(ratios)} turns")


TITLES = {"one": "Serving: one request", "avx2": "Serving: AVX2 alone", "together": "Serving: 32 at a time", "load50": "Serving: load of 50 %",
          "load75": "Serving: load of 75 %", "load100": "Serving: load of 100 %", "turns": "Serving: turns of a conversation", "start": "Serving: start",
          "receipts": "Serving: receipts", "checks": "Serving: checking a receipt", "slow": "Serving: slow clients"}


def report(b, llama, sections):
    s = Serving(b, llama)
    size = "base125" if b.quick else "llama1b"
    parts = {"one": lambda: one(s, size), "avx2": lambda: one(s, size, avx2=True), "together": lambda: together(s), "load50": lambda: load(s, 0.5),
             "load75": lambda: load(s, 0.75), "load100": lambda: load(s, 1.0), "turns": lambda: turns_of_one(s), "start": lambda: start(s),
             "receipts": lambda: receipts(s), "checks": lambda: checks(s), "slow": lambda: serving_slow.report(s)}
    for name in sections:
        with b.section(TITLES[name]):
            parts[name]()
