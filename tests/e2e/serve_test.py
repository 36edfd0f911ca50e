#!/usr/bin/env python3
"""Tests `ostro serve`: the commands of docs/guide/serve.md print what it says; answers over HTTP have the bits of
`ostro score` and `ostro sample`, alone and among others, whole and streamed; what is wrong is one error that names it;
receipts hold, and forged ones are named; a server that is asked to stop finishes what it took.

    serve_test.py --ostro BINARY [--update] [--pictures FOLDER]
"""
import argparse
import concurrent.futures
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import serve_access
import serve_adapters
import serve_api
import serve_cache
import serve_embeddings
import serve_faults
import serve_page
import serve_precision
import serve_streamed
from readme_test import ROOT, compare, examples, run

from program import check

PAGE = ROOT / "docs/guide/serve.md"
# RFC 8032, section 7.1, test 1, and another key.
KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"
PUBLIC = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n"
STRANGER = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n-----END PUBLIC KEY-----\n"

# SHA-256 of forty answers of the nano model: text, reason, bits of log-probabilities (Test.golden).
GOLDEN = "3444b4735615a09dd3bf64f3c31cb31f3c274c4125f38afb26e7c3e71ee3edf6"


class Server:
    """A server that is ready."""

    def __init__(self, ostro, folder, *words, settings=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | (settings or {})
        self.process = subprocess.Popen([ostro, "serve", *words], cwd=folder, env=env, text=True, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        check(line.startswith("http://127.0.0.1:"), f"serve printed {line}")
        self.port = int(line.split("/")[2].split(":")[1])

    def raw(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())

    def post(self, path, fields, status=200):
        body = fields if isinstance(fields, (bytes, str)) else json.dumps(fields)
        got, text, _ = self.raw("POST", path, body)
        check(got == status, f"{path} {str(body)[:200]}: {got}, not {status}: {text[:500]}")
        return json.loads(text)

    def complete(self, **fields):
        return self.post("/v1/completions", fields)

    def events(self, path, **fields):
        status, text, headers = self.raw("POST", path, json.dumps(fields | {"stream": True}))
        check(status == 200 and headers["Content-Type"].startswith("text/event-stream"), f"{path}: {status} {headers}")
        lines = [line for line in text.decode().split("\n\n") if line]
        check(all(line.startswith("data: ") for line in lines) and lines[-1] == "data: [DONE]", f"{path}: {lines[-1]}")
        return [json.loads(line[6:]) for line in lines[:-1]]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(300) == 0, f"serve ended with {self.process.returncode}")


def serial(values):
    """Their sum, one after the other, as `ostro score` adds them."""
    total = 0.0
    for value in values:
        total += value
    return total


class Test:
    def __init__(self, ostro, folder):
        self.ostro, self.folder, self.root = str(pathlib.Path(ostro).resolve()), folder, ROOT
        self.pictures = None

    def program(self, *words, code=0, given=None, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | settings
        done = subprocess.run([self.ostro, *words], cwd=self.folder, env=env, input=given, capture_output=True, text=True, check=False)
        check(done.returncode == code, f"{' '.join(words)}: exit {done.returncode}, not {code}: {done.stdout}{done.stderr}")
        return done.stdout or done.stderr

    def scores(self, server):
        """Log-probabilities over HTTP, by text and by ids, are those of `ostro score` in every bit."""
        begin = server.post("/tokenize", {"prompt": "<|endoftext|>"})["tokens"]
        check(len(begin) == 1, f"<|endoftext|> is {begin}")
        text = (self.folder / "LICENSE").read_text()[300:420]
        pieces = [text[:end] for end in range(1, 120, 7)] + ["the", "naïve 東京 😀", "  "]
        answers = self.program("score", "--checkpoint", "runs/nano", given="".join(json.dumps({"text": p}) + "\n" for p in pieces))
        seen = set()
        for piece, line in zip(pieces, answers.splitlines(), strict=True):
            ids = begin + server.post("/tokenize", {"prompt": piece})["tokens"]
            check(server.post("/detokenize", {"tokens": ids[1:]})["prompt"] == piece, f"{piece} does not come back")
            for prompt in (ids, "<|endoftext|>" + piece):
                choice = server.complete(prompt=prompt, max_tokens=0, echo=True, logprobs=1)["choices"][0]
                logprobs = choice["logprobs"]["token_logprobs"]
                check(logprobs[0] is None and len(logprobs) == len(ids), f"{piece}: {logprobs}")
                check(serial(logprobs[1:]) == json.loads(line)["log_prob"], f"{piece}: {serial(logprobs[1:])}, score says {line}")
                for token, value, top in zip(choice["logprobs"]["tokens"][1:], logprobs[1:], choice["logprobs"]["top_logprobs"][1:]):
                    check(top[token] == value and max(top.values()) >= value, f"{piece}: {token} {value} {top}")
            seen.add(serial(logprobs[1:]))
        check(len(seen) == len(pieces), "all scores are alike")

    def samples(self, server):
        """The ids of `ostro sample`."""
        for temperature, seed in ((0, 0), (0.8, 5), (1.5, 2**53)):
            line = self.program("sample", "--checkpoint", "runs/nano", "--prompt", "the copyright ", "--max_new_tokens", "20",
                                "--temperature", str(temperature), "--seed", str(seed), "--json")
            choice = server.complete(prompt="the copyright ", max_tokens=20, temperature=temperature, seed=seed, return_token_ids=True)["choices"][0]
            check(choice["token_ids"] == json.loads(line)["ids"], f"temperature {temperature}: {choice['token_ids']}, sample made {line}")
            check(choice["text"] == json.loads(line)["text"], f"{choice['text']!r}: sample wrote {line}")
        self.batch(server)

    def batch(self, server):
        """`ostro sample --batch` without a number of tokens makes 256 of each line, or what the context has room for."""
        prompts = ["the copyright ", "a", "you may not"]
        (self.folder / "prompts.txt").write_text("\n".join(prompts) + "\n")
        words = ("sample", "--checkpoint", "runs/nano", "--batch", "prompts.txt", "--temperature", "1.5", "--seed", "5")
        made = [json.loads(line) for line in self.program(*words).splitlines()]
        check(made == [json.loads(line) for line in self.program(*words, "--max_new_tokens", "256").splitlines()], "sample has another default than 256")
        check(made != [json.loads(line) for line in self.program(*words, "--max_new_tokens", "3").splitlines()], "control: answers end before 3 tokens")
        for prompt, line in zip(prompts, made, strict=True):
            check(line["prompt"] == prompt, f"{prompt!r}: {line}")
            choice = server.complete(prompt=prompt, max_tokens=len(line["ids"]), temperature=1.5, seed=5, return_token_ids=True)["choices"][0]
            check(choice["token_ids"] == line["ids"], f"{prompt!r}: {choice['token_ids']}, sample made {line}")

    def streams(self, server):
        for path, fields in (("/v1/completions", {"prompt": "the copyright "}),
                             ("/v1/chat/completions", {"messages": [{"role": "user", "content": "the work"}]})):
            chat = "messages" in fields
            fields |= {"max_tokens": 30, "seed": 9, "temperature": 0.9, "stop": ["zz", "or"]}
            whole = server.post(path, fields)
            events = server.events(path, stream_options={"include_usage": True}, **fields)
            text = "".join((c["delta"].get("content", "") if chat else c["text"]) for e in events for c in e["choices"])
            choice = whole["choices"][0]
            check(text == (choice["message"]["content"] if chat else choice["text"]), f"{path}: {text!r} in pieces, {choice}")
            check("or" not in text, f"{path}: {text!r}")
            check(events[-1]["usage"] == whole["usage"] and events[-2]["choices"][0]["finish_reason"] == choice["finish_reason"], f"{path}: {events[-2:]}")
            check(whole["system_fingerprint"].startswith("ostro-1-"), str(whole)[:300])
        ids = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "the work"}], "return_token_ids": True})
        expected = server.post("/tokenize", {"prompt": "<user> the work <assistant>\n", "add_special_tokens": False})["tokens"]
        got = ids["choices"][0]["prompt_token_ids"]
        check(got in (expected, expected[:-1]), f"the chat's prompt is {got}, its text {expected}")

    def neighbours(self, server):
        """Answers do not depend on what else is asked, nor on clients that leave."""
        asked = [{"prompt": "the " * (1 + i), "max_tokens": 5 + 3 * i, "seed": i, "logprobs": 1} for i in range(6)]
        alone = [server.complete(**fields)["choices"] for fields in asked]
        together = [None] * len(asked)

        def ask(i):
            together[i] = server.complete(**asked[i])["choices"]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(asked))]
        for i, thread in enumerate(threads):
            thread.start()
            with socket.create_connection(("127.0.0.1", server.port)) as leaving:
                body = json.dumps({"prompt": "a", "max_tokens": 60, "stream": True})
                leaving.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                if i % 2:
                    leaving.recv(10)
        for thread in threads:
            thread.join()
        check(together == alone, "an answer depends on its neighbours")
        many = server.complete(prompt=["the", "a copy"], n=2, max_tokens=4, seed=1)["choices"]
        check([c["index"] for c in many] == [0, 1, 2, 3], f"{many}")
        check(many[2]["text"] == server.complete(prompt="a copy", max_tokens=4, seed=1)["choices"][0]["text"], f"{many}")

    def golden(self, server):
        """Forty answers, asked eight at a time, have the texts and the bits that every machine gives."""
        text = (self.folder / "LICENSE").read_text()
        asked = [{"prompt": text[37 * i:37 * i + 3 * i + 2], "max_tokens": 4 + i % 17, "seed": i, "temperature": (0, 0.7, 1.3)[i % 3], "logprobs": 2,
                  "n": 2 if i % 8 == 0 else 1, "top_k": 5 * (i % 4), "frequency_penalty": 0.5 * (i % 2), "stop": ["e "] if i % 5 == 0 else None}
                 for i in range(40)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda fields: server.complete(**fields)["choices"], asked))
        said = [[c["text"], c["finish_reason"], [value.hex() for value in c["logprobs"]["token_logprobs"]]] for choices in answers for c in choices]
        found = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        check(found == GOLDEN, f"the hash of forty answers is {found}, not {GOLDEN}")

    def bad_input(self, server):
        def refused(says, status, path, body, method="POST", **headers):
            got, text, _ = server.raw(method, path, body, **headers)
            check(got == status, f"{path} {str(body)[:80]}: {got}, not {status}: {text[:300]}")
            error = json.loads(text)["error"]
            check(says in error["message"] and set(error) == {"message", "type", "param", "code"}, f"{says} is not in {error}")

        path, big = "/v1/completions", 9 << 20
        for says, status, body in (
                ("not valid JSON", 400, "{"), ("has to be a JSON object", 400, "[1]"), ("not UTF-8", 400, b'{"prompt": "\xff"}'),
                ("NaN at byte", 400, '{"prompt": "a", "temperature": NaN}'), ("surrogate", 400, '{"prompt": "\\ud83d"}'),
                ('the nearest is "temperature"', 400, '{"prompt": "a", "temprature": 1}'), ("twice", 400, '{"prompt": "a", "prompt": "b"}'),
                ("is empty", 400, '{"prompt": ""}'), ("token ids of this model are 0 to 511", 400, '{"prompt": [512]}'),
                ("nested too deeply", 400, "[" * 5000), ("is not served here", 404, '{"prompt": "a", "model": "other"}'),
                ("has an empty string", 400, '{"prompt": "a", "stop": [""]}'),
                ('"grammar" is no field', 400, json.dumps({"prompt": "a", "grammar": "root ::= " + "(" * 60000 + '"a"' + ")" * 60000})),
                ("has a string of 10240 bytes", 400, json.dumps({"prompt": "a", "stop": "a" * 10240})), ("not valid JSON", 400, '{"prompt": "a", "seed": 1e999}'),
                ("use an integer from 0", 400, '{"prompt": "a", "seed": 1e300}'), ("at place 1", 400, '{"prompt": [1, -1]}'),
                ("has 64 tokens; the model's context is 64", 400, json.dumps({"prompt": [1] * 64})),
                ("more than 8388608 bytes", 413, b'{"prompt": "' + b"a" * big + b'"}')):
            refused(says, status, path, body)
        refused("takes POST", 405, path, None, "GET")
        refused("this server has", 404, "/v1/none", "{}")
        refused("localhost", 403, path, '{"prompt": "a"}', Host="evil.example")
        refused("other origins", 403, path, '{"prompt": "a"}', Origin="http://evil.example")
        check(server.raw("PUT", path, "{}")[0] == 405, "PUT is taken")
        # A client that closes its side counts as one that has left; others are answered.
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as half:
            half.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\n{")
            half.shutdown(socket.SHUT_WR)
            check(b" 200 " not in half.recv(1000), "half a request is answered")
        check(server.raw("GET", "/health")[0] == 200 and server.raw("GET", "/ready")[0] == 200, "not healthy")
        for words, says in ((("--listen", f"127.0.0.1:{server.port}"), "Address already in use"), (("--listen", "0.0.0.0:0"), "keys are needed"),
                            (("--listen", "127.0.0.1:0", "--api_keys", "none.txt"), "none.txt"), (("--listen", "unix:"), "1 to 107 bytes"),
                            (("--listen", "127.0.0.1:0", "--api_keys", "key.pem"), "line 1 does not begin with a hash"),
                            (("--listen", "127.0.0.1:0", "--sign", "tokenizer.json"), "no private key of Ed25519"),
                            (("--waiting_seconds", "0"), "--waiting_seconds 0: use 1 to"), (("--running_seconds", "3000000"), "use 1 to 2592000 (30 days)"),
                            (("--key_share", "0"), "--key_share 0: use a percent above 0"), (("--key_share", "101"), "up to 100"),
                            (("--listen", "127.0.0.1:0", "--receipts", "log"), "log/lock")):
            done = subprocess.run([self.ostro, "serve", "runs/nano", *words], cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
            check(done.returncode in (1, 2) and says in done.stderr and done.stderr.count("error:") == 1, f"serve {words}: {done.returncode} {done.stderr}")

    def strange_name(self, _):
        """A run whose folder's name is no UTF-8 is served under a name that JSON can hold."""
        name = os.fsdecode(b"runs/n\xffno")
        shutil.copytree(self.folder / "runs/nano", self.folder / name)
        server = Server(self.ostro, self.folder, name, "--listen", "127.0.0.1:0")
        try:
            one = json.loads(server.raw("GET", "/v1/models")[1])["data"][0]["id"]
            check(one == "n\\xffno", f"the model is called {one}")
            answer = server.complete(prompt="the", max_tokens=3, model=one, receipt=True)
            check(answer["model"] == one and answer["choices"][0]["receipt"], f"{answer}")
            server.stop()
        finally:
            server.process.kill()

    def receipts(self, server):
        fields = {"prompt": "the copyright ", "max_tokens": 24, "temperature": 1.2, "receipt": True}
        self.documents = []
        honest = server.complete(nonce="a lottery", **fields)["choices"][0]["receipt"]
        plain = server.complete(seed=3, **fields)["choices"][0]["receipt"]
        chat = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "the"}], "max_tokens": 9, "receipt": True})["choices"][0]["receipt"]

        self.documents += [honest, plain, chat]

        def verdict(document, code, says, *words, checkpoint="runs/nano", **settings):
            (self.folder / "r.json").write_text(document if isinstance(document, str) else json.dumps(document, indent=1))
            text = self.program("verify", "--receipt", "r.json", "--checkpoint", checkpoint, *words, code=code, **settings)
            check(says in text.split("\n")[0], f"{says} is not in {text}")

        (self.folder / "pub.pem").write_text(PUBLIC)
        (self.folder / "other.pem").write_text(STRANGER)
        verdict(honest, 0, "equal: 24 tokens chosen again")
        for settings in ({"OSTRO_ISA": "generic", "OSTRO_THREADS": "1"}, {"OSTRO_THREADS": "3"}, {"OSTRO_EXECUTOR": "interpreter"}):
            verdict(honest, 0, "equal: 24 tokens", **settings)
        verdict(honest, 0, "equal: 24 tokens", "--key", "pub.pem")
        verdict(honest, 1, "(--key)", "--key", "other.pem")
        verdict(chat, 0, "equal:")
        verdict(honest, 1, "the checkpoint's state is", checkpoint="runs/nano/checkpoints/step-00000010")
        verdict("{}", 1, "differs: r.json")
        verdict(json.dumps(honest)[:-9], 1, "not valid JSON")

        def forged(change, document=plain):
            """Changed, with the hashes that anyone can compute, and not signed."""
            out = json.loads(json.dumps(document))
            receipt, opening = out["receipt"], out["opening"]
            change(receipt, opening)
            receipt["key"] = ""
            out.pop("signature"), out.pop("public_key")
            for name in ("prompt", "output"):
                ids = opening[f"{name}_ids"]
                text = f"{name}\n{opening['salt']}\n{','.join(map(str, ids))}\n"
                receipt[name], receipt[f"{name}_tokens"] = hashlib.sha256(text.encode()).hexdigest(), len(ids)
            return out

        verdict(forged(lambda r, o: None), 0, "equal")
        for change, says in ((lambda r, o: o["output_ids"].__setitem__(7, o["output_ids"][7] ^ 1), "at token 7 of the answer"),
                             (lambda r, o: r.update(seed="4"), "this checkpoint chooses"),
                             (lambda r, o: r["options"].update(temperature=0.2), "this checkpoint chooses"),
                             (lambda r, o: o["log_probs"].__setitem__(3, -1.5), "log-probabilities of the opening"),
                             (lambda r, o: r.update(state="0" * 64), "the checkpoint's state is 0000"),
                             (lambda r, o: r.update(chat_template=""), "the chat template is none in the receipt"),
                             (lambda r, o: o["prompt_ids"].__setitem__(1, 9), "of the answer"),
                             (lambda r, o: r.update(finish="stop_token"), "the answer ends by"),
                             (lambda r, o: r.update(more=1), "has other fields")):
            verdict(forged(change), 1, says)
        verdict(forged(lambda r, o: r.update(seed="4"), honest), 1, "the nonce gives")
        verdict(dict(honest, receipt=dict(honest["receipt"], number=9)), 1, "the signature is not one of this receipt")
        verdict({k: v for k, v in honest.items() if k != "opening"}, 3, "incomplete: the receipt has no opening")

    def chain(self):
        """receipts.jsonl, read without our code."""
        before, lines = "", (self.folder / "log/receipts.jsonl").read_bytes().splitlines()
        for number, line in enumerate(lines):
            document = json.loads(line)
            check("opening" not in document, "an opening is in the log")
            receipt = document["receipt"]
            check(receipt["number"] == number and receipt["previous"] == before, f"line {number}: {receipt}")
            text = json.dumps(receipt, separators=(",", ":"), ensure_ascii=False)
            check(text.encode() in line, f"line {number} is not canonical")
            before = hashlib.sha256(text.encode()).hexdigest()
        check(len(lines) >= 3, f"{len(lines)} receipts")

    def paths(self, server):
        serve_api.paths(self, server, check)

    def responses(self, server):
        serve_api.responses(server, check)

    def embeddings(self, server):
        serve_embeddings.embeddings(self, server, Server, check)

    def pipelined(self, server):
        serve_faults.pipelined(self, server, check)

    def page(self, server):
        serve_page.page(self, server, check, self.pictures)

    def stopping(self, server):
        """What was taken when SIGTERM came is answered whole."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        body = json.dumps({"prompt": "a", "max_tokens": 60, "stream": True, "seed": 2})
        connection.request("POST", "/v1/completions", body)
        answer = connection.getresponse()
        first = answer.readline()
        server.stop()
        text = first + answer.read()
        check(text.endswith(b"data: [DONE]\n\n"), f"cut: {text[-200:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--pictures", type=pathlib.Path, help="a folder for pictures of the page")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for link in ("LICENSE", "configs"):
            (folder / link).symlink_to(ROOT / link)
        cases = examples(PAGE.read_text())
        outputs = run([command for _, command, _ in cases], args.ostro, folder)
        if compare(PAGE, cases, outputs, args.update):
            return 1
        test = Test(args.ostro, folder)
        test.pictures = args.pictures
        (folder / "key.pem").write_text(KEY)
        server = Server(test.ostro, folder, "runs/nano", "--listen", "127.0.0.1:0", "--receipts", "log", "--sign", "key.pem")
        try:
            for part in (test.scores, test.samples, test.streams, test.neighbours, test.golden, test.bad_input, test.strange_name, test.receipts, test.paths, test.responses, test.embeddings, test.pipelined,
                         test.page, test.stopping):
                part(server)
                print(f"  {part.__name__}: good")
        finally:
            server.process.kill()
        test.chain()
        serve_api.log(test, test.documents, check)
        print("  log: good")
        serve_api.follow(test, Server, check)
        print("  follow: good")
        serve_page.key(test, Server, check)
        serve_access.keys(test, Server, check)
        serve_access.unix_socket(test, check)
        print("  keys and sockets: good")
        serve_adapters.adapters(test, Server, check)
        print("  adapters: good")
        serve_precision.precisions(test, Server, check)
        print("  precision: good")
        serve_cache.cache(test, Server, check)
        print("  cache: good")
        serve_streamed.streamed(test, Server, check)
        print("  streamed: good")
        for part in (serve_faults.disk, serve_faults.templates, serve_faults.files, serve_faults.numerics):
            part(test, Server, check)
            print(f"  {part.__name__}: good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
