"""lab.py NOTEBOOK: starts JupyterLab on a notebook and prints its address; Ctrl-C ends both."""

import os
import subprocess
import sys
import time
from pathlib import Path

from jupyter_server.serverapp import list_running_servers

ROOT = Path(__file__).parents[1]
START_SECONDS = 60.0


def start(notebook: Path) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C reaches this script alone, which then ends the server without its question.
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--ServerApp.root_dir={ROOT}"]
    command += ["--ServerApp.log_level=WARN", f"--LabApp.default_url=/lab/tree/{notebook.relative_to(ROOT)}"]
    if os.geteuid() == 0:
        command.append("--allow-root")
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def wait_for_address(server: subprocess.Popen[bytes], notebook: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        for running in list_running_servers():
            if running["pid"] == server.pid:
                return f"{running['url']}lab/tree/{notebook.relative_to(ROOT)}?token={running['token']}"
        time.sleep(0.1)
    raise SystemExit("JupyterLab did not start; its own words are above")


def stop(server: subprocess.Popen[bytes]) -> None:
    # SIGTERM lets it end its kernels; it can hang after that where a browser is still connected.
    server.terminate()
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def main() -> None:
    notebook = Path(sys.argv[1]).resolve()
    server = start(notebook)
    try:
        print(f"\nJupyterLab: {wait_for_address(server, notebook)}\n(Ctrl-C ends it)", flush=True)
        server.wait()
    except KeyboardInterrupt:
        print("\nending JupyterLab", flush=True)
    finally:
        stop(server)


if __name__ == "__main__":
    main()
