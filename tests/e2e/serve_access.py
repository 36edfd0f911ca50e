"""Parts of serve_test.py: who may ask `ostro serve`: keys that come and go, a Unix socket, and the proxy and the service
of docs/guide/serve.md, with nginx
where it is installed."""
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time


class SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(120)
        self.sock.connect(self.path)


def ask(connection, method, path, body=None, **headers):
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def keys(test, server_class, check):
    """A key is taken as long as its hash is in the file; the command of the guide makes one."""
    guide = (test.root / "docs/guide/serve.md").read_text()
    command = re.search(r"^KEY=\$\(openssl.*$", guide, re.MULTILINE)[0]
    (test.folder / "keys.txt").unlink(missing_ok=True)
    made = subprocess.run(["bash", "-c", command.replace("keys.txt", str(test.folder / "keys.txt")).replace("NAME", "anna") + "; echo $KEY"],
                          capture_output=True, text=True, check=True).stdout.split()[-1]
    line = (test.folder / "keys.txt").read_text()
    check(line == f"{hashlib.sha256(made.encode()).hexdigest()}  anna\n", f"the guide's command wrote {line!r} for {made}")
    server = server_class(test.ostro, test.folder, "runs/nano", "--listen", "127.0.0.1:0", "--api_keys", "keys.txt")
    try:
        body = json.dumps({"prompt": "the", "max_tokens": 2})
        for word, status in ((f"Bearer {made}", 200), (f"Bearer {made[:-1]}", 401), ("", 401), (made, 401)):
            got, text, headers = server.raw("POST", "/v1/completions", body, Authorization=word)
            check(got == status, f"{word}: {got}, not {status}: {text}")
            if status == 401:
                check(json.loads(text)["error"]["code"] == "invalid_api_key" and headers["WWW-Authenticate"] == "Bearer", f"{text} {headers}")
        check(server.raw("GET", "/health")[0] == 200 and server.raw("GET", "/v1/models")[0] == 401, "what needs no key")
        scraper = "a key of the test for Prometheus"
        (test.folder / "keys.txt").write_text(line + hashlib.sha256(scraper.encode()).hexdigest() + " metrics\n")
        for key, path, status in ((made, "/metrics", 403), (scraper, "/metrics", 200), (scraper, "/v1/models", 403), (made, "/v1/models", 200)):
            got, text, _ = server.raw("GET", path, Authorization=f"Bearer {key}")
            check(got == status and (status == 200 or "metrics" in json.loads(text)["error"]["message"]), f"{path}: {got}, not {status}: {text[:200]}")
        (test.folder / "keys.txt").write_text("0" * 64 + "  ben\n")
        check(server.raw("POST", "/v1/completions", body, Authorization=f"Bearer {made}")[0] == 401, "a key that was taken back is taken")
        (test.folder / "keys.txt").write_text("rubbish\n")
        check(server.raw("POST", "/v1/completions", body, Authorization=f"Bearer {made}")[0] == 503, "keys from a wrong file")
        (test.folder / "keys.txt").write_text(line)
        check(server.raw("POST", "/v1/completions", body, Authorization=f"Bearer {made}")[0] == 200, "a key that came back")
        server.stop()
    finally:
        server.process.kill()


def unix_socket(test, check):
    """The service of the guide, by its own command line, behind the guide's proxy."""
    guide = (test.root / "docs/guide/serve.md").read_text()
    words = re.search(r"^ExecStart=/usr/local/bin/ostro (.*)$", guide, re.MULTILINE)[1].split()
    places = {"/srv/models/nano": "runs/nano", "/etc/ostro/keys": "keys.txt", "/run/ostro/socket": str(test.folder / "socket")}
    for place, here in places.items():
        words = [word.replace(place, here) for word in words]
    key = "a key of the test"
    (test.folder / "keys.txt").write_text(hashlib.sha256(key.encode()).hexdigest() + " anna\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
    process = subprocess.Popen([test.ostro, *words], cwd=test.folder, env=env, text=True, stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline()
        check(line.startswith(f"unix:{test.folder}/socket serves nano"), f"serve printed {line}")
        fields = {"prompt": "the copyright ", "max_tokens": 30, "seed": 3}
        word = {"Authorization": f"Bearer {key}", "Host": "models.example.org"}
        status, text = ask(SocketConnection(test.folder / "socket"), "POST", "/v1/completions", json.dumps(fields), **word)
        check(status == 200, f"over the socket: {status} {text}")
        _proxy(test, guide, fields, word, json.loads(text)["choices"], check)
        process.terminate()
        check(process.wait(60) == 0, f"serve ended with {process.returncode}")
        check(not (test.folder / "socket").exists(), "the socket stays behind")
    finally:
        process.kill()


def _proxy(test, guide, fields, word, expected, check):
    nginx = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if nginx is None:
        print("  NOT TRIED: nginx is not installed, so the guide's proxy was not tried")
        return
    site = re.search(r"```nginx\n(.*?)```", guide, re.DOTALL)[1]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "tls.key", "-out",
                    "tls.pem", "-days", "2", "-subj", "/CN=models.example.org", "-addext", "subjectAltName=DNS:models.example.org"],
                   cwd=test.folder, check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for place, here in (("443 ssl", f"127.0.0.1:{port} ssl"), ("/etc/ssl/models.pem", "tls.pem"), ("/etc/ssl/private/models.key", "tls.key"),
                        ("/run/ostro/socket", str(test.folder / "socket"))):
        check(place in site, f"{place} is not in the guide's nginx example")
        site = site.replace(place, here)
    (test.folder / "nginx.conf").write_text(
        f"{'user root;' if os.geteuid() == 0 else ''} daemon off; pid nginx.pid; error_log nginx.log; events {{}}\n"
        "http { access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n"
        f"{site}}}\n")
    proxy = subprocess.Popen([nginx, "-p", str(test.folder), "-c", "nginx.conf", "-e", "nginx.log"], cwd=test.folder)
    try:
        context = ssl.create_default_context(cafile=str(test.folder / "tls.pem"))

        def through(method, path, body=None, **headers):
            for _ in range(3000):
                try:
                    plain = socket.create_connection(("127.0.0.1", port))
                    break
                except OSError:
                    check(proxy.poll() is None, "nginx ended; it says why above")
                    time.sleep(0.02)
            connection = http.client.HTTPSConnection("models.example.org", timeout=120, context=context)
            connection.sock = context.wrap_socket(plain, server_hostname="models.example.org")
            return ask(connection, method, path, body, **headers)

        status, text = through("POST", "/v1/completions", json.dumps(fields), **word)
        check(status == 200 and json.loads(text)["choices"] == expected, f"through nginx: {status} {text}")
        status, text = through("POST", "/v1/completions", json.dumps(fields | {"stream": True}), **word)
        check(status == 200 and text.endswith(b"data: [DONE]\n\n") and text.count(b"data: ") > 3, f"a stream through nginx: {status} {text[-300:]}")
        check(through("GET", "/v1/models")[0] == 401 and through("GET", "/ready")[0] == 200, "keys through nginx")
        print("  nginx: good")
    finally:
        proxy.terminate()
        proxy.wait(30)
