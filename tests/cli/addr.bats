#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

setup() {
    cd "$BATS_TEST_TMPDIR" || exit
}

@test "addr names a function at its start, as nm states it" {
    cat >one.c <<'END'
int twice(int x) { return 2 * x; }
int main(void) { return twice(3); }
END
    gcc -g -O0 -o one one.c
    address=$(nm one | awk '$3 == "twice" { print "0x" $1 }')
    run "$FATHOM" addr one "$address"
    [ "$status" = 0 ]
    [[ "$output" == *" twice+0x0 $PWD/one.c:1:18" ]]
}

@test "a missing file is one clear line and exit status 2" {
    run "$FATHOM" addr no-such-file 0x1
    [ "$status" = 2 ]
    [ "$output" = "fathom: no-such-file: No such file or directory (check the path)" ]
}
