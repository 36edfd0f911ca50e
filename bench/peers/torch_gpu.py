"""A training step in PyTorch on a GPU, as its users write it: torch.compile for each layer and the head, flash attention of
scaled_dot_product_attention, fused AdamW, master weights in f32, bf16 by autocast or f32 without TF32.

  torch_gpu.py --size 1024,24,16,16,2816 --batch 4 --numbers f32 --steps 10

--size: embed, layers, heads, heads of keys, mlp. Prints a line of JSON: the seconds of each step after the first three, tokens a
step, the most memory, versions. The batch is one and the same, of random tokens; nothing is read or written in between.
"""
import argparse, json, time

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight.to(x.dtype)


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Layer(nn.Module):
    def __init__(self, embed, heads, kv_heads, mlp):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, embed // heads
        line = lambda i, o: nn.Linear(i, o, bias=False)
        self.norm, self.mlp_norm = Norm(embed), Norm(embed)
        self.q, self.o = line(embed, embed), line(embed, embed)
        self.k, self.v = line(embed, kv_heads * self.head_dim), line(embed, kv_heads * self.head_dim)
        self.gate, self.up, self.down = line(embed, mlp), line(embed, mlp), line(mlp, embed)

    def forward(self, x, cos, sin):
        batch, length, embed = x.shape
        y = self.norm(x)
        heads = lambda z, n: z.view(batch, length, n, self.head_dim).transpose(1, 2)
        q = rotated(heads(self.q(y), self.heads), cos, sin)
        k = rotated(heads(self.k(y), self.kv_heads), cos, sin)
        v = heads(self.v(y), self.kv_heads)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kv_heads != self.heads)
        x = x + self.o(z.transpose(1, 2).reshape(batch, length, embed))
        y = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Head(nn.Module):
    def __init__(self, embed, vocab):
        super().__init__()
        self.norm, self.line = Norm(embed), nn.Linear(embed, vocab, bias=False)

    def forward(self, x, targets):
        return F.cross_entropy(self.line(self.norm(x)).float().flatten(0, 1), targets.reshape(-1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--size", required=True)
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--length", type=int, default=2048)
    p.add_argument("--vocab", type=int, default=32000)
    p.add_argument("--numbers", choices=("f32", "bf16"), required=True)
    p.add_argument("--steps", type=int, default=10)
    a = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    embed, layers, heads, kv_heads, mlp = map(int, a.size.split(","))
    table = nn.Embedding(a.vocab, embed).cuda()
    body = nn.ModuleList(Layer(embed, heads, kv_heads, mlp) for _ in range(layers)).cuda()
    head = Head(embed, a.vocab).cuda()
    parameters = [*table.parameters(), *body.parameters(), *head.parameters()]
    for x in parameters:
        if x.dim() > 1:
            nn.init.normal_(x, std=0.02)
    optimizer = torch.optim.AdamW(parameters, lr=3e-4, fused=True)
    dtype = torch.bfloat16 if a.numbers == "bf16" else torch.float32
    half = embed // heads // 2
    angles = torch.arange(a.length, device="cuda").float()[:, None] * 10000.0 ** (-torch.arange(half, device="cuda").float() / half)
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    layer, last = torch.compile(Layer.forward, dynamic=False), torch.compile(Head.forward, dynamic=False)
    tokens = torch.randint(0, a.vocab, (a.batch, a.length + 1), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=a.numbers == "bf16"):
            x = table(tokens[:, :-1]).to(dtype)
            for one in body:
                x = layer(one, x, cos, sin)
            loss = last(head, x, tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    seconds = []
    for _ in range(a.steps):
        begin = time.monotonic()
        step()
        torch.cuda.synchronize()
        seconds.append(time.monotonic() - begin)
    print(json.dumps(dict(seconds=seconds, tokens=a.batch * a.length, memory_bytes=torch.cuda.max_memory_allocated(),
                          parameters=sum(x.numel() for x in parameters), torch=torch.__version__,
                          device=torch.cuda.get_device_name())))


if __name__ == "__main__":
    main()
