"""A Grok-1 of any shape in the layout of the release, written by pickle as the release's program would: for tests.

Shares no code with ostro/grok. Tensors are named as Haiku names them; the files are numbered in the order in which JAX
flattens these dicts, that of their keys.
"""
import contextlib
import json
import pickle
import sys

import ml_dtypes
import numpy as np
from numpy._core import multiarray


class QuantizedWeight8bit:
    def __init__(self, weight, scales):
        self.weight = weight
        self.scales = scales


# The release's program has the class in its main module, and so do its pickles.
QuantizedWeight8bit.__module__ = "__main__"
QuantizedWeight8bit.__qualname__ = "QuantizedWeight8bit"


def install():
    sys.modules["__main__"].QuantizedWeight8bit = QuantizedWeight8bit


@contextlib.contextmanager
def numpy_1():
    """NumPy 1 called the module of _reconstruct numpy.core.multiarray."""
    name = multiarray._reconstruct.__module__
    multiarray._reconstruct.__module__ = "numpy.core.multiarray"
    try:
        yield
    finally:
        multiarray._reconstruct.__module__ = name


TINY = {
    "vocab_size": 256, "hidden_size": 128, "intermediate_size": 688, "num_hidden_layers": 12, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 8, "max_position_embeddings": 8192, "num_experts": 8, "num_experts_per_tok": 2,
    "embedding_multiplier_scale": float(np.sqrt(128)), "output_multiplier_scale": 0.5773502691896257,
    "attn_output_multiplier": float(1 / np.sqrt(8)), "max_attn_value": 30.0, "rms_norm_eps": 1e-5, "row_groups": 8,
}


def quantize(values, groups):
    """int8 and the scales of `groups` parts of the rows, as bf16."""
    shape = values.shape
    parts = values.reshape(*shape[:-2], groups, shape[-2] // groups, shape[-1])
    scales = (np.abs(parts).max(axis=-2, keepdims=True) / 127).astype(ml_dtypes.bfloat16)
    weight = np.clip(np.rint(parts / scales.astype(np.float32)), -127, 127).astype(np.int8)
    return QuantizedWeight8bit(weight.reshape(shape), scales.reshape(*shape[:-2], groups, shape[-1]))


def dequantize(tensor, as_reference=False):
    """f32 of any tensor; `as_reference` rounds the products of int8 weights to bf16."""
    if not isinstance(tensor, QuantizedWeight8bit):
        return tensor.astype(np.float32)
    repeat = tensor.weight.shape[-2] // tensor.scales.shape[-2]
    values = tensor.weight.astype(np.float32) * np.repeat(tensor.scales.astype(np.float32), repeat, axis=-2)
    return values.astype(ml_dtypes.bfloat16).astype(np.float32) if as_reference else values


def make(config, seed):
    """{module: {parameter: tensor}} with random values."""
    rng = np.random.default_rng(seed)
    d, mlp, experts = config["hidden_size"], config["intermediate_size"], config["num_experts"]
    q, kv = (config[f"num_{kind}_heads"] * config["head_dim"] for kind in ("attention", "key_value"))

    def normal(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    def matrix(rows, columns, groups=1, lead=()):
        return quantize(normal(*lead, rows, columns) * np.float32(rows**-0.5) * (1 + rng.random((*lead, rows, 1), np.float32)), groups)

    def norm():
        return {"scale": (0.5 + rng.random(d)).astype(np.float32)}

    groups = config["row_groups"]
    tree = {"language_model/in_out_embed": {"embeddings": normal(config["vocab_size"], d) * np.float32(d**-0.5)},
            "language_model/rms_norm": norm()}
    for layer in range(config["num_hidden_layers"]):
        at = f"transformer/decoder_layer_{layer}"
        tree[f"{at}/moe/linear"] = {"w": matrix(d, mlp, lead=(experts,))}
        tree[f"{at}/moe/linear_v"] = {"w": matrix(d, mlp, lead=(experts,))}
        tree[f"{at}/moe/linear_1"] = {"w": matrix(mlp, d, groups, lead=(experts,))}
        tree[f"{at}/multi_head_attention/query"] = {"w": matrix(d, q)}
        tree[f"{at}/multi_head_attention/key"] = {"w": matrix(d, kv)}
        tree[f"{at}/multi_head_attention/value"] = {"w": matrix(d, kv)}
        tree[f"{at}/multi_head_attention/linear"] = {"w": matrix(q, d, groups)}
        tree[f"{at}/router"] = {"w": normal(d, experts)}
        for name in ("rms_norm", "rms_norm_1", "rms_norm_2", "rms_norm_3"):
            tree[f"{at}/{name}"] = norm()
    return tree


def flatten(tree):
    """Names and tensors in the order of the files."""
    return [(f"{module}/{name}", tree[module][name]) for module in sorted(tree) for name in sorted(tree[module])]


def write(tree, directory, config=None, version=numpy_1):
    directory.mkdir(parents=True, exist_ok=True)
    install()
    with version():
        for i, (_, tensor) in enumerate(flatten(tree)):
            (directory / f"tensor{i:05d}_000").write_bytes(pickle.dumps(tensor, protocol=4))
    if config is not None:
        (directory / "config.json").write_text(json.dumps(config))


def read(directory, count):
    """The tensors of the files, by CPython's pickle."""
    install()
    return [pickle.loads((directory / f"tensor{i:05d}_000").read_bytes()) for i in range(count)]
