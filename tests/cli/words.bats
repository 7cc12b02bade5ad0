#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What people type: verbs, options, help, and what they hear when it is wrong.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || exit
    cp "$BATS_TEST_DIRNAME/programs/one.c" .
    gcc -g -O0 -o one one.c
}

setup() {
    cd "$BATS_FILE_TMPDIR" || exit
}

# says STATUS TEXT ARGUMENT...: the command with these arguments prints exactly that.
says() {
    local status_wanted=$1 text=$2
    shift 2
    run "$FATHOM" "$@" </dev/null
    [ "$output" = "$text" ] || { echo "said: $output"; false; }
    [ "$status" = "$status_wanted" ]
}

@test "words: a verb that is none: the one that was meant" {
    says 2 "fathom: adr: is not a verb of fathom (did you mean addr?)" adr one main
    says 2 "fathom: dissasm: is not a verb of fathom (did you mean disasm?)" dissasm one main
    says 2 "fathom: fnid: is not a verb of fathom (did you mean find?)" fnid one main
    says 2 "fathom: snap: is not a verb of fathom (did you mean snapshot?)" snap 1 file
    says 2 "fathom: one: is not a verb of fathom (see 'fathom --help')" one 0x1139
    says 2 "fathom: hepl: is not a verb of fathom (did you mean help?)" hepl
    says 2 "fathom: biuld: is not something that 'fathom cache' does (did you mean build?)" cache biuld one
    says 2 "fathom: empty: is not something that 'fathom cache' does (try 'fathom cache --help')" cache empty
}

@test "words: an option that is none: the one that was meant, of this verb" {
    says 2 "fathom: --jsno: is not an option of 'fathom addr' (did you mean --json?)" addr --jsno one
    says 2 "fathom: --jsno=1: is not an option of 'fathom addr' (did you mean --json?)" addr --jsno=1 one
    says 2 "fathom: -limit: is not an option of 'fathom find' (did you mean --limit?)" find -limit 3 one
    says 2 "fathom: --limit: is not an option of 'fathom addr' (try 'fathom addr --help')" addr --limit 3 one
    says 2 "fathom: -q: is not an option of 'fathom disasm' (try 'fathom disasm --help')" disasm -q one
    says 2 "fathom: -q: is not an option of 'fathom find' (try 'fathom find --help')" find -iq one
    # Behind the arguments, too, which getopt moves.
    says 2 "fathom: --name-only: is not an option of 'fathom addr' (did you mean --names-only?)" addr one main --name-only
}

@test "words: an option without its argument, with one too many, or cut too short" {
    says 2 "fathom: --limit: lacks its argument (try 'fathom find --help')" find one main --limit
    says 2 "fathom: -j: lacks its argument (try 'fathom addr --help')" addr one -j
    says 2 "fathom: --section: lacks its argument (try 'fathom addr --help')" addr one --section
    says 2 "fathom: --json: takes no argument (try 'fathom addr --help')" addr --json=yes one main
    says 2 "fathom: --deb: is the start of several options (--debug-dir, --debuginfod, --debuginfod-timeout)" addr --deb one
    # What is the start of one option only is that.
    run "$FATHOM" addr --names one main
    [ "$status" = 0 ]
}

@test "words: every complaint begins with the name of the command, and so of no verb" {
    for verb in addr disasm find snapshot cache; do
        for wrong in --nonsense -Q --memory --memory=x --json=1; do
            run "$FATHOM" $verb "$wrong" </dev/null
            [ "$status" = 2 ]
            [ "${#lines[@]}" = 1 ]
            [[ "$output" == "fathom: -"*")" ]]
        done
        run "$FATHOM" $verb </dev/null
        [ "$status" = 2 ]
        [ "${#lines[@]}" = 1 ]
        [[ "$output" == "fathom: $verb: "*"(try 'fathom $verb --help')" ]]
    done
}

@test "words: help VERB is VERB --help, in 80 columns" {
    for verb in addr addr2line cache disasm doctor filter find llvm-symbolizer report snapshot stack strace top trace; do
        "$FATHOM" help $verb >by-help
        "$FATHOM" $verb --help >by-option
        "$FATHOM" --help $verb | cmp - by-help
        cmp by-help by-option
        [ -s by-help ]
        case $verb in addr2line | llvm-symbolizer) continue ;; esac
        [ "$(awk 'length > 79' by-help)" = "" ]
        grep -q "^Usage: fathom $verb " by-help
    done
    "$FATHOM" help | cmp - <("$FATHOM" --help)
    [ "$("$FATHOM" help | awk 'length > 79' )" = "" ]
    says 2 "fathom: adr: is not a verb of fathom (did you mean addr?)" help adr
}

