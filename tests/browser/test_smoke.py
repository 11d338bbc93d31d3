"""The harness itself: what the widget's tests stand on, in both applications."""

from browser.conftest import OpenNotebook


def test_a_cell_runs_and_shows_its_output(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("print(1 + 1)", "raise ValueError('shown in place')", "40 + 2")
    notebook.run_cell(0)
    assert notebook.outputs(0).inner_text().strip() == "2"
    notebook.run_cell(1)
    assert "shown in place" in notebook.outputs(1).inner_text()
    notebook.run_cell(2)
    assert "42" in notebook.outputs(2).inner_text()
    assert notebook.errors == []


def test_all_cells_run_in_order(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("x = 1", "print(x + 1)", "raise ValueError('the last one')")
    notebook.run_all()
    assert notebook.outputs(1).inner_text().strip() == "2"
    assert "the last one" in notebook.outputs(2).inner_text()


def test_a_cell_can_be_left_running(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("import time\nprint('began', flush=True)\ntime.sleep(2)\nprint('ended')")
    notebook.start_cell(0)
    notebook.outputs(0).get_by_text("began").wait_for()
    assert "ended" not in notebook.outputs(0).inner_text()
    notebook.wait_idle()
    assert "ended" in notebook.outputs(0).inner_text()


def test_command_keys_reach_the_notebook(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("1", "2", "3")
    notebook.cell(1).locator(".cm-content").click()
    notebook.command_mode()
    notebook.page.keyboard.press("d")
    notebook.page.keyboard.press("d")
    notebook.page.wait_for_function("n => window.jupyterapp.shell.currentWidget.content.widgets.length === n", arg=2)
    assert notebook.sources() == ["1", "3"]


def test_the_theme_changes(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("1")
    background = "getComputedStyle(document.body).getPropertyValue('--jp-layout-color1').trim()"
    notebook.set_theme("dark")
    dark = notebook.page.evaluate(background)
    assert notebook.screenshot("smoke-dark").stat().st_size > 0
    notebook.set_theme("light")
    assert notebook.page.evaluate(background) != dark


def test_a_saved_notebook_opens_without_a_kernel(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("print('kept')")
    notebook.run_cell(0)
    notebook.reopen_without_kernel()
    assert notebook.saved()["cells"][0]["outputs"][0]["text"] == ["kept\n"]
    assert notebook.outputs(0).inner_text().strip() == "kept"
    assert [session for session in notebook.server.sessions() if session["path"] == notebook.name] == []
