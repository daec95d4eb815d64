"""What the tests of ratoon.torch share."""

import pytest

try:
    import torch
except ImportError:  # each test file says so and is skipped
    torch = None


@pytest.fixture(autouse=True)
def _seeded_and_on_one_thread():
    # PyTorch's threads wait for each other by spinning: on a busy machine two of them have been
    # seen to take thirty times as long as one.
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)
