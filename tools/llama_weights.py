"""Compares the weights and the config.json of a Llama, as Hugging Face has them, with a checkpoint (docs/spec/decoder_step.md)."""
import struct

import numpy as np

import verify_chain as record
from verify_chain import CANNOT_CHECK, FLOAT, INCOMPLETE, canonical, require


def safetensors(path):
    """Name -> (type, shape, bytes) of a file of weights."""
    data = record.read(path)
    start = 8 + struct.unpack_from("<Q", data)[0]
    header = {name: info for name, info in record.parse(data[8:start], path.name).items() if name != "__metadata__"}
    ends = [0, *(end for pair in sorted(info["data_offsets"] for info in header.values()) for end in pair), len(data) - start]
    require(ends[::2] == ends[1::2], f"{path.name}: its tensors do not fill it")
    return {n: (i["dtype"], i["shape"], data[start + i["data_offsets"][0]:start + i["data_offsets"][1]]) for n, i in header.items()}


def cast(words, dtype):
    """The bytes of f32 words (u4) in another type, rounded to nearest even (N1)."""
    if dtype == "F16":
        return words.view("<f4").astype("<f2").tobytes()
    if dtype == "BF16":
        rounded = (words.astype(np.uint64) + 0x7FFF + ((words >> 16) & 1)) >> 16
        rounded = np.where((words & 0x7F800000) == 0, words >> 31 << 15, rounded)
        return np.where((words & 0x7FFFFFFF) > 0x7F800000, words >> 16 | 0x40, rounded).astype("<u2").tobytes()
    require(dtype == "F32", f"weights of type {dtype}: this program knows F32, BF16 and F16", CANNOT_CHECK)
    return words.astype("<u4").tobytes()


