"""The one way to the Hub: retries where the client has none, one clear line for what cannot be helped, no token in it.

`huggingface_hub` retries uploads but not the creation of a repository, a commit or a tag; `Hub.ask` does, and waits as
long as the server asks for. A call may be repeated after its answer was lost, so what is asked must be safe to ask
twice: commits are made from operations that are built anew, and a pull request is looked for before it is opened.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from speech_robust_bench.core.errors import UserError, install_hint

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

T = TypeVar("T")
RETRIES = 5
FIRST_WAIT_S = 0.5
MOST_WAIT_S = 300.0  # a server that asks for more is down: better to stop and be run again
BUSY = (429, 500, 502, 503, 504)
CONFLICT = (409, 412)
HUBS_OWN = (".gitattributes",)  # files that it keeps in every repository
_TOKEN = re.compile(r"\b(hf|api_org)_[A-Za-z0-9]{6,}")
AGAIN = "run the same command again"
RESUMED = f"{AGAIN}: what is uploaded stays there"


@dataclass(frozen=True)
class Remote:
    """A file in a repository: its size and the hash that tells whether it changed (git's, or sha256 under LFS)."""

    size: int
    blob: str
    sha256: str | None


@dataclass(frozen=True)
class Repository:
    """A repository at a commit: who sees it, and the names of its files."""

    sha: str
    private: bool
    files: frozenset[str]


class Hub:
    """A Hub as one user sees it. The token is the stored login or HF_TOKEN, never an argument."""

    def __init__(self, say: Callable[[str], None] = lambda line: None, retries: int = RETRIES):
        self.say, self.retries = say, retries
        self.again = AGAIN

    @cached_property
    def api(self) -> HfApi:
        try:
            from huggingface_hub import HfApi
            from huggingface_hub.utils import disable_progress_bars  # not an attribute before it is imported by name
        except ImportError:
            raise UserError(f"publishing needs huggingface_hub: {install_hint('push')}") from None
        disable_progress_bars()
        # Its warnings tell of each retry and name addresses; ours say what matters.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        return HfApi()

    @cached_property
    def token(self) -> str | None:
        import huggingface_hub

        return huggingface_hub.get_token()

    def need_login(self) -> None:
        """Stop before any work if there is nobody to do it for."""
        if not self.token:
            raise UserError("not logged in to the Hub: `hf auth login`, or set HF_TOKEN to a token that may write")
        self.ask("the login", lambda: self.api.whoami())

    def ask(self, what: str, call: Callable[[], T], retry_conflicts: int = 0) -> T:
        """Call the Hub; try again what may pass, and turn what does not into one line about `what`."""
        wait = FIRST_WAIT_S
        for attempt in range(self.retries + 1):
            try:
                return call()
            except UserError:
                raise
            except Exception as error:
                status, after = status_of(error), retry_after(error)
                passing = status in BUSY or (status is None and is_network(error) and not is_offline(error))
                if status in CONFLICT and attempt < retry_conflicts:
                    passing = True
                if not passing or attempt == self.retries or (after or 0) > MOST_WAIT_S:
                    raise UserError(self.clean(f"{what}: {explain(error, self.again)}")) from None
                pause = after if after is not None else wait
                self.say(self.clean(f"{what}: the Hub answers {status or 'nothing'}, trying again in {pause:g} s"))
                time.sleep(pause)
                wait = min(wait * 2, 8.0)
        raise AssertionError("unreachable")

    def clean(self, text: str) -> str:
        """The text without any token in it."""
        if self.token:
            text = text.replace(self.token, "***")
        return _TOKEN.sub(r"\1_***", text)

    # --- what is there --------------------------------------------------------------------------------------------

    def info(self, repo: str, kind: str, revision: str | None = None) -> Repository | None:
        """A repository at a revision, None if there is no such."""
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

        def look() -> Repository | None:
            try:
                found = self.api.repo_info(repo, repo_type=kind, revision=revision)
                files = (file.rfilename for file in getattr(found, "siblings", None) or ())
                return Repository(str(found.sha), bool(found.private), frozenset(files))
            except RevisionNotFoundError:
                return None
            except RepositoryNotFoundError:
                if self.token:
                    self.api.whoami()  # an expired token looks like a missing repository
                return None

        return self.ask(repo, look)

    def files(self, repo: str, kind: str, revision: str) -> dict[str, Remote]:
        """Every file of a repository."""
        from huggingface_hub.hf_api import RepoFile

        def walk() -> dict[str, Remote]:
            return {
                item.path: Remote(item.size, item.blob_id, item.lfs.sha256 if item.lfs else None)
                for item in self.api.list_repo_tree(repo, recursive=True, revision=revision, repo_type=kind)
                if isinstance(item, RepoFile)
            }

        return self.ask(repo, walk)

    def read(self, repo: str, kind: str, path: str, revision: str) -> bytes:
        """One file's content."""
        from pathlib import Path

        def fetch() -> bytes:
            return Path(self.api.hf_hub_download(repo, path, repo_type=kind, revision=revision)).read_bytes()

        return self.ask(f"{repo}/{path}", fetch)

    # --- what is done -----------------------------------------------------------------------------------------------

    def create(self, repo: str, kind: str, private: bool, sdk: str | None = None) -> None:
        """Make sure that a repository is there."""

        def make() -> None:
            # Not `exist_ok`: with it the client answers an expired token with another error.
            if self.info(repo, kind) is None:
                self.api.create_repo(repo, repo_type=kind, private=private, space_sdk=sdk, exist_ok=True)

        self.again = RESUMED
        self.ask(repo, make)

    def commit(
        self,
        repo: str,
        kind: str,
        operations: Callable[[], Sequence[CommitOperationAdd | CommitOperationDelete]],
        message: str,
        *,
        revision: str = "main",
        parent: str | None = None,
        retry_conflicts: int = 2,
    ) -> str:
        """One commit; `operations` is asked for each attempt."""

        def send() -> str:
            commit = self.api.create_commit(
                repo,
                list(operations()),
                commit_message=message,
                repo_type=kind,
                revision=revision,
                parent_commit=parent,
                num_threads=4,
            )
            return str(commit.oid)

        return self.ask(repo, send, 0 if parent else retry_conflicts)

    def pull_request(
        self,
        repo: str,
        kind: str,
        operations: Callable[[], Sequence[CommitOperationAdd | CommitOperationDelete]],
        title: str,
        description: str = "",
    ) -> str:
        """A pull request with one commit; one of ours that is open under the same title is brought up to date."""

        def send() -> str:
            number = next(self._open_pulls(repo, kind, title), None)
            commit = self.api.create_commit(
                repo,
                list(operations()),
                commit_message=title,
                commit_description=description,
                repo_type=kind,
                create_pr=number is None,
                revision=f"refs/pr/{number}" if number else None,
            )
            place = {"dataset": "datasets/", "space": "spaces/"}.get(kind, "")
            return commit.pr_url or f"{self.api.endpoint}/{place}{repo}/discussions/{number}"

        self.again = RESUMED
        return self.ask(repo, send, retry_conflicts=2)

    def _open_pulls(self, repo: str, kind: str, title: str) -> Iterator[int]:
        me = self.api.whoami()["name"]
        for item in self.api.get_repo_discussions(repo, repo_type=kind):
            if item.is_pull_request and item.status == "open" and item.title == title and item.author == me:
                yield item.num

    def fill_space(self, repo: str, files: Mapping[str, bytes], private: bool, message: str) -> list[str]:
        """Bring a Space to exactly these files, in one commit; returns the paths that changed."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        self.create(repo, "space", private, sdk="gradio")
        there = self.files(repo, "space", "main")
        changed = [path for path, data in files.items() if path not in there or there[path].blob != git_blob(data)]
        gone = [path for path in there if path not in files and path not in HUBS_OWN]

        def operations() -> list[CommitOperationAdd | CommitOperationDelete]:
            adds = [CommitOperationAdd(path_in_repo=path, path_or_fileobj=files[path]) for path in changed]
            return [*adds, *(CommitOperationDelete(path_in_repo=path) for path in gone)]

        if changed or gone:
            self.commit(repo, "space", operations, message)
        return changed

    def tag(self, repo: str, kind: str, tag: str, revision: str, move: bool = False) -> str:
        """Tag a revision; returns the result. A tag that is there stays where it is unless it is to move."""

        def place() -> str:
            refs = self.api.list_repo_refs(repo, repo_type=kind)
            there = next((ref.target_commit for ref in refs.tags if ref.name == tag), None)
            if there == revision:
                return f"tag {tag} is there"
            if there and not move:
                return f"tag {tag} stays at {there[:7]}; --retag moves it here"
            if there:
                self.api.delete_tag(repo, tag=tag, repo_type=kind)
            self.api.create_tag(repo, tag=tag, revision=revision, repo_type=kind, exist_ok=True)
            return f"tagged {tag}"

        return self.ask(repo, place)


def git_blob(data: bytes) -> str:
    """The id that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


# --- errors ----------------------------------------------------------------------------------------------------------


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def status_of(error: BaseException) -> int | None:
    """The HTTP status behind an error, however deep; None if there was no answer."""
    for each in _chain(error):
        response = getattr(each, "response", None)
        if response is not None:
            return int(response.status_code)
    return None


def retry_after(error: BaseException) -> float | None:
    """The seconds that the server asks to wait."""
    for each in _chain(error):
        response = getattr(each, "response", None)
        if response is not None:
            given = response.headers.get("Retry-After", "")
            return float(given) if re.fullmatch(r"\d{1,5}(\.\d+)?", given) else None
    return None


def is_network(error: BaseException) -> bool:
    """Whether the connection failed; the client's HTTP library has had several names."""
    names = {base.__name__ for each in _chain(error) for base in type(each).__mro__}
    return bool(names & {"TransportError", "ConnectionError", "TimeoutException", "ChunkedEncodingError"})


def is_offline(error: BaseException) -> bool:
    """Whether the user told the client to stay offline."""
    return any(type(each).__name__ == "OfflineModeIsEnabled" for each in _chain(error))


def explain(error: BaseException, again: str = AGAIN) -> str:
    """One line: what happened and what to do."""
    if is_offline(error):
        return "HF_HUB_OFFLINE is set, so the Hub is not asked; unset it, or name a folder or file of this machine"
    status = status_of(error)
    said = _server_message(error)
    if status == 401:
        return f"the Hub does not accept the token ({said}); `hf auth login` again, or set HF_TOKEN to a valid one"
    if status in (402, 413, 507) or re.search(r"quota|storage|exceed", said, re.IGNORECASE):
        return f"no room on the Hub ({said}); free some space or ask for more, then {again}"
    if status == 403:
        return f"the Hub refuses ({said}); use a token that may write there"
    if status == 404:
        return f"not found on the Hub, or not yours to see ({said})"
    if status in CONFLICT:
        return f"somebody else changed it at the same time ({said}); {again}"
    if status in BUSY:
        return f"the Hub is not available ({status}, {said}); {again}"
    if status is None and is_network(error):
        return f"the connection to the Hub failed ({said}); {again}"
    return said


def _server_message(error: BaseException) -> str:
    for each in _chain(error):
        if message := getattr(each, "server_message", None):
            return _first_line(str(message))
    last = list(_chain(error))[-1] if status_of(error) is None else error
    return _first_line(str(last)) or type(error).__name__


def _first_line(text: str) -> str:
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")
