"""How a service is reached, and what it takes."""

from __future__ import annotations

import ipaddress
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

SHORTEST_TOKEN = 16
TOKEN_VARIABLE = "NEARLABEL_TOKEN"
_MOST_TOKEN = 4096


@dataclass(frozen=True)
class ServiceSettings:
    """What the parts of a service have to know.

    Attributes
    ----------
    uploads : Path
        Folder in which pictures and texts that are uploaded are kept.
    host : str, default="127.0.0.1"
        The address that it listens on.
    names : frozenset of str
        Further names by which it may be called, as behind a proxy.
    token : str, optional
        What clients must know.
    most_bytes : int
        Of a request.
    most_pixels : int
        Of a picture that is uploaded.
    seconds : float
        In which a request must have arrived; a large one has longer.
    follows_folders : bool, default=False
        Whether files of the folders that were indexed are followed.
    """

    uploads: Path
    host: str = "127.0.0.1"
    names: frozenset[str] = frozenset()
    token: str | None = None
    most_bytes: int = 64 * 2**20
    most_pixels: int = 50_000_000
    seconds: float = 20.0
    follows_folders: bool = False

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise ValueError(
                f"{self.host} can be reached by other machines, so a token is needed: give "
                f"--token-file FILE, which is created if it does not exist, or set {TOKEN_VARIABLE}"
            )
        if self.token is not None:
            check_token(self.token)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_token(token: str) -> None:
    """Refuse a token that can be guessed, or that a header cannot hold."""
    if len(token) < SHORTEST_TOKEN:
        raise ValueError(f"a token must have at least {SHORTEST_TOKEN} characters")
    if len(token) > _MOST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("a token must consist of letters, digits and signs of ASCII, no spaces")


def _is_credential(file: Path) -> bool:
    """Whether systemd keeps a file for this service alone, whatever its mode says."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return bool(folder) and file.resolve().parent == Path(str(folder)).resolve()


def token_of(path: str | None) -> str | None:
    """The token in a file, which is created if it does not exist; else that of the environment.

    The variable is removed: processes that this one starts need not know it.
    """
    given = os.environ.pop(TOKEN_VARIABLE, None)
    if path is None:
        return given or None
    file = Path(path)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if not stat.S_ISREG(file.stat().st_mode):
            raise ValueError(f"--token-file {path} is not a file") from None
        is_open = os.name == "posix" and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
        if is_open and not _is_credential(file):
            raise ValueError(
                f"--token-file {path} can be read by other users: chmod 600 {path}"
            ) from None
        with file.open(encoding="utf-8") as opened:
            return opened.read(_MOST_TOKEN + 2).strip()
    with os.fdopen(descriptor, "w", encoding="utf-8") as made:
        token = secrets.token_urlsafe(32)
        made.write(token + "\n")
    return token
