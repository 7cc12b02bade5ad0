#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The verb stack: text, folding, samples, stacks in the kernel, complaints, exit statuses.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || exit
    gcc -D_GNU_SOURCE -g -O1 -fno-inline -fno-ipa-icf -pthread -o threads "$BATS_TEST_DIRNAME/programs/threads.c"
}

setup() {
    cd "$BATS_FILE_TMPDIR" || exit
    pid=
}

teardown() {
    [ -z "$pid" ] || { kill -KILL "$pid"; wait "$pid" || true; } 2>/dev/null
}

# start WHAT: runs the program until its threads are where they stay; sets pid, and child.
start() {
    rm -f line
    mkfifo line
    ./threads "$1" >line 3>&- &
    pid=$!
    read -r child <line
    # Of "shares" it goes on; the others sleep then.
    [ "$1" = shares ] || until [ "$(cut -d ' ' -f 3 "/proc/$pid/stat")" = S ]; do sleep 0.01; done
}

# samples PID: waits until that run of fathom has taken a sample, and waits for the next (in rt_sigtimedwait).
samples() {
    until grep -q '^\(128\|137\) ' "/proc/$1/syscall"; do
        kill -0 "$1"
        sleep 0.01
    done
}

# says STATUS TEXT ARGUMENT...: the command with these arguments prints exactly that.
says() {
    local status_wanted=$1 text=$2
    shift 2
    run "$FATHOM" "$@" </dev/null
    [ "$output" = "$text" ] || { echo "said: $output"; false; }
    [ "$status" = "$status_wanted" ]
}

@test "stack: each thread has a head, and frames that count from 0" {
    start equal
    "$FATHOM" stack "$pid" >text
    ls "/proc/$pid/task" | sort >wanted
    sed -n 's/^TID \([0-9]*\): .*/\1/p' text | sort | diff - wanted
    awk '/^TID/ { n = 0 } /^#/ { if ($1 != "#" n++ || $2 !~ /^0x[0-9a-f]+$/ || length($2) != 18) exit 1 }' text
    grep -q '^TID [0-9]*: "threads", sleeping in read: pipe:\[[0-9]*\] (fd [0-9]*)$' text
    [ "$(grep -c ' same+0x.*/threads.c:' text)" = 10 ]
}

@test "stack: --fold: 10 equal threads are one block, the others stand for themselves" {
    start equal
    "$FATHOM" stack --fold "$pid" >text
    [ "$(grep -c '^TIDs\? ' text)" = 5 ]
    grep -q '^TIDs [0-9]*\(, [0-9]*\)\{9\} (10 threads): "threads", sleeping in pause: a signal$' text
    [ "$(grep -c ' same+0x' text)" = 1 ]
    ls "/proc/$pid/task" | sort >wanted
    sed -n 's/ (10 threads)//; s/^TIDs\? \([0-9, ]*\): .*/\1/p' text | tr -d ' ' | tr , '\n' | sort | diff - wanted
    "$FATHOM" stack --fold --json "$pid" >json
    python3 - wanted <<'END_OF_SCRIPT'
import json, sys
wanted = sorted(int(line) for line in open(sys.argv[1]))
blocks = [json.loads(line) for line in open("json")]
assert sorted(len(b["tids"]) for b in blocks) == [1, 1, 1, 1, 10]
assert sorted(tid for b in blocks for tid in b["tids"]) == wanted
assert all(b["tid"] == b["tids"][0] for b in blocks)
ten = next(b for b in blocks if len(b["tids"]) == 10)
# Cancellation points of glibc 2.41 call functions that make the system call.
names = [f["symbol"] for f in ten["frames"] if "syscall_cancel" not in f["symbol"]]
assert names[:2] == ["pause", "same"], ten
assert all(f["sp"] is None for f in ten["frames"]) and ten["registers"] == {}
END_OF_SCRIPT
}

