#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The verb addr: arguments, streams, output, exit statuses.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || exit
    cp "$BATS_TEST_DIRNAME/programs/one.c" .
    gcc -g -O0 -o one one.c
    gcc -g -O0 -ffunction-sections -c -o one.o one.c
    gcc -O0 -o plain one.c
    strip -o stripped plain
}

setup() {
    cd "$BATS_FILE_TMPDIR" || exit
    main=0x$(nm one | awk '$3 == "main" { print $1 }')
    outer=0x$(nm one | awk '$3 == "outer" { print $1 }')
}

# The address of the first instruction of the inlined call, by objdump's line table.
inlined() {
    objdump --dwarf=decodedline one | awk '$1 == "one.c" && $2 == 4 { print $3; exit }'
}

@test "addr: an answer is one line: address, function, offset, file, line, column" {
    run "$FATHOM" addr one "$outer"
    [ "$status" = 0 ]
    printf -v address '0x%x' "$outer"
    [ "${lines[0]}" = "$address outer+0x0 $PWD/one.c:7:1" ]
}

@test "addr: callers of inlined code follow, innermost first" {
    run "$FATHOM" addr one "$(inlined)"
    [ "$status" = 0 ]
    [[ "${lines[0]}" == *" triple+0x0 $PWD/one.c:4:"* ]]
    [[ "${lines[1]}" == "  inlined into outer $PWD/one.c:8:"* ]]
    [ "${#lines[@]}" = 2 ]
}

@test "addr: hexadecimal with or without 0x, symbol and symbol with offset mean one address" {
    printf -v short '%x' "$outer"
    for form in "$outer" "${outer#0x}" "$short" outer outer+0 outer+0x0; do
        run "$FATHOM" addr one "$form"
        [ "$status" = 0 ]
        [[ "${lines[0]}" == *" outer+0x0 "* ]]
    done
    run "$FATHOM" addr --decimal one "$((outer))"
    [[ "${lines[0]}" == *" outer+0x0 "* ]]
}

@test "addr: a return address is looked up as the call before it" {
    size=$((0x$(nm -S one | awk '$4 == "outer" { print $2 }')))
    printf -v offset '+0x%x' "$size"
    run "$FATHOM" addr --return-addresses one "outer$offset"
    [ "$status" = 0 ]
    [[ "${lines[0]}" == *" outer$offset "* ]]
    [[ "${lines[0]}" == *"one.c:9:"* ]]
}

@test "addr: what is no address says why, in its place, and the status is 1" {
    run "$FATHOM" addr one outer 0xzz no_such_name 99999999999999999999999 main
    [ "$status" = 1 ]
    [ "${#lines[@]}" = 5 ]
    [ "${lines[1]}" = "0xzz ?? (bad-address)" ]
    [ "${lines[2]}" = "no_such_name ?? (no-such-symbol)" ]
    [ "${lines[3]}" = "99999999999999999999999 ?? (bad-address)" ]
    [[ "${lines[4]}" == *" main+0x0 "* ]]
}

@test "addr: an address outside the file is unmapped" {
    run "$FATHOM" addr one 0x7fff00000000
    [ "$status" = 1 ]
    [ "$output" = "0x7fff00000000 ?? (unmapped)" ]
}

@test "addr: a file without debug information still names; stripped, it gives bounds" {
    run "$FATHOM" addr plain outer
    [ "$status" = 0 ]
    [[ "${lines[0]}" == *" outer+0x0" ]]
    run "$FATHOM" addr stripped "0x$(nm plain | awk '$3 == "outer" { print $1 }')"
    [ "$status" = 0 ]
    [[ "${lines[0]}" =~ \ func@\[0x[0-9a-f]+\.\.0x[0-9a-f]+\]\+0x0$ ]]
}

@test "addr: standard input: each line is answered, in order, each answer ends with an empty line" {
    printf '%s\n\n%s' outer main >addresses
    for way in pipe file; do
        if [ $way = pipe ]; then output=$("$FATHOM" addr one < <(cat addresses)) || status=$?; fi
        if [ $way = file ]; then output=$("$FATHOM" addr one <addresses) || status=$?; fi
        [ "$(grep -c '^$' <<<"$output")" -ge 2 ]
        [ "$(grep -c 'bad-address\|no-such-symbol' <<<"$output")" = 1 ]
        [[ "$(sed -n 1p <<<"$output")" == *" outer+0x0 "* ]]
        [[ "$(tail -n 1 <<<"$output")$(tail -n 2 <<<"$output")" == *" main+0x0 "* ]]
    done
}

