#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What tests/addr2line does not reach: options, errors and input, the same as the installed GNU
# addr2line treats them.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || exit
    mkdir ours
    ln -s "$FATHOM" ours/addr2line
    cat >one.c <<'END'
int variable = 3;
int twice(int x) { return 2 * x; }
int mangled(int x) __asm__("_ZN1a1bEi");
int mangled(int x) { return x; }
int dlang(int x) __asm__("_D1a1bFiZv");
int dlang(int x) { return x; }
int rust(int x) __asm__("_RNvC1a1b");
int rust(int x) { return x; }
int dotted(int x) __asm__("..$_ZN1a1cEi");
int dotted(int x) { return x; }
int globals(int x) __asm__("_GLOBAL__I_a");
int globals(int x) { return x; }
int main(void) { return twice(3); }
END
    gcc -gdwarf-4 -O0 -o one one.c
    gcc -gdwarf-4 -O0 -c -o one.o one.c
    nm one | awk '$3 == "twice" { print $1 }' >address
}

setup() {
    addr2line --version | head -1 | grep -q ' 2\.4[0-4]' || skip "the installed addr2line is not version 2.40 to 2.44"
    cd "$BATS_FILE_TMPDIR" || exit
    address=$(cat address)
}

# Both tools get the same arguments, and what stands in the file input: they answer the same.
same() {
    [ -f input ] || : >input
    gnu_status=0
    our_status=0
    addr2line "$@" <input >gnu.out 2>gnu.err || gnu_status=$?
    PATH=$PWD/ours:$PATH addr2line "$@" <input >our.out 2>our.err || our_status=$?
    diff gnu.out our.out
    diff gnu.err our.err
    echo "status $gnu_status and $our_status"
    [ "$gnu_status" = "$our_status" ]
}

teardown() {
    rm -f input
}

@test "addr2line: as a verb it names the function at an address, as nm states it" {
    run "$FATHOM" addr2line -f -e one "$address"
    [ "$status" = 0 ]
    [ "${lines[0]}" = twice ]
    [ "${lines[1]}" = "$PWD/one.c:2" ]
}

@test "addr2line: any name that ends with addr2line is this tool" {
    ln -sf "$FATHOM" x86_64-linux-gnu-addr2line
    run ./x86_64-linux-gnu-addr2line -e one "$address"
    [ "$output" = "$PWD/one.c:2" ]
}

@test "addr2line: long options, also shortened, mean what GNU's mean" {
    same --exe=one --functions --inlines --addresses --pretty-print --basenames "$address"
    same --exe one --func --basen "$address"
    same --exe one --section=.text --demangle --recurse-limit --no-recursion-limit 10
    same -e one -b elf64-x86-64 --target=elf64-x86-64 "$address"
}

@test "addr2line: options may stand behind addresses" {
    same "$address" -e one -f
    same -e one -- "$address"
}

@test "addr2line: numbers are hexadecimal, garbage is 0, symbols are found" {
    same -a -f -e one -- "$address" "0x$address" "0X$address" " $address" "+$address" "${address}zz" \
        "" zz -1 , 0x ffffffffffffffff fffffffffffffffffffff 123456789abcdef0
    same -a -f -e one twice twice+1 twice+0x2 "twice + 3" "twice +010" "main " twic twice+zz variable
    same -a -f -e one abc def abc+1 beef+2 .text _ZN1a1bEi "a::b(int)" "a::b(int)+1"
    same -a -f -e one.o twice+1 main
    same -a -f -j .text -e one.o 0 twice
}

@test "addr2line: standard input: lines of every kind" {
    printf '%s\n\n  %s  junk\n%s\r\nmain\n,\n%s' "$address" "$address" "$address" "$address" >input
    same -a -f -e one
    printf '%0120d\n%s\n' 0 "$address" >input
    same -a -f -e one
    printf '%099d\n%s\n%098d\n' 1 "$address" 2 >input
    same -a -f -e one
    printf '11\00022\n%s\n' "$address" >input
    same -a -f -e one
    : >input
    same -a -f -e one
}

@test "addr2line: standard input: garbage, a line of a megabyte, NULs, numbers beyond all bounds" {
    for seed in 1 2 3; do
        python3 -c "import random, sys
random.seed($seed)
sys.stdout.buffer.write(random.randbytes(50000))" >input
        same -afi -e one
        tr '\000-\377' '0-9a-fx+\- \t\r\n\n.$_main\000[twice*]' <input >text
        mv text input
        same -afipC -e one
        same -a -j .text -e one.o
    done
    for byte in 1 ' ' m '\0'; do
        { head -c 1000000 /dev/zero | tr '\0' "$byte"; printf '%s\n%s' "$address" "$address"; } >input
        same -af -e one
    done
    printf '%s\n' ffffffffffffffff fffffffffffffffff 0x1111111111111111111111111111111111111111 -1 \
        main+99999999999999999999999 main+-5 main+0xffffffffffffffff -main +5 0x 0xg >input
    same -af -e one
    same -af -e one.o
}

