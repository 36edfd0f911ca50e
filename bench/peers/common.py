"""Shared by the peer scripts: sizes, flop counts, fixed initial weights and data, the JSON line.

The initial weights and the token stream come from numpy with fixed seeds. start_file.py writes the same numbers
for bench/train_bench, so that the losses of both programs can be compared.
"""
import json, math, os, resource, statistics, time

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
}
THETA, EPS = 10000.0, 1e-5
ADAM = dict(lr=3e-4, betas=(0.9, 0.95), eps=1e-8, wd=0.1, clip=1.0)


def shapes(c):
    """Name -> shape, each weight stored [out, in]; layers stacked in front."""
    L, H, F, V = c["L"], c["H"], c["ffn"], c["V"]
    KV = H // c["heads"] * c["kv"]
    return {"emb": (V, H), "head": (V, H), "norm": (H,), "n1": (L, H), "n2": (L, H),
            "q": (L, H, H), "k": (L, KV, H), "v": (L, KV, H), "o": (L, H, H),
            "gate": (L, F, H), "up": (L, F, H), "down": (L, H, F)}


def init(c):
    import numpy as np
    p = {}
    for i, (n, s) in enumerate(shapes(c).items()):
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
    """6 x matmul weights (head in, embedding look-up out) + 12 L H S (attention counted in full)."""
    n = sum(math.prod(s) for k, s in shapes(c).items() if k not in ("emb", "norm", "n1", "n2"))
    return 6 * n + 12 * c["L"] * c["H"] * S


def rss_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def cpu_s():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def report(peer, size, dtype, c, B, S, threads, times, cpu, first, to_first, losses):
    """times: wall seconds of each step behind the first; cpu: CPU seconds (all threads) of the same steps."""
    warm = sorted(times[min(1, len(times) - 1):])  # the first step and the one after it are warm-up
    med = statistics.median(warm)
    print(json.dumps(dict(
        peer=peer, size=size, dtype=dtype, seq=S, batch=B, threads=threads,
        tok_s=round(B * S / med, 1), tok_s_min=round(B * S / warm[-1], 1), tok_s_max=round(B * S / warm[0], 1),
        cpu_s_per_step=round(statistics.median(cpu[min(1, len(cpu) - 1):]), 4),
        gflops=round(B * S / med * flops_per_token(c, S) / 1e9, 1), step_ms=round(med * 1e3, 1),
        first_step_s=round(first, 3), start_to_first_step_s=round(to_first, 3), peak_rss_MiB=rss_mib(),
        losses=[round(x, 6) for x in losses])), flush=True)
