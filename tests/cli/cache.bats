#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The index cache on disk: what it answers, when it is written, whom it trusts.

setup() {
    cd "$BATS_TEST_TMPDIR" || exit
    cp "$BATS_TEST_DIRNAME/programs/one.c" .
    gcc -g -O0 -Wl,--build-id -o one one.c
    export XDG_CACHE_HOME=$PWD/home
    nm one | awk '$2 == "T" || $2 == "t" { print "0x" $1 }' >addresses
    "$FATHOM" addr --no-cache one <addresses >truth || true
}

indexes() {
    find "$XDG_CACHE_HOME" -name '*.fidx' 2>/dev/null
}

# The sections that say it are overwritten in place: size, time and build-id stay.
erase_debug_info() {
    for section in .debug_info .debug_line; do
        set -- $(readelf -SW one | sed 's/\[ */[/' | awk -v s=$section '$2 == s { print $5, $6 }')
        touch -r one time
        tr '\0' '\377' </dev/zero | dd of=one bs=1 seek=$((0x$1)) count=$((0x$2)) conv=notrunc status=none
        touch -r time one
    done
}

@test "cache: a quick run writes nothing; --cache=build does, for this user only" {
    "$FATHOM" addr one main >/dev/null
    # With a wrapper no run is quick.
    [ -n "$WRAPPER" ] || [ "$(indexes)" = "" ]
    "$FATHOM" addr --cache=build one main >/dev/null
    [ "$(indexes | wc -l)" = 1 ]
    [ "$(stat -c %a "$(indexes)")" = 600 ]
    [ "$(stat -c %a "$XDG_CACHE_HOME/fathom")" = 700 ]
    [[ "$(indexes)" == "$XDG_CACHE_HOME/fathom/$(readelf -n one | sed -n 's/.*Build ID: //p')-"*.fidx ]]
}

@test "cache: what is stored gives the answers of the debug information, without reading it" {
    "$FATHOM" cache build one
    "$FATHOM" addr one <addresses | cmp - truth
    erase_debug_info
    "$FATHOM" addr one <addresses | cmp - truth
    run "$FATHOM" addr --no-cache one main
    [[ "$output" != *one.c* ]]
    run "$FATHOM" addr --cache=off one main
    [[ "$output" != *one.c* ]]
}

@test "cache: what is stored saves inflating" {
    # Sections that would not become smaller stay as they are.
    for i in $(seq 60); do echo "int more$i(int x, int y) { int z = x * y; return z + $i; }" >>one.c; done
    gcc -g -O0 -gz -Wl,--build-id -o one one.c
    readelf -SW one | grep -q ' .debug_info .* C '
    nm one | awk '$2 == "T" || $2 == "t" { print "0x" $1 }' >addresses
    "$FATHOM" addr --no-cache one <addresses >truth || true
    "$FATHOM" cache build one
    erase_debug_info
    # Whoever inflated the sections now would have something to say.
    "$FATHOM" addr one <addresses 2>errors | cmp - truth
    [ ! -s errors ]
    "$FATHOM" addr --no-cache one <addresses >/dev/null 2>errors || true
    [ -s errors ]
}

@test "cache: another build of the program does not get the old index" {
    "$FATHOM" cache build one
    sed -i '1i\/* one line more */' one.c
    gcc -g -O0 -Wl,--build-id -o one one.c
    run "$FATHOM" addr one main
    [[ "${lines[0]}" == *"one.c:11:"* ]]
}

@test "cache: --no-cache neither reads nor writes" {
    "$FATHOM" addr --no-cache --cache=build one main >/dev/null
    [ "$(indexes)" = "" ]
}

@test "cache: a damaged index never answers wrongly: the debug information is read instead" {
    "$FATHOM" cache build one
    index=$(indexes)
    cp "$index" whole
    size=$(stat -c %s whole)
    for ((at = 0; at < size; at += 37 * ${EVERY:-1})); do
        cp whole "$index"
        printf '\xa5' | dd of="$index" bs=1 seek=$at conv=notrunc status=none
        "$FATHOM" addr one <addresses | cmp - truth
    done
    for ((at = 0; at < size; at += 211 * ${EVERY:-1})); do
        head -c $at whole >"$index"
        "$FATHOM" addr one <addresses | cmp - truth
    done
}

