"""A server on loopback that gives out keys as a machine's metadata (IMDSv2) and as STS do."""
import http.server
import json
import threading
import time
import urllib.parse

from s3_server import ACCESS_KEY, SECRET_KEY, TOKEN

ROLE, IDENTITY = "worker", "the-token-of-an-identity"
FOLDER = "/latest/meta-data/iam/security-credentials/"


def end():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=""):
        self.server.asked.append(f"{self.command} {self.path} {status}")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        wanted = self.path == "/latest/api/token" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self.answer(*(200, "session") if wanted else (400,))

    def do_GET(self):
        if self.headers.get("X-aws-ec2-metadata-token") != "session":
            return self.answer(401)
        if self.path == FOLDER:
            return self.answer(200, ROLE)
        if self.path != FOLDER + ROLE:
            return self.answer(404)
        return self.answer(200, json.dumps({"Code": "Success", "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": TOKEN,
                                            "Expiration": end()}))

    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
        if form.get("Action") != ["AssumeRoleWithWebIdentity"] or form.get("WebIdentityToken") != [IDENTITY]:
            return self.answer(400, "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>Another one.</Message></Error></ErrorResponse>")
        return self.answer(200, "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
                           f"<AccessKeyId>{ACCESS_KEY}</AccessKeyId><SecretAccessKey>{SECRET_KEY}</SecretAccessKey>"
                           f"<SessionToken>{TOKEN}</SessionToken><Expiration>{end()}</Expiration>"
                           "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>")


class KeyServer(http.server.ThreadingHTTPServer):
    """`asked`: lines "METHOD PATH STATUS". Use it with `with`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
