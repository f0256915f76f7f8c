"""The part of the hub's API that a push uses, on loopback: files are kept in memory."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_" + "a" * 34


class Hub(ThreadingHTTPServer):
    """Data sets by name, with the bytes of their files; ``writes`` are the requests that change something."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.repos: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.writes: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    """Answers as the hub does, but takes every file inside the commit: large ones have a store of their own there."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.say(401, {"error": "Invalid username or password."})
        if self.path == "/api/whoami-v2":
            return self.say(200, {"name": "tester", "type": "user", "orgs": []})
        repo = self.path.removeprefix("/api/datasets/").partition("/revision")[0]
        if repo in self.server.repos:
            return self.say(200, {"id": repo, "sha": "0" * 40, "siblings": []})
        return self.say(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})

    def do_POST(self) -> None:
        body = self.body()
        if self.path.endswith("/preupload/main"):
            mode = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return self.say(200, {"files": [{"path": file["path"], **mode} for file in json.loads(body)["files"]]})
        if self.path == "/api/validate-yaml":
            return self.say(200, {"errors": [], "warnings": []})
        self.server.writes.append(self.path)
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization', 'tester')}/{asked['name']}"
            self.server.repos.setdefault(name, {})
            self.server.private[name] = asked.get("private", asked.get("visibility") == "private")
            return self.say(200, {"url": f"{self.server.address}/datasets/{name}"})
        if self.path.endswith("/commit/main"):
            repo = self.path.removeprefix("/api/datasets/").removesuffix("/commit/main")
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.server.repos[repo][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            url = f"{self.server.address}/datasets/{repo}/commit/{'0' * 40}"
            return self.say(200, {"success": True, "commitOid": "0" * 40, "commitUrl": url})
        return self.say(404, {"error": f"The stub does not know {self.path}"})

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline().strip(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def say(self, code: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(answer).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


@contextmanager
def running() -> Iterator[Hub]:
    """A hub while the block runs."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
