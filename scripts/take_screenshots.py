"""Take the README's pictures of the Group screen in headless Chromium, from a running app.

    python app.py --port 7860 &
    python scripts/take_screenshots.py --address http://127.0.0.1:7860/ --out docs

The group is the recorded one the app opens on, or with ``--link`` any permanent link's query.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

FLAGS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
DESK = {"viewport": {"width": 1440, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1, "has_touch": True}
PICTURES: dict[str, dict[str, Any]] = {
    "group-light": {**DESK, "color_scheme": "light"},
    "group-dark": {**DESK, "color_scheme": "dark"},
    "group-phone": {**PHONE, "color_scheme": "light"},
}


def shown(browser: Any, address: str, options: dict[str, Any]) -> Any:
    """A page with a group on it; samples one when the link shows none."""
    page = browser.new_context(**options).new_page()
    page.goto(address)
    page.wait_for_selector("#wb-prompt .ask", timeout=60_000)
    page.wait_for_function("() => document.querySelector('#wb-task input').value !== ''")
    if page.locator("#wb-summary .empty").count():
        page.click("#wb-summary .go")
    page.wait_for_selector("#wb-bars .bars path", state="attached", timeout=300_000)
    page.wait_for_function("() => document.getAnimations().length === 0")
    return page


def step_picture(page: Any, out: Path) -> None:
    """Three steps on the group of ``page``, and a picture of what they did."""
    for number in range(1, 4):
        page.click("#wb-take-step")
        words = "after one step" if number == 1 else f"after step {number}"
        page.wait_for_selector(f"#wb-step .facts:has-text('{words}')", timeout=600_000)
    page.locator("#wb-step").screenshot(path=str(out / "after-a-step.png"))


def main() -> None:
    """Write every picture into the folder ``--out``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--address", default="http://127.0.0.1:7860/")
    parser.add_argument("--link", default="", help="the query of a permanent link, without its question mark")
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    options.out.mkdir(exist_ok=True)
    address = f"{options.address}?{options.link}" if options.link else options.address
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
        for name, settings in PICTURES.items():
            page = shown(browser, address, settings)
            page.screenshot(path=str(options.out / f"{name}.png"))
            if name == "group-light":
                step_picture(page, options.out)
        browser.close()


if __name__ == "__main__":
    main()
