"""Screenshots of the harness: python dev/shoot.py OUT [CHROMIUM], after `npm run dev`."""

import pathlib
import re
import sys

from playwright.sync_api import sync_playwright

PAGE = pathlib.Path(__file__).with_name("index.html").as_uri()
SHOTS = [("gpt", "figures"), ("gpt", "figures&target=tpu:v5e"), ("gpt", ""), ("large", ""), ("small", "figures")]


def main(out: pathlib.Path, chromium: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for theme in ("light", "dark"):
            for width in (1560, 600):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
                page.on("pageerror", lambda error: print("page error:", error))
                for size, extra in SHOTS:
                    page.goto(f"{PAGE}?size={size}&{extra}")
                    page.wait_for_selector("#widget[data-ready='1']")
                    shown = re.sub(r"\W+", "-", extra)
                    name = f"{size}{'-' + shown if shown else ''}-{width}-{theme}"
                    elements = page.evaluate("document.querySelectorAll('#widget *').length")
                    drawn = page.get_attribute("[data-testid=curve]", "data-draw-ms")
                    overflow = page.evaluate("document.documentElement.scrollWidth > innerWidth")
                    print(f"{name}: {elements} elements, canvas {drawn} ms, overflows {overflow}")
                    page.screenshot(path=out / f"{name}.png", full_page=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "/usr/bin/chromium")