@test "stack: --samples: every thread of every sample is counted, and names break no line" {
    start equal
    "$FATHOM" stack --samples 4 --every 0.01 "$pid" >collapsed
    python3 - <<'END_OF_SCRIPT'
counts = {}
for line in open("collapsed"):
    stack, count = line.rstrip("\n").rsplit(" ", 1)
    assert " 7" not in stack
    counts[tuple(stack.split(";"))] = int(count)
assert sum(counts.values()) == 4 * 14, counts
same = [s for s in counts if "same" in s]
assert len(same) == 1 and counts[same[0]] == 40 and same[0][0] == "threads", same
# Cancellation points of glibc 2.41 call functions that make the system call.
assert [name for name in same[0] if "syscall_cancel" not in name][-2:] == ["same", "pause"], same
two = [s for s in counts if "two" in s]
assert len(two) == 1 and counts[two[0]] == 4 and two[0][0] == "a\\x3bb\\x207\\x20", two
main = [s for s in counts if "main" in s]
assert len(main) == 1 and main[0].index("_start") == 1
END_OF_SCRIPT
}

@test "stack: --samples: two functions have the shares of the time that they take" {
    start shares
    # Where others take the processor away, the parts of a second can be another's: a sampler that is partial is so each time.
    for _ in 1 2 3 4 5 6 7 8; do
        "$FATHOM" stack --samples 400 --every 0.003 --stop-timeout 300 "$pid" >collapsed
        ! has_shares || return 0
    done
    cat collapsed
    false
}

# has_shares: whether the program "shares" has those in collapsed that it takes of the time.
has_shares() {
    python3 - <<'END_OF_SCRIPT'
total = {"often": 0, "seldom": 0, "same": 0}
n = 0
for line in open("collapsed"):
    stack, count = line.rstrip("\n").rsplit(" ", 1)
    n += int(count)
    for name in total:
        total[name] += int(count) * (name in stack.split(";"))
assert n == 800, n
assert total["same"] == 400, total
busy = total["often"] + total["seldom"]
assert busy >= 380, total
raise SystemExit(abs(total["often"] / busy - 0.75) > 0.1)
END_OF_SCRIPT
}

@test "stack: --samples: what was sampled before Ctrl-C is printed" {
    start equal
    "$FATHOM" stack --samples 1000 --every 60 "$pid" >collapsed 2>said &
    sampler=$!
    samples "$sampler"
    kill -INT "$sampler"
    status=0
    wait "$sampler" || status=$?
    [ "$status" = 1 ]
    # A build that lacks a library says so before.
    [ "$(tail -n 1 said)" = "fathom: --samples: 1 of 1000 samples were taken" ]
    [ "$(awk '{ n += $NF } END { print n }' collapsed)" = 14 ]
}

