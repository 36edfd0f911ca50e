#!/usr/bin/env python3
"""Compares our Jinja engine and chat format with jinja2 and transformers' apply_chat_template.

(a) small templates, construct by construct, and templates in the manner of those that models are published with, over
    random conversations: the same text, or an error from both;
(b) ids and assistant masks of apply_chat_template(return_assistant_tokens_mask=True) with a tokenizer trained here;
(c) templates without generation blocks: masks by prefixes, or a refusal; supervised and prebuilt rows;
(d) tokenizers with beginning tokens and several end tokens: ids of texts, prompts, pairs and where generation ends, as TRL
    (sft_trainer.py, dpo_trainer.py) and transformers make them;
(e) ids of conversations with functions over HTTP (served_chats.py): three drawn templates, in full all with 300 conversations each.
Usage: check_chat.py --helper build/.../chat_helper --ostro build/.../ostro [--rounds N]
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from chat_snippets import CONTEXT, SNIPPETS
from chat_templates import TEMPLATES
import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from served_chats import ServedChats
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

import seed

SPECIAL = ["<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]", "[/INST]", "<|eot_id|>", "<|start_header_id|>",
           "<|end_header_id|>", "<start_of_turn>", "<end_of_turn>", "<|image|>"]
WORDS = ["hello", "Wörld", "the answer is 42", "<think>hm</think>ok", "</think>", "naïve", "日本語テキスト", "🙂👩‍👩‍👧", "a\tb",
         "{{ not }}", "{% code %}", "\"quoted\" 'text'", "<b>&amp;</b>", "ΟΔΟΣ", "İstanbul ŒUVRE", "\\n \\u0041", "x = 1;\n  y = 2\n",
         "\u00a0", "\u2028", "line\r\nline", "<|im_end|>", "</s>", "e\u0301", "٣٤", "ﬁne straße"]


def text(rng, empty=0.05):
    if rng.random() < empty:
        return rng.choice(["", " ", "\n\n"])
    parts = rng.choices(WORDS, k=rng.randint(1, 6))
    return rng.choice(["", " ", "\n"]) + rng.choice([" ", "\n", ""]).join(parts) + rng.choice(["", "", "\n", "  "])


def arguments(rng):
    return {rng.choice(["city", "Zahl", "items", "q"]): rng.choice([text(rng), 3, 2.5, None, True, [1, "b"], {"k": 1e21}])
            for _ in range(rng.randint(0, 3))}


def tools(rng):
    out = []
    for i in range(rng.randint(1, 3)):
        properties = {name: {"type": rng.choice(["string", "number", "integer", "boolean", "array", ["string", "null"]]),
                             "description": text(rng)} for name in rng.sample(["b_name", "A", "items", "zed"], rng.randint(0, 3))}
        for p in properties.values():
            if p["type"] == "array":
                p["items"] = {"type": "string", "enum": ["x", "y"]}
            elif p["type"] == "string" and rng.random() < 0.5:
                p["enum"], p["default"] = ["one", "two"], "one"
            elif p["type"] == "number":
                p["default"] = rng.choice([1, 0.5, 1e-7, 1e16, -3])
        out.append({"type": "function", "function": {
            "name": f"do_{i}", "description": text(rng), "parameters": {
                "type": "object", "properties": properties, "required": sorted(properties)[:1]}}})
    return out


def conversation(rng):
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": text(rng)})
    for _ in range(rng.randint(1, 4)):
        content = text(rng)
        if rng.random() < 0.1:
            content = [{"type": "text", "text": text(rng)}, {"type": rng.choice(["text", "image"]), "text": "t"}]
        messages.append({"role": "user", "content": content})
        if rng.random() < 0.2:
            messages.append({"role": "assistant", "content": rng.choice(["", None]), "tool_calls": [
                {"id": "abcdefghi", "type": "function", "function": {"name": "do_0", "arguments": arguments(rng)}}
                for _ in range(rng.choice([1, 1, 2]))]})
            messages.append({"role": "tool", "content": rng.choice([text(rng), {"r": 1}, ["a"]])})
        if rng.random() < 0.05:
            messages.append({"role": "odd", "content": "?"})
        message = {"role": "assistant", "content": text(rng)}
        if rng.random() < 0.2:
            message[rng.choice(["reasoning_content", "thinking", "reasoning"])] = text(rng)
        messages.append(message)
    if rng.random() < 0.2:
        messages.pop()
    return messages


class Ours:
    def __init__(self, helper):
        self.helper = helper

    def run(self, args, lines):
        data = "".join(json.dumps(line) + "\n" for line in lines)
        result = subprocess.run([self.helper, *map(str, args)], input=data.encode(), capture_output=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{args}: {result.stderr.decode(errors='replace')}")
        out = [json.loads(line) for line in result.stdout.decode().split("\n")[:-1]]
        assert len(out) == len(lines), (len(out), len(lines))
        return out


def theirs(template, context):
    try:
        return {"text": _compile_jinja_template(template).render(**context)}
    except Exception as error:  # noqa: BLE001: whatever Python raises is an error of the template
        return {"error": f"{type(error).__name__}: {error}"}


def compare(name, expected, got, bad):
    if ("error" in expected) != ("error" in got) or expected.get("text") != got.get("text"):
        bad.append(f"{name}\n  theirs {expected}\n  ours   {got}")


def check_snippets(ours, bad):
    results = ours.run(["render"], [{"template": s, "context": CONTEXT} for s in SNIPPETS])
    for snippet, got in zip(SNIPPETS, results):
        compare(snippet, theirs(snippet, CONTEXT), got, bad)
    failed = sum("error" in r for r in results)
    print(f"{len(SNIPPETS)} small templates, {failed} of them errors on both sides")
    return bad


def marked(template):
    return re.search(r"{%-?\s*generation", template) is not None


def plain(messages):
    return [{k: v for k, v in m.items() if v is not None} for m in messages]


def make_tokenizer(folder, rng):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([text(rng) for _ in range(500)] + list(TEMPLATES.values()), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.save_pretrained(folder)
    return fast


def chat(fast, template, messages, with_tools, more):
    """Ids and masks, both from transformers, and the mask that its spans mean token by token."""
    out = fast.apply_chat_template(messages, chat_template=template, tools=with_tools, return_dict=True,
                                   return_assistant_tokens_mask=True, **more)
    rendered, spans = render_jinja_template([plain(messages)], tools=with_tools, chat_template=template,
                                            return_assistant_tokens_mask=True, **fast.special_tokens_map, **more)
    offsets = fast(rendered[0], add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    exact = [int(any(a < end and b > begin for begin, end in spans[0])) for a, b in offsets]
    return rendered[0], out["input_ids"], out["assistant_masks"], exact


def weights_of(result):
    if result["skip"] == "no loss":
        return [0] * len(result["ids"])
    return [int(w) for w in result["weights"]] or [1] * len(result["ids"])


def check_conversations(ours, folder, rounds, rng, bad):
    fast = make_tokenizer(folder, rng)
    same_as_raw = tokens = rendered_rows = refused = 0
    for name, template in TEMPLATES.items():
        rows, lines = [], []
        for _ in range(rounds):
            messages = conversation(rng)
            with_tools = tools(rng) if rng.random() < 0.4 else None
            more = {"enable_thinking": False} if rng.random() < 0.2 else {}
            rows.append((messages, with_tools, more))
            row = {"messages": messages, "chat_template_kwargs": more}
            if with_tools:
                row["tools"] = with_tools
            lines.append({"format": "chat", "chat_template": template, "row": row,
                          "mask_user_turns": marked(template)})
        for (messages, with_tools, more), got in zip(rows, ours.run(["format", folder], lines)):
            try:
                expected, ids, raw, exact = chat(fast, template, messages, with_tools, more)
            except Exception as error:  # noqa: BLE001
                compare(f"{name} {messages}", {"error": repr(error)}, got, bad)
                refused += 1
                continue
            if "error" in got or got["content"] != expected or (got["skip"] != "empty" and got["ids"] != ids):
                bad.append(f"{name} {json.dumps(messages)}\n  theirs {expected!r}\n  ours   {got}")
                continue
            rendered_rows += 1
            tokens += len(ids)
            if marked(template):
                if weights_of(got) != exact:
                    bad.append(f"{name} {messages}: masks differ\n  theirs {exact}\n  ours   {weights_of(got)}")
                same_as_raw += raw == exact
            elif got["weights"]:
                bad.append(f"{name}: weights without a mask")
    print(f"{rendered_rows} conversations with {tokens} tokens in {len(TEMPLATES)} templates, {refused} refused by both; "
          f"apply_chat_template's own mask is the exact one in {same_as_raw}")
    if min(refused, same_as_raw) < 10:
        bad.append("the conversations do not reach errors or masks")


def check_rows(ours, folder, rng, bad):
    """Templates without generation blocks, and the other formats."""
    fast = PreTrainedTokenizerFast.from_pretrained(folder)
    template = TEMPLATES["chatml_plain"]
    marked = template.replace("<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n",
                              "<|im_start|>{{ message.role }}\n{% if message.role == 'assistant' %}{% generation %}"
                              "{{ message.content }}<|im_end|>\n{% endgeneration %}{% else %}{{ message.content }}"
                              "<|im_end|>\n{% endif %}")
    conversations = [[{"role": r, "content": text(rng, 0)} for r in ("user", "assistant") * rng.randint(1, 3)]
                     for _ in range(50)]
    unmarked = ours.run(["format", folder], [{"format": "chat", "chat_template": template, "row": {"messages": m}}
                                             for m in conversations])
    for m, got in zip(conversations, unmarked):
        expected, ids, _, exact = chat(fast, marked, m, None, {})
        if got.get("content") != expected or got["ids"] != ids or weights_of(got) != exact:
            bad.append(f"masks by prefixes: {m}\n  {expected!r} {exact}\n  {got}")
    hidden = "{% for m in messages %}{{ m.role }}:{{ m.content if loop.last else '...' }}\n{% endfor %}"
    got = ours.run(["format", folder], [{"format": "chat", "chat_template": hidden, "row": {"messages": m}}
                                        for m in conversations if len(m) > 2][:5])
    if not all("generation" in r.get("error", "") for r in got):
        bad.append(f"a template that hides earlier turns is not refused: {got}")

    pairs = [(text(rng, 0), text(rng, 0)) for _ in range(200)]
    for separator in (None, "\n", " => "):
        lines = [{"format": "supervised", "separate_with": separator, "row": {"prompt": p, "response": r}, "enforce_eos": True}
                 for p, r in pairs]
        if separator is None:
            lines = [{k: v for k, v in line.items() if k != "separate_with"} for line in lines]
        for (p, r), got in zip(pairs, ours.run(["format", folder], lines)):
            before = p + (separator or "")
            encoded = fast(before + r, add_special_tokens=False, return_offsets_mapping=True)
            ends = int(encoded["input_ids"][-1:] == [fast.eos_token_id])  # an answer that ends so gets no second one
            ids = encoded["input_ids"] + [fast.eos_token_id] * (1 - ends)
            mask = [int(end > len(before)) for _, end in encoded["offset_mapping"]] + [1] * (1 - ends)
            if got.get("ids") != ids or weights_of(got) != mask:
                bad.append(f"supervised {p!r} {r!r}: {got} {ids} {mask}")
    n = len(fast)
    lines = [{"format": "prebuilt", "row": {"input_ids": [0, n - 1, 5]}},
             {"format": "prebuilt", "loss_weights_key": "w", "row": {"input_ids": [1, 2], "w": [0, 0.5]}},
             {"format": "prebuilt", "row": {"input_ids": []}},
             {"format": "prebuilt", "row": {"input_ids": [0, n]}},
             {"format": "prebuilt", "loss_weights_key": "w", "row": {"input_ids": [1, 2], "w": [1]}},
             {"format": "prebuilt", "loss_weights_key": "w", "row": {"input_ids": [1, 2], "w": [1, -1]}}]
    got = ours.run(["format", folder], lines)
    if not (got[0]["ids"] == [0, n - 1, 5] and got[1]["weights"] == [0, 0.5] and got[2]["skip"] == "empty" and
            all("error" in r for r in got[3:])):
        bad.append(f"prebuilt: {got}")
    print(f"{len(conversations)} conversations masked by prefixes, {3 * len(pairs)} supervised rows, {len(lines)} prebuilt")


def directories(root):
    """Six directories in the manner of published ones: who puts what at the beginning, and where generation ends."""
    corpus = ["one two three four five six", "the cat sat on the mat", "日本 ünï 12"] * 3

    def byte_level(name, specials, post, told, **files):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
            vocab_size=320, special_tokens=specials, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        if post:
            tokenizer.post_processor = post(tokenizer)
        folder = root / name
        folder.mkdir()
        tokenizer.save(str(folder / "tokenizer.json"))
        more = tokenizer.get_vocab_size()  # the id of a token that stands only beside
        if "<|im_start|>" in specials:
            told = {**told, "added_tokens_decoder": {str(more): {
                "content": "<|im_end|>", "special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}}}
            files = {"generation_config": {"eos_token_id": [more, 0]}}
        for file, content in {"tokenizer_config": told, **files}.items():
            (folder / f"{file}.json").write_text(json.dumps(content))
        return folder

    def template(*before):
        text = " ".join(before)
        return lambda t: processors.TemplateProcessing(single=f"{text} $A", pair=f"{text} $A {text} $B:1",
                                                       special_tokens=[(b, t.token_to_id(b)) for b in before])

    llama = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"]
    ends = {"bos_token": llama[0], "eos_token": llama[1]}
    yield byte_level("llama3", llama, template(llama[0]), ends, generation_config={"eos_token_id": [1, 2, 3]})
    yield byte_level("sequence", llama, lambda t: processors.Sequence([processors.ByteLevel(trim_offsets=False), template(llama[0])(t)]),
                     {**ends, "eos_token": llama[2]}, config={"eos_token_id": [2, 3]})
    yield byte_level("glm", ["[gMASK]", "<sop>", "</s>", "<|user|>"], template("[gMASK]", "<sop>"), {"eos_token": "</s>"},
                     generation_config={"eos_token_id": [2, 3]})
    yield byte_level("gpt2", ["<|endoftext|>"], None, {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"},
                     generation_config={"bos_token_id": 0, "eos_token_id": 0})
    yield byte_level("qwen", ["<|endoftext|>", "<|im_start|>"], None, {"eos_token": "<|im_end|>", "bos_token": None})
    folder = root / "llama2"
    folder.mkdir()
    (folder / "corpus.txt").write_text("\n".join(corpus * 40))
    sentencepiece.SentencePieceTrainer.train(input=str(folder / "corpus.txt"), model_prefix=str(folder / "tokenizer"), vocab_size=320,
                                             model_type="bpe", byte_fallback=True, hard_vocab_limit=False, minloglevel=2,
                                             remove_extra_whitespaces=False, normalization_rule_name="identity")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>"}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 5]}))
    yield folder


def check_ends(ours, root, bad):
    texts = ["one two", "the cat sat on the mat", " 日本 ünï 12", "six\n", "x"]
    checked = 0
    for folder in directories(root):
        peer = AutoTokenizer.from_pretrained(folder)

        def ids(text, peer=peer):
            return peer(text)["input_ids"]

        lines, expected = [], []
        # transformers 5 makes a LlamaTokenizer anew, which puts no space before a space, as tokenizer.json does.
        own = [t.lstrip() for t in texts] if folder.name == "llama2" else texts
        for a, b in zip(own, own[1:] + own[:1]):
            eos = peer.eos_token
            lines += [{"format": "text", "enforce_eos": True, "row": {"text": a}}, {"prompt": a},
                      {"format": "supervised", "enforce_eos": True, "row": {"prompt": a, "response": b}},
                      {"format": "preference", "enforce_eos": True, "row": {"prompt": a, "chosen": b, "rejected": b + "!"}},
                      {"format": "text", "enforce_eos": True, "row": {"text": a + eos}}]
            expected += [ids(a + eos), ids(a), ids(a + b + eos), ids(a + b + eos) + ids(a + b + "!" + eos), ids(a + eos)]
        for line, right, got in zip(lines, expected, ours.run(["format", folder], lines)):
            checked += 1
            if got.get("ids") != right:
                bad.append(f"{folder.name}: {line}\n  theirs {right}\n  ours   {got}")
        named = [json.loads((folder / f).read_text())["eos_token_id"] for f in ("generation_config.json", "config.json") if (folder / f).exists()][0]
        stops = ours.run(["format", folder], [{"prompt": "x"}])[0]["stops"]
        if sorted(stops) != sorted({peer.eos_token_id, *(named if isinstance(named, list) else [named])}):
            bad.append(f"{folder.name}: generation ends after {stops}, transformers says {named}")
    print(f"{checked} texts, prompts and pairs of six tokenizers")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--rounds", type=int, default=300 if seed.full() else 100)
    args = parser.parse_args()
    ours, rng, bad = Ours(args.helper), random.Random(7), []
    check_snippets(ours, bad)
    # Negative control: a wrong expectation must be seen.
    control = []
    compare("control", {"text": "a"}, ours.run(["render"], [{"template": "b", "context": {}}])[0], control)
    assert control
    with tempfile.TemporaryDirectory() as folder:
        check_conversations(ours, pathlib.Path(folder), args.rounds, rng, bad)
        check_rows(ours, pathlib.Path(folder), rng, bad)
    with tempfile.TemporaryDirectory() as folder:
        check_ends(ours, pathlib.Path(folder), bad)
    with tempfile.TemporaryDirectory() as folder:
        served = ServedChats(args.ostro, folder, make_tokenizer(folder, rng), conversation, tools, bad)
        served.check(300 if seed.full() else 25, 20 if seed.full() else 3)
    for b in bad[:20]:
        print(b[:2000])
    if bad:
        sys.exit(f"{len(bad)} differences")


if __name__ == "__main__":
    main()