@test "cache: damage of any page, found at any time, leaves all answers as they are" {
    for i in $(seq 400); do
        echo "static inline __attribute__((always_inline)) int in$i(int x) { return x / ($i + 1); }"
        echo "int more$i(int x, int y) { int z = in$i(x) * y; return in$i(z) + $i; }"
    done >>one.c
    gcc -g -O0 -Wl,--build-id -o one one.c
    # Every third byte of the code: in one batch there are answers from before and after the damage.
    size=$((0x$(size -A -x one | awk '$1 == ".text" { print substr($2, 3) }')))
    start=0x$(readelf -SW one | sed 's/\[ */[/' | awk '$2 == ".text" { print $4 }')
    for ((at = 0; at < size; at += 3)); do printf '0x%x\n' $((start + at)); done >addresses
    "$FATHOM" addr --no-cache one <addresses >truth || true
    grep -q 'inlined into more200 ' truth
    "$FATHOM" cache build one
    index=$(indexes)
    cp "$index" whole
    pages=$((($(stat -c %s whole) + 4095) / 4096))
    [ $pages -ge 20 ]
    for ((page = 0; page < pages; page += ${EVERY:-1})); do
        cp whole "$index"
        printf '\xa5\x5a' | dd of="$index" bs=1 seek=$((page * 4096 + 777)) conv=notrunc status=none
        "$FATHOM" addr one <addresses | cmp - truth
    done
}

@test "cache: an index that others can write is not read" {
    "$FATHOM" cache build one
    erase_debug_info
    "$FATHOM" addr one <addresses | cmp - truth
    chmod 620 "$(indexes)"
    run "$FATHOM" addr one main
    [[ "${lines[0]}" == *" main+0x0" ]]
}

@test "cache: a link in the place of an index is not followed, and is replaced" {
    "$FATHOM" cache build one
    index=$(indexes)
    mv "$index" elsewhere
    ln -s "$PWD/elsewhere" "$index"
    cp elsewhere before
    "$FATHOM" addr one <addresses | cmp - truth
    "$FATHOM" cache build one
    [ ! -L "$index" ]
    cmp elsewhere before
}

@test "cache: many that build at the same time leave one whole index" {
    for _ in 1 2 3 4 5 6 7 8; do "$FATHOM" cache build one >/dev/null & done
    wait
    [ "$(find "$XDG_CACHE_HOME" -type f | wc -l)" = 1 ]
    "$FATHOM" addr one <addresses | cmp - truth
}

@test "cache: a directory that cannot be written is an error only for who asked" {
    : >"$XDG_CACHE_HOME"
    "$FATHOM" addr one <addresses | cmp - truth
    "$FATHOM" addr --cache=auto one <addresses | cmp - truth
    run "$FATHOM" cache build one
    [ "$status" = 2 ]
    [[ "${lines[0]}" == "fathom: $XDG_CACHE_HOME/fathom"*": "* ]]
}

@test "cache: path and clear" {
    [ "$("$FATHOM" cache path)" = "$XDG_CACHE_HOME/fathom" ]
    [ "$("$FATHOM" cache --cache-dir /somewhere path)" = /somewhere ]
    "$FATHOM" cache build one
    [ "$("$FATHOM" cache clear)" = "1 indexes removed" ]
    [ "$(indexes)" = "" ]
    [ "$("$FATHOM" cache --json clear)" = '{"removed":0}' ]
}

@test "cache: --json says what was stored" {
    "$FATHOM" cache --json build one >result
    python3 - "$(indexes)" <<'END_OF_SCRIPT'
import json, os, sys
r = json.load(open("result"))
assert r == {"module": "one", "bytes": os.path.getsize(sys.argv[1]), "functions": r["functions"], "complete": True}, r
assert r["functions"] == 2, r
END_OF_SCRIPT
}
