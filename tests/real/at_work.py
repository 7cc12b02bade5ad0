# SPDX-License-Identifier: MIT
"""Heavy programs of Debian's at work: each is a context that gives the processes to look at."""
import contextlib
import glob
import os
import signal
import socket
import subprocess
import threading
import time

import traced_programs
from ask import run
from living import as_nobody, NGINX
from toolchain import newest

NODE = """
const { Worker, isMainThread } = require('worker_threads'), crypto = require('crypto'), zlib = require('zlib')
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2)
const deep = n => n ? deep(n - 1) + 1 : [3, 1, 2].map(x => JSON.stringify({ x: fib(18) })).sort((a, b) => a < b ? -1 : 1).length
if (isMainThread) {
    for (let i = 0; i < 2; i++) new Worker(__filename)
    const hash = () => crypto.pbkdf2('a', 'b', 20000, 64, 'sha512', hash)
    const pack = () => zlib.gzip(Buffer.alloc(1 << 20, 'abc'), pack)
    hash(); pack()
    require('http').createServer((q, a) => a.end(String(deep(20)))).listen(0, () => console.log('ready'))
}
setInterval(() => deep(30), 1)
"""
JAVA = """
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

public class Work {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static void start(String name, Runnable r) { Thread t = new Thread(r, name); t.setDaemon(true); t.start(); }
    public static void main(String[] args) throws Exception {
        lock.lock();
        for (int i = 0; i < 3; i++) start("fib", () -> { while (true) fib(25); });
        start("strings", () -> { while (true) { List<String> l = new ArrayList<>(); for (int i = 0; i < 1000; i++) l.add("s" + i * 7); Collections.sort(l); } });
        start("waits", () -> { synchronized (monitor) { try { monitor.wait(); } catch (InterruptedException e) { } } });
        start("locks", lock::lock);
        start("sleeps", () -> { try { Thread.sleep(1000000); } catch (InterruptedException e) { } });
        start("accepts", () -> { try { new java.net.ServerSocket(0).accept(); } catch (Exception e) { } });
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(2);
        timer.scheduleAtFixedRate(() -> fib(10), 0, 1, TimeUnit.MILLISECONDS);
        Thread.sleep(2000);
        System.out.println("ready");
        System.in.read();
    }
}
"""
PYTHON = """
import collections, hashlib, json, queue, re, select, socket, sqlite3, threading, time, zlib

lock, empty, ended = threading.Lock(), queue.Queue(), threading.Event()
lock.acquire()


def deep(n):
    return deep(n - 1) + 1 if n else len(json.dumps([1, {"a": sorted(range(50), key=lambda x: -x)}]))


def sql():
    db = sqlite3.connect(":memory:")
    db.create_function("f", 1, lambda x: deep(3) + x)
    while True:
        db.execute("with recursive c(x) as (select 1 union all select x + 1 from c where x < 50) select sum(f(x)) from c").fetchall()


def again(f, *arguments):
    def work():
        while True:
            f(*arguments)
    return work


for work in (again(deep, 30), again(hashlib.pbkdf2_hmac, "sha256", b"a", b"b", 1000), again(zlib.compress, bytes(100000)), sql, lock.acquire, empty.get,
             ended.wait, again(time.sleep, 100), again(re.match, "(a*)*b", "a" * 20), lambda: select.select([socket.socketpair()[0]], [], []),
             lambda: ended.wait(1000)):
    threading.Thread(target=work, daemon=True).start()
time.sleep(1)
print("ready", flush=True)
input()
"""
PERL = """
use threads; use POSIX; use List::Util qw(reduce);
sub deep { my $n = shift; return $n ? deep($n - 1) + 1 : scalar(() = join(",", sort { $b <=> $a } map { $_ * 3 } 1 .. 50) =~ /(\\d+),/g) }
threads->create(sub { deep(20) while 1 })->detach for 1 .. 2;
threads->create(sub { while (1) { my %h = map { $_ => 1 } 1 .. 100; my $s = reduce { $a + $b } keys %h } })->detach;
threads->create(sub { sleep 1000 })->detach;
threads->create(sub { my $q; pipe(my $r, my $w); sysread($r, $q, 1) })->detach;
$| = 1; sleep 1; print "ready\\n"; <STDIN>;
"""
INFERIOR = """
#include <pthread.h>
#include <unistd.h>
static int deep(int n) { return n ? deep(n - 1) + 1 : (usleep(100), 1); }
static void *work(void *data) { for (;;) deep(10); return data; }
int main(void) { pthread_t t; for (int i = 0; i < 3; i++) pthread_create(&t, 0, work, 0); work(0); return 0; }
"""
PAGE = """<html><body><canvas id=c width=400 height=400></canvas><script>
const w = new Worker(URL.createObjectURL(new Blob(['const f = n => n < 2 ? n : f(n - 1) + f(n - 2); setInterval(() => postMessage(f(15)), 5)'])))
w.onmessage = m => { document.title = m.data; const x = c.getContext('2d'); x.fillRect(Math.random() * 400, 0, 9, 99); document.body.append('a') }
setInterval(() => { const o = {}; for (let i = 0; i < 1000; i++) o['k' + i] = [i]; JSON.stringify(o) }, 3)
</script></body></html>"""


