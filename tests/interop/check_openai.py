#!/usr/bin/env python3
"""The `openai` package, unchanged, as a client of `ostro serve`: every call of the API that is served, whole and streamed, from
synchronous and asynchronous clients. Answers equal those of plain HTTP; errors come as the package's own types; a full queue is
asked again, as the package does of itself; a stream that the client closes harms nobody; calls of functions go there and back.
Usage: check_openai.py --ostro build/.../ostro
"""
import argparse
import asyncio
import json
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import openai
from serve_test import Server
from tiny_run import Report, TinyRun

TEMPLATE = "{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}<assistant>"
MESSAGES = [{"role": "system", "content": "be short"}, {"role": "user", "content": "return 12"}]
OPTIONS = {"max_tokens": 16, "temperature": 0.9, "seed": 11}


class Checks:
    def __init__(self, report, server):
        self.report, self.server = report, server
        self.url = f"http://127.0.0.1:{server.port}/v1"
        self.client = openai.OpenAI(base_url=self.url, api_key="none", max_retries=0, timeout=120)
        self.model = self.client.models.list().data[0].id

    def same(self, got, expected, what):
        self.report.check(got == expected, what if got == expected else f"{what}: {got}, expected {expected}")

    def models(self):
        one = self.client.models.retrieve(self.model)
        self.same((one.id, one.object), (self.model, "model"), "models.list and models.retrieve agree")

    def completions(self):
        plain = self.server.complete(prompt="return ", logprobs=2, **OPTIONS)
        got = self.client.completions.create(model=self.model, prompt="return ", logprobs=2, **OPTIONS)
        choice = got.choices[0]
        self.same((choice.text, choice.finish_reason, choice.logprobs.token_logprobs),
                  tuple(plain["choices"][0][k] for k in ("text", "finish_reason")) + (plain["choices"][0]["logprobs"]["token_logprobs"],),
                  "completions.create: text, reason and log-probabilities are those of plain HTTP")
        self.same(got.usage.total_tokens, got.usage.prompt_tokens + got.usage.completion_tokens, "usage adds up")
        events = list(self.client.completions.create(model=self.model, prompt="return ", stream=True, stream_options={"include_usage": True}, **OPTIONS))
        self.same("".join(c.text for e in events for c in e.choices), choice.text, "a streamed completion is the whole one")
        self.same(events[-1].usage, got.usage, "its usage, too")
        many = self.client.completions.create(model=self.model, prompt=["return ", "if "], n=2, **OPTIONS)
        self.same([c.index for c in many.choices], [0, 1, 2, 3], "two prompts with two answers each")
        self.same(many.choices[0].text, choice.text, "the first of them is the answer alone")
        scored = self.client.completions.create(model=self.model, prompt="return 12", echo=True, max_tokens=0, logprobs=1)
        self.same((scored.choices[0].text, scored.choices[0].logprobs.token_logprobs[0]), ("return 12", None), "echo without an answer scores")
        extra = self.client.completions.create(model=self.model, prompt="return ", extra_body={"return_token_ids": True, "top_k": 5, "receipt": True}, **OPTIONS)
        self.report.check(len(extra.choices[0].token_ids) == extra.usage.completion_tokens and extra.choices[0].receipt["receipt"],
                          "fields of our own go through extra_body, and come back")

    def chats(self):
        plain = self.server.post("/v1/chat/completions", {"messages": MESSAGES, **OPTIONS})
        got = self.client.chat.completions.create(model=self.model, messages=MESSAGES, **OPTIONS)
        text = got.choices[0].message.content
        self.same((text, got.choices[0].message.role), (plain["choices"][0]["message"]["content"], "assistant"), "chat.completions.create: plain HTTP's text")
        labelled = self.client.chat.completions.create(model=self.model, messages=MESSAGES, response_format={"type": "text"}, store=False, user="u", metadata={"a": "b"},
                                                       parallel_tool_calls=True, service_tier="auto", **OPTIONS)
        self.same(labelled.choices[0].message.content, text, "labels and fields that say what is so anyway change nothing")
        events = list(self.client.chat.completions.create(model=self.model, messages=MESSAGES, stream=True, logprobs=True, top_logprobs=2, **OPTIONS))
        self.same("".join(c.delta.content or "" for e in events for c in e.choices), text, "a streamed chat is the whole one")
        # The package's own reader of streams puts the pieces together and knows their types.
        with self.client.chat.completions.stream(model=self.model, messages=MESSAGES, **OPTIONS) as stream:
            kinds = {event.type for event in stream}
            whole = stream.current_completion_snapshot  # the final one is an error of the package where the length ends it
        self.same(whole.choices[0].message.content, text, "chat.completions.stream")
        self.report.check({"chunk", "content.delta", "content.done"} <= kinds, f"its events are typed: {sorted(kinds)}")
        rated = self.client.chat.completions.create(model=self.model, messages=MESSAGES, logprobs=True, top_logprobs=3, **OPTIONS).choices[0]
        self.report.check(all(len(t.top_logprobs) == 3 and t.logprob <= max(o.logprob for o in t.top_logprobs) for t in rated.logprobs.content),
                          "each token has its log-probability and three likely ones")

    def responses(self):
        chat = self.client.chat.completions.create(model=self.model, messages=MESSAGES, **OPTIONS).choices[0].message.content
        asked = {"model": self.model, "input": MESSAGES[1]["content"], "instructions": MESSAGES[0]["content"], "max_output_tokens": OPTIONS["max_tokens"],
                 "temperature": OPTIONS["temperature"], "extra_body": {"seed": OPTIONS["seed"]}}
        got = self.client.responses.create(**asked)
        self.same(got.output_text, chat, "responses.create answers as the chat of the same conversation")
        self.same(got.usage.total_tokens, got.usage.input_tokens + got.usage.output_tokens, "its usage adds up")
        events = list(self.client.responses.create(stream=True, **asked))
        self.same("".join(e.delta for e in events if e.type == "response.output_text.delta"), chat, "a streamed response is the whole one")
        self.same((events[0].type, events[-1].type.split(".")[0], events[-1].response.output_text), ("response.created", "response", chat), "its first and last event")
        again = self.client.responses.create(**(asked | {"instructions": None, "input": [{"role": "developer", "content": MESSAGES[0]["content"]}, MESSAGES[1]]}))
        self.same(again.output_text, chat, "a developer's item is the template's system message")
        developer = self.client.chat.completions.create(model=self.model, messages=[MESSAGES[0] | {"role": "developer"}, MESSAGES[1]], **OPTIONS)
        self.same(developer.choices[0].message.content, chat, "and so is a developer's message of a chat")
        for refused in ({"store": True}, {"previous_response_id": "resp_1"}):
            try:
                self.client.responses.create(**(asked | refused))
                self.report.check(False, f"{refused} was taken")
            except openai.BadRequestError as error:
                self.report.check(next(iter(refused)) in error.message, f"{next(iter(refused))} is refused by name")

    def embeddings(self):
        texts = ["return 12", "if a:"]
        plain = [d["embedding"] for d in self.server.post("/v1/embeddings", {"input": texts, "pooling": "mean"})["data"]]
        # The package asks for Base64 unless it is told otherwise.
        for more in ({}, {"encoding_format": "float"}, {"dimensions": len(plain[0])}):
            got = self.client.embeddings.create(model=self.model, input=texts, extra_body={"pooling": "mean"}, **more)
            self.same([d.embedding for d in got.data], plain, f"embeddings.create {more}: every number is plain HTTP's")
        last = self.client.embeddings.create(model=self.model, input=texts[0])
        self.report.check(last.data[0].embedding != plain[0] and last.usage.total_tokens > 0, "the last row is no mean")
        try:
            self.client.embeddings.create(model=self.model, input="a", dimensions=3)
            self.report.check(False, "three dimensions were given")
        except openai.BadRequestError as error:
            self.report.check("dimensions" in error.message, "other dimensions are refused by name")

    def raw(self):
        got = self.client.completions.with_raw_response.create(model=self.model, prompt="return ", **OPTIONS)
        self.same((got.status_code, got.headers["content-type"]), (200, "application/json"), "with_raw_response: status and type")
        self.same(got.parse().choices[0].text, self.client.completions.create(model=self.model, prompt="return ", **OPTIONS).choices[0].text, "its parsed text")
        with self.client.completions.with_streaming_response.create(model=self.model, prompt="return ", **OPTIONS) as answer:
            self.report.check(json.loads(answer.read())["object"] == "text_completion", "with_streaming_response")

    def errors(self):
        for kind, words, says in ((openai.BadRequestError, {"prompt": "a", "temperature": -1}, "temperature"), (openai.NotFoundError, {"prompt": "a", "model": "gpt"}, "gpt"),
                                  (openai.BadRequestError, {"prompt": [100000]}, "100000"), (openai.BadRequestError, {"prompt": "a", "extra_body": {"temprature": 1}}, "temprature"),
                                  (openai.BadRequestError, {"prompt": "a " * 500}, "context")):
            try:
                self.client.completions.create(**({"model": self.model} | words))
                self.report.check(False, f"{words} was answered")
            except kind as error:
                self.report.check(says in error.message and error.body["type"], f"{kind.__name__} names {says}")

    async def asynchronous(self):
        async with openai.AsyncOpenAI(base_url=self.url, api_key="none", max_retries=0, timeout=120) as client:
            async def text(seed):
                got = await client.completions.create(model=self.model, prompt="return ", max_tokens=16, temperature=0.9, seed=seed)
                return got.choices[0].text

            alone = [await text(seed) for seed in range(6)]
            self.same(await asyncio.gather(*map(text, range(6))), alone, "six at once from an asynchronous client get what each gets alone")
            pieces, stream = [], await client.chat.completions.create(model=self.model, messages=MESSAGES, stream=True, **OPTIONS)
            async for event in stream:
                pieces += [c.delta.content or "" for c in event.choices]
            chat = self.client.chat.completions.create(model=self.model, messages=MESSAGES, **OPTIONS).choices[0].message.content
            self.same("".join(pieces), chat, "an asynchronous stream")
            whole = await client.chat.completions.create(model=self.model, messages=MESSAGES, **OPTIONS)
            self.same(whole.choices[0].message.content, chat, "an asynchronous chat")
            asked = {"model": self.model, "input": MESSAGES, "max_output_tokens": OPTIONS["max_tokens"], "temperature": OPTIONS["temperature"],
                     "extra_body": {"seed": OPTIONS["seed"]}}
            self.same((await client.responses.create(**asked)).output_text, chat, "an asynchronous response")
            events = [event async for event in await client.responses.create(stream=True, **asked)]
            self.same("".join(e.delta for e in events if e.type == "response.output_text.delta"), chat, "its events")
            texts = ["return 12", "if a:"]
            self.same([d.embedding for d in (await client.embeddings.create(model=self.model, input=texts)).data],
                      [d.embedding for d in self.client.embeddings.create(model=self.model, input=texts).data], "asynchronous embeddings")
            for _ in range(3):
                stream = await client.completions.create(model=self.model, prompt="for ", stream=True, max_tokens=80, temperature=1)
                await anext(aiter(stream))
                await stream.close()
            task = asyncio.create_task(client.completions.create(model=self.model, prompt="for ", max_tokens=80, temperature=1))
            await asyncio.sleep(0)
            task.cancel()
            self.report.check(isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError), "an asynchronous call is cancelled")
            self.same(await text(0), alone[0], "what comes after cancelled calls has its bits")

    def cancelled(self):
        for _ in range(5):
            stream = self.client.completions.create(model=self.model, prompt="for ", stream=True, max_tokens=80, temperature=1)
            next(iter(stream))
            stream.close()
        self.same(self.server.raw("GET", "/ready")[0], 200, "streams that are closed early leave the server ready")

    def retried(self, crowded):
        """One answer runs and one request waits. Whoever finds it full is told when to ask again, and the package does."""
        statuses = []
        with openai.DefaultHttpxClient(event_hooks={"response": [lambda response: statuses.append(response.status_code)]}, timeout=120) as http:
            patient = openai.OpenAI(base_url=f"http://127.0.0.1:{crowded.port}/v1", api_key="none", max_retries=40, http_client=http)
            texts = [None] * 8

            def ask(i):
                texts[i] = patient.completions.create(model="calls", prompt="return ", **(OPTIONS | {"max_tokens": 80})).choices[0].text

            # The place is taken before they ask: else each may come when the one before it has its answer.
            first = threading.Thread(target=crowded.post, args=("/v1/completions", {"prompt": "return ", "max_tokens": 80, "n": 16}))
            first.start()
            while first.is_alive() and b"\nostro_requests_running 1\n" not in crowded.raw("GET", "/metrics")[1]:
                time.sleep(0.001)
            threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(texts))]
            for thread in threads:
                thread.start()
            threads.append(first)
            for thread in threads:
                thread.join()
        self.report.check(texts[0] and len(set(texts)) == 1, "eight that ask a server with one place in its queue are all answered, alike")
        self.report.check(set(statuses) == {200, 429} and statuses.count(200) == 8, f"of them {statuses.count(429)} were told to ask again: {sorted(set(statuses))}")

    def functions(self, caller):
        """A model that learned one call by heart makes it, whole and in pieces, by both forms of the API; its result goes back."""
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{caller.port}/v1", api_key="none", max_retries=0, timeout=120)
        function = {"name": "add", "description": "adds", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
        tools, messages = [{"type": "function", "function": function}], [{"role": "user", "content": "one and two"}]
        asked = {"model": "calls", "messages": messages, "tools": tools, "temperature": 0, "max_tokens": 60, "stop": "\n"}
        answer = client.chat.completions.create(**asked).choices[0]
        calls = answer.message.tool_calls or []
        self.report.check(len(calls) == 1 and calls[0].function.name == "add" and json.loads(calls[0].function.arguments) == {"a": 12}
                          and answer.finish_reason == "tool_calls", f"a call of a function: {answer}")
        with client.chat.completions.stream(**asked) as stream:
            pieces = stream.get_final_completion().choices[0].message.tool_calls or []
        self.same([(c.function.name, c.function.arguments) for c in pieces], [(c.function.name, c.function.arguments) for c in calls], "the same call in pieces")
        named = client.responses.create(model="calls", input="one and two", tools=[{"type": "function", **function}], temperature=0, max_output_tokens=60,
                                        extra_body={"stop": "\n"})
        self.same([(item.type, item.name, json.loads(item.arguments)) for item in named.output if item.type == "function_call"],
                  [("function_call", "add", {"a": 12})], "the same call as an item of a response")
        back = [*messages, answer.message, {"role": "tool", "tool_call_id": calls[0].id if calls else "", "content": "3"}]
        more = client.chat.completions.create(**(asked | {"messages": back, "tool_choice": "none"})).choices[0].message
        plain = caller.post("/v1/chat/completions", {k: v for k, v in asked.items() if k not in ("tools", "messages")} | {"messages": [
            m if isinstance(m, dict) else m.model_dump(exclude_none=True) for m in back]})["choices"][0]["message"]
        self.same((more.content, more.tool_calls), (plain["content"], None), "the call's result goes back, and without functions an answer is text")
        unknown = client.chat.completions.create(**(asked | {"tools": [{"type": "function", "function": function | {"name": "subtract"}}]})).choices[0].message
        self.report.check(unknown.tool_calls is None and "add" in (unknown.content or ""), f"a call of a function that the request does not have is text: {unknown}")


def make_caller(ostro, folder):
    """A run that learned by heart how a call is written."""
    run = TinyRun(ostro, folder, "calls", {"data": {"train_urls": [str(folder / "calls.txt")], "validation_urls": [], "cache_dir": str(folder / "calls_cache")}, "trainer": {"num_train_steps": 60}})
    (folder / "calls.txt").write_text('<user> one and two\n<assistant> {"name": "add", "arguments": {"a": 12}}\n' * 600)
    run.train()
    (run.run_directory / "chat_template.jinja").write_text(
        "{% for m in messages %}{% if m.role == 'user' %}<user> {{ m.content }}\n{% endif %}{% endfor %}<assistant>")
    (run.run_directory / "tool_format.json").write_text(json.dumps({"begin": "", "end": "", "name": "name", "arguments": "arguments"}))
    return run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    ostro = pathlib.Path(parser.parse_args().ostro).resolve()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        run = TinyRun(ostro, folder, "served", {})
        run.train()
        (run.run_directory / "chat_template.jinja").write_text(TEMPLATE)
        caller = make_caller(ostro, pathlib.Path(folder))
        server = Server(str(ostro), folder, str(run.run_directory), "--listen", "127.0.0.1:0")
        crowded = Server(str(ostro), folder, str(caller.run_directory), "--listen", "127.0.0.1:0", "--waiting", "1", "--running", "1")
        try:
            checks = Checks(report, server)
            for part in (checks.models, checks.completions, checks.chats, checks.responses, checks.embeddings, checks.raw, checks.errors, checks.cancelled):
                part()
            asyncio.run(checks.asynchronous())
            checks.functions(crowded)
            checks.retried(crowded)
            server.stop()
            crowded.stop()
        finally:
            server.process.kill()
            crowded.process.kill()
    report.finish()


if __name__ == "__main__":
    main()
