"""PyTorch's side of bench/choices.py: the requests and answers of bench/choice_bench.cc.

Rows are normal with deviation 3 and one entry that stands out. Sampling is written as its users write it: softmax and
multinomial; behind topk; behind a sort, a running sum and a mask.
"""
import sys, time

import torch

torch.set_num_threads(1)
torch.manual_seed(1)
ROWS = 8


def draw(row):
    return int(torch.multinomial(torch.softmax(row, -1), 1))


def top_k(row):
    values, ids = torch.topk(row, 40)
    return int(ids[torch.multinomial(torch.softmax(values, -1), 1)])


def top_p(row):
    values, ids = torch.sort(row, descending=True)
    p = torch.softmax(values, -1)
    p[torch.cumsum(p, -1) - p > 0.9] = 0
    return int(ids[torch.multinomial(p, 1)])


KINDS = {"greedy": lambda row: int(torch.argmax(row)), "draw": draw, "top_k": top_k, "top_p": top_p,
         "log_prob": lambda row: float(torch.log_softmax(row, -1)[5])}
kind, rows, at = None, None, 0
with torch.inference_mode():
    for line in sys.stdin:
        what, *words = line.split()
        if what == "case":
            kind, rows = KINDS[words[0]], 3 * torch.randn(ROWS, int(words[1]))
            rows[:, 7] = 14
            print("ready", flush=True)
        else:
            begin = time.thread_time()
            for _ in range(int(words[0])):
                kind(rows[at % ROWS])
                at += 1
            print(time.thread_time() - begin, flush=True)
