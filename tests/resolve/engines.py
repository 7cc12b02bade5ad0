# SPDX-License-Identifier: MIT
"""Engines that people run, with the files of share/fathom/engines: ClickHouse's executable dictionary."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import tap
from ask import FATHOM
from running import until
from suite import expected, read_tsv, rows_of, same, test, tsv_rows, without_null, world

ENGINES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "engines")
CONFIG = """<?xml version="1.0"?>
<yandex><logger><level>warning</level><console>1</console></logger><http_port>{port}</http_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>5368709</mark_cache_size>
<dictionaries_config>{folder}/*_dictionary.xml</dictionaries_config></yandex>
"""
USERS = """<?xml version="1.0"?>
<yandex><profiles><default></default></profiles><users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users><quotas><default></default></quotas></yandex>
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def clickhouse(folder, dictionary):
    """A server that has @dictionary; gives what asks it: a function of a query, and of the data that the query inserts."""
    server = shutil.which("clickhouse-server", path=os.environ["PATH"] + ":/usr/sbin")
    if not server:
        raise tap.Skip("there is no clickhouse-server")
    port = free_port()
    for name, text in (("config.xml", CONFIG.format(port=port, folder=folder)), ("users.xml", USERS), ("fathom_dictionary.xml", dictionary)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    os.makedirs(os.path.join(folder, "data"))
    os.makedirs(os.path.join(folder, "tmp"))
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen([server, f"--config-file={folder}/config.xml"], stdout=log, stderr=log, cwd=folder)

    def ask(query, data=b""):
        url = f"http://127.0.0.1:{port}/?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=data)) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode(errors='replace')}") from error

    def is_up():
        assert process.poll() is None, open(os.path.join(folder, "log"), encoding="utf-8", errors="replace").read()[-2000:]
        with contextlib.suppress(OSError, AssertionError):
            return ask("SELECT 1") == "1\n"
        return False
    try:
        until(is_up, "the server does not answer")
        yield ask
    finally:
        process.kill()
        process.wait()


@test("ClickHouse: its executable dictionary, with the file that is installed: all rows as fathom addr has them")
def dictionary(folder):
    rows = rows_of(4000)
    with open(os.path.join(ENGINES, "clickhouse-dictionary.xml"), encoding="utf-8") as f:
        text = f.read()
    options = f"--no-cache --debug-dir {world().debug_dir}"
    text, n = re.subn(r"<command>fathom resolve ", f"<command>{FATHOM} resolve {options} ", text)
    assert n == 1
    values = ("function", "file", "line", "reason")
    gets = ", ".join(f"dictGet{'UInt32' if v == 'line' else 'String'}('fathom', '{v}', tuple(build_id, offset, module)) AS {v}" for v in values)
    with clickhouse(folder, text) as ask:
        ask("CREATE TABLE samples (n UInt64, build_id String, offset UInt64, module String) ENGINE = Memory")
        data = [f"{i}\t{line}" for i, line in enumerate(tsv_rows(rows)) if rows[i][1] >= 0]
        ask("INSERT INTO samples FORMAT TabSeparated", "".join(data).encode())
        found = read_tsv(ask(f"SELECT {gets} FROM samples ORDER BY n FORMAT TabSeparated"), list(values))
    same(found, [{v: without_null(expected(*row))[v] for v in values} for row in rows])
