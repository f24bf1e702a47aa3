"""Help texts: whole sentences, for every command and each of its options."""

import re

import pytest

from coarse2fine.cli.app import COMMANDS, _chosen

PARAMETERS = [
    pytest.param(parameter, id=f"{name} {parameter.opts[0]}".strip())
    for name in (*COMMANDS, "")
    for parameter in _chosen(name.split())[0].params
    if parameter.name != "help"
]


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_the_help_of_every_option_is_a_sentence(parameter):
    text = parameter.help
    assert re.match(r"[A-Z][a-z]+ ", text)
    assert text.endswith(".")
    assert len(text.split()) >= 3


@pytest.mark.parametrize("name", [*COMMANDS, ""])
def test_the_help_of_every_command_is_made_of_sentences(name):
    command = _chosen(name.split())[0]
    for paragraph in command.help.split("\n\n"):
        assert re.match("[A-Z]", paragraph)
        assert paragraph.rstrip().endswith(".")
