import os

import pytest


@pytest.fixture
def path(tmp_path: os.PathLike[str]) -> str:
    return os.path.join(tmp_path, "folder", "store.db")
