"""Fixtures of the tests of ratoon.torch."""

import pytest

try:
    import torch
except ImportError:  # each test file says so and is skipped
    torch = None


@pytest.fixture(autouse=True, scope="session")
def _on_one_thread():
    # PyTorch's threads wait for each other by spinning: on a busy machine two of them have been
    # seen to take thirty times as long as one.  And the thread sanitizer, which does not see how
    # they wait, takes what they do for races.
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _seeded():
    if torch is not None:
        torch.manual_seed(0)
