"""Arrays of other libraries: shared without a copy, or refused with the reason."""

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import InvalidInputError
from ratoon.samples.checked import checked_samples
from ratoon.samples.dlpack import as_numpy

torch = pytest.importorskip("torch", reason="torch is not installed")

HOW = {"hidden_layer_sizes": (10,), "density": 0.5, "max_iter": 3, "random_state": 0}


@pytest.fixture
def tensor():
    return torch.from_numpy(np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32))


class OnlyDLPack:
    """An array of the standard, and nothing else: no `__array__`, no buffer, no index."""

    def __init__(self, array, device=1):
        self.array, self.device = array, device
        self.shape, self.ndim, self.dtype = array.shape, array.ndim, array.dtype

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device, 0


def test_samples_are_not_copied(tensor):
    samples = checked_samples(SparseMLPClassifier(), tensor, reset=True)
    assert np.shares_memory(samples.values(), tensor.numpy())


@pytest.mark.parametrize(
    "wrap", [lambda x: x, lambda x: OnlyDLPack(x.numpy())], ids=["torch", "DLPack"]
)
def test_fits_and_predictions_are_those_of_numpy(tensor, wrap):
    x = tensor.numpy()
    weights = np.arange(60) % 3 + 1.0
    expected = SparseMLPRegressor(**HOW).fit(x, x[:, 0], weights, eval_set=(x, x[:, 0]))
    y, w = (wrap(torch.from_numpy(part.copy())) for part in (x[:, 0], weights))
    found = SparseMLPRegressor(**HOW).fit(wrap(tensor), y, w, eval_set=(wrap(tensor), y))
    np.testing.assert_array_equal(found.predict(wrap(tensor)), expected.predict(x))


def test_a_tensor_with_a_gradient_is_taken_without_it(tensor):
    model = SparseMLPClassifier(**HOW).fit(tensor.requires_grad_(), (tensor[:, 0] > 0).numpy())
    assert model.predict(tensor).shape == (60,)


def test_classes_may_be_a_tensor(tensor):
    model = SparseMLPClassifier(**HOW).fit(tensor, (tensor[:, 0] > 0).to(torch.int64))
    assert model.classes_.tolist() == [0, 1]


def test_arrays_on_another_device_are_refused(tensor):
    with pytest.raises(InvalidInputError, match=r"on another device.*\n.*X\.cpu\(\)"):
        SparseMLPClassifier().fit(OnlyDLPack(tensor.numpy(), device=2), np.zeros(60))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", [lambda x: x.to_sparse(), lambda x: x.to(torch.bfloat16)])
def test_what_numpy_cannot_share_is_refused(tensor, make):
    with pytest.raises(InvalidInputError, match="cannot be shared with"):
        SparseMLPClassifier().fit(make(tensor), np.zeros(60))


def test_what_is_no_array_is_returned_as_it_is():
    for value in (None, [1, 2], np.ones(2), "text"):
        assert as_numpy(value, "X") is value


def test_the_array_api_of_the_standard_is_accepted(tensor):
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    x = xp.asarray(tensor.numpy())
    model = SparseMLPClassifier(**HOW).fit(x, x[:, 0] > 0)
    np.testing.assert_array_equal(model.predict(x), model.predict(tensor.numpy()))
