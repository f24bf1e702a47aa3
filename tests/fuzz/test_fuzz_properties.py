"""What is written is read again as it was, whatever it holds."""

import csv
import io
import json
import math
import string
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hierarchies import hierarchies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from coarse2fine import Config, Hierarchy
from coarse2fine._util.text import brief
from coarse2fine.data.sets.matlab import read_structs
from coarse2fine.data.sources.table_reader import read_arrow
from coarse2fine.methods import METHODS
from coarse2fine.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from coarse2fine.runs.writer import RunWriter

QUICK = settings(max_examples=60)
WORDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
JSON_NAMES = st.text(max_size=6)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(JSON_NAMES, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def place():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@given(hierarchies())
@QUICK
def test_a_hierarchy_is_loaded_as_it_was_saved(place, hierarchy):
    hierarchy.save(place / "h.json")
    assert Hierarchy.load(place / "h.json") == hierarchy


# ------------------------------------------------------------------------------- taxonomies


@st.composite
def trees(draw):
    """Nested dicts whose leaves are different classes."""
    names = iter(draw(st.lists(WORDS, min_size=12, max_size=12, unique_by=str.strip)))
    names = [name.strip() for name in names if name.strip() and not name.strip().isdecimal()]
    names = [name for name in names if "\0" not in name and not set(name) & set("\r\n")]
    groups = draw(st.integers(2, 4))
    return {name: names[groups + place :: groups] for place, name in enumerate(names[:groups])}


@given(trees())
@QUICK
def test_a_taxonomy_is_the_same_from_json_and_from_both_tables(place, tree):
    tree = {group: classes for group, classes in tree.items() if classes}
    if len(tree) < 2:
        return
    pairs = [(group, name) for group, classes in tree.items() for name in classes]
    (place / "t.json").write_text(json.dumps(tree))
    for file, header in (("p.csv", ("parent", "child")), ("s.csv", ("coarse_label", "fine_label"))):
        with (place / file).open("w", newline="", encoding="utf-8") as table:
            csv.writer(table).writerows([header, *pairs])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The hierarchy of")
        wanted = Hierarchy.from_taxonomy(tree)
        for name in ("t.json", "p.csv", "s.csv"):
            assert Hierarchy.from_taxonomy(place / name) == wanted


# --------------------------------------------------------------------------------- settings

SHARES = st.floats(0, 0.99)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "data": st.text(max_size=9),
        "target": st.none() | st.text(max_size=9),
        "methods": st.lists(st.sampled_from(sorted(METHODS)), unique=True, max_size=3),
        "method_settings": st.dictionaries(
            st.sampled_from(["nbdt.weight", "spl.growth"]), st.floats(1.1, 9)
        ),
        "epochs": st.integers(1, 10**9),
        "seeds": st.lists(st.integers(0, 2**40), unique=True, min_size=1, max_size=3),
        "milestones": st.none() | st.lists(st.floats(0.01, 0.99), max_size=3),
        "val_share": st.none() | SHARES,
        "learning_rate": st.floats(1e-9, 1e9),
        "curriculum_epochs": st.integers(1, 99) | st.sampled_from(["reach-90", "search"]),
        "track_test": st.none() | st.booleans(),
    },
)


@given(CONFIGS)
@QUICK
def test_settings_are_the_same_after_json(chosen):
    config = Config(**chosen)
    again = Config.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert all(getattr(again, name) == getattr(Config(**chosen), name) for name in chosen)


@given(st.dictionaries(st.sampled_from(sorted(Config().to_dict())), JSON, min_size=1, max_size=3))
@settings(max_examples=200)
def test_settings_of_anything_are_refused_by_a_sentence_that_names_one(chosen):
    said = ""
    try:
        Config.from_dict(chosen)
    except (ValueError, TypeError) as error:
        said = str(error)
    words = said.replace(".", " ").replace("_", " ").split()
    named = {part for name in chosen for part in name.rstrip("s").split("_")}
    assert not said or any(word.startswith(part) for word in words for part in named)
    assert len(said) < 1000


# --------------------------------------------------------------------- runs and checkpoints

TENSORS = st.sampled_from([torch.float32, torch.int64, torch.bool, torch.bfloat16]).flatmap(
    lambda kind: st.lists(st.integers(0, 3), max_size=3).map(
        lambda shape: (
            torch.arange(max(1, math.prod(shape)))[: math.prod(shape)].reshape(shape).to(kind)
        )
    )
)
GROUPS = st.text(string.ascii_lowercase, min_size=1, max_size=5)
NAMES = st.text(string.ascii_letters + "._0123456789é猫", min_size=1, max_size=6)


@given(
    number=st.integers(0, 10**7),
    state=st.dictionaries(JSON_NAMES, JSON, max_size=3),
    tensors=st.dictionaries(GROUPS, st.dictionaries(NAMES, TENSORS, max_size=3), max_size=2),
)
@settings(max_examples=25)
def test_a_checkpoint_is_loaded_as_it_was_saved(number, state, tensors):
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(Path(folder) / "c", Checkpoint(number, state, tensors))
        found = load_checkpoint(Path(folder) / "c")
    assert (found.number, found.state, found.tensors.keys()) == (number, state, tensors.keys())
    for group, wanted in tensors.items():
        assert found.tensors[group].keys() == wanted.keys()
        for name, tensor in wanted.items():
            assert found.tensors[group][name].dtype == tensor.dtype
            assert torch.equal(found.tensors[group][name], tensor)


@given(st.lists(st.dictionaries(JSON_NAMES, JSON, max_size=3), max_size=4))
@settings(max_examples=25)
def test_metrics_are_read_as_they_were_logged(lines):
    with tempfile.TemporaryDirectory() as folder:
        run = RunWriter(Path(folder))
        for line in lines:
            run.log(line)
        assert run.metrics() == lines


# ------------------------------------------------------------------------ tables and texts


@given(
    st.lists(st.tuples(st.integers(-(2**31), 2**40), st.text("nab0é", max_size=9)), min_size=1),
    st.booleans(),
)
@QUICK
def test_structs_are_read_as_scipy_wrote_them(rows, is_packed):
    kind = [("ILSVRC2012_ID", "f8"), ("gloss", object), ("WNID", object)]
    structs = np.array([(number, "a gloss", name) for number, name in rows], dtype=kind)
    file = io.BytesIO()
    savemat(file, {"other": 5, "synsets": structs}, do_compression=is_packed)
    found = read_structs(file.getvalue(), ("ILSVRC2012_ID", "WNID"))
    assert [(s["ILSVRC2012_ID"], s["WNID"] or "") for s in found] == rows


CELLS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5))
@QUICK
def test_the_cells_of_a_table_are_read_as_they_were_written(place, rows):
    with (place / "t.csv").open("w", newline="", encoding="utf-8") as table:
        csv.writer(table, quoting=csv.QUOTE_ALL).writerows([("one", "two", "three"), *rows])
    found = read_arrow(place / "t.csv")
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == rows


@given(st.text(max_size=2000))
@QUICK
def test_a_brief_text_is_one_printable_line_that_begins_alike(text):
    found = brief(text)
    assert found.isprintable()
    assert len(found) <= 401
    plain = " ".join(text.split())
    if plain.isprintable() and len(plain) <= 400:
        assert found == plain
