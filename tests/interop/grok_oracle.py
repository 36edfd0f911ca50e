"""Grok-1's forward pass in NumPy, f64, with errors that can be planted: for tests.

Written from the description of the released program (docs/reference/grok.md, "The model"); shares no code with ostro. `tree` is what
grok_release.make gives. Every error in ERRORS is one that some port of the model made or could make. Released also rounds where
the released program does ("Rounding"); each of its RULES can be left out.
"""
import ml_dtypes
import numpy as np

from grok_release import QuantizedWeight8bit


def norm(x, scale, eps, one_plus=False):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * (scale + 1 if one_plus else scale)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_erf(x):
    from math import erf
    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def silu(x):
    return x / (1 + np.exp(-x))


def rope(x, theta, interleaved):
    """x [pos, heads, head_dim]."""
    pos, _, dim = x.shape
    angle = np.arange(pos)[:, None, None] * theta ** (-np.arange(0, dim, 2) / dim)
    cos, sin = np.cos(angle), np.sin(angle)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)
    a, b = x[..., :dim // 2], x[..., dim // 2:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


SCALES = "scales of the next group of rows"


def values(tree, error=None):
    """{module: f64 array}."""
    return {name: one_value(next(iter(parameters.values())), error) for name, parameters in tree.items()}


def one_value(tensor, error):
    if not isinstance(tensor, QuantizedWeight8bit):
        return tensor.astype(np.float64)
    scales = tensor.scales.astype(np.float64)
    if error == SCALES:
        scales = np.roll(scales, 1, axis=-2)
    return tensor.weight.astype(np.float64) * np.repeat(scales, tensor.weight.shape[-2] // scales.shape[-2], axis=-2)


ERRORS = ["layers in the order of their numbers", "linear and linear_v exchanged", "silu", "gelu by erf", "no cap", "cap after the mask",
          "interleaved rotation", "base of rotation 1e5", "base of rotation 1e6", "norms before and behind exchanged",
          "no norm behind", "no embedding multiplier", "no output multiplier", "norms by 1 + scale", "epsilon 1e-6",
          "gates that add up to 1", "router cap", SCALES, "down matrix not transposed",
          "top-k before softmax", "attention multiplier on its output", "one expert", "BOS added", "key heads interleaved"]


class Oracle:
    """`tree`: values(). Layers `layers` of it, all by default."""

    def __init__(self, tree, config, error=None, layers=None):
        self.config, self.error, self.tree = config, error, tree
        self.layers = list(range(config["num_hidden_layers"])) if layers is None else layers
        if error == "layers in the order of their numbers":  # what the files hold in the order of texts
            self.layers = [sorted(self.layers, key=str)[layer] for layer in self.layers]

    def bf16(self, rule, x):
        """x where the released program rounds, by the rule of that name."""
        return x

    def wide(self, rule, x):
        """x where it does not, though it might."""
        return x

    def hidden(self, ids):
        """Which keys a query does not see, bool [pos, pos]."""
        return np.triu(np.ones((len(ids), len(ids)), bool), 1)

    def logits(self, ids):
        """f64 [pos, vocab]."""
        c, e = self.config, self.error
        if e == "BOS added":
            ids = [1, *ids]
        self.mask = self.hidden(ids)
        table = self.tree["language_model/in_out_embed"]
        factor = self.bf16("embedding multiplier", np.array(c["embedding_multiplier_scale"]))
        x = self.bf16("embedding", table[np.array(ids)] * (1 if e == "no embedding multiplier" else factor))
        for layer in self.layers:
            x = self.layer(x, f"transformer/decoder_layer_{layer}/")
        out = self.bf16("head", self.norm(x, self.tree["language_model/rms_norm"]) @ table.T)
        factor = self.bf16("output multiplier", np.array(c["output_multiplier_scale"]))
        out = self.bf16("logits", out * (1 if e == "no output multiplier" else factor))
        return out[1:] if e == "BOS added" else out

    def norm(self, x, scale):
        return self.bf16("norms", norm(x, scale, 1e-6 if self.error == "epsilon 1e-6" else self.config["rms_norm_eps"],
                                       self.error == "norms by 1 + scale"))

    def layer(self, x, at):
        names = ["rms_norm", "rms_norm_1", "rms_norm_2", "rms_norm_3"]
        if self.error == "norms before and behind exchanged":
            names = [names[1], names[0], names[3], names[2]]
        before, behind, before_moe, behind_moe = (self.tree[at + name] for name in names)
        plain = self.error == "no norm behind"
        out = self.attention(self.norm(x, before), at + "multi_head_attention/")
        x = self.bf16("stream behind attention", x + (out if plain else self.norm(out, behind)))
        out = self.experts(self.norm(x, before_moe), at)
        return self.bf16("stream behind experts", x + (out if plain else self.norm(out, behind_moe)))

    def attention(self, x, at):
        c, e = self.config, self.error
        heads, kv, dim, pos = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"], len(x)
        theta = {"base of rotation 1e5": 1e5, "base of rotation 1e6": 1e6}.get(e, 1e4)
        q, k, v = (self.bf16("projections", x @ self.tree[at + name]).reshape(pos, n, dim) for name, n in (("query", heads), ("key", kv), ("value", kv)))
        q, k = (self.bf16("rotated", rope(a, theta, e == "interleaved rotation")) for a in (q, k))
        if e == "key heads interleaved":
            k, v = (np.tile(a, (1, heads // kv, 1)) for a in (k, v))
        else:
            k, v = (np.repeat(a, heads // kv, axis=1) for a in (k, v))
        scores = self.bf16("scores", np.einsum("qhd,khd->hqk", q, k)) * (dim**-0.5 if e == "attention multiplier on its output" else c["attn_output_multiplier"])
        hidden, cap = self.mask, c["max_attn_value"]
        if e == "cap after the mask":
            scores = cap * np.tanh(np.where(hidden, -1e30, scores) / cap)
        else:
            scores = np.where(hidden, -1e30, scores if e == "no cap" else cap * np.tanh(scores / cap))
        out = np.einsum("hqk,khd->qhd", self.bf16("probabilities", softmax(scores)), v).reshape(pos, heads * dim)
        out = self.bf16("projections", self.bf16("attended", out) @ self.tree[at + "linear"])
        return out * c["attn_output_multiplier"] if e == "attention multiplier on its output" else out

    def experts(self, x, at):
        c, e = self.config, self.error
        k = 1 if e == "one expert" else c["num_experts_per_tok"]
        logits = x @ self.tree[at + "router"]
        if e == "router cap":
            logits = 30 * np.tanh(logits / 30)
        probabilities = softmax(logits)
        chosen = np.argsort(-probabilities, axis=-1, kind="stable")[:, :k]
        gates = np.take_along_axis(probabilities, chosen, -1)
        if e == "gates that add up to 1":
            gates = gates / gates.sum(-1, keepdims=True)
        if e == "top-k before softmax":
            gates = softmax(np.take_along_axis(logits, chosen, -1))
        gate, up, down = (self.tree[at + "moe/" + name] for name in ("linear", "linear_v", "linear_1"))
        if e == "linear and linear_v exchanged":
            gate, up = up, gate
        if e == "down matrix not transposed":
            down = down.reshape(down.shape[0], down.shape[2], down.shape[1]).transpose(0, 2, 1)
        gates = self.bf16("gates", gates)
        act = {"silu": silu, "gelu by erf": gelu_erf}.get(e, gelu_tanh)
        out = np.zeros_like(x)
        for token in range(len(x)):
            for slot in range(k):
                expert = chosen[token, slot]
                pair = (self.bf16("projections", x[token] @ matrix[expert]) for matrix in (gate, up))
                hidden = self.wide("inner values rounded", act(next(pair)) * next(pair))
                out[token] += gates[token, slot] * self.wide("an expert's output rounded", hidden @ down[expert])
        return self.bf16("experts' sum", out)


RULES = ["embedding multiplier", "embedding", "head", "output multiplier", "logits", "norms", "stream behind attention",
         "stream behind experts", "projections", "rotated", "scores", "probabilities", "attended", "gates", "inner values rounded",
         "an expert's output rounded", "experts' sum", "matrices", "token 0 attended"]


def to_bf16(x):
    return np.asarray(x).astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)


class Released(Oracle):
    """With the released program's rounding; without the rule `error`, if that is one of RULES. Sums are in f64: where the
    program's f32 sum lies on the other side of a boundary, a value differs by a unit of its last place."""

    def __init__(self, tree, config, error=None, layers=None):
        super().__init__(tree, config, error, layers)
        self.tree = {name: value if "rms_norm" in name or "router" in name else self.bf16("matrices", value)
                     for name, value in tree.items()}

    def bf16(self, rule, x):
        return x if rule == self.error else to_bf16(x)

    def wide(self, rule, x):
        return to_bf16(x) if rule == self.error else x

    def hidden(self, ids):
        padding = np.array(ids) == 0
        return super().hidden(ids) | (False if self.error == "token 0 attended" else padding[None, :])
