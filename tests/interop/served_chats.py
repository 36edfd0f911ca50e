"""For check_chat.py: conversations with functions over HTTP, for each chat template: ids of `ostro serve` are those of
transformers' apply_chat_template, with one beginning token where the template writes it and the tokenizer would add it, too."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from chat_templates import TEMPLATES
from serve_test import Server
from tiny_run import TinyRun
from tokenizers import processors
from transformers import PreTrainedTokenizerFast

import seed

CONTEXT = 1024


def as_asked(messages):
    """Without what the API does not have: contents that are no texts."""
    return [m | {"content": m["content"] if isinstance(m["content"], str) else json.dumps(m["content"])} for m in messages]


def begins_twice(fast):
    """Lets the tokenizer put its beginning token in front of a text, as Llama's does."""
    backend = fast.backend_tokenizer
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", backend.token_to_id("<s>"))])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")


class ServedChats:
    """`conversation` and `tools` draw; `fast` is the tokenizer; differences go to `bad`."""

    def __init__(self, ostro, folder, fast, conversation, tools, bad):
        self.fast, self.conversation, self.tools, self.bad = begins_twice(fast), conversation, tools, bad
        self.bos = self.fast.bos_token_id
        self.compared = self.refused = self.chats = self.single = 0
        self.fast.save_pretrained(folder)
        self.run = TinyRun(ostro, folder, "served", {
            "model": {"seq_len": CONTEXT, "hidden_dim": 16, "intermediate_dim": 32, "num_layers": 1, "num_heads": 2},
            "optimizer": {"warmup": 0}, "trainer": {"train_batch_size": 2, "num_train_steps": 1}})
        self.run.write_corpus(20)
        self.run.train()

    def one(self, server, name, template, rng, chats):
        fields = {"messages": as_asked(self.conversation(rng))}
        if rng.random() < 0.6:
            fields["tools"] = self.tools(rng)
        try:
            expected = self.fast.apply_chat_template(fields["messages"], chat_template=template, tools=fields.get("tools"),
                                                     add_generation_prompt=True, return_dict=False)
        except Exception:  # noqa: BLE001: whatever Python raises is an error of the template
            expected = None
        status, text, _ = server.raw("POST", "/tokenize", json.dumps(fields))
        got = json.loads(text)
        if expected is None:
            self.refused += 1
            if status != 400 or got["error"]["param"] != "messages":
                self.bad.append(f"served {name}: {fields}: transformers raises, the server says {status} {text}")
            return
        if status != 200 or got["tokens"] != expected:
            self.bad.append(f"served {name}: {json.dumps(fields)}\n  theirs {expected}\n  ours   {status} {text}")
            return
        self.compared += 1
        self.single += expected[0] == self.bos != expected[1]
        if self.chats >= chats or len(expected) >= CONTEXT:
            return
        self.chats += 1
        made = server.post("/v1/chat/completions", fields | {"max_tokens": 1, "return_token_ids": True, "seed": 1})["choices"][0]
        if made["prompt_token_ids"] != expected:
            self.bad.append(f"chat {name}: {json.dumps(fields)}\n  theirs {expected}\n  ours   {made}")

    def check(self, rounds, chats):
        for count, name in enumerate(seed.draw("served templates", TEMPLATES, 3), 1):
            template = TEMPLATES[name]
            (self.run.run_directory / "chat_template.jinja").write_text(template)
            server = Server(str(self.run.ostro), self.run.directory, str(self.run.run_directory), "--listen", "127.0.0.1:0")
            try:
                for i in range(rounds):
                    self.one(server, name, template, random.Random(f"{seed.seed()} {name} {i}"), count * chats)
                # Texts get the beginning token, so a second one would be there if chats did, too.
                text = server.post("/tokenize", {"prompt": "<s>hello"})["tokens"]
                plain = server.post("/tokenize", {"prompt": "<s>hello", "add_special_tokens": False})["tokens"]
                if text[0] != self.bos or plain[0] != self.bos or text[1:] not in (plain, plain[1:]):
                    self.bad.append(f"served {name}: the beginning of a text: {text}, without special tokens {plain}")
                refused = server.post("/tokenize", {"prompt": "a", "tools": [{"type": "function", "function": {"name": "f"}}]}, 400)["error"]
                if refused["param"] != "tools":
                    self.bad.append(f"functions beside a text: {refused}")
                server.stop()
            finally:
                server.process.kill()
        print(f"{self.compared} conversations over HTTP have the ids of apply_chat_template, {self.single} of them begin with one beginning token; "
              f"{self.refused} refused by both; {self.chats} chats were answered")
        if min(self.compared, self.chats) < 3:
            self.bad.append("too few conversations were compared over HTTP")
