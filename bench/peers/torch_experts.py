"""Peer: forward and backward of one block of experts of `transformers` (its Mixtral's), driven as stepper.py wants it.

    python torch_experts.py --backend eager|batched_mm|grouped_mm --experts 8 --top_k 2 --tokens 2048 --embed 768 --active 2048

`active` is the width of all experts of a token together. bf16: weights and values are bf16, the router f32.
"""
import argparse, json, os, sys, time

ap = argparse.ArgumentParser()
ap.add_argument("--backend", default="eager")
ap.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
for name, value in (("experts", 8), ("top_k", 2), ("tokens", 2048), ("embed", 768), ("active", 2048), ("threads", 2)):
    ap.add_argument(f"--{name}", type=int, default=value)
a = ap.parse_args()
os.environ.update({v: str(a.threads) for v in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")})
import torch
import transformers
from transformers import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

torch.set_num_threads(a.threads)
torch.manual_seed(0)
dtype = torch.bfloat16 if a.dtype == "bf16" else torch.float32
config = MixtralConfig(hidden_size=a.embed, intermediate_size=a.active // a.top_k, num_local_experts=a.experts,
                       num_experts_per_tok=a.top_k, experts_implementation=a.backend)
block = MixtralSparseMoeBlock(config).to(dtype)
for p in block.parameters():
    torch.nn.init.uniform_(p, -1, 1)
x = torch.rand(1, a.tokens, a.embed, dtype=dtype).mul_(2).sub_(1).requires_grad_()
g = torch.rand(1, a.tokens, a.embed, dtype=dtype)


def step():
    t = time.perf_counter()
    y = block(x)
    (y[0] if isinstance(y, tuple) else y).backward(g)
    s = time.perf_counter() - t
    for p in [x, *block.parameters()]:
        p.grad = None
    return s


label = f"transformers {transformers.__version__} {a.backend}"
print(json.dumps(dict(peer=label, s=step())), flush=True)
for _ in sys.stdin:
    print(json.dumps(dict(s=step())), flush=True)
print("{}", flush=True)