@test "addr: as a co-process each line is answered before the next is sent" {
    coproc FATHOM_CO { "$FATHOM" addr one; }
    for name in outer main outer; do
        echo "$name" >&"${FATHOM_CO[1]}"
        read -r -t 20 answer <&"${FATHOM_CO[0]}"
        [[ "$answer" == *" $name+0x0 "* ]]
        while read -r -t 20 answer <&"${FATHOM_CO[0]}" && [ -n "$answer" ]; do :; done
    done
    eval "exec ${FATHOM_CO[1]}>&-"
    wait
}

@test "addr: --json: every field of the contract, one object a line" {
    "$FATHOM" addr --json one "$(inlined)" nonsense >answers || true
    readelf -n one | sed -n 's/.*Build ID: //p' >build-id
    python3 - "$PWD" "$(inlined)" <<'END_OF_SCRIPT'
import json, sys
folder, address = sys.argv[1], int(sys.argv[2], 16)
a, bad = [json.loads(line) for line in open("answers")]
fields = "input address module build_id module_address symbol linkage_name offset size source frames reason".split()
assert sorted(a) == sorted(fields) == sorted(bad), a
assert a["input"] == sys.argv[2] and int(a["address"], 16) == address and int(a["module_address"], 16) == address
assert a["module"] == "one" and a["build_id"] == open("build-id").read().strip()
assert a["symbol"] == "outer" == a["linkage_name"] and a["source"] == "symtab" and a["reason"] is None
inner, outer = a["frames"]
assert sorted(inner) == sorted("function linkage_name file line column discriminator inlined".split())
assert (inner["function"], inner["line"], inner["inlined"]) == ("triple", 4, True)
assert (outer["function"], outer["line"], outer["inlined"]) == ("outer", 8, False)
assert inner["file"] == outer["file"] == folder + "/one.c" and inner["discriminator"] is None
assert bad["input"] == "nonsense" and bad["reason"] == "no-such-symbol" and bad["frames"] == [] and bad["address"] is None
END_OF_SCRIPT
}

@test "addr: --json: names that are no text stay one line of JSON" {
    cp one $'new\nline"\xff'
    "$FATHOM" addr --json $'new\nline"\xff' main >answers
    [ "$(wc -l <answers)" = 1 ]
    python3 -c 'import json; assert json.loads(open("answers").read())["module"] == "new\nline\"\ufffd"'
}

@test "addr: --names-only leaves out lines; a million of them keep their order" {
    run "$FATHOM" addr --names-only one outer
    [[ "${lines[0]}" == *" outer+0x0" ]]
    seq 300000 | awk '{ print $1 % 3 ? "outer" : "main" }' >many
    "$FATHOM" addr --names-only one <many | awk 'NF { sub(/\+.*/, "", $2); print $2 }' | cmp - many
}

@test "addr: --no-demangle prints names as they are linked" {
    printf 'namespace n { int f(int x) { return x; } }\nint main() { return n::f(1); }\n' >two.cc
    g++ -g -O0 -o two two.cc
    run "$FATHOM" addr two _ZN1n1fEi
    [[ "$output" == *" n::f(int)+0x0 "* ]]
    run "$FATHOM" addr --no-demangle two _ZN1n1fEi
    [[ "$output" == *" _ZN1n1fEi+0x0 "* ]]
}

@test "addr: -j: addresses of an object file are offsets in a section" {
    run "$FATHOM" addr -j .text.outer one.o 0
    [ "$status" = 0 ]
    [[ "${lines[0]}" == "0x"*" outer+0x0 $PWD/one.c:7:1" ]]
    run "$FATHOM" addr -j .no_such one.o 0
    [ "$status" = 1 ]
    [ "$output" = "0 ?? (bad-address)" ]
}

@test "addr: a missing file, a directory, an empty file, a text file: one line and status 2" {
    : >empty
    echo text >text
    run "$FATHOM" addr no-such-file 0x1
    [ "$status" = 2 ]
    [ "$output" = "fathom: no-such-file: No such file or directory (check the path)" ]
    for file in . empty text; do
        run "$FATHOM" addr $file 0x1
        [ "$status" = 2 ]
        [ "${#lines[@]}" = 1 ]
        [[ "$output" == "fathom: $file: "*")" || "$output" == "fathom: $file: "* ]]
    done
}

@test "addr: no permission: one line that says so" {
    [ "$(id -u)" = 0 ] && ! command -v setpriv >/dev/null && skip "setpriv is not there"
    [ -z "$WRAPPER" ] || skip "the user that nothing is permitted has no wrapper"
    cp one locked
    chmod 000 locked
    if [ "$(id -u)" = 0 ]; then
        chmod a+rx "$BATS_FILE_TMPDIR" 2>/dev/null
        cp "$FATHOM" fathom-copy
        run setpriv --reuid 65534 --clear-groups --inh-caps=-all "$PWD/fathom-copy" addr locked 0x1
        if [[ "$output" == *"failed to execute"* ]]; then skip "nobody may enter the test's folder"; fi
    else
        run "$FATHOM" addr locked 0x1
    fi
    [ "$status" = 2 ]
    [ "$output" = "fathom: locked: Permission denied (run as a user who may read it)" ]
}

