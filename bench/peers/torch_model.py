"""The Llama of the PyTorch peers: RMSNorm, RoPE, GQA, SwiGLU or experts of it, cross-entropy. Every step is a float32 module; how it is
trained is the business of the scripts that import it, after they have set the number of threads."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import common as C


def rope(x, cos, sin):
    x1, x2 = x.chunk(2, -1)
    return x * cos + torch.cat((-x2, x1), -1) * sin


def experts(x, router, gate, up, down, top_k):
    """Softmax over all experts, the best top_k, whose weights are divided by their sum; then expert by expert: the rows that
    chose it are gathered, and its results added to theirs. So do the first implementations of Mixtral and its kind."""
    with torch.autocast("cpu", enabled=False):
        scores = F.linear(x.float(), router).softmax(-1)
    weight, chosen = scores.topk(top_k, -1)
    weight = weight / weight.sum(-1, keepdim=True)
    y = torch.zeros_like(x)
    for e in range(gate.shape[0]):
        row, slot = torch.where(chosen == e)
        h = x[row]
        h = F.linear(F.silu(F.linear(h, gate[e])) * F.linear(h, up[e]), down[e]) * weight[row, slot, None]
        y.index_add_(0, row, h.to(y.dtype))
    return y


class Block(nn.Module):
    def __init__(self, c, w, i):
        super().__init__()
        self.top_k = c.get("top_k")
        self.heads, self.kv, self.dim = c["heads"], c["kv"], c["H"] // c["heads"]
        for n in ("n1", "n2", "q", "k", "v", "o", "gate", "up", "down", *(["router"] if self.top_k else [])):
            setattr(self, n, nn.Parameter(torch.from_numpy(w[n][i].copy())))

    def forward(self, x, cos, sin):
        b, s, width = x.shape
        h = F.rms_norm(x, (width,), self.n1, C.EPS)
        q = F.linear(h, self.q).view(b, s, self.heads, self.dim).transpose(1, 2)
        k = F.linear(h, self.k).view(b, s, self.kv, self.dim).transpose(1, 2)
        v = F.linear(h, self.v).view(b, s, self.kv, self.dim).transpose(1, 2)
        q, k = rope(q, cos, sin), rope(k, cos, sin)
        q, k = q.to(v.dtype), k.to(v.dtype)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kv != self.heads)
        x = x + F.linear(y.transpose(1, 2).reshape(b, s, width), self.o)
        h = F.rms_norm(x, (width,), self.n2, C.EPS)
        if self.top_k:
            y = experts(h.view(-1, width), self.router, self.gate, self.up, self.down, self.top_k)
            return x + y.view(x.shape)
        return x + F.linear(F.silu(F.linear(h, self.gate)) * F.linear(h, self.up), self.down)


class Llama(nn.Module):
    """(tokens, targets, and rope_tables) -> the mean loss."""

    def __init__(self, c, w):
        super().__init__()
        self.emb, self.norm, self.head = (nn.Parameter(torch.from_numpy(w[n])) for n in ("emb", "norm", "head"))
        self.blocks = nn.ModuleList(Block(c, w, i) for i in range(c["L"]))

    def forward(self, ids, labels, cos, sin):
        x = F.embedding(ids, self.emb)
        for blk in self.blocks:
            x = blk(x, cos, sin)
        logits = F.linear(F.rms_norm(x, x.shape[-1:], self.norm, C.EPS), self.head)
        return F.cross_entropy(logits.float().view(-1, logits.size(-1)), labels.reshape(-1))


def rope_tables(c):
    dim = c["H"] // c["heads"]
    inv = 1.0 / C.THETA ** (torch.arange(0, dim, 2).float() / dim)
    ang = torch.outer(torch.arange(c["seq"]).float(), inv)
    ang = torch.cat((ang, ang), -1)
    return ang.cos(), ang.sin()


def adam(params):
    return torch.optim.AdamW(params, lr=C.ADAM["lr"], betas=C.ADAM["betas"], eps=C.ADAM["eps"],
                             weight_decay=C.ADAM["wd"], fused=True)


def stepper(c, loss_fn, params):
    """step(i): the loss of batch i, and AdamW's update of `params`, clipped by their global norm."""
    opt = adam(params)

    def step(i):
        x, y = C.batch(c, c["batch"], c["seq"], i)
        loss = loss_fn(torch.from_numpy(x).long(), torch.from_numpy(y).long())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, C.ADAM["clip"])
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss.item()

    return step
