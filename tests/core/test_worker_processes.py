"""Workers end with the process that started them."""

import signal
import subprocess
import sys
from pathlib import Path

PARENT = """
import os, time
from noisefloor.worker_processes import worker_pool

if __name__ == "__main__":
    with worker_pool(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(600)
"""


def test_a_killed_parent_leaves_no_worker_behind(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    # The worker inherits standard output: its end is seen once every copy of it is closed.
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert int(parent.stdout.readline()) != parent.pid
        parent.send_signal(signal.SIGKILL)
        rest, _ = parent.communicate(timeout=60)
        assert rest == b""
