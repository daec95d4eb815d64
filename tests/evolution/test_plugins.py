"""Strategies of other packages: by entry point, and by import path."""

import sys

import pytest

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidParameterError
from ratoon.evolution import (
    SET,
    STRATEGIES,
    RigL,
    StrategyNameWarning,
    is_known,
    make_strategy,
    parameters_of,
    plugins,
    strategy_from_text,
    strategy_names,
)
from ratoon.experiments.strategies import known_strategies

MODULE = """
from ratoon.evolution import SET

class Gentle(SET):
    pass

class Needy(SET):
    def __init__(self, needed):
        super().__init__()

def nothing():
    return 3

number = 3
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a package with entry points."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    plugins._installed_once.cache_clear()

    def install(entries, package="forest", code=MODULE):
        (tmp_path / f"{package}.py").write_text(code)
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "\n".join(f"{name} = {value}" for name, value in entries.items())
        (folder / "entry_points.txt").write_text(f"[ratoon.strategies]\n{lines}\n")

    yield install
    plugins._installed_once.cache_clear()
    for name in set(sys.modules) - before:
        if name in ("forest", "meadow"):
            del sys.modules[name]


def test_an_installed_strategy_is_found_by_name(install):
    install({"gentle": "forest:Gentle"})
    assert "gentle" in strategy_names()
    assert is_known("gentle")
    assert "forest" not in sys.modules  # nothing is imported to list it
    strategy = make_strategy("gentle", zeta=0.2)
    assert (type(strategy).__name__, strategy.zeta) == ("Gentle", 0.2)
    assert "zeta" in parameters_of("gentle")
    assert "gentle" not in STRATEGIES
    assert list(known_strategies(["gentle", "gentle(zeta=0.1)"])) == ["gentle", "gentle(zeta=0.1)"]


def test_an_estimator_accepts_an_installed_strategy_and_zeta(install):
    install({"gentle": "forest:Gentle"})
    model = SparseMLPClassifier((9,), density=0.5, evolution="gentle", zeta=0.2, max_iter=2)
    model.fit([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]], [0, 1])
    assert repr(model.settings_.evolution).startswith("Gentle(zeta=0.2")


def test_an_installed_strategy_is_in_the_message_about_unknown_names(install):
    install({"gentle": "forest:Gentle"})
    with pytest.raises(InvalidParameterError, match="gentle"):
        make_strategy("rigel")
    with pytest.raises(InvalidParameterError, match="gentle"):
        SparseMLPClassifier(evolution="rigel").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InvalidParameterError, match="gentle"):
        known_strategies(["rigel"])


def test_a_built_in_strategy_wins_over_an_installed_one_with_a_warning(install):
    install({"rigl": "forest:Gentle"})
    with pytest.warns(StrategyNameWarning, match=r"built-in RigL, not forest:Gentle of forest"):
        assert type(make_strategy("rigl")) is RigL
    assert strategy_names().count("rigl") == 1


def test_two_packages_with_one_name_are_refused(install):
    install({"gentle": "forest:Gentle"})
    install({"gentle": "meadow:Gentle"}, package="meadow")
    assert strategy_names().count("gentle") == 1
    with pytest.raises(InvalidParameterError, match=r"forest:Gentle of forest"):
        make_strategy("gentle")


@pytest.mark.parametrize(
    ("code", "value", "match"),
    [
        ("import nowhere", "forest:Gentle", "cannot be imported: No module named 'nowhere'"),
        ("", "forest:Gentle", "has no attribute 'Gentle'"),
        ("1 / 0", "forest:Gentle", "cannot be imported: ZeroDivisionError: division by zero"),
        (MODULE, "forest:number", "not a class or function"),
        (MODULE, "forest:nothing", "int has no `schedule`"),
        (MODULE, "forest:Needy", "missing 1 required positional argument: 'needed'"),
    ],
)
def test_a_strategy_that_cannot_be_used_gives_one_sentence(install, code, value, match):
    install({"gentle": value}, code=code)
    with pytest.raises(InvalidParameterError, match=match) as found:
        make_strategy("gentle")
    assert "gentle" in str(found.value)
    assert "\n" not in str(found.value)


def test_an_import_path_makes_a_strategy_with_parameters(install):
    install({})
    strategy = strategy_from_text("forest:Gentle( zeta=0.1 , anneal='linear')")
    assert (type(strategy).__name__, strategy.zeta, strategy.anneal) == ("Gentle", 0.1, "linear")
    assert strategy_from_text("set(zeta=0.1)") == SET(zeta=0.1)
    assert strategy_from_text("set") == SET()


def test_an_import_path_is_not_a_name():
    with pytest.raises(InvalidParameterError, match="import it and pass an object"):
        make_strategy("forest:Gentle")
    with pytest.raises(InvalidParameterError, match="must be one of"):
        SparseMLPClassifier(evolution="forest:Gentle").fit([[0.0], [1.0]], [0, 1])
    assert "forest" not in sys.modules


@pytest.mark.parametrize(
    "text",
    [
        "set(0.1)",
        "set(zeta=__import__('os'))",
        "set(zeta=0.1)(1)",
        "set(zeta=0.1).zeta",
        "set(**{'zeta': 0.1})",
        "set(zeta=0.1",
        "set(zeta=0.1) + f()",
        "set(zeta=0.1); f()",
        "set(" + "(" * 500,
        "set(zeta=a)",
        "set(zeta=\0)",
    ],
)
def test_nothing_but_literals_is_accepted_as_parameters(text):
    with pytest.raises(InvalidParameterError, match="is not a strategy: write a name"):
        strategy_from_text(text)


def test_an_unknown_parameter_in_a_text_is_refused():
    with pytest.raises(InvalidParameterError, match="no parameter `eta`; it has zeta"):
        strategy_from_text("set(eta=0.1)")


def test_a_name_that_clashes_only_with_a_registered_strategy_is_not_warned_about(
    install, monkeypatch
):
    install({"gentle": "forest:Gentle"})
    monkeypatch.setitem(STRATEGIES, "gentle", SET)
    assert type(make_strategy("gentle")) is SET
