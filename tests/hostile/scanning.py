"""Find calls in Python code by which files of others could run code, or reach others' files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

# What reads a pickle, or something as powerful, however it is imported.
UNPICKLERS = ("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve")
LOADS = ("load", "loads", "Unpickler", "_Unpickler", "open", "DbfilenameShelf")
CALLS = {
    "eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec", "builtins.compile",
    "os.system", "os.popen", "os.startfile", "tempfile.mktemp", "runpy.run_path",
    "runpy.run_module", "pty.spawn", "code.interact", "commands.getoutput", "pandas.read_pickle",
    "yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "torch.hub.load",
    "subprocess.getoutput", "subprocess.getstatusoutput", "numpy.lib.format.read_array",
    "multiprocessing.connection.Client", "multiprocessing.connection.Listener",
}  # fmt: skip
EXECUTORS = ("os.exec", "os.spawn", "os.posix_spawn")
XML = ("xml", "lxml")
KEYWORDS = {"shell": True, "allow_pickle": True, "trust_remote_code": True, "weights_only": False}
EXTRACTS = ("extract", "extractall", "unpack_archive")


def dangers(code: str) -> list[str]:
    """Return what is dangerous in code, each with its line."""
    tree = ast.parse(code)
    names = _imports(tree)
    found = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        found += [f"{line}: {what}" for what in _of(node, names)]
    return found


def dangers_in(path: Path) -> list[str]:
    """Return the same for a file."""
    return [f"{path}:{found}" for found in dangers(path.read_text(encoding="utf-8"))]


def _of(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for module in _modules(node):
            if module.partition(".")[0] in XML:
                yield f"import {module}"
    elif isinstance(node, ast.Call):
        yield from _of_call(node, _name(node.func, names))
    elif isinstance(node, ast.ClassDef):
        yield from (
            f"class {node.name}({base})"
            for base in (_name(base, names) for base in node.bases)
            if base.rpartition(".")[2] in ("Unpickler", "_Unpickler")
        )
    elif isinstance(node, ast.Assert):
        yield "assert"


def _of_call(node: ast.Call, name: str) -> Iterator[str]:
    module, _, function = name.rpartition(".")
    is_unpickler = module.partition(".")[0] in UNPICKLERS and function in LOADS
    if name in CALLS or name.startswith(EXECUTORS) or is_unpickler:
        yield name
    if function in EXTRACTS:
        yield f"….{function}"
    given = {key.arg: key.value for key in node.keywords}
    if name == "torch.load" and not _is(given.get("weights_only"), True):
        yield "torch.load without weights_only=True"
    if name == "numpy.load" and not _is(given.get("allow_pickle"), False):
        yield "numpy.load without allow_pickle=False"
    for keyword, value in KEYWORDS.items():
        if keyword in given and not _is(given[keyword], not value):
            yield f"{keyword}={ast.unparse(given[keyword])}"


def _is(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _imports(tree: ast.AST) -> dict[str, str]:
    """Return what names stand for, as imports gave them."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                names[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""] if not node.level else []
    return [alias.name for alias in node.names]


def _name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the whole name of what is called, such as ``numpy.load``."""
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value, names)}.{node.attr}"
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    return "…"
