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
import torch.nn as nn
import torch.nn.functional as F
torch.set_num_threads(a.threads)

L, H, NH, KV = c["L"], c["H"], c["heads"], c["kv"]
D = H // NH


def rope(x, cos, sin):
    x1, x2 = x.chunk(2, -1)
    return x * cos + torch.cat((-x2, x1), -1) * sin


class Block(nn.Module):
    def __init__(self, w, i):
        super().__init__()
        for n in ("n1", "n2", "q", "k", "v", "o", "gate", "up", "down"):
            setattr(self, n, nn.Parameter(torch.from_numpy(w[n][i].copy())))

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        h = F.rms_norm(x, (H,), self.n1, C.EPS)
        q = F.linear(h, self.q).view(b, s, NH, D).transpose(1, 2)
        k = F.linear(h, self.k).view(b, s, KV, D).transpose(1, 2)
        v = F.linear(h, self.v).view(b, s, KV, D).transpose(1, 2)
        q, k = rope(q, cos, sin), rope(k, cos, sin)
        q, k = q.to(v.dtype), k.to(v.dtype)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=KV != NH)
        x = x + F.linear(y.transpose(1, 2).reshape(b, s, H), self.o)
        h = F.rms_norm(x, (H,), self.n2, C.EPS)
        return x + F.linear(F.silu(F.linear(h, self.gate)) * F.linear(h, self.up), self.down)


class Llama(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.emb, self.norm, self.head = (nn.Parameter(torch.from_numpy(w[n])) for n in ("emb", "norm", "head"))
        self.blocks = nn.ModuleList(Block(w, i) for i in range(L))

    def forward(self, ids, labels, cos, sin):
        x = F.embedding(ids, self.emb)
        for blk in self.blocks:
            x = blk(x, cos, sin)
        logits = F.linear(F.rms_norm(x, (H,), self.norm, C.EPS), self.head)
        return F.cross_entropy(logits.float().view(-1, logits.size(-1)), labels.reshape(-1))


inv = 1.0 / C.THETA ** (torch.arange(0, D, 2).float() / D)
ang = torch.outer(torch.arange(S).float(), inv)
ang = torch.cat((ang, ang), -1)
cos, sin = ang.cos(), ang.sin()

model = Llama(C.init(c))
params = list(model.parameters())
opt = torch.optim.AdamW(params, lr=C.ADAM["lr"], betas=C.ADAM["betas"], eps=C.ADAM["eps"], weight_decay=C.ADAM["wd"], fused=True)


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
