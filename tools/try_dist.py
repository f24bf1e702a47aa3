"""Try a wheel and a source distribution as someone who has nothing else of the package.

    python tools/try_dist.py dist

The wheel is installed into an environment of its own, which finds the libraries of this one, but
not this checkout. There the command, the examples and their tests run from the unpacked sources,
and so does the template of a package that brings methods, data and models.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

# Those that take seconds, of different kinds; `make test-slow` runs all of them.
EXAMPLES = ("class_names", "own_taxonomy", "text")


def clean_environment(folder: Path) -> str:
    """Make an environment and return its Python.

    Args:
        folder: Where it is to be.
    """
    venv.create(folder)
    (packages,) = folder.glob("[Ll]ib/**/site-packages")
    # Files of this kind in the folders that it names are not read, so that what is installed
    # there as editable, as this checkout may be, is not found.
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "libraries.pth").write_text("".join(f"{path}\n" for path in sorted(paths)))
    (python,) = (*folder.glob("bin/python"), *folder.glob("Scripts/python.exe"))
    return str(python)


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command and return what it prints; its failure ends this program.

    Args:
        *command: The program and its arguments.
        cwd: The working directory.
    """
    # Threads that wait for each other are many times slower on a busy machine.
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, env=settings, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def install(python: str) -> tuple[str, ...]:
    """Return the arguments of this Python by which pip installs into an environment.

    Args:
        python: Of the environment.
    """
    return ("-m", "pip", "--python", python, "install", "--quiet", "--no-deps")


def try_wheel(wheel: Path, python: str, folder: Path) -> None:
    """Install a wheel and see that what runs is what it holds.

    Args:
        wheel: The file.
        python: Of the environment that it is installed into.
        folder: An empty one.
    """
    run(sys.executable, *install(python), wheel, cwd=folder)
    where = run(python, "-c", "import coarse2fine; print(coarse2fine.__file__)", cwd=folder)
    if not Path(where).is_relative_to(Path(python).parents[1]):
        sys.exit(f"{where.strip()} is imported instead of the wheel.")
    version = wheel.name.split("-")[1]
    told = run(python, "-m", "coarse2fine", cwd=folder).splitlines()[0]
    command = run(Path(python).parent / "c2f", "--version", cwd=folder).strip()
    if {told, command} != {f"coarse2fine {version}"}:
        sys.exit(f"{wheel.name} has version {version}, but says {told!r} and {command!r}.")


def try_sources(sdist: Path, python: str, folder: Path) -> None:
    """Unpack a source distribution and run examples and tests of it.

    Args:
        sdist: The file.
        python: Of an environment with the wheel.
        folder: An empty one.
    """
    run(sys.executable, "-m", "tarfile", "--extract", sdist, folder, cwd=folder)
    sources = folder / sdist.name.removesuffix(".tar.gz")
    for name in EXAMPLES:
        run(python, sources / "examples" / f"{name}.py", cwd=folder)
    options = ("--quiet", "-p", "no:cacheprovider")
    run(
        python,
        "-m",
        "pytest",
        *options,
        "tests/examples",
        "tests/runs/test_old_runs.py",
        cwd=sources,
    )
    plugin = sources / "examples" / "plugin"
    run(sys.executable, *install(python), plugin, cwd=folder)
    run(python, "-m", "pytest", *options, "--rootdir", plugin, plugin / "tests", cwd=folder)


def main(dist: Path) -> None:
    """Try what a folder holds.

    Args:
        dist: Has one wheel and one source distribution.
    """
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wheel").mkdir()
        (folder / "sources").mkdir()
        python = clean_environment(folder / "environment")
        try_wheel(wheel.resolve(), python, folder / "wheel")
        try_sources(sdist.resolve(), python, folder / "sources")
    sys.stdout.write(f"{wheel.name} and {sdist.name} work\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
