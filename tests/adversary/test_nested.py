"""Nested JSON and TOML wherever a user can give it: read if shallow, refused if deep."""

import contextlib
import json
import random

import pytest

import ratoon
from ratoon.cli import main
from ratoon.inference import Predictor
from ratoon.nesting import parse_json, parse_toml
from tests.adversary.attacks import has_controls, only_ratoon_errors, repeat

OPEN = ("[", '{"a":', '[{"a":', "[[", '[1,{"b":[')
FILL = ("", "1", '"]"', '"\\""', "null", "1e999", "nan", "\0", '"\ud800"', "9" * 5_000)


def random_text(choose):
    depth = choose.choice((0, 1, 5, 15, 16, 17, 40, 1_000, 100_000))
    part = choose.choice(OPEN)
    text = part * depth + choose.choice(FILL)
    if choose.random() < 0.6:
        closing = "".join({"[": "]", "{": "}"}[c] for c in reversed(part) if c in "[{")
        text += closing * depth
    return text[choose.randint(0, 2) :] if choose.random() < 0.2 else text


def write_header(text, path):
    raw = text.encode(errors="surrogatepass")
    raw += b" " * (-len(raw) % 8)
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)


def attack(seed, folder, capsys):
    choose = random.Random(seed)
    text = random_text(choose)
    for parse in (parse_json, parse_toml):
        with contextlib.suppress(ValueError):
            json.dumps(parse(text if parse is parse_json else f"a = {text}"), default=str)
    path = folder / "model.ratoon"
    write_header(text if choose.random() < 0.5 else f'{{"__metadata__":{text}}}', path)
    for read in (ratoon.load, Predictor.load):
        with only_ratoon_errors():
            read(path)
    config = folder / "options.toml"
    config.write_text(f"[train]\nepochs = {text}\n", encoding="utf-8", errors="surrogatepass")
    capsys.readouterr()
    assert main(["train", "absent.csv", "--config", str(config)]) in (1, 2)
    printed = "".join(capsys.readouterr())
    assert "internal error" not in printed
    assert not has_controls(printed)


@pytest.mark.parametrize("seed", range(40))
def test_nested_text_is_read_or_refused(tmp_path, capsys, seed):
    attack(seed, tmp_path, capsys)


@pytest.mark.soak
def test_nested_text_is_read_or_refused_for_long(tmp_path, capsys, minutes, say):
    repeat(lambda seed: attack(seed, tmp_path, capsys), minutes, say)