@test "stack: --samples: a signal ends the command while it prints into a pipe that nobody reads" {
    start equal
    python3 - "$FATHOM" "$pid" <<'END_OF_SCRIPT'
import os, signal, subprocess, sys, time
unread, pipe = os.pipe()
os.set_blocking(pipe, False)
try:
    while True:
        os.write(pipe, bytes(4096))
except BlockingIOError:
    os.set_blocking(pipe, True)
for number in (signal.SIGTERM, signal.SIGINT):
    sampler = subprocess.Popen([sys.argv[1], "stack", "--samples", "2", "--every", "0.01", sys.argv[2]], stdout=pipe,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    for _ in range(60000):
        with open(f"/proc/{sampler.pid}/syscall", encoding="ascii") as file:
            if file.read().startswith("1 0x1 "):  # write() to standard output
                break
        time.sleep(0.01)
    else:
        sys.exit("it does not print")
    sampler.send_signal(number)
    try:
        status = sampler.wait(600)
    except subprocess.TimeoutExpired:
        sampler.kill()
        sys.exit(f"{number!r} does not end it")
    assert status == -number, status
END_OF_SCRIPT
}

@test "stack: --kernel: the frames are those of /proc/PID/stack, above the program's" {
    start equal
    cat "/proc/$pid/stack" >stack || skip "only root may read stacks in the kernel"
    until grep -q pause stack; do
        sleep 0.01
        cat "/proc/$pid/stack" >stack
    done
    "$FATHOM" stack --kernel --tid "$pid" "$pid" >text
    sed -n 's/^\[<0>\] \([^+]*+0x[0-9a-f]*\).*/\1/p' stack >wanted
    [ -s wanted ]
    sed -n 's/^    kernel: \([^ /]*\).*/\1/p' text | diff - wanted
    [ "$(grep -n '^    kernel' text | tail -n 1 | cut -d: -f1)" -lt "$(grep -n '^#0 ' text | cut -d: -f1)" ]
    "$FATHOM" stack --kernel --json --tid "$pid" "$pid" |
        python3 -c 'import json,sys; print(*(f["text"].split("/")[0] for f in json.load(sys.stdin)["kernel_frames"]), sep="\n")' |
        diff - wanted
}

@test "stack: --kernel: threads of the kernel, which have that stack alone" {
    thread=$(ps -e -o pid=,ppid= | awk '$2 == 2 { print $1; exit }')
    [ -n "$thread" ] || skip "no thread of the kernel is to be seen here"
    says 2 "fathom: $thread: is a kernel thread: it has no stack but that in the kernel (--kernel prints it, as root)" \
        stack "$thread"
    says 2 "fathom: $thread: is a kernel thread: it has no stack but that in the kernel (--samples wants a process)" \
        stack --kernel --samples 2 "$thread"
    cat "/proc/2/stack" >/dev/null || skip "only root may read stacks in the kernel"
    run "$FATHOM" stack --kernel 2
    [ "$status" = 0 ]
    [[ "${lines[0]}" == 'TID 2: "kthreadd", '* ]]
    [[ "$output" == *"    kernel: kthreadd+0x"* ]]
    [[ "$output" != *"#0"* ]]
    "$FATHOM" stack --kernel --json 2 | python3 -c '
import json, sys
thread = json.load(sys.stdin)
assert thread["fault_address"] is None and thread["signal"] is None and thread["owner"] is None, thread
assert any(frame["text"].startswith("kthreadd+0x") for frame in thread["kernel_frames"]), thread'
}

@test "stack: --kernel: a thread that ends meanwhile is no fault of the kernel" {
    cat "/proc/$$/stack" >/dev/null || skip "only root may read stacks in the kernel"
    rm -f line
    mkfifo line
    python3 -c '
import threading, time
print(flush=True)
while True:
    if threading.active_count() < 32:
        threading.Thread(target=time.sleep, args=(0.002,)).start()' >line 3>&- &
    pid=$!
    read -r <line
    "$FATHOM" stack --kernel --samples 150 --every 0.01 --names-only "$pid" >collapsed
    grep -q 'nanosleep' collapsed
    ! grep -F '[unsupported]' collapsed
}

@test "stack: --rules: each address has the row that holds it, or says why it has none" {
    "$FATHOM" stack --rules ./threads >all
    [ "$(wc -l <all)" -gt 20 ]
    # The first and the last byte of each row.
    python3 -c 'for line in open("all"): low, high = line.split()[:2]; print(low, hex(int(high, 16) - 1))' >ends
    xargs "$FATHOM" stack --rules ./threads <ends >asked
    sed p all | diff - asked
    main=0x$(nm threads | sed -n 's/^0*\([0-9a-f]*\) T main$/\1/p')
    says 1 "x ?? (no-such-symbol)
0xzz ?? (bad-address)
0x0 ?? (no-rule)
0xffffffffffff0000 ?? (no-rule)
$(grep "^$main " all)" stack --rules ./threads x 0xzz 0x0 0xffffffffffff0000 main
    "$FATHOM" stack --rules --json ./threads x 0xzz 0x0 main >json && false
    python3 - "$main" <<'END_OF_SCRIPT'
import json, sys
records = [json.loads(line) for line in open("json")]
keys = ["low", "high", "cfa", "fp", "ra"]
assert [(r["input"], r["reason"]) for r in records] == [
    ("x", "no-such-symbol"), ("0xzz", "bad-address"), ("0x0", "no-rule"), ("main", None)], records
assert all(r[key] is None for r in records[:3] for key in keys), records
assert records[3]["low"] == sys.argv[1] and all(records[3][key] for key in keys), records
END_OF_SCRIPT
}

@test "stack: a deadlock is said, once" {
    start deadlock
    "$FATHOM" stack "$pid" >text
    a=$(ls "/proc/$pid/task" | sed -n 2p)
    b=$(ls "/proc/$pid/task" | sed -n 3p)
    [ "$(grep '^deadlock' text)" = "deadlock: $a waits for $b, $b for $a" ]
    [ "$(tail -n 1 text)" = "deadlock: $a waits for $b, $b for $a" ]
    start_pid=$pid
    kill -KILL "$start_pid"
    start equal
    run "$FATHOM" stack "$pid"
    [[ "$output" != *deadlock* ]]
}

@test "stack: what is wrong is said, and what to do" {
    start zombie
    says 2 "fathom: $child: is a zombie: it has ended, and its parent $pid does not wait for it" stack "$child"
    says 2 "fathom: 1: the process has no thread of this number (without --tid all threads are printed)" stack --tid 1 "$pid"
    says 2 "fathom: --json: does not go with --samples, which prints counted stacks (try 'fathom stack --help')" \
        stack --samples 3 --json "$pid"
    says 2 "fathom: --fold: does not go with --samples, which prints counted stacks (try 'fathom stack --help')" \
        stack --samples 3 --fold "$pid"
    says 2 "fathom: --every: goes with --samples only (try 'fathom stack --help')" stack --every 1 "$pid"
    says 2 "fathom: --registers: does not go with --fold: each thread has its own (try 'fathom stack --help')" \
        stack --fold --registers "$pid"
    says 2 "fathom: --kernel: only a process has that: this TARGET does not run" stack --kernel ./threads
    says 2 "fathom: --samples: '0' is not a number from 1 to 100000000" stack --samples 0 "$pid"
    for wrong in 0 -1 x 1x nan inf 100000; do
        says 2 "fathom: --every: is a number of seconds from 0.001 to 86400" stack --samples 2 --every=$wrong "$pid"
    done
    says 2 "fathom: ./threads: is a file: stacks are those of processes and cores" stack ./threads
    says 2 "fathom: kernel: has no stacks that fathom reads: processes and cores have" stack kernel
    says 2 "fathom: --smaples: is not an option of 'fathom stack' (did you mean --samples?)" stack --smaples 3 "$pid"
}

@test "stack: a process that ends between samples: what was sampled is printed" {
    sleep 1000 3>&- &
    pid=$!
    until [[ "$(readlink "/proc/$pid/exe")" == *sleep* && "$(cut -d ' ' -f 3 "/proc/$pid/stat")" = S ]]; do sleep 0.01; done
    "$FATHOM" stack --samples 100000 --every 0.05 "$pid" >collapsed 2>said 3>&- &
    sampler=$!
    samples "$sampler"
    kill -KILL "$pid"
    wait "$pid" || pid=
    status=0
    wait "$sampler" || status=$?
    [ "$status" = 1 ]
    [[ "$(cat said)" == *"samples were taken"* ]]
    grep -q '^sleep;.*;clock_nanosleep[ ;]' collapsed
}

@test "stack: the status is 0 if all stacks are whole, 1 if one is not, and its last line says why" {
    start equal
    run "$FATHOM" stack --names-only "$pid"
    [ "$status" = 0 ]
    run "$FATHOM" stack --names-only --max-frames 2 --tid "$pid" "$pid"
    [ "$status" = 1 ]
    [ "${#lines[@]}" = 4 ]
    [ "${lines[3]}" = "    (limit: more frames than --max-frames)" ]
}

@test "stack: a core has the stacks of its process, and nothing that only a process has" {
    start equal
    "$FATHOM" stack --names-only "$pid" | grep '^#' | cut -d' ' -f 1-3 | sort >wanted
    gcore -o core "$pid" >/dev/null 2>&1
    "$FATHOM" stack --names-only "core.$pid" >text
    grep '^#' text | cut -d' ' -f 1-3 | sort | diff - wanted
    says 2 "fathom: --stop: only a process has that: this TARGET does not run" stack --stop=all "core.$pid"
    says 2 "fathom: --samples: only a process has that: this TARGET does not run" stack --samples 2 "core.$pid"
    says 2 "fathom: --kernel: only a process has that: this TARGET does not run" stack --kernel "core.$pid"
    # The same threads, folded.
    [ "$("$FATHOM" stack --fold "core.$pid" | grep -c '^TIDs [0-9, ]* (10 threads):')" = 1 ]
}

@test "stack: threads that the user may not read say so" {
    [ "$(id -u)" = 0 ] || skip "only root can become somebody else"
    start equal
    run setpriv --reuid 65534 --regid 65534 --clear-groups "$FATHOM" stack "$pid"
    [ "$status" = 2 ]
    [ "$output" = "fathom: $pid: belongs to another user (run as that user or as root)" ]
}
