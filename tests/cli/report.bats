#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The verb report: text, complaints, exit statuses.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || exit
    "$BUILD/tests/make_profile" >profile <<'END'
about command demo --all
about event task-clock
about unit ns
about method perf-events
about machine x86_64
about kernel 6.1.0
about host box
about frequency 1000
about started 1700000000123456789
thread 70 70 demo
thread 70 71 worker
file /no/such/file abcd
sample 1000000 0 0 1 1000000 main@/bin/demo;work(int)@/bin/demo;compute@/usr/lib/libdemo.so.1
times 599
sample 700000000 1 0 1 1000000 start_thread@/lib/libc.so.6;worker@/bin/demo
times 99
sample 800000000 0 1 1 200000000 main@/bin/demo;read@/lib/libc.so.6
sample 900000000 0 2 0 50000000
sample 910000000 0 0 2 49000000 main@/bin/demo;0x40@/no/such/file
sample 910000001 0 0 1 1000000 main@/bin/demo;rare@/bin/demo
lost 5 3
throttled 6
end 1000000000
END
}

setup() {
    cd "$BATS_FILE_TMPDIR" || exit
}

# says STATUS TEXT ARGUMENT...: the command with these arguments prints exactly that.
says() {
    local status_wanted=$1 text=$2
    shift 2
    run "$FATHOM" "$@"
    [ "$status" = "$status_wanted" ] && [ "$output" = "$text" ] || {
        printf 'status %s\n%s\n' "$status" "$output"
        false
    }
}

@test "report: a header, the rows, and a tree" {
    says 0 "command:   demo --all
recorded:  2023-11-14 22:13:20 UTC, for 1.000 s, on box, Linux 6.1.0, x86_64
event:     task-clock at 1000 Hz, 704 Hz were reached
method:    perf-events
samples:   704 of 1.000 s, 99.9 % of the stacks are whole
hidden:    200.0 ms, 20.00 %, in the kernel, whose stacks were not permitted
unsampled: 50.00 ms, 5.00 %, were counted without a sample
lost:      3 samples
throttled: 1 time by the kernel
no names:  /no/such/file (no-file)

     self      %     total      %  function
 600.0 ms  60.00  600.0 ms  60.00  compute  libdemo.so.1
 200.0 ms  20.00  200.0 ms  20.00  [kernel, stack not permitted]
 100.0 ms  10.00  100.0 ms  10.00  worker  demo
 50.00 ms   5.00  50.00 ms   5.00  [not sampled]
 50.00 ms   5.00                    [7 others]

    total      %  what calls what
 801.0 ms  80.10  main  demo
 600.0 ms  60.00   work(int)  demo
 600.0 ms  60.00    compute  libdemo.so.1
 200.0 ms  20.00   read  libc.so.6
 200.0 ms  20.00    [kernel, stack not permitted]
 1.000 ms   0.10   [1 other]
 100.0 ms  10.00  start_thread  libc.so.6
 100.0 ms  10.00   worker  demo
 50.00 ms   5.00  [not sampled]
 49.00 ms   4.90  [stack not complete: no-rule]
 49.00 ms   4.90   main  demo
 49.00 ms   4.90    ??  file" report --top 4 profile
}

@test "report: threads, callers, callees, a part of the time, some functions" {
    run "$FATHOM" report --by thread --min 11 profile
    [[ "$output" == *" thread
 900.0 ms  90.00  900.0 ms  90.00  demo (70)
 100.0 ms  10.00  100.0 ms  10.00  worker (71)

    total      %  what calls what
 900.0 ms  90.00  demo (70)
"*"
 100.0 ms  10.00  [1 other]" ]]
    run "$FATHOM" report --callers compute --callees read profile
    [[ "$output" == *"
    total      %  what leads to compute
 600.0 ms  60.00  compute  libdemo.so.1
 600.0 ms  60.00   work(int)  demo
 600.0 ms  60.00    main  demo

    total      %  what is called by read
 200.0 ms  20.00  read  libc.so.6
 200.0 ms  20.00   [kernel, stack not permitted]" ]]
    run "$FATHOM" report --from 0.7s --to 750ms --bottom-up profile
    [[ "$output" == *"
 100.0 ms 100.00  worker  demo
 100.0 ms 100.00   start_thread  libc.so.6" ]]
    run "$FATHOM" report --only 'libdemo.so*:*' --only worker profile
    [[ "$output" == *"
shown:     700.0 ms, 70.00 %
"*"
    total      %  what calls what
 600.0 ms  60.00  compute  libdemo.so.1
 100.0 ms  10.00  worker  demo" ]]
}

@test "report: a profile that was cut short is reported" {
    head -c 400 profile >cut
    run "$FATHOM" report cut
    [[ "$output" == *"
cut short: the file ends before the recording did
"* ]]
    # Without samples, nothing is answered.
    head -c 100 profile >cut
    run "$FATHOM" report cut
    [ "$status" = 1 ]
}

@test "report: what is wrong, and what helps" {
    says 2 "fathom: report: no FILE is given (try 'fathom report --help')" report
    says 2 "fathom: report: more than one FILE is given (try 'fathom report --help')" report profile profile
    says 2 "fathom: nothing: No such file or directory (check the path)" report nothing
    echo "no profile at all" >other
    says 2 "fathom: other: is no profile ('fathom record' writes profiles)" report other
    printf '\177fprof2\n' >other
    says 2 "fathom: other: was written by a newer version of fathom ('fathom record' writes profiles)" report other
    printf '\177fprof1\n\006\002\000\007' >other
    says 2 "fathom: other: at 0x8: a node is at a location that is not defined" report other
    says 2 "fathom: --by: is function, line, module, thread, process, reason, cgroup or waker" report --by x profile
    says 2 "fathom: --min: is a number of percent from 0 to 100" report --min 101 profile
    says 2 "fathom: --top: 'x' is not a number from 1 to 4294967295" report --top x profile
    says 2 "fathom: report: --to is not after --from (try 'fathom report --help')" report --from 2 --to 1 profile
    says 2 "fathom: report: --bottom-up does not go with --callers or --callees (try 'fathom report --help')" \
        report --bottom-up --callers main profile
    says 2 "fathom: report: functions of a profile are chosen by name, not by file or line" report --only x.c:7 profile
    says 1 'fathom: profile: no function of it is chosen by "under"' report --under nothing profile
    run "$FATHOM" report --callers nothing profile
    [ "$status" = 1 ]
    [[ "$output" == *"fathom: nothing: the profile has no function of that name"* ]]
}
