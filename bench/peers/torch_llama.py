"""Peer: one Llama train step in PyTorch (RMSNorm, RoPE, GQA, SwiGLU, cross-entropy, AdamW fused, clip by global norm).

    python torch_llama.py --size small58 --dtype bf16 --threads 2 [--compile]

bf16 = autocast over f32 master weights. How it is driven: common.py.
"""
import argparse, os
import common as C

ap = argparse.ArgumentParser()
ap.add_argument("--compile", action="store_true")
a, c = C.arguments(ap)
B, S = c["batch"], c["seq"]
for v in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[v] = str(a.threads)
import torch
from torch_model import Llama, adam, rope_tables
torch.set_num_threads(a.threads)

cos, sin = rope_tables(c)
model = Llama(c, C.init(c))
params = list(model.parameters())
opt = adam(params)


def loss_fn(ids, labels):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        return model(ids, labels, cos, sin)


fn = torch.compile(loss_fn) if a.compile else loss_fn


def step(i):
    x, y = C.batch(c, B, S, i)
    loss = fn(torch.from_numpy(x).long(), torch.from_numpy(y).long())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, C.ADAM["clip"])
    opt.step()
    opt.zero_grad(set_to_none=True)
    return loss.item()


C.drive("torch " + torch.__version__ + (" compile" if a.compile else " eager"), step)
