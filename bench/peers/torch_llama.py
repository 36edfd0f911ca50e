"""Peer: one Llama train step in PyTorch (RMSNorm, RoPE, GQA, SwiGLU, cross-entropy, AdamW fused, clip by global norm).

    python torch_llama.py --size small58 --dtype bf16 --threads 2 [--compile]

bf16 = autocast over f32 master weights. How it is driven: common.py.
"""
import argparse, os
import common as C

ap = argparse.ArgumentParser()
ap.add_argument("--compile", action="store_true")
a, c = C.arguments(ap)
for v in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[v] = str(a.threads)
import torch
from torch_model import Llama, rope_tables, stepper
torch.set_num_threads(a.threads)

cos, sin = rope_tables(c)
model = Llama(c, C.init(c))
params = list(model.parameters())


def loss_fn(ids, labels):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        return model(ids, labels, cos, sin)


fn = torch.compile(loss_fn) if a.compile else loss_fn
C.drive("torch " + torch.__version__ + (" compile" if a.compile else " eager"), stepper(c, fn, params))
