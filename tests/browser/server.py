"""A Jupyter server of its own: JupyterLab or Notebook 7, with every folder it writes to isolated."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

App = Literal["jupyterlab", "notebook"]

START_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    """A running Jupyter server; `root` is the folder it serves."""

    app: App
    url: str
    token: str
    root: Path

    def address(self, name: str) -> str:
        """Where the notebook `name` opens; with the token, and with JupyterLab's last layout forgotten."""
        place, reset = ("lab/tree", "&reset") if self.app == "jupyterlab" else ("notebooks", "")
        return f"{self.url}/{place}/{name}?token={self.token}{reset}"

    def sessions(self) -> list[dict[str, Any]]:
        return json.loads(self._call("GET", "/api/sessions"))

    def end_session(self, name: str) -> None:
        """Shut down the kernel of the notebook `name`, if it has one."""
        for session in self.sessions():
            if session["path"] == name:
                self._call("DELETE", f"/api/sessions/{session['id']}")

    def end_sessions(self) -> None:
        for session in self.sessions():
            self.end_session(session["path"])

    def is_up(self) -> bool:
        try:
            self._call("GET", "/api/status")
        except OSError:
            return False
        return True

    def _call(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(
            self.url + path, method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.read()


@contextmanager
def running_server(app: App, home: Path) -> Iterator[Server]:
    """Start `app` with every Jupyter and IPython folder under `home`; on leaving, end it and all its kernels."""
    root = home / "notebooks"
    root.mkdir(parents=True)
    server = Server(app, f"http://127.0.0.1:{_free_port()}", secrets.token_hex(16), root)
    log = home / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command(server), env=_isolated_environment(home), stdout=output, stderr=output, start_new_session=True
        )
    try:
        _wait_until_up(server, process, log)
        yield server
        # A kernel has a process group of its own and is asked to end; the server, which takes long to stop where a
        # connection lingers, keeps nothing worth waiting for.
        server.end_sessions()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _command(server: Server) -> list[str]:
    command = [sys.executable, "-m", server.app, "--no-browser", "--expose-app-in-browser"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={server.url.rpartition(':')[2]}"]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={server.root}"]
    command += [f"--IdentityProvider.token={server.token}"]
    return [*command, "--allow-root"] if os.geteuid() == 0 else command


def _isolated_environment(home: Path) -> dict[str, str]:
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(
        json.dumps({"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True})
    )
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    # The kernel sees one device, as a user's does, and not the eight that the other tests ask for.
    inherited = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return inherited | {name: str(home / folder) for name, folder in folders.items()} | {"JAX_PLATFORMS": "cpu"}


def _wait_until_up(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not server.is_up():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{server.app} did not start:\n{log.read_text()}")
        time.sleep(0.1)