def llama_tensors(p):
    """Of the parameters by path (docs/spec/decoder_step.md): names of Hugging Face, views of the parameters, and shapes."""
    def tensor(name, view, *shape):
        return name + ".weight", view, shape or view.shape
    yield tensor("model.embed_tokens", p["embedding"])
    for i, qkv in enumerate(p["layers/attention/qkv"]):
        heads, embed, at = np.moveaxis(qkv, 0, -1), qkv.shape[0], f"model.layers.{i}."  # heads: kv_heads, qkv, head_dim, embed
        yield tensor(at + "input_layernorm", p["layers/attention_norm"][i])
        yield tensor(at + "post_attention_layernorm", p["layers/mlp_norm"][i])
        for name, part in (("q", heads[:, :-2]), ("k", heads[:, -2]), ("v", heads[:, -1])):
            yield tensor(f"{at}self_attn.{name}_proj", part, part.size // embed, embed)
        yield tensor(at + "self_attn.o_proj", np.moveaxis(p["layers/attention/o"][i], -1, 0), embed, heads[:, :-2].size // embed)
        for half, name in enumerate(("gate", "up")):
            yield tensor(f"{at}mlp.{name}_proj", p["layers/mlp/gate_up"][i][:, half].T)
        yield tensor(at + "mlp.down_proj", p["layers/mlp/down"][i].T)
    yield tensor("model.norm", p["norm"])
    if "head" in p:
        yield tensor("lm_head", p["head"].T)


def config_of(options, dtype, vocabulary):
    """What config.json has of a Llama with these options of the chain, of what decides the model's numbers."""
    o = values(options)
    names = {"theta": "rope_theta", "type": "rope_type"}
    rope = {names.get(name, name): value for name, value in o["rope"].items() if value is not None}
    require("mscale_all_dim" not in rope, "config.json: a rope with mscale_all_dim is not known to this program", CANNOT_CHECK)
    if rope["rope_type"] == "dynamic":
        del rope["original_max_position_embeddings"]  # it is max_position_embeddings
    length = {key: rope[key] for key in ("original_max_position_embeddings",) if rope["rope_type"] == "longrope"}
    older = {name: value for name, value in rope.items() if name != "rope_theta"} if rope["rope_type"] != "default" else None
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": o["hidden_dim"],
        "intermediate_size": o["intermediate_dim"], "num_hidden_layers": o["num_layers"], "num_attention_heads": o["num_heads"],
        "num_key_value_heads": o["num_kv_heads"], "head_dim": o["head_dim"], "hidden_act": o["activation_function"],
        "max_position_embeddings": o["seq_len"], "rms_norm_eps": o["layer_norm_epsilon"], "tie_word_embeddings": o["tie_word_embeddings"],
        "attention_bias": False, "mlp_bias": False, "rope_parameters": rope, "rope_theta": rope["rope_theta"], "rope_scaling": older,
        "dtype": dtype, "torch_dtype": dtype, **length}


def values(options):
    """Options of a canonical configuration with their floats as numbers."""
    if isinstance(options, dict):
        return {name: values(value) for name, value in options.items()}
    if isinstance(options, list):
        return [values(value) for value in options]
    return float.fromhex(options) if FLOAT.fullmatch(str(options)) else options


def check_config(path, expected):
    """config.json has these members, and of others only those that decide no number."""
    found = record.parse(record.read(path), path.name)
    for name, value in expected.items():
        require(canonical(found.get(name)) == canonical(value), f"{path.name}: its {name} is {found.get(name)}, by the chain {value}")
    harmless = {"initializer_range", "use_cache", "attention_dropout", "bos_token_id", "eos_token_id", "pad_token_id"}
    more = set(found) - set(expected) - harmless
    require(not more, f"{path.name}: it has {sorted(more)}, which this program does not know of a Llama")


def check(model, files, folder, made, options):
    """The weights among these files are the cast of the state in `folder`: of the averages that an optimizer keeps, else of the parameters.
    Where a bundle lacks averages, as all moments (--parameters_only), the hashes of weights in f32 are compared with the manifest.
    `made`: the type of the weights; `options`: those of the model in the chain's configuration at that step."""
    found, places, names = {}, {}, [name for name in files if name.endswith(".safetensors")]
    for name in names:
        for tensor, entry in safetensors(model / name).items():
            require(tensor not in found, f"{tensor} stands in {name} and in {places.get(tensor)}")
            found[tensor], places[tensor] = entry, name
    index, whole = model / "model.safetensors.index.json", "model.safetensors"
    if index.exists():
        fits = record.parse(record.read(index), index.name)["weight_map"] == places and whole not in names
    else:
        fits = names == [whole]
    require(fits, f"{', '.join(names)}: not the files that programs take the weights from, or not the tensors that the index has of each")
    tensors = {tensor["path"]: tensor for tensor in record.parse(record.read(folder / "manifest.json"), folder.name)["tensors"]}
    used = {path[6:].removesuffix("/weight"): tensors.get(f"optimizer/average/{path[6:]}", tensor)
            for path, tensor in tensors.items() if path.startswith("model/")}
    dtype = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}.get(made)
    check_config(model / "config.json", config_of(options, dtype, tensors["model/embedding/weight"]["shape"][0]))
    lost = not all((folder / tensor["path"]).exists() for tensor in used.values())
    arrays = {name: np.zeros(t["shape"], "<u4") if lost else record.load(folder / t["path"], t, t["path"]) for name, t in used.items()}
    for name, view, shape in llama_tensors(arrays):
        require(name in found, f"the weights lack {name}")
        dtype, given, data = found.pop(name)
        require((dtype.lower(), given) == (made, list(shape)), f"{name}: it is {dtype} {given}, not {made} {list(shape)}")
        if lost:
            require(dtype == "F32", f"{folder.name} lacks the arrays of which the weights in {dtype} were made", INCOMPLETE)
            view[...] = np.frombuffer(data, "<u4").reshape(view.shape)
        expected = cast(np.ascontiguousarray(view), dtype)
        width = len(expected) // max(1, view.size)
        other = [i for i in range(0, len(expected), width) if data[i:i + width] != expected[i:i + width]] if data != expected else []
        require(not other, f"{places[name]}: {name}: {len(other)} of its numbers are not the cast to {dtype} of the state of {folder.name}, "
                           f"the first of them in its bytes from {other[0] if other else 0} on")
    require(not found, f"the weights have {', '.join(sorted(found)[:3])}, which the state lacks")
    for name, tensor in used.items() if lost else ():
        record.check_cells(arrays[name], tensor, tensor["path"])
