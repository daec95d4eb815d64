"""Tests that run as long as they are allowed to: pytest tests/soak -m soak --minutes 30."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--minutes", type=float, default=1.0, help="how long each soak test may take at most"
    )


@pytest.fixture
def minutes(request):
    return request.config.getoption("--minutes", default=1.0)
