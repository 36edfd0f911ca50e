"""PyTorch's side of bench/kernel_compare.py: the requests and answers of bench/kernel_bench.cc, without the peak.

Data are the same; a product is computed by the faster of mm and linear, attention by
scaled_dot_product_attention on contiguous [heads, length, head_dim].
"""
import sys, time

import numpy as np
import torch
import torch.nn.functional as F


def fixed_values(count, bf16, seed):
    """bench/kernel_cases.h's values."""
    h = (np.arange(count, dtype=np.uint32) + np.uint32(seed * 7919)) * np.uint32(2654435761)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(2246822519)
    x = (h >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    if not bf16:
        return torch.from_numpy(x)
    high = (x.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return torch.from_numpy(high.view(np.int16)).view(torch.bfloat16)


def linear(dtype, layout, tokens, out, inner):
    bf16 = dtype == "bf16"
    x, w, y = (tokens, inner), (out, inner), (tokens, out)
    a = fixed_values(tokens * (inner if layout == "fwd" else out), bf16, 0)
    b = fixed_values((tokens if layout == "wgrad" else out) * inner, bf16, 1)
    a, b = a.view(x if layout == "fwd" else y), b.view(x if layout == "wgrad" else w)
    left, right = {"fwd": (a, b.t()), "dgrad": (a, b), "wgrad": (a.t(), b)}[layout]
    forms = [lambda: torch.mm(left, right), lambda: F.linear(left, right.t())]
    if layout != "wgrad":  # a weight may be kept in the order that suits best, as ours are packed beforehand
        kept = right.t().contiguous()
        forms.append(lambda: F.linear(left, kept))

    def seconds(form):
        for _ in range(2):
            start = time.perf_counter()
            form()
            last = time.perf_counter() - start
            if last > 0.2:
                break
        return last

    return min(forms, key=seconds)


def attention(dtype, which, heads, dims, length):
    bf16 = dtype == "bf16"
    # Ours lie as [length, heads, head_dim]; here each head is contiguous, which suits the peer.
    q, k, v, do = (fixed_values(heads * dims * length, bf16, i).view(length, heads, dims).transpose(0, 1)
                   .contiguous().unsqueeze(0) for i in range(4))
    if which == "forward":
        def run():
            with torch.no_grad():
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return run
    for t in (q, k, v):
        t.requires_grad_()
    o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)[0]


def main():
    run, clock = None, time.perf_counter
    for line in sys.stdin:
        words = line.split()
        if words[0] == "run":
            start = clock()
            for _ in range(int(words[1])):
                result = run()
            seconds = clock() - start
            print(seconds, 0, float(result.double().abs().sum()), flush=True)
            continue
        torch.set_num_threads(int(words[-1]))
        # One thread: the time that the thread had the core, as on the other side. Autograd has a thread of its own.
        clock = time.process_time if words[-1] == "1" else time.perf_counter
        make = {"linear": linear, "attention": attention}[words[0]]
        run = make(words[1], words[2], *map(int, words[3:-1]))
        run()
        print("ready", 0, flush=True)


main()
