import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    from matplotlib import pyplot

    pyplot.close("all")
