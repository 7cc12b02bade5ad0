# SPDX-License-Identifier: MIT
"""Pages in Debian's chromium, without a network: what they draw, and what they ask for."""
import contextlib
import json
import os
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

DRIVER, CHROMIUM = "/usr/bin/chromedriver", "/usr/bin/chromium"
# Seconds that a page may take to open before a test gives up; nothing is decided by how long it takes.
DEADLINE = 60
# Words of WebDriver for keys that are no characters.
KEYS = {"Escape": Keys.ESCAPE, "Backspace": Keys.BACKSPACE, "Enter": Keys.ENTER, "ArrowUp": Keys.UP, "ArrowDown": Keys.DOWN,
        "ArrowLeft": Keys.LEFT, "ArrowRight": Keys.RIGHT}


@contextlib.contextmanager
def browser(width=1280, height=900, *words):
    """A browser whose window shows pages of that size, and that can reach nothing."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory() as home:
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                     "--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND",
                     f"--user-data-dir={home}", f"--window-size={width},{height}", *words):
            options.add_argument(word)
        driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        try:
            resize(driver, width, height)
            yield driver
        finally:
            driver.quit()


def resize(driver, width, height, ratio=1):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": width < 600})


def open_page(driver, path, fragment=""):
    """Opens the page @path and waits until it is drawn."""
    driver.get("about:blank")
    driver.get("file://" + os.path.abspath(path) + ("#" + fragment if fragment else ""))
    end = time.monotonic() + DEADLINE
    while not driver.execute_script("return !!window.fathom || document.getElementById('loading')?.textContent.startsWith('This')"):
        assert time.monotonic() < end, driver.find_element("tag name", "body").text
        time.sleep(0.02)


def key(driver, *names):
    """Presses keys where the focus is."""
    for name in names:
        ActionChains(driver).send_keys(KEYS.get(name, name)).perform()


def get(driver, expression):
    """A value of the page's script, by an expression of `app`."""
    return driver.execute_script(f"const app = window.fathom.app; return ({expression});")


def boxes(driver):
    """The boxes of the flame graph: (name, depth, left, right), small ones without a name."""
    return [(name, depth, x0, x1) for name, depth, x0, x1 in get(driver, """app.flame.boxes.map((box) => [
        box.node < 0 ? null : app.flame.tree.fn[box.node] < 0 ? "all" : app.model.functions.name[app.flame.tree.fn[box.node]],
        box.depth, box.x0, box.x1])""")]


def text(driver, name):
    return driver.execute_script("return document.getElementById(arguments[0]).textContent", name)


def requests(driver):
    """What was asked for since the browser began, but pages of files and empty ones; errors on the console."""
    found = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith(("file:", "about:")) or not url.split("#")[0].endswith((".html", "about:blank")):
                found.append(url)
    return found, [entry["message"] for entry in driver.get_log("browser")]
