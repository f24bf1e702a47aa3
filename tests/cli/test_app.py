"""How `c2f` starts, fails and ends, whatever the command."""

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest
import typer

from coarse2fine import __version__
from coarse2fine.cli import app, demo, evaluate, export, hierarchy, main, paper, runs, train
from coarse2fine.runs import hierarchies

from .calls import SHORT, SMALL

COMMANDS = {"demo": demo, "train": train, "runs": runs, "hierarchy": hierarchy}
COMMANDS |= {"evaluate": evaluate, "export": export, "paper": paper}
PROGRAM = [sys.executable, "-m", "coarse2fine.cli"]


def assert_one_line(err, beginning):
    assert err.startswith(beginning)
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys\n"
        "from coarse2fine.cli.app import run\n"
        f"run({arguments})\n"
        "heavy = {'torch', 'numpy', 'lightning_fabric', 'pyarrow', 'rich', 'pydantic'}\n"
        "print(heavy & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Examples:" in done.stdout
    assert done.stdout.endswith("set()\n")


def test_without_arguments_there_is_help_with_every_command(c2f):
    code, out, _ = c2f()
    assert code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_in_the_help_can_be_run_as_they_are(c2f, name):
    _, out, _ = c2f(name, "-h")
    command = typer.main.get_command(app.app).commands[name]
    assert 2 <= len(COMMANDS[name].EXAMPLES) <= 4
    for example in COMMANDS[name].EXAMPLES:
        assert f"\n    {example}\n" in out
        words = shlex.split(example.partition(" > ")[0])
        assert words[:2] == ["c2f", name]
        command.make_context(name, words[2:])  # raises for an unknown option


def test_the_version(c2f):
    assert c2f("--version") == (0, f"coarse2fine {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "shapes", "--epoch", "3"], "No such option: --epoch"),
        (["train", "shapes", "--epochs", "many"], "--epochs"),
        (["train"], "DATA"),
        (["trian"], "trian"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_call_is_an_error_in_one_line(c2f, arguments, message):
    code, out, err = c2f(*arguments)
    assert (code, out) == (2, "")
    assert_one_line(err, "error: ")
    assert message in err


def test_expected_errors_are_one_line_and_code_2(c2f):
    for arguments, message in (
        (["hierarchy", "no.json"], "there is no file or run no.json."),
        (["train", "shapes", "--metric", "x"], "--metric must be one of embedding, "),
        (["evaluate", "no-run", "shapes"], "there is no run no-run."),
        (["export", "."], ". has no result.json"),
    ):
        code, out, err = c2f(*arguments)
        assert (code, out) == (2, "")
        assert_one_line(err, f"error: {message}")


def test_an_error_of_the_system_names_the_file(c2f, write):
    write("taken", "by a file")
    message = "error: taken: a file is where a folder should be; choose another\n"
    assert c2f("train", *SHORT, "--out", "taken") == (2, "", message)


def test_without_typer_the_error_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match="2"):
        main()
    err = capsys.readouterr().err
    assert_one_line(err, "error: typer is needed here")
    assert err.endswith("pip install 'coarse2fine[train]'.\n")


def test_an_unexpected_error_is_not_hidden(c2f, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(hierarchies, "read_hierarchy", fail)
    with pytest.raises(ZeroDivisionError):
        c2f("hierarchy", "x.json")


@pytest.mark.parametrize(
    "arguments", [["--debug", "hierarchy", "x"], ["hierarchy", "x", "--debug"]]
)
def test_debug_shows_where_an_error_arose(c2f, arguments):
    code, _, err = c2f(*arguments)
    assert code == 2
    assert err.startswith("Traceback")
    assert err.endswith("\nerror: there is no file or run x.\n")


@pytest.mark.filterwarnings("always::UserWarning")
def test_a_warning_is_one_line(c2f, write):
    path = write("embeddings.csv", [[1, 2, 3], [2, 1, 0], [0, 5, 1]])
    code, out, err = c2f("hierarchy", path)
    assert code == 0
    assert out.startswith("3 classes")
    assert err.splitlines()[0].startswith(f"warning: {path} is square but not symmetric")


@pytest.mark.parametrize("variable", ["RANK", "LOCAL_RANK"])
def test_of_several_processes_only_the_first_speaks(c2f, monkeypatch, write, variable):
    path = write("distances.csv", [[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    monkeypatch.setenv(variable, "1")
    assert c2f("hierarchy", "nothing") == (2, "", "")
    assert c2f("hierarchy", path) == (0, "", "")
    monkeypatch.setenv(variable, "0")
    assert c2f("hierarchy", path)[1]


def test_a_reader_that_goes_away_ends_it_quietly():
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*PROGRAM, "--help"], text=True, **pipes) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_a_stopped_training_says_how_to_go_on_and_does(c2f, tmp_path):
    command = ["train", *SMALL, "--epochs", "12", "--curriculum-epochs", "2", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([*PROGRAM, *command], text=True, env=environment, **pipes) as process:
        begun = json.loads(process.stdout.readline())
        while '"event": "epoch"' not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert process.returncode == 130
    assert err.startswith("warning: 1 of 30 classes have no validation samples: ")
    assert_one_line(
        err.partition("\n")[2], "stopped; the same command resumes from the last checkpoint in "
    )
    assert err.endswith(f" {begun['path']}\n")
    code, out, _ = c2f(*command)
    assert code == 0
    assert json.loads(out.splitlines()[-1])["path"] == begun["path"]


def test_a_training_stopped_before_it_began_says_so(c2f, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("coarse2fine.training.fit.fit", stop)
    assert c2f("train", "shapes", "--json") == (130, "", "stopped before training began\n")


LEAVING = """
import atexit, sys
import torch.distributed as group
from coarse2fine.cli.process import leave
if sys.argv[2] == "several":
    group.init_process_group("gloo", rank=0, world_size=1, store=group.HashStore())
atexit.register(print, "what is run at exit")
leave(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("code", "processes", "is_run"), [(0, "several", True), (2, "one", True), (2, "several", False)]
)
def test_only_after_an_error_in_one_of_several_processes_nothing_is_run_at_exit(
    code, processes, is_run
):
    """Gloo's threads may abort there, once the connection to another process is broken."""
    command = [sys.executable, "-c", LEAVING, str(code), processes]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr
    assert (ended.stdout == "what is run at exit\n") is is_run