@test "addr2line: formats (-b): only names that no format has are refused" {
    for format in elf64-x86-64 elf32-i386 elf64-little pe-x86-64 srec default x86_64-linux-gnu nonsense '' ELF64-x86-64; do
        same -f -b "$format" -e one "$address"
        same -f "--target=$format" -e no-such-file "$address"
    done
}

@test "addr2line: what cannot be written or read is said" {
    run bash -c '"$FATHOM" addr2line -e one "$0" 2>&1 >/dev/full' "$address"
    [ "$status" = 1 ]
    [ "$output" = "fathom: standard output: No space left on device" ]
    run bash -c '"$FATHOM" addr2line -e one "$0" 2>&1 >&-' "$address"
    [ "$status" = 1 ]
    [ "$output" = "fathom: standard output: Bad file descriptor" ]
    run bash -c '"$FATHOM" addr2line -e one 2>&1 </'
    [ "$status" = 2 ]
    [ "$output" = "fathom: standard input: Is a directory" ]
}

@test "addr2line: @FILE holds options and addresses" {
    printf -- '-f "-e" o"n"e\n%s' "$address" >words
    same @words
    printf -- "-a @words '%s' \\\\%s" "$address" "$address" >more
    same @more
    printf '  \n' >blank
    same -e one "$address" @blank
    same -e one @no-such-file "$address"
    mkdir -p folder
    same -e one @folder
}

@test "addr2line: @FILE that leads to itself ends" {
    echo '@loop @loop' >loop
    same -e one @loop
}

@test "addr2line: files that cannot be read: GNU's words and exit codes" {
    echo text >text
    : >empty
    mkdir -p folder
    ar rc archive.a one.o
    same "$address"
    same -e no-such-file "$address"
    same -e text "$address"
    same -e empty "$address"
    same -e folder "$address"
    same -e /dev/null "$address"
    same -e one/two "$address"
    same -e archive.a "$address"
    same -e one -j .no-such-section 1
    same -e one --demangle=no-such-style "$address"
}

@test "addr2line: a file without permission" {
    open=$(mktemp -d)
    chmod 755 "$open"
    cp one "$FATHOM" "$open"
    mv "$open/fathom" "$open/addr2line"
    chmod 0 "$open/one"
    # Root may read everything.
    as=$([ "$(id -u)" != 0 ] || echo setpriv --reuid=65534 --clear-groups)
    cd "$open"
    run $as addr2line -e one "$address"
    gnu_status=$status
    gnu_output=$output
    PATH=$open:$PATH run $as addr2line -e one "$address"
    rm -rf "$open"
    [ "$output" = "$gnu_output" ]
    [ "$status" = "$gnu_status" ]
}

@test "addr2line: an unknown option: the same first line, and status 1" {
    for option in --bogus -x -e --functions=1; do
        run addr2line $option
        [ "$status" = 1 ]
        first=${lines[0]}
        PATH=$PWD/ours:$PATH run addr2line $option
        [ "$status" = 1 ]
        [ "${lines[0]}" = "$first" ]
    done
}

@test "addr2line: help and version go to standard output, with status 0" {
    for option in -h -H --help; do
        run "$FATHOM" addr2line $option
        [ "$status" = 0 ]
        [ "${lines[0]}" = "Usage: addr2line [OPTION]... [ADDRESS]..." ]
    done
    for option in -v -V --version; do
        run "$FATHOM" addr2line $option
        [ "$status" = 0 ]
        [[ "$output" == "fathom addr2line "* ]]
    done
}

@test "addr2line: demangling styles" {
    for style in auto gnu-v3 java gnat dlang rust none; do
        same -f -e one "--demangle=$style" main _ZN1a1bEi _D1a1b6__initZ _RNvC1a1b '..$_ZN1a1cEi' _GLOBAL__I_a
    done
    same -f -C -e one main _ZN1a1bEi _D1a1b6__initZ _RNvC1a1b '..$_ZN1a1cEi' _GLOBAL__I_a
}

# Exact addresses, one by one: each answer is there before the next question is asked.
@test "addr2line: answers come at once: it serves as a co-process" {
    coproc "$FATHOM" addr2line -f -e one
    for symbol in twice main twice; do
        line=$(grep -n "^int $symbol(" one.c | cut -d: -f1)
        start=$(nm one | awk -v s=$symbol '$3 == s { print $1 }')
        echo "$start" >&"${COPROC[1]}"
        read -r -t 10 name <&"${COPROC[0]}"
        read -r -t 10 place <&"${COPROC[0]}"
        [ "$name" = "$symbol" ]
        [ "$place" = "$PWD/one.c:$line" ]
    done
    # perf ends each question with a line that is no address, and knows the answer to it.
    printf '%s\n,\n' "$address" >&"${COPROC[1]}"
    for expected in twice "$PWD/one.c:2" '??' '??:0'; do
        read -r -t 10 answer <&"${COPROC[0]}"
        [ "$answer" = "$expected" ]
    done
}

@test "addr2line: a reader that has seen enough ends it quietly" {
    yes "$address" | head -100000 >input
    "$FATHOM" addr2line -e one <input 2>err | head -1 >first
    [ "$(cat first)" = "$PWD/one.c:2" ]
    [ ! -s err ]
}

