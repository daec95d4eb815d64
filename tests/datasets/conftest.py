import pytest


@pytest.fixture
def write(tmp_path):
    """Write text or bytes under a name in a fresh folder and return the path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
