"""A small Hub on 127.0.0.1 for the tests: what `huggingface_hub` and `datasets` use here of the HTTP interface.

It keeps everything in memory, checks tokens, and can be told to fail: `hub.fault("PUT", "/lfs/", status=500)`. Written
from what the clients send (huggingface_hub 2.4: hf_api.py, _commit_api.py, lfs.py) and from the Git LFS batch API. It
has no Xet storage; clients are told so with HF_HUB_DISABLE_XET=1 in `hub.env`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_verySecretTokenOfTheTests12345"
TYPES = {"models": "model", "datasets": "dataset", "spaces": "space"}
LFS_SUFFIXES = (".parquet", ".bin", ".flac", ".zip", ".png")
MULTIPART_BYTES = 4_000_000
PAGE = 500


@dataclass
class File:
    data: bytes
    lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def blob(self) -> str:
        """The id that git gives: of the content, or of the pointer to it."""
        stored = self.data
        if self.lfs:
            head = "version https://git-lfs.github.com/spec/v1\n"
            stored = f"{head}oid sha256:{self.sha256}\nsize {len(self.data)}\n".encode()
        return hashlib.sha1(b"blob %d\0" % len(stored) + stored).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.blob

    def info(self, path: str) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "file", "oid": self.blob, "size": len(self.data), "path": path}
        if self.lfs:
            made["lfs"] = {"oid": self.sha256, "size": len(self.data), "pointerSize": 130}
        return made


@dataclass
class Repo:
    id: str
    type: str
    private: bool
    commits: dict[str, dict[str, File]] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)  # branches and refs/pr/N
    tags: dict[str, str] = field(default_factory=dict)
    pulls: list[dict[str, Any]] = field(default_factory=list)

    def commit(self, ref: str, files: dict[str, File], message: str) -> str:
        seed = f"{self.id}{ref}{message}{len(self.commits)}{sorted((p, f.blob) for p, f in files.items())}"
        sha = hashlib.sha1(seed.encode()).hexdigest()
        self.commits[sha], self.messages[sha], self.refs[ref] = files, message, sha
        return sha

    def find(self, revision: str) -> str | None:
        known = {**self.tags, **self.refs}
        return revision if revision in self.commits else known.get(revision.removeprefix("refs/heads/"))

    @property
    def files(self) -> dict[str, File]:
        return self.commits[self.refs["main"]]


@dataclass
class Fault:
    """What goes wrong, with the next `times` requests of a method and path, after `skip` that go well."""

    method: str
    path: re.Pattern[str]
    times: int
    skip: int
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    drop_after: int | None = None  # close the connection after so many bytes
    slow_s: float = 0.0  # wait so long in the middle of a body
    lose_answer: bool = False  # do what is asked, then close the connection


class Refusal(Exception):
    def __init__(self, status: int, message: str, code: str = "", headers: dict[str, str] | None = None) -> None:
        self.status, self.message, self.code, self.headers = status, message, code, headers or {}


class LoopbackHub:
    """Start with `with LoopbackHub() as hub`, then point clients to it with `hub.env`."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.parts: dict[tuple[str, int], bytes] = {}
        self.tokens: dict[str, dict[str, Any]] = {}
        self.faults: list[Fault] = []
        self.log: list[tuple[str, str, int]] = []  # method, path, bytes received
        self.lock = threading.RLock()

    def __enter__(self) -> LoopbackHub:
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()

    def env(self, home: os.PathLike[str] | str, token: str | None = None) -> dict[str, str]:
        """The environment of a client process: this hub, a home of its own, no telemetry."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
        made = {
            **kept,
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_IMPLICIT_TOKEN": "",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        }
        return made | ({"HF_TOKEN": token} if token else {})

    def add_token(self, token: str, name: str = "ann", orgs: tuple[str, ...] = ("acme",), write: bool = True) -> str:
        self.tokens[token] = {"name": name, "orgs": orgs, "write": write, "expired": False}
        return token

    def fault(self, method: str, path: str, times: int = 1, skip: int = 0, **how: Any) -> None:
        self.faults.append(Fault(method, re.compile(path), times, skip, **how))

    def repo(self, id: str, type: str = "dataset") -> Repo:
        return self.repos[type, id]

    def create(self, id: str, type: str = "dataset", private: bool = False) -> Repo:
        made = self.repos[type, id] = Repo(id, type, private)
        made.commit("main", {".gitattributes": File(b"*.parquet filter=lfs\n", False)}, "initial commit")
        return made

    def uploads(self) -> list[str]:
        """The paths of the requests that carried file content."""
        return [path for method, path, _ in self.log if method == "PUT"]

    def commits(self) -> list[str]:
        return [path for method, path, _ in self.log if method == "POST" and "/commit/" in path]

    @contextmanager
    def watched(self) -> Iterator[list[tuple[str, str, int]]]:
        """The requests of a stretch of the test."""
        self.log.clear()
        yield self.log


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    # --- a request, its faults and its answer ---------------------------------------------------------------------

    def _serve(self) -> None:
        fault = self._fault()
        try:
            self.body = self._read(fault)
            if fault and fault.status:
                raise Refusal(fault.status, fault.body.get("error", "injected fault"), headers=fault.headers)
            self.hub.log.append((self.command, self.path, len(self.body)))
            with self.hub.lock:
                answer = self._route()
            if fault and fault.lose_answer:
                self.connection.close()
                raise ConnectionError("lost on purpose")
            self._send(*answer, fault=fault if self.command == "GET" else None)
        except Refusal as no:
            named = {"X-Error-Message": no.message, **({"X-Error-Code": no.code} if no.code else {}), **no.headers}
            self._send(no.status, {"error": no.message}, named)
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

    def _fault(self) -> Fault | None:
        with self.hub.lock:
            for fault in self.hub.faults:
                if fault.method == self.command and fault.path.search(self.path) and fault.times:
                    if fault.skip:
                        fault.skip -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None

    def _read(self, fault: Fault | None) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
                self._disturb(fault, data)
            self.rfile.readline()
            return data
        length = int(self.headers.get("Content-Length") or 0)
        if fault and length and (fault.drop_after is not None or fault.slow_s):
            half = min(fault.drop_after or length // 2, length)
            data = self.rfile.read(half)
            self._disturb(fault, data)
            return data + self.rfile.read(length - half)
        return self.rfile.read(length)

    def _disturb(self, fault: Fault | None, data: bytes) -> None:
        if fault and fault.slow_s:
            sleep(fault.slow_s)
        if fault and fault.drop_after is not None and len(data) >= fault.drop_after:
            self.connection.close()
            raise ConnectionError("dropped on purpose")

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None, fault: Fault | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault and fault.drop_after is not None:
            self.wfile.write(data[: fault.drop_after])
            self.wfile.flush()
            self._disturb(fault, data)
        if fault and fault.slow_s:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            sleep(fault.slow_s)
            data = data[len(data) // 2 :]
        self.wfile.write(data)

    # --- who asks ---------------------------------------------------------------------------------------------------

    def _user(self, write: bool = False) -> dict[str, Any] | None:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        user = self.hub.tokens.get(given)
        if given and user is None:
            raise Refusal(401, "Invalid username or password.")
        if user and user["expired"]:
            raise Refusal(401, "User Access Token is expired")
        if write and user is None:
            raise Refusal(401, "Invalid username or password.")
        if write and user and not user["write"]:
            raise Refusal(403, "You don't have the rights to write to this repository with this token")
        return user

    def _repo(self, type: str, id: str, write: bool = False) -> Repo:
        user = self._user(write)
        repo = self.hub.repos.get((type, id))
        owners = (user["name"], *user["orgs"]) if user else ()
        if repo is None or (repo.private and id.split("/")[0] not in owners):
            raise Refusal(404 if user else 401, "Repository not found", "RepoNotFound")
        return repo

    def _sha(self, repo: Repo, revision: str) -> str:
        sha = repo.find(unquote(revision))
        if sha is None:
            raise Refusal(404, f"Invalid rev id: {unquote(revision)}", "RevisionNotFound")
        return sha

    # --- what is asked ----------------------------------------------------------------------------------------------

    def _route(self) -> tuple:
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        for method, pattern, action in _ROUTES:
            found = re.fullmatch(pattern, parts.path)
            if found and method == self.command:
                groups = found.groupdict()
                if "type" in groups:
                    groups["type"] = TYPES[groups["type"] or "models"]
                return action(self, **groups)
        raise Refusal(404, f"the loopback hub has no {self.command} {parts.path}")

    def _json(self) -> Any:
        return json.loads(self.body or b"null")

    def whoami(self) -> tuple:
        user = self._user(write=False)
        if user is None:
            raise Refusal(401, "Invalid username or password.")
        role = "write" if user["write"] else "read"
        return 200, {
            "type": "user",
            "name": user["name"],
            "orgs": [{"name": org} for org in user["orgs"]],
            "auth": {"type": "access_token", "accessToken": {"displayName": "test", "role": role}},
        }

    def create_repo(self) -> tuple:
        asked = self._json()
        user = self._user(write=True)
        assert user is not None
        id, type = f"{asked.get('organization') or user['name']}/{asked['name']}", asked.get("type", "model")
        if id.split("/")[0] not in (user["name"], *user["orgs"]):
            raise Refusal(
                403, f'You don\'t have the rights to create a {type} under the namespace "{id.split("/")[0]}"'
            )
        url = f"{self.hub.url}/{'' if type == 'model' else type + 's/'}{id}"
        if (type, id) in self.hub.repos:
            return 409, {"error": f"You already created this {type} repo", "url": url, "id": id}
        private = asked.get("private", asked.get("visibility") == "private")
        self.hub.create(id, type, private)
        return 200, {"url": url, "name": id, "id": id}

    def validate_yaml(self) -> tuple:
        import yaml

        text = self._json()["content"]
        try:
            yaml.safe_load(text.split("---")[1] if text.startswith("---") else "")
        except yaml.YAMLError as error:
            return 400, {"errors": [{"message": str(error)}], "warnings": []}
        return 200, {"errors": [], "warnings": []}

    def preupload(self, type: str, id: str, rev: str) -> tuple:
        repo = self._repo(type, id, write=True)
        known = repo.commits[self._sha(repo, rev)]

        def mode(asked: dict[str, Any]) -> dict[str, Any]:
            path = asked["path"]
            lfs = path.endswith(LFS_SUFFIXES) or asked["size"] > 10_000_000
            made = {"path": path, "uploadMode": "lfs" if lfs else "regular", "shouldIgnore": False}
            return made | ({"oid": known[path].etag} if path in known else {})

        return 200, {"files": [mode(asked) for asked in self._json()["files"]]}

    def lfs_batch(self, type: str, id: str) -> tuple:
        self._repo(type, id, write=True)
        objects: list[dict[str, Any]] = []
        for asked in self._json()["objects"]:
            oid, size = asked["oid"], asked["size"]
            made: dict[str, Any] = {"oid": oid, "size": size}
            if oid not in self.hub.objects:
                header: dict[str, str] = {}
                upload = f"{self.hub.url}/lfs/{oid}"
                if size > MULTIPART_BYTES:
                    count = -(-size // MULTIPART_BYTES)
                    header = {"chunk_size": str(MULTIPART_BYTES)}
                    header |= {str(i): f"{self.hub.url}/lfs-part/{oid}/{i}" for i in range(1, count + 1)}
                    upload = f"{self.hub.url}/lfs-complete/{oid}"
                verify = f"{self.hub.url}/lfs-verify/{oid}"
                made["actions"] = {"upload": {"href": upload, "header": header}, "verify": {"href": verify}}
            objects.append(made)
        return 200, {"transfer": "basic", "objects": objects}

    def lfs_put(self, oid: str) -> tuple:
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise Refusal(400, "the content does not have the hash that was announced")
        self.hub.objects[oid] = self.body
        return 200, {}

    def lfs_part(self, oid: str, part: str) -> tuple:
        self.hub.parts[oid, int(part)] = self.body
        return 200, {}, {"ETag": hashlib.md5(self.body).hexdigest()}

    def lfs_complete(self, oid: str) -> tuple:
        numbers = [part["partNumber"] for part in self._json()["parts"]]
        self.body = b"".join(self.hub.parts.pop((oid, number)) for number in sorted(numbers))
        return self.lfs_put(oid)

    def lfs_verify(self, oid: str) -> tuple:
        if len(self.hub.objects.get(oid, b"")) != self._json()["size"]:
            raise Refusal(404, "no such object")
        return 200, {}

    def commit(self, type: str, id: str, rev: str) -> tuple:
        repo = self._repo(type, id, write=True)
        lines = [json.loads(line) for line in self.body.splitlines() if line.strip()]
        header = lines[0]["value"]
        sha, ref = self._sha(repo, rev), unquote(rev)
        parent = header.get("parentCommit")
        if parent and parent != sha:
            raise Refusal(412, "A commit has happened since. Please refresh and try again.")
        files = dict(repo.commits[sha])
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = File(base64.b64decode(value["content"]), False)
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.objects:
                    raise Refusal(400, f"LFS pointer pointed to a file that does not exist: {value['path']}")
                files[value["path"]] = File(self.hub.objects[value["oid"]], True)
            elif line["key"] == "deletedFile":
                if files.pop(value["path"], None) is None:
                    raise Refusal(404, "A file with this name doesn't exist", "EntryNotFound")
            else:
                raise Refusal(400, f"unknown operation {line['key']}")
        made: dict[str, Any] = {"success": True}
        if self.query.get("create_pr") == ["1"]:
            number = len(repo.pulls) + 1
            ref = f"refs/pr/{number}"
            title, user = header["summary"], self._user()
            repo.pulls.append({"num": number, "title": title, "author": {"name": user and user["name"]}})
            made["pullRequestUrl"] = f"{self.hub.url}/{'' if type == 'model' else type + 's/'}{id}/discussions/{number}"
        made["commitOid"] = repo.commit(ref, files, header["summary"])
        made["commitUrl"] = f"{self.hub.url}/{id}/commit/{made['commitOid']}"
        return 200, made

    def paths_info(self, type: str, id: str, rev: str) -> tuple:
        repo = self._repo(type, id)
        files = repo.commits[self._sha(repo, rev)]
        asked = parse_qs(self.body.decode()).get("paths", [])
        if self.body.startswith(b"{"):
            asked = self._json()["paths"]
        made = [files[path].info(path) for path in asked if path in files]
        folders = [p for p in asked if any(known.startswith(p + "/") for known in files)]
        return 200, made + [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in folders]

    def tree(self, type: str, id: str, rev: str, path: str | None) -> tuple:
        repo = self._repo(type, id)
        files = repo.commits[self._sha(repo, rev)]
        prefix = f"{unquote(path)}/" if path else ""
        deep = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        made: dict[str, dict[str, Any]] = {}
        for name, file in sorted(files.items()):
            if not name.startswith(prefix):
                continue
            steps = name[len(prefix) :].split("/")
            for depth in range(1, len(steps)) if deep else range(1, min(2, len(steps))):
                folder = prefix + "/".join(steps[:depth])
                made[folder] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": folder}
            if deep or len(steps) == 1:
                made[name] = file.info(name)
        if prefix and not made:
            raise Refusal(404, f"{prefix} does not exist", "EntryNotFound")
        rows, start = list(made.values()), int(self.query.get("cursor", ["0"])[0])
        headers = {}
        if start + PAGE < len(rows):
            base = self.hub.url + urlsplit(self.path).path
            headers["Link"] = f'<{base}?recursive={str(deep).lower()}&cursor={start + PAGE}>; rel="next"'
        return 200, rows[start : start + PAGE], headers

    def info(self, type: str, id: str, rev: str | None = None) -> tuple:
        repo = self._repo(type, id)
        sha = self._sha(repo, rev or "main")
        siblings = [{"rfilename": path} for path in sorted(repo.commits[sha])]
        return 200, {
            "id": id,
            "modelId": id,
            "_id": "0" * 24,
            "sha": sha,
            "private": repo.private,
            "gated": False,
            "disabled": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "author": id.split("/")[0],
            "lastModified": "2026-01-01T00:00:00.000Z",
            "createdAt": "2026-01-01T00:00:00.000Z",
            "siblings": siblings,
        }

    def refs(self, type: str, id: str) -> tuple:
        repo = self._repo(type, id)

        def named(name: str, ref: str, sha: str) -> dict[str, str]:
            return {"name": name, "ref": ref, "targetCommit": sha}

        heads = {ref: sha for ref, sha in repo.refs.items() if not ref.startswith("refs/pr/")}
        pulls = {ref: sha for ref, sha in repo.refs.items() if ref.startswith("refs/pr/")}
        return 200, {
            "branches": [named(ref, f"refs/heads/{ref}", sha) for ref, sha in heads.items()],
            "tags": [named(tag, f"refs/tags/{tag}", sha) for tag, sha in repo.tags.items()],
            "converts": [],
            "pullRequests": [named(ref, ref, sha) for ref, sha in pulls.items()],
        }

    def branch(self, type: str, id: str, name: str) -> tuple:
        repo = self._repo(type, id, write=True)
        if unquote(name) in repo.refs:
            raise Refusal(409, "Reference already exists")
        asked = self._json() or {}
        repo.refs[unquote(name)] = self._sha(repo, asked.get("startingPoint", "main"))
        return 200, {}

    def tag(self, type: str, id: str, rev: str) -> tuple:
        repo = self._repo(type, id, write=True)
        tag = self._json()["tag"]
        if tag in repo.tags:
            raise Refusal(409, "Tag reference exists already")
        repo.tags[tag] = self._sha(repo, rev)
        return 200, {}

    def untag(self, type: str, id: str, tag: str) -> tuple:
        del self._repo(type, id, write=True).tags[unquote(tag)]
        return 200, {}

    def discussions(self, type: str, id: str) -> tuple:
        repo = self._repo(type, id)
        rows = [
            {
                **pull,
                "repo": {"name": id, "type": type},
                "status": "open",
                "isPullRequest": True,
                "createdAt": "2026-01-01T00:00:00.000Z",
            }
            for pull in repo.pulls
        ]
        return 200, {"discussions": rows, "count": len(rows), "start": 0}

    def resolve(self, type: str, id: str, rev: str, path: str) -> tuple:
        repo = self._repo(type, id)
        sha = self._sha(repo, rev)
        file = repo.commits[sha].get(unquote(path))
        if file is None:
            raise Refusal(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": sha})
        headers = {"ETag": f'"{file.etag}"', "X-Repo-Commit": sha, "Content-Type": "application/octet-stream"}
        headers |= {"Accept-Ranges": "bytes", "X-Linked-Size": str(len(file.data)), "X-Linked-Etag": f'"{file.etag}"'}
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if self.command == "HEAD":
            return 200, b"", {**headers, "Content-Length": str(len(file.data))}
        if span:
            start, size = int(span[1]), len(file.data)
            end = min(int(span[2] or size - 1), size - 1)
            return 206, file.data[start : end + 1], {**headers, "Content-Range": f"bytes {start}-{end}/{size}"}
        return 200, file.data, headers


_T = r"/api/(?P<type>models|datasets|spaces)/(?P<id>[\w.-]+/[\w.-]+)"
_R = r"/(?:(?P<type>datasets|spaces)/)?(?P<id>[\w.-]+/[\w.-]+)"
_ROUTES = [
    ("GET", "/api/whoami-v2", _Handler.whoami),
    ("POST", "/api/repos/create", _Handler.create_repo),
    ("POST", "/api/validate-yaml", _Handler.validate_yaml),
    ("POST", _T + r"/preupload/(?P<rev>[^/]+)", _Handler.preupload),
    ("POST", _R + r"\.git/info/lfs/objects/batch", _Handler.lfs_batch),
    ("PUT", r"/lfs/(?P<oid>\w+)", _Handler.lfs_put),
    ("PUT", r"/lfs-part/(?P<oid>\w+)/(?P<part>\d+)", _Handler.lfs_part),
    ("POST", r"/lfs-complete/(?P<oid>\w+)", _Handler.lfs_complete),
    ("POST", r"/lfs-verify/(?P<oid>\w+)", _Handler.lfs_verify),
    ("POST", _T + r"/commit/(?P<rev>[^/]+)", _Handler.commit),
    ("POST", _T + r"/paths-info/(?P<rev>[^/]+)", _Handler.paths_info),
    ("GET", _T + r"/tree/(?P<rev>[^/]+)(?:/(?P<path>.*))?", _Handler.tree),
    ("GET", _T, _Handler.info),
    ("GET", _T + r"/revision/(?P<rev>[^/]+)", _Handler.info),
    ("GET", _T + r"/refs", _Handler.refs),
    ("POST", _T + r"/branch/(?P<name>[^/]+)", _Handler.branch),
    ("POST", _T + r"/tag/(?P<rev>[^/]+)", _Handler.tag),
    ("DELETE", _T + r"/tag/(?P<tag>[^/]+)", _Handler.untag),
    ("GET", _T + r"/discussions", _Handler.discussions),
    ("GET", _R + r"/resolve/(?P<rev>[^/]+)/(?P<path>.+)", _Handler.resolve),
    ("HEAD", _R + r"/resolve/(?P<rev>[^/]+)/(?P<path>.+)", _Handler.resolve),
]
