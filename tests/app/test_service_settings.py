"""How a service is reached, and where its token comes from."""

from __future__ import annotations

import os
import socket
import stat
from unittest import mock

import pytest

from nearlabel.app.service_settings import ServiceSettings, is_loopback, token_of
from nearlabel.cli import run
from nearlabel.collection import Collection

TOKEN = "a-token-of-many-letters"


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("NEARLABEL_TOKEN", raising=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.5.6.7", "::1", "localhost"])
def test_addresses_that_only_this_machine_reaches_need_no_token(host, tmp_path):
    assert is_loopback(host)
    assert ServiceSettings(tmp_path, host=host).token is None


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.2", "photos.lan", "", "localhost.evil.example", "127.1"]
)
def test_other_addresses_need_a_token(host, tmp_path):
    assert not is_loopback(host)
    with pytest.raises(ValueError, match="a token is needed: pass --token-file FILE"):
        ServiceSettings(tmp_path, host=host)
    assert ServiceSettings(tmp_path, host=host, token=TOKEN).host == host


@pytest.mark.parametrize(
    "token", ["", "short", "x" * 15, "x" * 4097, "with a space in it", "é" * 20, "x" * 20 + "\n"]
)
def test_invalid_tokens(token, tmp_path):
    with pytest.raises(ValueError, match="a token must"):
        ServiceSettings(tmp_path, token=token)


def test_a_token_file_is_made_for_its_owner_alone(tmp_path):
    path = tmp_path / "token"
    token = token_of(str(path))
    assert len(token) >= 40
    assert path.read_text() == f"{token}\n"
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token_of(str(path)) == token
    assert token_of(str(tmp_path / "other")) != token


def test_a_token_is_read_without_what_is_around_it_and_not_to_the_end_of_a_long_file(tmp_path):
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(f"  {TOKEN}\n\n")
    assert token_of(str(path)) == TOKEN
    path.write_text("x" * 10**6)
    assert len(token_of(str(path))) < 5000


@pytest.mark.skipif(os.name == "nt", reason="needs permissions")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_file_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(mode)
    with pytest.raises(ValueError, match=f"can be read by other users: chmod 600 {path}") as caught:
        token_of(str(path))
    assert TOKEN not in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="needs pipes")
def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ValueError, match="is not a file"):
            token_of(str(path))
    with pytest.raises(FileNotFoundError):
        token_of(str(tmp_path / "none" / "token"))


def test_the_variable_counts_where_there_is_no_file(tmp_path, monkeypatch):
    assert token_of(None) is None
    monkeypatch.setenv("NEARLABEL_TOKEN", "")
    assert token_of(None) is None
    monkeypatch.setenv("NEARLABEL_TOKEN", TOKEN)
    assert token_of(None) == TOKEN
    assert token_of(str(tmp_path / "token")) != TOKEN


# The command.


@pytest.fixture
def collection(tmp_path):
    Collection.create(tmp_path / "c", kind="vectors").close()
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "a token is needed"),
        (["--port", "65536"], "--port must be from 0 to 65535; got 65536"),
        (["--port", "-1"], "-1"),
        (["--max-upload", "0"], "--max-upload must be from 1 to 1024 MiB; got 0"),
        (["--max-upload", "1025"], "--max-upload must be from 1 to 1024 MiB; got 1025"),
        (["--host", "203.0.113.1", "--token-file", "{}/token"], "cannot listen on 203.0.113.1"),
        (["--token-file", "{}"], "is not a file"),
        (["--token-file", "{}/none/token"], "none"),
        (["--log", "loud"], "loud"),
    ],
)
def test_options_that_are_refused(collection, tmp_path, capsys, options, said):
    given = [option.format(tmp_path) for option in options]
    assert run(["serve", str(collection), *given]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert said in " ".join(error.split())
    assert "Traceback" not in error


def test_a_port_that_is_taken(collection, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", str(collection), "--port", str(port)]) == 2
    said = f"cannot listen on 127.0.0.1, port {port}: Address already in use"
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_name_that_is_not_known(collection, tmp_path, capsys, monkeypatch):
    unknown = mock.Mock(side_effect=socket.gaierror(-2, "Name or service not known"))
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    options = ["--host", "no.such.name", "--token-file", str(tmp_path / "token")]
    assert run(["serve", str(collection), *options]) == 2
    said = "cannot listen on no.such.name, port 8350: Name or service not known"
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_short_token_is_refused_and_not_shown(collection, capsys, monkeypatch):
    monkeypatch.setenv("NEARLABEL_TOKEN", "secret-word")
    assert run(["serve", str(collection)]) == 2
    error = capsys.readouterr().err
    assert "at least 16 characters" in error
    assert "secret-word" not in error


def test_not_a_collection(tmp_path, capsys):
    assert run(["serve", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="needs permissions")
def test_a_systemd_credential_may_look_readable_by_others(tmp_path, monkeypatch):
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert token_of(str(path)) == TOKEN
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "other"))
    with pytest.raises(ValueError, match="chmod 600"):
        token_of(str(path))


def test_child_processes_do_not_get_the_token(monkeypatch):
    monkeypatch.setenv("NEARLABEL_TOKEN", TOKEN)
    assert token_of(None) == TOKEN
    assert "NEARLABEL_TOKEN" not in os.environ
