# SPDX-License-Identifier: MIT
"""Servers that answer, refuse, and never answer."""
import os

import tap
from building import build_id, build_text, keep_debug
from suite import ENVIRONMENT, doctor, test

import servers

REMEDY = "take it out of DEBUGINFOD_URLS, or check the network"


def asking(folder, *urls):
    os.makedirs(os.path.join(folder, "tmp"), exist_ok=True)
    return {**ENVIRONMENT, "DEBUGINFOD_URLS": " ".join(urls), "DEBUGINFOD_CACHE_PATH": os.path.join(folder, "cache"),
            "TMPDIR": os.path.join(folder, "tmp")}


def said(found):
    return [(r["state"], r["detail"], r["remedy"]) for r in found["debuginfod"]]


@test("debuginfod: each server by itself: one answers, one refuses, one accepts and is silent")
def each(folder):
    if os.environ.get("WRAPPER"):
        raise tap.Skip("a build for another machine has no libdebuginfod")
    with servers.Recording() as good, servers.Stalling() as silent, servers.refusing() as refusing:
        # On a busy machine the one that answers takes its time.
        for seconds in (1, 10, 100):
            asked = len(good.asked)
            _, found = doctor("--debuginfod-timeout", seconds, env=asking(folder, refusing, silent.url, good.url))
            first, second, third = said(found)
            assert first == ("limited", f"{refusing}: Connection refused", REMEDY), first
            assert second == ("limited", f"{silent.url}: no answer in {seconds} s", REMEDY), second
            if third != ("limited", f"{good.url}: no answer in {seconds} s", REMEDY):
                break
        state, detail, remedy = third
        assert (state, remedy) == ("ok", None) and detail.startswith(f"{good.url} answers, in "), found
        # Asked anew, it is not the client's memory that answers; and that has nothing of it.
        doctor("--debuginfod-timeout", 100, env=asking(folder, good.url))
        assert len(good.asked) == asked + 2 and len(set(good.asked)) == len(good.asked), good.asked
        assert sorted(os.listdir(folder)) == ["tmp"] and not os.listdir(os.path.join(folder, "tmp"))


@test("debuginfod: the servers of the environment are asked for the debug file of the target afterwards, all of them")
def afterwards(folder):
    if os.environ.get("WRAPPER"):
        raise tap.Skip("a build for another machine has no libdebuginfod")
    path = build_text(os.path.join(folder, "main"), "int main(void) { return 0; }", flags=["-g", "-Wl,--build-id"])
    with open(keep_debug(path), "rb") as f:
        debug = f.read()
    os.unlink(path + ".debug")
    with servers.Recording({f"/buildid/{build_id(path)}/debuginfo": debug}) as one, servers.Recording() as other:
        env = asking(folder, one.url, other.url)
        _, found = doctor(path, env=env)
        assert found["lines"][0]["state"] == "limited"
        _, found = doctor("--debuginfod", path, env=env)
        assert [(r["state"], r["detail"]) for r in found["lines"]] == [("ok", "1 module has them")], found
