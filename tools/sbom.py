"""Write a bill of materials, CycloneDX in JSON, of all that is needed at run time.

    python tools/sbom.py dist/sbom.cdx.json

It lists the versions of this environment with every extra, their licences, and what needs what.
The same environment gives the same file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from dependencies import NAME, ROOT, at_run_time, direct
from packaging.utils import canonicalize_name

ROOT_REF = "root-component"


def bill() -> dict[str, Any]:
    """Return the bill of materials of this environment, without the tools that are in it."""
    options = ("--output-reproducible", "--short-PURLs", "--mc-type", "library")
    project = ("--pyproject", str(ROOT / "pyproject.toml"))
    command = [sys.executable, "-m", "cyclonedx_py", "environment", *options, *project]
    whole = json.loads(subprocess.run([*command, sys.executable], check=True, stdout=-1).stdout)
    return reduced(whole, set(at_run_time()))


def reduced(whole: dict[str, Any], wanted: set[str]) -> dict[str, Any]:
    """Return a bill with only some of its components, and what needs what among them.

    Args:
        whole: Of a whole environment.
        wanted: Canonical names.
    """
    kept = [part for part in whole["components"] if canonicalize_name(part["name"]) in wanted]
    for part in kept:
        part.pop("externalReferences", None)
    names = {part["bom-ref"]: canonicalize_name(part["name"]) for part in kept}
    own = {canonicalize_name(line.name) for lines in direct().values() for line in lines}
    edges = {entry["ref"]: entry.get("dependsOn", []) for entry in whole["dependencies"]}
    graph = {ref: [other for other in edges.get(ref, ()) if other in names] for ref in names}
    graph[ROOT_REF] = sorted(ref for ref, name in names.items() if name in own)
    dependencies = [{"ref": ref, "dependsOn": others} for ref, others in sorted(graph.items())]
    metadata = {"component": whole["metadata"]["component"] | {"bom-ref": ROOT_REF}}
    return {**whole, "metadata": metadata, "components": kept, "dependencies": dependencies}


def main(path: Path) -> None:
    """Write the bill to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = bill()
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    sys.stdout.write(f"{path}: {NAME} and {len(found['components'])} others\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
