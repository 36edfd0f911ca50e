"""Loss and gradients of a small Llama in f32, as docs/spec/decoder_step.md says: forward, then backward by hand.

Arrays have the axes [leaf, example, pos, ...]. All leaves are computed at once; what a leaf sums up it sums by itself.
"""
import numpy as np

from clauses import (LOG2E, block_exp, dot, exp, exp64, f32, fma, key_of, log64, same, serial, sin_cos64, striped, truncated_normal)


class Sizes:
    def __init__(self, config, tokens_in_vocabulary):
        m = config["model"]
        self.embed, self.mlp, self.layers, self.pos = m["hidden_dim"], m["intermediate_dim"], m["num_layers"], m["seq_len"]
        self.kv, self.dim, self.vocab = m["num_kv_heads"], m["head_dim"], m.get("vocab_size") or tokens_in_vocabulary
        self.group = m["num_heads"] // self.kv
        self.epsilon, self.theta = (f32(float.fromhex(m["layer_norm_epsilon"])), float.fromhex(m["rope"]["theta"]))

    def shapes(self):
        """Every parameter: path, names of the axes, shape. This is the order of the program."""
        n, e = self.layers, self.embed
        return [("model/embedding/weight", "vocab embed", (self.vocab, e)),
                ("model/layers/attention_norm/weight", "layers embed", (n, e)),
                ("model/layers/attention/qkv/weight", "layers embed kv_heads qkv head_dim", (n, e, self.kv, self.group + 2, self.dim)),
                ("model/layers/attention/o/weight", "layers kv_heads group head_dim embed", (n, self.kv, self.group, self.dim, e)),
                ("model/layers/mlp_norm/weight", "layers embed", (n, e)),
                ("model/layers/mlp/gate_up/weight", "layers embed gate_up mlp", (n, e, 2, self.mlp)),
                ("model/layers/mlp/down/weight", "layers mlp embed", (n, self.mlp, e)),
                ("model/norm/weight", "embed", (e,)), ("model/head/weight", "embed vocab", (e, self.vocab))]


def initial_state(config, sizes):
    deviation = f32(float.fromhex(config["model"]["initializer_range"]))
    seed = config["trainer"]["seed"]
    return {path: np.ones(shape) if "norm" in path else f32(truncated_normal(key_of(seed, *path.split("/")), shape) * deviation)
            for path, _, shape in sizes.shapes()}


def norm(x, weight, epsilon):
    """RMS norm; returns the result, x without its length, and one over the length."""
    mean = f32(striped(f32(x * x)) * f32(1 / x.shape[-1]))
    r = f32(1 / f32(np.sqrt(f32(mean + epsilon))))[..., None]
    y = f32(x * r)
    return f32(y * weight), y, r


def norm_gradient(ct, x, weight, y, r, residual=None):
    """Cotangents of x and of the weight (for each leaf). `residual` is what x already got from other uses."""
    to_weight = serial(flat(f32(ct * y)), 1)
    ct = f32(ct * weight)
    to_r = serial(f32(ct * x), -1)[..., None]
    to_mean = f32(f32(to_r * -0.5) * f32(f32(r * r) * r))
    to_square = f32(f32(to_mean * f32(1 / x.shape[-1])) * x)
    first = f32(ct * r) if residual is None else f32(residual + f32(ct * r))
    return f32(f32(first + to_square) + to_square), to_weight


def flat(x):
    """[leaf, example, pos, ...] to [leaf, example and pos, ...]: the index that gradients of weights are summed over."""
    return x.reshape((x.shape[0], -1) + x.shape[3:])


def linear(x, w):
    """x [..., in] times w [in, ...]."""
    return dot(x, w.reshape(w.shape[0], -1), w.shape[0]).reshape(x.shape[:-1] + w.shape[1:])


def weight_gradient(x, ct):
    """The gradient of w of y = x w: of each leaf one chain over its tokens. x [leaf, example, pos, in], ct likewise."""
    a, b = flat(x), flat(ct.reshape(ct.shape[:3] + (-1,)))
    return dot(np.swapaxes(a, 1, 2), b, a.shape[1])


def turn(x, cos, sin):
    """Rotates pairs (element, element half a head later) by the angle of the position, which is axis 2 of x."""
    shape = (1, 1, cos.shape[0]) + (1,) * (x.ndim - 4) + (cos.shape[1],)
    c, s = cos.reshape(shape), sin.reshape(shape)
    a, b = np.split(x, 2, -1)
    return np.concatenate([f32(f32(a * c) - f32(b * s)), f32(f32(b * c) + f32(a * s))], -1)


