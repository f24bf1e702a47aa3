"""No code path loads with unrestricted pickle, eval, exec, yaml.load or a shell."""

import inspect
import pickle
import pickletools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scanning import dangers, dangers_in

from coarse2fine.data.sets import pickles

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "examples", "benchmarks", "docs", "tools")
FOUND = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
FILES = [path for path in FOUND if "tests" not in path.relative_to(ROOT).parts]
# The one reader of pickles; it makes stand-ins for three names, and nothing else.
RESTRICTED = "src/coarse2fine/data/sets/pickles.py"


def test_no_file_has_a_dangerous_call_but_for_the_restricted_unpickler():
    assert len(FILES) > 150
    found = [str(Path(line).relative_to(ROOT)) for path in FILES for line in dangers_in(path)]
    assert [re.sub(r":\d+: ", " ", line) for line in found] == [
        f"{RESTRICTED} class _PlainUnpickler(pickle.Unpickler)"
    ]


def test_the_restricted_unpickler_finds_three_stand_ins_and_nothing_else():
    kind = pickles._PlainUnpickler
    assert kind.find_class is not pickle.Unpickler.find_class
    assert pickles._STAND_INS.keys() == {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
    }
    assert {found.__module__ for found in pickles._STAND_INS.values()} == {pickles.__name__}
    codes = {code.name: code.code.encode("latin-1") for code in pickletools.opcodes}
    assert codes.keys() >= pickles._NEEDED
    makers = (pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.STACK_GLOBAL)
    finders = (pickle.PERSID, pickle.BINPERSID, pickle.EXT1, pickle.EXT2, pickle.EXT4)
    assert not {codes[name] for name in pickles._NEEDED} & {*makers, *finders}
    assert "super()" not in inspect.getsource(kind)


@pytest.mark.parametrize("code", pickletools.opcodes, ids=lambda code: code.name)
def test_an_instruction_that_is_not_needed_is_refused_before_anything_is_carried_out(code):
    if code.name not in pickles._NEEDED:
        with pytest.raises(ValueError, match=f"it has the instruction {code.name}"):
            pickles.plain_values(code.code.encode("latin-1") + bytes(8) + b"\n\n", "f")


def test_ruff_finds_nothing_insecure_and_is_told_to_overlook_nothing_whole():
    command = [sys.executable, "-m", "ruff", "check", "--select", "S", "--quiet", str(ROOT)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (found.returncode, found.stdout) == (0, "")
    settings = (ROOT / "pyproject.toml").read_text()
    lint = settings[settings.index("[tool.ruff.lint]") :]
    select = lint[: lint.index("]\n", lint.index("select"))]
    assert '"S"' in select
    assert not re.search(r'"(S|S\d|S\d\d|ALL)"', lint.replace(select, ""))  # whole groups
    own = lint[lint.index("per-file-ignores") :].partition("\n[")[0]
    assert not re.search(r'"src/[^"]*" = \[[^\]]*"S\d', own)


# Lines that one rule is told to overlook, each for a reason of its own.
OVERLOOKED = {
    "examples/data/make_requests.py: S311",  # sentences that are the same every time
}


def test_ruff_is_told_to_overlook_these_lines_and_no_others():
    found = {
        f"{path.relative_to(ROOT)}: {rules}"
        for path in FILES
        for rules in re.findall(r"# noqa(?:: ([A-Z0-9, ]+))?", path.read_text())
        if not rules or re.search(r"\bS\d", rules)
    }
    assert found == OVERLOOKED


DANGEROUS = """
import pickle; pickle.load(file)
import pickle as p; p.loads(data)
from pickle import loads as read; read(data)
from pickle import Unpickler; Unpickler(file).load()
import _pickle; _pickle.loads(data)
import dill; dill.load(file)
import cloudpickle; cloudpickle.loads(data)
import joblib; joblib.load(path)
from joblib import load; load(path)
import marshal; marshal.loads(data)
import shelve; shelve.open(path)
import pandas as pd; pd.read_pickle(path)
class Own(pickle.Unpickler): pass
eval(text)
exec(text)
compile(text, "", "exec")
__import__(name)
import builtins; builtins.eval(text)
import yaml; yaml.load(text, Loader)
import yaml; yaml.unsafe_load(text)
import torch; torch.load(path)
import torch; torch.load(path, weights_only=False)
import torch; torch.load(path, weights_only=flag)
from torch import load; load(path)
import torch; torch.hub.load(repository, name)
import numpy as np; np.load(path)
import numpy as np; np.load(path, allow_pickle=True)
import numpy as np; np.savez(path, allow_pickle=flag)
import os; os.system(text)
import os; os.popen(text)
import os; os.execv(path, words)
from os import system; system(text)
import subprocess; subprocess.run(text, shell=True)
import subprocess; subprocess.Popen(text, shell=flag)
import subprocess; subprocess.getoutput(text)
import tempfile; tempfile.mktemp()
import tarfile; tarfile.open(path).extractall(folder)
archive.extract(member)
import shutil; shutil.unpack_archive(path)
load_dataset(name, trust_remote_code=True)
AutoModel.from_pretrained(name, trust_remote_code=flag)
import xml.etree.ElementTree
from xml.dom import minidom
from lxml import etree
import runpy; runpy.run_path(path)
assert value > 0
""".strip().splitlines()


@pytest.mark.parametrize("code", DANGEROUS)
def test_each_dangerous_call_is_found(code):
    assert dangers(code)


HARMLESS = """
import torch; torch.load(path, weights_only=True)
import numpy as np; np.load(file, allow_pickle=False)
import subprocess; subprocess.run(words)
import subprocess; subprocess.run(words, shell=False)
import re; re.compile(text)
model.eval()
import yaml; yaml.safe_load(text)
import json; json.loads(text)
tar.extractfile(member)
hierarchy.load(path)
import pickle; pickle.UnpicklingError(text)
from importlib import import_module; import_module(name)
""".strip().splitlines()


@pytest.mark.parametrize("code", HARMLESS)
def test_what_is_harmless_is_let_through(code):
    assert dangers(code) == []
