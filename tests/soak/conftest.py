"""Tests that run as long as they are allowed to: make soak MINUTES=60."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--minutes", type=float, default=10.0, help="how long all soak tests together may take"
    )


@pytest.fixture
def minutes(request):
    """What one test may take: an equal share."""
    return request.config.getoption("--minutes", default=10.0) / len(request.session.items)


@pytest.fixture
def say(request):
    """Print a figure next to the name of its test, bypassing pytest's capture."""
    plugins = request.config.pluginmanager
    terminal, capture = map(plugins.get_plugin, ("terminalreporter", "capturemanager"))

    def report(found):
        with capture.global_and_fixture_disabled():
            terminal.write_line(f"\n{request.node.name}: {found}")

    return report