def turn_gradient(ct, cos, sin):
    shape = (1, 1, cos.shape[0]) + (1,) * (ct.ndim - 4) + (cos.shape[1],)
    c, s = cos.reshape(shape), sin.reshape(shape)
    first, second = np.split(ct, 2, -1)
    return np.concatenate([f32(f32(second * s) + f32(first * c)), f32(f32(second * c) + f32(-first * s))], -1)


class Attention:
    """Causal attention of N9. q [leaf, example, pos, kv_heads, group, head_dim]; k and v without group."""
    def __init__(self, dim):
        self.scale = f32(1 / np.sqrt(np.float64(dim)))
        self.kappa = f32(self.scale * LOG2E)

    def scores(self, q, k):
        """[..., kv_heads, group, query, key]"""
        q, k = np.moveaxis(q, 2, -2), np.moveaxis(k, 2, -1)[..., None, :, :]
        total = np.zeros(q.shape[:-1] + (k.shape[-1],))
        for d in range(q.shape[-1]):
            total = fma(q[..., d, None], k[..., d, None, :], total)
        return total

    def forward(self, q, k, v):
        s, n = self.scores(q, k), q.shape[2]
        seen = np.arange(n)[:, None] >= np.arange(n)[None, :]
        values = np.moveaxis(v, 2, -2)[..., None, :, :]  # [..., kv_heads, 1, key, head_dim]
        m, total, out = np.full(s.shape[:-1], -1e30), np.zeros(s.shape[:-1]), np.zeros(s.shape[:-1] + q.shape[-1:])
        m = f32(m)
        for first in range(0, n, 128):
            keys = slice(first, first + 128)
            largest = np.maximum(m, np.where(seen[:, keys], s[..., keys], -np.inf).max(-1))
            shrink = block_exp(m, largest, self.kappa)
            total, out = f32(total * shrink), f32(out * shrink[..., None])
            p = np.where(seen[:, keys], block_exp(s[..., keys], largest[..., None], self.kappa), 0.0)
            for j in range(p.shape[-1]):
                total = f32(total + p[..., j])
                out = fma(p[..., j, None], values[..., first + j, None, :], out)
            m = largest
        r = f32(1 / total)
        return np.moveaxis(f32((out + 0.0) * r[..., None]), -2, 2), m + 0.0, r

    def gradient(self, q, k, v, o, m, r, do):
        n = q.shape[2]
        seen = np.arange(n)[:, None] >= np.arange(n)[None, :]
        p = np.where(seen, f32(block_exp(self.scores(q, k), m[..., None], self.kappa) * r[..., None]), 0.0)
        delta = np.moveaxis(striped(f32(do * o)), 2, -1)  # [..., kv_heads, group, query]
        ds = np.where(seen, f32(p * f32(self.scores(do, v) - delta[..., None])), 0.0)
        by_query, gradient = np.moveaxis(q, 2, -2), np.moveaxis(do, 2, -2)  # [..., kv_heads, group, query, head_dim]
        keys = np.moveaxis(k, 2, -2)[..., None, :, :]
        dq = np.zeros(by_query.shape)
        for j in range(n):
            dq = fma(ds[..., j, None], keys[..., j, None, :], dq)
        dk, dv = (np.zeros(np.moveaxis(k, 2, -2).shape) for _ in range(2))
        for g in range(q.shape[4]):
            for i in range(n):
                dk = fma(ds[..., g, i, :, None], by_query[..., g, i, None, :], dk)
                dv = fma(p[..., g, i, :, None], gradient[..., g, i, None, :], dv)
        return [np.moveaxis(x + 0.0, -2, 2) for x in (f32(dq * self.scale), f32(dk * self.scale), dv)]


def cross_entropy(logits, targets):
    """Loss of each token, and its cotangent by the logits with weight 1 (N11)."""
    m = logits.max(-1)
    kappa = f32(LOG2E)
    e = block_exp(logits, m[..., None], kappa)
    total = striped(e)
    loss = f32(f32(m + f32(log64(total))) - np.take_along_axis(logits, targets[..., None], -1)[..., 0])
    p = f32(e * f32(1 / total)[..., None])
    at_target = np.arange(logits.shape[-1]) == targets[..., None]
    return loss, np.where(at_target, f32(p - 1.0), p)


