"""Two servers of the same weights, ours and llama.cpp's: how they are started, asked, measured and ended.

Both get prompts as ids and stream greedy answers of a given length. A client notes when each token came.
"""
import asyncio, json, os, pathlib, signal, socket, subprocess, time, urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Answer:
    """What a client saw: the time when it asked, and the times and ids of the tokens."""

    def __init__(self, asked):
        self.asked, self.times, self.ids = asked, [], []

    @property
    def first(self):
        return self.times[0] - self.asked

    def rate(self):
        """Tokens a second behind the first one."""
        return (len(self.times) - 1) / (self.times[-1] - self.times[0])

    def gaps(self):
        return [b - a for a, b in zip(self.times, self.times[1:])]


async def body_of(reader, headers):
    """The bytes of a body as they come, chunked or until the connection ends."""
    if b"chunked" not in headers.lower():
        while data := await reader.read(1 << 16):
            yield data
        return
    while size := int((await reader.readline()).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readline()


class Side:
    """One server. `command` and `env` start it; a subclass says what it is asked, and how it answers."""

    path = ""

    def __init__(self, name, command, env, folder):
        self.name, self.command, self.env, self.folder = name, [str(w) for w in command], env, folder
        self.process, self.port, self.began = None, None, None

    def start(self):
        self.port = free_port()
        self.began = time.monotonic()
        log = open(pathlib.Path(self.folder) / f"{self.name.replace(' ', '_')}.log", "wb")
        self.process = subprocess.Popen(self.command + self.listen(), env=self.env, stdout=log, stderr=log)
        while not self.is_ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {pathlib.Path(log.name).read_text()[-2000:]}")
            time.sleep(0.002)
        return self

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def get(self, path):
        """Status and body; status 0: nobody listens yet."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
                s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                text = b"".join(iter(lambda: s.recv(1 << 16), b""))
            return int(text.split()[1]), text
        except (OSError, IndexError):
            return 0, b""

    def is_ready(self):
        return self.get(self.ready)[0] == 200

    def resident(self):
        """Bytes of resident memory."""
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async def ask(self, prompt, tokens, asked=None, **more):
        out = Answer(time.monotonic() if asked is None else asked)
        body = json.dumps(self.fields(prompt, tokens) | more).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        writer.write(f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        headers = await reader.readuntil(b"\r\n\r\n")
        left = b""
        async for data in body_of(reader, headers):
            now = time.monotonic()
            *lines, left = (left + data).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    ids = self.ids(json.loads(line[6:]))
                    out.ids += ids
                    out.times += [now] * len(ids)
        writer.close()
        if b" 200 " not in headers.split(b"\r\n")[0] or len(out.ids) != tokens:
            raise RuntimeError(f"{self.name}: {headers.splitlines()[0]!r}, {len(out.ids)} of {tokens} tokens; {left[-500:]!r}")
        return out

    def one(self, prompt, tokens, **more):
        return asyncio.run(self.ask(prompt, tokens, **more))

    def together(self, prompts, tokens, **more):
        """The answers to all prompts, asked at the same moment."""
        async def all_of():
            return await asyncio.gather(*(self.ask(prompt, tokens, **more) for prompt in prompts))
        return asyncio.run(all_of())


class Ours(Side):
    path, ready = "/v1/completions", "/ready"

    def listen(self):
        return ["--listen", f"127.0.0.1:{self.port}"]

    def fields(self, prompt, tokens):
        return {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "seed": 1, "stream": True, "return_token_ids": True}

    def ids(self, event):
        return [i for choice in event.get("choices", []) for i in choice.get("token_ids") or []]

    def whole(self, prompt, tokens, **more):
        """The only choice of an answer that is not streamed."""
        fields = self.fields(prompt, tokens) | {"stream": False} | more
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{self.path}", json.dumps(fields).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.loads(answer.read())["choices"][0]

    def metrics(self):
        lines = self.get("/metrics")[1].decode().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("ostro_")}


class Theirs(Side):
    """Its sampler has one link, of which greedy choice is the cheapest."""

    path, ready = "/completion", "/health"

    def listen(self):
        return ["--host", "127.0.0.1", "--port", str(self.port)]

    def fields(self, prompt, tokens):
        return {"prompt": prompt, "n_predict": tokens, "temperature": 0, "top_k": 1, "samplers": ["top_k"], "stream": True,
                "ignore_eos": True, "return_tokens": True, "cache_prompt": True}

    def ids(self, event):
        return [] if event.get("stop") else list(event.get("tokens") or [])