@test "addr: digits only are a process, also where a file has that name" {
    cp one 1234
    run "$FATHOM" addr 1234 main
    [ "$status" = 2 ]
    [[ "$output" == "fathom: 1234: "*"(write file:PATH or ./PATH"* ]]
    for name in ./1234 file:1234; do
        run "$FATHOM" addr $name main
        [ "$status" = 0 ]
    done
}

@test "addr: usage errors are status 2 and say what to do" {
    run "$FATHOM"
    [ "$status" = 2 ]
    run "$FATHOM" frobnicate
    [ "$status" = 2 ]
    [[ "$output" == *frobnicate* ]]
    run "$FATHOM" addr
    [ "$status" = 2 ]
    run "$FATHOM" addr --no-such-option one
    [ "$status" = 2 ]
    run "$FATHOM" addr --memory=12X one main
    [ "$status" = 2 ]
    [[ "$output" == *"is not a size"* ]]
    run "$FATHOM" addr --help
    [ "$status" = 0 ]
}

@test "addr: what a split debug file says is not left out because an index was made without it" {
    gcc -g -O0 -gsplit-dwarf -o split one.c
    address=$(objdump --dwarf=decodedline split | awk '$1 == "one.c" && $2 == 4 { print $3; exit }')
    mkdir -p aside
    mv ./*.dwo aside
    run "$FATHOM" addr --cache=build --cache-dir split.cache split "$address"
    [ "$status" = 0 ]
    mv aside/*.dwo .
    run "$FATHOM" addr --cache-dir split.cache split "$address"
    [[ "${lines[0]}" == *" triple+0x0 $PWD/one.c:4:"* ]]
    [[ "${lines[1]}" == "  inlined into outer $PWD/one.c:8:"* ]]
}

@test "addr: a reader that has seen enough ends it quietly" {
    yes outer | head -n 400000 >names
    run bash -c '"$FATHOM" addr one <names 2>errors | head -n 1; echo ${PIPESTATUS[0]}; cat errors'
    [ "${#lines[@]}" = 2 ]
    [ "${lines[1]}" = 0 ] || [ "${lines[1]}" = 141 ]
}

@test "addr: a full disk is an error" {
    [ -w /dev/full ] || skip "there is no /dev/full"
    run bash -c '"$FATHOM" addr one main >/dev/full'
    [ "$status" = 2 ]
    [[ "$output" == "fathom: standard output: "* ]]
}

@test "addr: a compressed file that is larger than the memory it may take is refused" {
    { cat one; head -c 8M /dev/zero; } >large
    gzip -kf large
    run "$FATHOM" addr --memory=32M large.gz outer
    [[ "${lines[0]}" == *" outer+0x0 $PWD/one.c:7:1" ]]
    run "$FATHOM" addr --memory=4M large.gz outer
    [ "$status" = 2 ]
    [[ "$output" == *"does not fit the memory budget"* ]]
}

@test "addr: compressed files are read as what they hold" {
    for tool in "gzip -k" "xz -k" "zstd -qk"; do
        command -v "${tool%% *}" >/dev/null || continue
        rm -f one.gz one.xz one.zst
        $tool one
        run "$FATHOM" addr one.[gxz]* outer
        [ "$status" = 0 ]
        [[ "${lines[0]}" == *" outer+0x0 $PWD/one.c:7:1" ]]
    done
}

@test "addr: stubs have the same names alone and in a batch, behind the one that has none" {
    libc=$(ldd one | awk '/libc.so/ { print $3 }')
    readelf -SW "$libc" | sed -n 's/.*\] \.plt  *PROGBITS *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\).*/0x\1 0x\2/p' >plt
    read -r start size <plt
    for ((i = 0; i < size; i += 12)); do printf '0x%x\n' $((start + i)); done >asked
    [ "$(wc -l <asked)" -gt 20 ]
    while read -r address; do "$FATHOM" addr "$libc" "$address" || true; done <asked >alone
    [ "$(grep -c '@plt' alone)" -gt 20 ]
    "$FATHOM" addr "$libc" <asked | grep . >together || true
    cmp alone together
    sort -R --random-source=asked asked >mixed
    "$FATHOM" addr --names-only "$libc" <mixed | grep . | cut -d' ' -f1,2 | sort >together || true
    cut -d' ' -f1,2 alone | sort | cmp - together
}