def leaves(w, sizes, inputs, targets):
    """Loss sum and gradients of every leaf. inputs and targets: [leaf, example, pos]."""
    attention = Attention(sizes.dim)
    frequency = np.array([exp64(-2.0 * i / sizes.dim * log64(sizes.theta)) for i in range(sizes.dim // 2)])
    angle = f32(np.arange(sizes.pos)[:, None] * f32(frequency))
    sin, cos = (f32(x) for x in sin_cos64(angle))

    # Forward. Each layer leaves what its backward part reads.
    x, kept = w["model/embedding/weight"][inputs], []
    for i in range(sizes.layers):
        layer = {path.removeprefix("model/layers/").removesuffix("/weight"): value[i] for path, value in w.items() if "/layers/" in path}
        n1, y1, r1 = norm(x, layer["attention_norm"], sizes.epsilon)
        qkv = linear(n1, layer["attention/qkv"])  # [leaf, example, pos, kv_heads, group + 2, head_dim]
        q, k, v = turn(qkv[..., :-2, :], cos, sin), turn(qkv[..., -2, :], cos, sin), qkv[..., -1, :]
        o, m, r = attention.forward(q, k, v)
        o_flat = o.reshape(o.shape[:3] + (-1,))
        h = f32(x + linear(o_flat, layer["attention/o"].reshape(-1, sizes.embed)))
        n2, y2, r2 = norm(h, layer["mlp_norm"], sizes.epsilon)
        both = linear(n2, layer["mlp/gate_up"])
        gate, up = both[..., 0, :], both[..., 1, :]
        sigmoid = f32(1 / f32(1 + exp(-gate)))
        silu = f32(gate * sigmoid)
        inner = f32(silu * up)
        kept.append((layer, x, n1, y1, r1, q, k, v, o, m, r, o_flat, h, n2, y2, r2, gate, up, sigmoid, silu, inner))
        x = f32(h + linear(inner, layer["mlp/down"]))
    last, y, r = norm(x, w["model/norm/weight"], sizes.epsilon)
    loss, ct = cross_entropy(linear(last, w["model/head/weight"]), targets)

    # Backward, the last use first.
    gradients = {"model/head/weight": weight_gradient(last, ct)}
    ct = linear(ct, w["model/head/weight"].T)
    ct, gradients["model/norm/weight"] = norm_gradient(ct, x, w["model/norm/weight"], y, r)
    of_layers = []
    for layer, x, n1, y1, r1, q, k, v, o, m, r, o_flat, h, n2, y2, r2, gate, up, sigmoid, silu, inner in reversed(kept):
        g = {"mlp/down": weight_gradient(inner, ct)}
        to_inner = linear(ct, layer["mlp/down"].T)
        to_silu, to_up = f32(to_inner * up), f32(to_inner * silu)
        to_gate = f32(f32(to_silu * sigmoid) + f32(f32(to_silu * gate) * f32(sigmoid * f32(1 - sigmoid))))
        to_both = np.stack([to_gate, to_up], 3)
        g["mlp/gate_up"] = weight_gradient(n2, to_both)
        to_n2 = linear(to_both.reshape(to_both.shape[:3] + (-1,)), layer["mlp/gate_up"].reshape(sizes.embed, -1).T)
        ct, g["mlp_norm"] = norm_gradient(to_n2, h, layer["mlp_norm"], y2, r2, residual=ct)
        g["attention/o"] = weight_gradient(o_flat, ct)
        do = linear(ct, layer["attention/o"].reshape(-1, sizes.embed).T).reshape(o.shape)
        dq, dk, dv = attention.gradient(q, k, v, o, m, r, do)
        to_qkv = np.concatenate([turn_gradient(dq, cos, sin), turn_gradient(dk, cos, sin)[..., None, :], dv[..., None, :]], -2)
        g["attention/qkv"] = weight_gradient(n1, to_qkv)
        to_n1 = linear(to_qkv.reshape(to_qkv.shape[:3] + (-1,)), layer["attention/qkv"].reshape(sizes.embed, -1).T)
        ct, g["attention_norm"] = norm_gradient(to_n1, x, layer["attention_norm"], y1, r1, residual=ct)
        of_layers.append(g)
    for name in of_layers[0]:
        gradients[f"model/layers/{name}/weight"] = np.stack([g[name] for g in reversed(of_layers)], 1)
    table = np.zeros((inputs.shape[0], sizes.vocab, sizes.embed))
    for leaf, (rows, cts) in enumerate(zip(inputs, ct)):
        for token, row in zip(rows.reshape(-1), cts.reshape(-1, sizes.embed)):
            table[leaf, token] = f32(table[leaf, token] + row)  # N10: ascending source index
    gradients["model/embedding/weight"] = table
    sums = serial(flat(loss[..., None])[..., 0], 1, same)  # f64
    return sums, {path: gradients[path].reshape((-1,) + shape) for path, _, shape in sizes.shapes()}
