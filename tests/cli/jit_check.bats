#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The verb jit-check: code that writes a reserved register, planted and compiled.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || exit
    programs=$BATS_TEST_DIRNAME/programs
    # -nostdlib: nothing but what is written there.
    gcc -nostdlib -static -Wl,-e,by_mov -o planted "$programs/planted.s"
    gcc -c -o planted.o "$programs/planted.s"
    how="-O2 -fomit-frame-pointer -fcf-protection=none -c $programs/stencils.c"
    # shellcheck disable=SC2086
    {
        gcc $how -ffixed-rbp -o fixed.o
        gcc $how -o plain.o
        clang $how -o clang.o
    }
    aarch64-linux-gnu-gcc -O2 -fomit-frame-pointer -ffixed-x29 -c -o arm-fixed.o "$programs/stencils.c"
    aarch64-linux-gnu-gcc -O2 -c -o arm-plain.o "$programs/stencils.c"
}

setup() {
    cd "$BATS_FILE_TMPDIR" || exit
}

@test "jit-check: each planted write is found, where it is, and nothing that only reads" {
    run "$FATHOM" jit-check planted
    [ "$status" = 1 ]
    # By nm: each is one byte behind the start of its function.
    nm planted | while read -r address _ name; do
        [[ "$name" != by_* ]] || echo "$name $((0x$address + 1))"
    done | sort >expected
    [ "$(wc -l <expected)" = 9 ]
    sed 's/^\(0x[0-9a-f]*\) \([a-z_]*\)+0x1 .*/\2 \1/' <<<"$output" |
        while read -r name address; do echo "$name $((address))"; done | sort >found
    diff expected found
    [ "$(grep -c 'writes it' <<<"$output")" = 8 ]
    grep -q 'by_bad_code+0x1 .*(cannot be decoded)$' <<<"$output"
    run "$FATHOM" jit-check planted reads_only
    [ "$status" = 0 ]
    [ "$output" = "" ]
}

@test "jit-check: objects of -ffixed-rbp pass, those that take the register do not, as objdump has them" {
    run "$FATHOM" jit-check fixed.o
    [ "$status" = 0 ]
    [ "$output" = "" ]
    for object in plain.o clang.o; do
        run "$FATHOM" jit-check "$object"
        [ "$status" = 1 ]
        # The first instruction whose last operand is the register, or that pops it.
        address=${output%% *}
        [ "$((address))" = "$(objdump -d --no-show-raw-insn "$object" | sed -n 's/^ *\([0-9a-f]*\):\t\(.*,%[re]bp\|pop *%rbp\)$/\1/p' |
            head -n 1 | xargs -I '{}' printf '%d' '0x{}')" ]
        [[ "$output" == *"work+"* ]]
    done
}

@test "jit-check: aarch64, other registers, offsets of sections, JSON" {
    run "$FATHOM" jit-check arm-fixed.o
    [ "$status" = 0 ]
    run "$FATHOM" jit-check arm-plain.o
    [ "$status" = 1 ]
    [[ "${lines[0]}" == *"work+"*"mov    x29, sp (writes it)" ]]
    run "$FATHOM" jit-check --register x19 arm-fixed.o twice
    [ "$status" = 0 ]
    run "$FATHOM" jit-check --register rbx planted
    [ "$status" = 1 ]
    [[ "${lines[0]}" == *"by_xchg+0x1 xchgq  %rbp,%rbx (writes it)" ]]
    run "$FATHOM" jit-check --json planted.o by_pop
    [ "$status" = 1 ]
    [ "$(python3 -c 'import json, sys
record = json.load(sys.stdin)
print(*(record[key] for key in ("function", "offset", "bytes", "register", "reason")))' <<<"$output")" = "by_pop 0x1 5d rbp writes it" ]
}

@test "jit-check: what it cannot do is said" {
    run "$FATHOM" jit-check planted nowhere
    [ "$status" = 1 ]
    [[ "${lines[0]}" == "nowhere ?? "* ]]
    run "$FATHOM" jit-check --json planted nowhere
    [ "$status" = 1 ]
    [ "$(python3 -c 'import json, sys
record = json.load(sys.stdin)
print(*(record[key] for key in ("input", "address", "function", "text", "register", "reason")))' <<<"${lines[0]}")" = "nowhere None None None rbp no-such-symbol" ]
    run "$FATHOM" jit-check --register cs planted
    [ "$status" = 2 ]
    [ "$output" = "fathom: --register: is no general register of x86 or aarch64 (rbp, r12 or x29)" ]
    run "$FATHOM" jit-check $$
    [ "$status" = 2 ]
    [[ "$output" == *"no FUNCTION is given"* ]]
}

@test "jit-check: a range of a process that is not mapped is said, and the others are looked at" {
    # Nothing is mapped below vm.mmap_min_addr.
    run "$FATHOM" jit-check $$ 0x10..0x20 0x20..0x30
    [ "$status" = 1 ]
    [ "$output" = "0x10 ?? (unmapped)
0x20 ?? (unmapped)" ]
    run "$FATHOM" jit-check --json $$ 0x10..0x20
    [ "$status" = 1 ]
    [ "$(python3 -c 'import json, sys
record = json.load(sys.stdin)
print(*(record[key] for key in ("input", "address", "bytes", "reason")))' <<<"$output")" = "0x10..0x20 0x10 None unmapped" ]
}
