"""A part of serve_test.py: the memory of keys and values of `ostro serve`. Beginnings that are kept are used again, by
their own key alone unless keys share them; where pages are too few, answers are put back. No answer changes by it."""
import hashlib
import json
import re

KEYS = {"anna": "key of anna", "ben": "key of ben", "metrics": "key of prometheus"}


class Client:
    """Asks a server as the owner of a key."""

    def __init__(self, server, check, end):
        self.server, self.check, self.end = server, check, end

    def choices(self, prompt, name="anna"):
        fields = {"prompt": prompt, "max_tokens": 40, "seed": 5, "logprobs": 1, "return_token_ids": True, "logit_bias": {self.end: -100}}
        status, text, _ = self.server.raw("POST", "/v1/completions", json.dumps(fields), Authorization=f"Bearer {KEYS[name]}")
        self.check(status == 200, f"{status} {text[:300]}")
        return json.loads(text)["choices"]

    def metric(self, name):
        text = self.server.raw("GET", "/metrics", Authorization=f"Bearer {KEYS['metrics']}")[1].decode()
        return int(re.search(rf"^{re.escape(name)} (\d+)$", text, re.MULTILINE)[1])

    def reused(self, prompt, name):
        """The tokens of a prompt that were not run, and its choices."""
        before = self.metric("ostro_reused_tokens_total")
        choices = self.choices(prompt, name)
        return self.metric("ostro_reused_tokens_total") - before, choices


def cache(test, server_class, check):
    """On a model of 512 positions, four pages."""
    test.program("train", "--config", "configs/nano_test.yaml", "--trainer.id", "long", "--trainer.num_train_steps", "2", "--model.seq_len", "512",
                 "--trainer.train_batch_size", "4")
    (test.folder / "keys.txt").write_text("".join(f"{hashlib.sha256(key.encode()).hexdigest()}  {name}\n" for name, key in KEYS.items()))
    end = str(json.loads((test.folder / "tokenizer.json").read_text())["added_tokens"][0]["id"])

    def with_server(use, *words):
        server = server_class(test.ostro, test.folder, "runs/long", "--listen", "127.0.0.1:0", "--api_keys", "keys.txt", *words)
        try:
            found = use(Client(server, check, end))
            server.stop()
            return found
        finally:
            server.process.kill()

    beginning = [(7 * i) % 500 + 3 for i in range(300)]
    prompts = [[(i * i + 11 * k) % 500 + 3 for i in range(240)] for k in range(3)]

    def conversation(client):
        reused, first = client.reused(beginning, "anna")
        turn = beginning + first[0]["token_ids"] + [5, 6, 7]  # the next one, of 343 tokens
        of_turn = [client.reused(turn, name) for name in ("anna", "ben", "ben")]
        check(all(choices == of_turn[0][1] for _, choices in of_turn), f"an answer depends on what is kept: {of_turn}")
        alone = [client.choices(prompt) for prompt in prompts]
        kept = client.metric('ostro_cache_pages{state="kept"}')
        check(kept >= 8 and client.metric('ostro_cache_pages{state="held"}') == 0, f"{kept} pages are kept")
        return [reused] + [count for count, _ in of_turn], first, alone

    counts, first, alone = with_server(conversation)
    # Of the token that was made last there is no row, and the last row of a prompt is run for what it says.
    check(counts == [0, 339, 0, 342], f"with two keys {counts} tokens were there")
    counts, again, _ = with_server(conversation, "--share_prefixes")
    check(counts == [0, 339, 342, 342] and again == first, f"with keys that share {counts} tokens were there")

    def crowded(client):  # each answer needs a third page when it has 17 tokens
        together = client.choices(prompts)
        check([choice | {"index": 0} for choice in together] == [choices[0] for choices in alone], "answers in four pages are others")
        check(client.metric('ostro_cache_pages{state="all"}') == 4, "not four pages")
        return client.metric("ostro_preemptions_total")

    preempted = with_server(crowded, "--cache_pages", "4")
    check(preempted > 0, "three answers of three pages each went into four pages")
    text = test.program("serve", "runs/long", "--listen", "127.0.0.1:0", "--cache_pages", "3", code=2)
    check("3 pages of 128 positions" in text and "needs 4" in text, text)
