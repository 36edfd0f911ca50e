"""Shared by the peer scripts: sizes, flop counts, fixed initial weights and data, the loop and its JSON lines.

The initial weights and the token stream come from numpy with fixed seeds. start_file.py writes the same numbers
for bench/train_bench, so that the losses of both programs can be compared.

A peer is driven line by line, so that its steps can alternate with another program's: it does its first step at once
and prints a JSON line, then one step and one line for every line that it reads, and a last line at the end of its input.
By hand: `yes | head -8 | python torch_llama.py --size small58`.
"""
import json, math, os, resource, sys, time

T_START = time.time()
try:  # process start, so that import time is counted
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/uptime") as f:
        T_START = time.time() - (float(f.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK"))
except OSError:
    pass

SIZES = {
    "micro":   dict(L=2,  H=64,  heads=4,  kv=2,  ffn=160,  V=512,   seq=64,   batch=4),
    "nano":    dict(L=4,  H=256, heads=4,  kv=2,  ffn=688,  V=4096,  seq=256,  batch=8),
    "small58": dict(L=8,  H=512, heads=8,  kv=4,  ffn=1408, V=32000, seq=512,  batch=4),
    "base125": dict(L=12, H=768, heads=12, kv=4,  ffn=2048, V=32000, seq=1024, batch=2),
    "llama1b": dict(L=22, H=2048, heads=32, kv=4, ffn=5632, V=32000, seq=1024, batch=1),  # served, not trained
    # A mixture: ffn is each expert's, a token's weights of experts add up to 1.
    "mix100":  dict(L=8,  H=512, heads=8,  kv=4,  ffn=880,  V=8192,  seq=512,  batch=4, experts=8, top_k=2),
}
THETA, EPS = 10000.0, 1e-5
ADAM = dict(lr=3e-4, betas=(0.9, 0.95), eps=1e-8, wd=0.1, clip=1.0)


def shapes(c):
    """Name -> shape, each weight stored [out, in]; layers stacked in front."""
    L, H, F, V = c["L"], c["H"], c["ffn"], c["V"]
    KV = H // c["heads"] * c["kv"]
    E = (c["experts"],) if "experts" in c else ()
    router = {"router": (L, *E, H)} if E else {}
    return router | {"emb": (V, H), "head": (V, H), "norm": (H,), "n1": (L, H), "n2": (L, H),
            "q": (L, H, H), "k": (L, KV, H), "v": (L, KV, H), "o": (L, H, H),
            "gate": (L, *E, F, H), "up": (L, *E, F, H), "down": (L, *E, H, F)}


def init(c):
    import numpy as np
    p = {}
    for i, (n, s) in enumerate(sorted(shapes(c).items(), key=lambda item: item[0] == "router")):  # a mixture's router last
        if n.startswith("n"):
            p[n] = np.ones(s, np.float32)
        else:
            r = np.random.Generator(np.random.Philox(key=1000 + i))
            p[n] = r.standard_normal(s, dtype=np.float32) * np.float32(0.02)
    return p


def batch(c, B, S, step):
    import numpy as np
    r = np.random.Generator(np.random.Philox(key=77 + step))
    t = r.integers(0, c["V"], (B, S + 1), dtype=np.int32)
    return t[:, :-1], t[:, 1:]


def flops_per_token(c, S):
    """6 x matmul weights (head in, embedding look-up out; of experts those of a token) + 12 L H S (attention counted in
    full)."""
    used = {k: c["top_k"] / c["experts"] for k in ("gate", "up", "down") if "experts" in c}
    n = sum(math.prod(s) * used.get(k, 1) for k, s in shapes(c).items() if k not in ("emb", "norm", "n1", "n2"))
    return 6 * n + 12 * c["L"] * c["H"] * S


def rss_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def cpu_s():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def size(text):
    """A name of SIZES, or all of its numbers: "L=2,H=64,heads=4,kv=2,ffn=160,V=512,seq=64,batch=4"."""
    if text in SIZES:
        return SIZES[text]
    c = {k: int(v) for k, v in (word.split("=") for word in text.split(","))}
    if c.keys() != SIZES["micro"].keys():
        raise ValueError(f"{text}: give {sorted(SIZES)} or all of {list(SIZES['micro'])}")
    return c


def arguments(parser):
    parser.add_argument("--size", default="nano")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    return a, size(a.size)


def drive(peer, step):
    """step(i) does step i and gives its loss."""
    def timed(i):
        t, u = time.perf_counter(), cpu_s()
        loss = step(i)
        return dict(loss=round(loss, 6), s=time.perf_counter() - t, cpu_s=cpu_s() - u)

    print(json.dumps(dict(timed(0), peer=peer, start_to_first_step_s=round(time.time() - T_START, 3))), flush=True)
    for i, _ in enumerate(sys.stdin, 1):
        print(json.dumps(timed(i)), flush=True)
    print(json.dumps(dict(peak_rss_MiB=rss_mib())), flush=True)
