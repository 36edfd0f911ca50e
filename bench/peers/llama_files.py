"""A Llama of random bf16 weights as a Hugging Face directory and as the same numbers in a GGUF, for programs that serve either.

  llama_files.py --size base125|llama1b --out DIR        makes DIR/hf and DIR/model.gguf

Texts are of ASCII letters, and the head has no weights for tokens that are bytes of longer characters, or that llama.cpp takes for its
own: greedy answers never choose them, so no token waits for the rest of a character.
"""
import argparse, itertools, json, pathlib, struct

import numpy as np

from common import SIZES

CONTEXT, EPS, THETA = 4608, 1e-5, 10000.0
GGUF_F32, GGUF_BF16, ALIGNMENT = 0, 30, 32


def bf16(values):
    """f32 to the nearest bf16, as u16."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def tensors(c):
    """Hugging Face's name, GGUF's name, shape; of a norm the shape has one axis."""
    width, keys, inner = c["H"], c["H"] // c["heads"] * c["kv"], c["ffn"]
    yield "model.embed_tokens.weight", "token_embd.weight", (c["V"], width)
    for i in range(c["L"]):
        theirs, ours = f"model.layers.{i}.", f"blk.{i}."
        yield theirs + "input_layernorm.weight", ours + "attn_norm.weight", (width,)
        for name, short, rows in (("q", "q", width), ("k", "k", keys), ("v", "v", keys), ("o", "output", width)):
            yield f"{theirs}self_attn.{name}_proj.weight", f"{ours}attn_{short}.weight", (rows, width)
        yield theirs + "post_attention_layernorm.weight", ours + "ffn_norm.weight", (width,)
        for name, shape in (("gate", (inner, width)), ("up", (inner, width)), ("down", (width, inner))):
            yield f"{theirs}mlp.{name}_proj.weight", f"{ours}ffn_{name}.weight", shape
    yield "model.norm.weight", "output_norm.weight", (width,)
    yield "lm_head.weight", "output.weight", (c["V"], width)


def values(number, name, shape):
    """The tensor's numbers as bf16; each tensor draws its own."""
    if len(shape) == 1:
        return bf16(np.ones(shape, np.float32))
    out = np.random.default_rng(number).standard_normal(shape, dtype=np.float32) * np.float32(0.02)
    if name == "lm_head.weight":
        out[:3] = out[128:259] = 0
    return bf16(out)


def rotated_in_pairs(array, heads):
    """Rows of q or k in the order of llama.cpp, which rotates neighbours where Hugging Face rotates halves."""
    return array.reshape(heads, 2, array.shape[0] // heads // 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)


def letters(count):
    """Texts of `count` tokens: bytes as a byte-level tokenizer writes them, then pairs and triples of ASCII, with their merges."""
    seen = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    names = {b: chr(b) for b in seen}
    names.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in names)})
    words, merges = [names[b] for b in range(256)], []
    ascii_words = [chr(b) for b in range(33, 127)]
    pairs = [(a, b) for a in ascii_words for b in ascii_words]
    for left, right in itertools.chain(pairs, ((a + b, c) for a, b in pairs for c in ascii_words)):
        if len(words) == count:
            break
        words.append(left + right)
        merges.append([left, right])
    return words, merges


def write_tokenizer(path, count):
    words, merges = letters(count)
    path.write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": {w: i for i, w in enumerate(words)}, "merges": merges}}))


def write_directory(folder, c):
    folder.mkdir(parents=True, exist_ok=True)
    header, at = {}, 0
    for name, _, shape in tensors(c):
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for number, (name, _, shape) in enumerate(tensors(c)):
            out.write(values(number, name, shape).tobytes())
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": c["V"], "hidden_size": c["H"],
        "intermediate_size": c["ffn"], "num_hidden_layers": c["L"], "num_attention_heads": c["heads"],
        "num_key_value_heads": c["kv"], "hidden_act": "silu", "rms_norm_eps": EPS, "rope_theta": THETA,
        "max_position_embeddings": CONTEXT, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}))
    write_tokenizer(folder / "tokenizer.json", c["V"])


class Gguf:
    """A file of GGUF, version 3: fields, then the list of tensors, then their numbers."""

    def __init__(self):
        self.fields = []

    def text(self, value):
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    def field(self, name, kind, data):
        self.fields.append(self.text(name) + struct.pack("<I", kind) + data)

    def number(self, name, value):
        self.field(name, 4, struct.pack("<I", value))

    def real(self, name, value):
        self.field(name, 6, struct.pack("<f", value))

    def array(self, name, kind, items):
        self.field(name, 9, struct.pack("<IQ", kind, len(items)) + b"".join(items))

    def write(self, path, listed):
        """`listed`: name, shape, type and a function that gives the bytes."""
        listed, at, head = list(listed), 0, b""
        for name, shape, kind, _ in listed:
            size = int(np.prod(shape)) * (4 if kind == GGUF_F32 else 2)
            head += self.text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
            head += struct.pack("<IQ", kind, at)
            at += -(-size // ALIGNMENT) * ALIGNMENT
        with open(path, "wb") as out:
            out.write(b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(self.fields)) + b"".join(self.fields) + head)
            for _, _, _, make in listed:
                out.write(bytes(-out.tell() % ALIGNMENT))
                out.write(make())


def write_gguf(path, c):
    g = Gguf()
    g.field("general.architecture", 8, g.text("llama"))
    g.number("general.file_type", 32)
    for name, value in (("block_count", c["L"]), ("context_length", CONTEXT), ("embedding_length", c["H"]),
                        ("feed_forward_length", c["ffn"]), ("attention.head_count", c["heads"]),
                        ("attention.head_count_kv", c["kv"]), ("rope.dimension_count", c["H"] // c["heads"]), ("vocab_size", c["V"])):
        g.number("llama." + name, value)
    g.real("llama.attention.layer_norm_rms_epsilon", EPS)
    g.real("llama.rope.freq_base", THETA)
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    words += [f"t{i}" for i in range(c["V"] - len(words))]
    kinds += [1] * (c["V"] - len(kinds))
    g.field("tokenizer.ggml.model", 8, g.text("llama"))
    g.array("tokenizer.ggml.tokens", 8, [g.text(word) for word in words])
    g.array("tokenizer.ggml.scores", 6, [struct.pack("<f", 0)] * c["V"])
    g.array("tokenizer.ggml.token_type", 5, [struct.pack("<i", kind) for kind in kinds])
    g.number("tokenizer.ggml.bos_token_id", 1)
    g.number("tokenizer.ggml.eos_token_id", 2)

    def data(number, name, ours, shape):
        array = values(number, ours, shape)
        if len(shape) == 1:
            return np.ones(shape, np.float32).tobytes()
        if ".attn_q." in name or ".attn_k." in name:
            array = rotated_in_pairs(array, c["heads"] if ".attn_q." in name else c["kv"])
        return array.tobytes()

    g.write(path, [(name, shape, GGUF_F32 if len(shape) == 1 else GGUF_BF16, lambda n=number, m=name, o=ours, s=shape: data(n, m, o, s))
                   for number, (ours, name, shape) in enumerate(tensors(c))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", required=True, choices=list(SIZES))
    parser.add_argument("--out", required=True, type=pathlib.Path)
    a = parser.parse_args()
    write_directory(a.out / "hf", SIZES[a.size])
    write_gguf(a.out / "model.gguf", SIZES[a.size])


if __name__ == "__main__":
    main()
