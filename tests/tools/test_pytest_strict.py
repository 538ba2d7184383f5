import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.mark.parametrize(
    ("reason", "status"),
    [("onnxruntime is not installed", 1), ("not on this processor: it has no VNNI", 0)],
)
def test_a_strict_run_allows_what_no_installation_changes(tmp_path, reason, status):
    (tmp_path / "test_two.py").write_text(
        f"import pytest\ndef test_skips(): pytest.skip({reason!r})\n"
        f"@pytest.mark.skip(reason={reason!r})\ndef test_marked(): pass\ndef test_passes(): pass\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_strict", "-p", "no:cacheprovider", "-q", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(TOOLS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == status, result.stdout
    assert ("test_two.py::test_marked" in result.stdout) == bool(status)