# The long options that a verb's help lists.
listed() {
    "$FATHOM" help "$1" | grep -o -e '^ *\(-[a-zA-Z], \)\?--[a-z-]*' | grep -o -e '--[a-z-]*' | sort | paste -sd ' '
}

@test "words: each verb's help lists what makes a difference to it, and no more" {
    local files="--debug-dir --debuginfod --debuginfod-timeout"
    [ "$(listed snapshot)" = "$files --exe --file-timeout --help --memory --stacks --stop --stop-timeout --sysroot --unverified-files" ]
    [ "$(listed cache)" = "--cache-dir $files --file-timeout --help --json --memory --sysroot --threads" ]
    [ "$(listed find)" = "--color $files --exe --exported --file-timeout --first --help --inlined --json --limit --literal --memory --read --regex --sysroot --thread --threads --unverified-files --wait" ]
    for verb in addr disasm; do
        [[ "$(listed $verb)" == *--cache-dir*--exe*--json*--no-cache*--threads* ]]
    done
    # One set of options can be given to all: what makes no difference does no harm.
    run "$FATHOM" find --no-cache one main
    [ "$status" = 0 ]
}

# The options of the completions are those of the help.
completed_by_bash() {
    # shellcheck disable=SC1091
    . "$BATS_TEST_DIRNAME/../../packaging/completion/fathom.bash"
    COMP_WORDS=(fathom "$1" --)
    COMP_CWORD=2
    COMPREPLY=()
    _fathom
    printf '%s\n' "${COMPREPLY[@]}" | sed 's/=.*//' | sort -u | paste -sd ' '
}

@test "words: completion offers the options of each verb's help" {
    for verb in addr disasm doctor filter find report snapshot stack top cache; do
        [ "$(completed_by_bash $verb)" = "$(listed $verb)" ]
    done
    for verb in addr disasm find report snapshot top cache; do
        for option in $(listed $verb); do
            grep -q -e "$option" "$BATS_TEST_DIRNAME/../../packaging/completion/_fathom"
        done
    done
}

@test "words: -p PID and -e FILE name the target of every verb that has one" {
    cp one 123
    for verb in "addr -e one main" "disasm -e one main" "find -e one main" "addr -e 123 main" \
        "addr main -e one" "find -F main -e one"; do
        # shellcheck disable=SC2086
        run "$FATHOM" $verb
        [ "$status" = 0 ]
        [[ "$output" == *main* ]]
    done
    [ "$("$FATHOM" addr -e one main)" = "$("$FATHOM" addr one main)" ]
    echo main | "$FATHOM" addr -e one | head -n 1 | cmp - <("$FATHOM" addr one main)
    sleep 100 &
    local pid=$!
    # It sleeps: its libraries are there.
    until [[ "$(readlink /proc/$pid/exe)" == *sleep* && "$(cut -d ' ' -f 3 /proc/$pid/stat)" = S ]]; do sleep 0.01; done
    "$FATHOM" addr -p $pid execve >by-option
    "$FATHOM" addr $pid execve | cmp - by-option
    "$FATHOM" snapshot -p $pid shot
    kill $pid
    "$FATHOM" addr shot execve | cut -d ' ' -f 1,2 | cmp - <(cut -d ' ' -f 1,2 by-option)
    says 2 "fathom: 999999999: there is no such process" addr -p 999999999 0
    says 2 "fathom: x: is not the number of a process" addr -p x 0
    says 2 "fathom: kernel: No such file or directory (check the path)" addr -e kernel 0
    says 2 "fathom: addr: -p and -e name more than one TARGET (try 'fathom addr --help')" addr -p 1 -e one main
    says 2 "fathom: snapshot: a TARGET and a FILE are wanted (try 'fathom snapshot --help')" snapshot -p 1 one two
    # Where there is no TARGET, there are no such options.
    says 2 "fathom: -p: is not an option of 'fathom cache' (try 'fathom cache --help')" cache -p 1 path
}