def family(pid):
    """@pid and all processes below it."""
    found = [pid]
    for p in found:
        for children in glob.glob(f"/proc/{p}/task/*/children"):
            with contextlib.suppress(OSError), open(children, encoding="ascii") as f:
                found += [int(c) for c in f.read().split() if int(c) not in found]
    return found


@contextlib.contextmanager
def started(command, folder, ready="ready", **options):
    """A program that says on a line that it is ready; its processes are killed where the block ends."""
    options = {"stdin": subprocess.PIPE, "stderr": subprocess.STDOUT} | options
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            for line in process.stdout:
                if ready in line:
                    break
            else:
                raise AssertionError(f"{command}: ended early")
            drain = threading.Thread(target=process.stdout.read, daemon=True)
            drain.start()
            yield process.pid
        finally:
            for pid in reversed(family(process.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o644)
    return path


@contextlib.contextmanager
def scripted(command, name, text, folder):
    with started([*command, write(folder, name, text)], folder) as pid:
        time.sleep(1)
        yield [pid]


@contextlib.contextmanager
def gdb(folder):
    """gdb that steps a program of four threads, over and over."""
    program = os.path.join(folder, "inferior")
    run("gcc", "-g", "-pthread", "-o", program, write(folder, "inferior.c", INFERIOR))
    script = write(folder, "steps", "set pagination off\nbreak deep if n == 5\nrun\npython print('ready', flush=True)\nwhile 1\nbt\ncontinue\nend\n")
    with started(["gdb", "-q", "-nx", "-x", script, program], folder) as pid:
        time.sleep(1)
        yield [pid]


@contextlib.contextmanager
def redis(folder):
    server, port = traced_programs.start_redis(folder)
    load = traced_programs.Load(port)
    try:
        time.sleep(0.5)
        yield [server.pid]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, signal.SIGCONT)
        load.end()
        server.kill()
        server.wait()


@contextlib.contextmanager
def postgres(folder):
    """All processes of a server, with clients at work, one that waits for a lock, and one that has nothing to do."""
    programs = os.path.dirname(newest("/usr/lib/postgresql/*/bin/postgres"))
    os.chmod(folder, 0o777)
    run(*as_nobody(os.path.join(programs, "initdb"), "-A", "trust", "--no-sync", "data"), cwd=folder)
    command = as_nobody(os.path.join(programs, "postgres"), "-D", "data", "-k", folder, "-h", "")
    with started(command, folder, "ready to accept connections") as pid:
        def pgbench(*words):
            return [os.path.join(programs, "pgbench"), "-h", folder, "-U", "nobody", *words, "postgres"]
        run(*as_nobody(*pgbench("-i", "-q")), cwd=folder)
        clients = [subprocess.Popen(as_nobody(*pgbench("-c", "3", "-T", "1000")), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
        for query in ("begin; lock table pgbench_history; select pg_sleep(1000)", "select count(*) from pgbench_history", "select pg_sleep(1000)",
                      "select sum(a.aid * b.aid) from pgbench_accounts a, pgbench_accounts b"):
            clients.append(subprocess.Popen(as_nobody(os.path.join(programs, "psql"), "-h", folder, "-U", "nobody", "-c", query, "postgres"),
                                            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            time.sleep(0.5)
        time.sleep(1)
        try:
            yield family(pid)
        finally:
            for client in clients:
                client.kill()
                client.wait()


@contextlib.contextmanager
def nginx(folder):
    os.chmod(folder, 0o777)
    config = NGINX.replace("events {}", "worker_processes 2;\nevents {}").replace("server {", f"server {{ root {folder};")
    write(folder, "nginx.conf", config.replace("user ", "#user "))
    write(folder, "index.html", "x" * 100000)
    command = ["/usr/sbin/nginx", "-p", ".", "-c", "nginx.conf", "-g", "daemon off;"]
    is_over = []

    def ask():
        while not is_over:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
                s.settimeout(5)
                s.connect(os.path.join(folder, "nginx.sock"))
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                while s.recv(1 << 16):
                    pass
    with started(command, folder, "start worker processes") as pid:
        client = threading.Thread(target=ask)
        client.start()
        time.sleep(1)
        try:
            yield family(pid)
        finally:
            is_over.append(True)
    client.join()


@contextlib.contextmanager
def chromium(folder):
    """All processes of a browser that shows a page with a worker and a canvas."""
    page = write(folder, "page.html", PAGE)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--remote-debugging-port=0", f"file://{page}"]
    with started(command, folder, "DevTools listening", env=os.environ | {"HOME": folder}) as pid:
        time.sleep(4)
        yield family(pid)


PROGRAMS = {"postgres": postgres, "nginx": nginx, "redis": redis, "gdb": gdb, "chromium": chromium,
            "node": lambda folder: scripted(["node"], "work.js", NODE, folder),
            "java": lambda folder: scripted(["java"], "Work.java", JAVA, folder),
            "python3": lambda folder: scripted(["/usr/bin/python3"], "work.py", PYTHON, folder),
            "perl": lambda folder: scripted(["perl"], "work.pl", PERL, folder)}
