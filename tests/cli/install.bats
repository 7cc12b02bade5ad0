#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What `meson install` leaves is what others build on.

setup_file() {
    DESTDIR=$BATS_FILE_TMPDIR/dest meson install -C "$BUILD" --no-rebuild --quiet
    prefix=$(meson introspect "$BUILD" --buildoptions |
        python3 -c 'import json, sys; print([o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"][0])')
    # It works in any folder, also in one that no loader and no compiler knows, with a blank in its name.
    root="$BATS_FILE_TMPDIR/a strange prefix"
    mv "$BATS_FILE_TMPDIR/dest$prefix" "$root"
    pc=$(find "$root" -name fathom.pc)
    PKG_CONFIG_PATH=$(dirname "$pc")
    lib=$(dirname "$PKG_CONFIG_PATH")
    examples=$BATS_TEST_DIRNAME/../../examples
    python=$(dirname "$(find "$root" -path '*-packages/fathom')")
    export root prefix lib examples python PKG_CONFIG_PATH
    cd "$BATS_FILE_TMPDIR" || exit
    printf 'int twice(int x) { return 2 * x; }\nint main(void) { return twice(3); }\n' >one.c
    gcc -g -O0 -o one one.c
}

setup() {
    cd "$BATS_FILE_TMPDIR" || exit
}

# compile WORD...: gcc with the WORDs, of which those of pkg-config are quoted for a shell.
compile() {
    eval "gcc $*"
}

needs_no_sanitizer() {
    ! nm "$lib/libfathom.a" 2>/dev/null | grep -q 'U __[atu]b*san_' || skip "a sanitizer would have to be linked, too"
}

@test "install: each header stands alone, in C11, C17 and C++17, without a warning" {
    for header in "$root"/include/fathom/*.h; do
        echo "#include <fathom/$(basename "$header")>" >alone.c
        for standard in c11 c17; do
            gcc -std=$standard -Wall -Wextra -pedantic -Werror -I "$root/include" -fsyntax-only alone.c
        done
        g++ -std=c++17 -Wall -Wextra -pedantic -Werror -x c++ -I "$root/include" -fsyntax-only alone.c
    done
}

@test "install: a program built by pkg-config against the shared library runs" {
    needs_no_sanitizer
    compile -Wall -Werror -o shared "$examples/symbolize.c" "$(pkg-config --cflags --libs fathom)"
    address=$(nm one | awk '$3 == "twice" { print $1 }')
    run env LD_LIBRARY_PATH="$lib" ./shared one "$address"
    [ "$status" = 0 ]
    [[ "${lines[0]}" == *" twice+0x0" ]]
    [ "${lines[1]}" = "$(printf '\ttwice at %s/one.c:1' "$PWD")" ]
    run env LD_LIBRARY_PATH="$lib" ./shared no-such-file 1
    [ "$status" = 2 ]
    [ "$output" = "no-such-file: No such file or directory" ]
}

@test "install: a program built by pkg-config against the static library runs" {
    [ -f "$lib/libfathom.a" ]
    needs_no_sanitizer
    # libfathom.so is hidden from the linker, so that only the archive is left.
    mkdir -p archive
    cp "$lib/libfathom.a" archive
    compile -o static "$examples/symbolize.c" "$(pkg-config --cflags fathom)" -L archive \
        "$(pkg-config --static --libs fathom | sed 's/-L[^ ]*strange[^ ]* prefix[^ ]*//')"
    run ./static one "$(nm one | awk '$3 == "twice" { print $1 }')"
    [ "$status" = 0 ]
    [[ "${lines[0]}" == *" twice+0x0" ]]
}

@test "install: a handler says where its program has crashed, shared and static" {
    needs_no_sanitizer
    compile -g -O2 -Wall -Wextra -Werror -o crash "$examples/crash.c" "$(pkg-config --cflags --libs fathom)"
    run env LD_LIBRARY_PATH="$lib" ./crash
    [ "$status" = 1 ]
    [[ "${lines[0]}" == SIG*" at main+0x"* ]]
    trap=$(grep -n __builtin_trap "$examples/crash.c" | cut -d: -f1)
    [[ "${lines[1]}" == "  main "*"/crash.c:$trap" ]]
    [ -f "$lib/libfathom.a" ]
    mkdir -p archive
    cp "$lib/libfathom.a" archive
    compile -g -O2 -o crash_static "$examples/crash.c" "$(pkg-config --cflags fathom)" -L archive \
        "$(pkg-config --static --libs fathom | sed 's/-L[^ ]*strange[^ ]* prefix[^ ]*//')"
    run ./crash_static
    [ "$status" = 1 ]
    [[ "${lines[1]}" == "  main "*"/crash.c:$trap" ]]
}

@test "install: a program that logs its calls, built by pkg-config with the path of its libraries" {
    needs_no_sanitizer
    compile -fpatchable-function-entry=18,16 -o traced one.c "$(pkg-config --libs fathom-trace)" "'-Wl,-rpath,$lib'"
    run ./traced --ftrace
    [ "$status" = 6 ]
    [[ "$output" == *"&main"*"&twice"* ]]
}

@test "install: a project of CMake, which finds the libraries in any folder" {
    needs_no_sanitizer
    project=$BATS_TEST_DIRNAME/cmake
    cmake -G Ninja -S "$project" -B made "-DCMAKE_PREFIX_PATH=$root" "-DEXAMPLES=$examples" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=gcc
    cmake --build made
    run made/asks one "$(nm one | awk '$3 == "twice" { print $1 }')"
    [ "$status" = 0 ]
    [[ "${lines[0]}" == *" twice+0x0" ]]
    [ "${lines[1]}" = "$(printf '\ttwice at %s/one.c:1' "$PWD")" ]
    run made/logs --ftrace
    [ "$status" = 6 ]
    [[ "$output" == *"&main"*"&twice"* ]]
    # It has no handler of its own: the library that it is linked with reports.
    run made/dies
    [[ "$output" == *" crashed by SIG"*" main+0x"* ]]
    # What is not there is named: another version, and a library that nobody has.
    sed 's/fathom 0.1 REQUIRED/fathom 0.2 REQUIRED/' "$project/CMakeLists.txt" >CMakeLists.txt
    run cmake -G Ninja -S . -B refused "-DCMAKE_PREFIX_PATH=$root"
    [ "$status" != 0 ]
    [[ "$output" == *"requested version \"0.2\""* ]]
    sed 's/COMPONENTS fathom/COMPONENTS depth/' "$project/CMakeLists.txt" >CMakeLists.txt
    run cmake -G Ninja -S . -B refused "-DCMAKE_PREFIX_PATH=$root"
    [ "$status" != 0 ]
    [[ "$output" == *"has no library for"*"fathom::depth"* ]]
}

@test "install: a program's system calls without ptrace: --way=dispatch" {
    needs_no_sanitizer
    run "$root/bin/fathom" trace --way=dispatch --no-functions -- /bin/echo 'said so'
    [ "$status" = 0 ]
    [[ "$output" == *"said so"* ]]
    [[ "$output" == *"write(1, "*"said so"*", 8) → 8"* ]]
}

@test "install: Python traces itself" {
    needs_no_sanitizer
    cat >traced.py <<'END'
import fathom
with fathom.ftrace("--only getppid"):
    import os
    os.getppid()
print("traced")
END
    run env PYTHONPATH="$python" /usr/bin/python3 traced.py
    [ "$status" = 0 ]
    [[ "$output" == *"&getppid"*"traced"* ]]
}

@test "install: the Python module finds the library of its own prefix, whose names it answers; all its files are there" {
    needs_no_sanitizer
    cat >named.py <<'END'
import sys
import fathom
with fathom.open(sys.argv[1]) as target:
    print(target.addr(target.address("twice")).symbol)
with open("/proc/self/maps") as maps:
    print(*{line.split(None, 5)[5].strip() for line in maps if "libfathom" in line})
END
    run env -u LD_LIBRARY_PATH PYTHONPATH="$python" /usr/bin/python3 named.py one
    [ "$status" = 0 ]
    [ "${lines[0]}" = twice ]
    [ "${lines[1]}" = "$(realpath "$lib/libfathom.so")" ]
    cd "$python/fathom"
    rm -rf __pycache__
    run diff <(ls) <(cd "$BATS_TEST_DIRNAME/../../python/fathom" && { ls; echo _fathom.abi3.so; } | grep -v meson.build | sort)
    [ "$output" = "" ]
}

@test "install: each installed file is in one Debian package, and each list of a package names files that are there" {
    needs_no_sanitizer
    lists=$BATS_TEST_DIRNAME/../../packaging/debian
    map=$BATS_TEST_DIRNAME/../../src/fathom.map
    run python3 "$BATS_TEST_DIRNAME/package_lists.py" "$root" "$lists" "$map"
    [ "$output" = "" ]
    [ "$status" = 0 ]
    # The test can fail: a file more, one that two packages have, a pattern of nothing.
    touch "$root/bin/stray"
    cp -r "$lists" lists
    echo usr/bin/fathom >>lists/libfathom-tools-dev.install
    echo usr/bin/nothing >>lists/fathom-tools.install
    run python3 "$BATS_TEST_DIRNAME/package_lists.py" "$root" lists "$map"
    rm "$root/bin/stray"
    [[ "$output" == *"bin/stray: is in 0 packages"* ]]
    [[ "$output" == *"bin/fathom: is in 2 packages"* ]]
    [[ "$output" == *"bin/nothing: no such file is installed"* ]]
}

@test "install: the wheel has the library inside, and works where nothing else of fathom is" {
    needs_no_sanitizer
    cp -r "$BATS_TEST_DIRNAME/../../python" wheel_source
    cd wheel_source
    /usr/bin/python3 -m pip wheel --quiet --no-build-isolation --no-deps --no-index --wheel-dir .. .
    cd ..
    /usr/bin/python3 -m venv --system-site-packages --without-pip own
    /usr/bin/python3 -m pip --python own/bin/python install --quiet --no-index --no-deps fathom_tools-*-abi3-linux_*.whl
    cat >wheel.py <<'END'
import sys
import fathom
with fathom.open(sys.argv[1]) as target:
    answer = target.addr([target.address("twice")])[0]
    print(answer.symbol, answer.frames[0].line)
with open("/proc/self/maps") as maps:
    print(*{line.split(None, 5)[5].strip() for line in maps if "libfathom" in line})
END
    run own/bin/python wheel.py one
    [ "$status" = 0 ]
    [ "${lines[0]}" = "twice 1" ]
    [[ "${lines[1]}" == "$(realpath own)"/lib/python3*/site-packages/fathom/libfathom.so.0 ]]
}

@test "install: a schema of each form of JSON Lines, by the version" {
    version=$("$root/bin/fathom" --version | tr -dc '0-9.')
    cd "$root/share/fathom/schema"
    # Names end otherwise, which changes their order.
    run diff <(printf '%s\n' * | sort) <(cd "$BATS_TEST_DIRNAME/../../docs/schema" && printf '%s\n' * | sed "s/\.json$/-$version.json/" | sort)
    [ "$output" = "" ]
    for schema in *; do
        [ "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["$id"])' "$schema")" = "urn:fathom:schema:${schema%-*}:$version" ]
    done
}

@test "install: uninstall leaves nothing of it, and all else" {
    DESTDIR=$BATS_FILE_TMPDIR/left meson install -C "$BUILD" --no-rebuild --quiet
    left=$BATS_FILE_TMPDIR/left
    echo mine >"$left$prefix/bin/mine"
    # Python has stored what it compiled.
    find "$left" -path '*-packages/fathom' -exec mkdir {}/__pycache__ \; -exec touch {}/__pycache__/one.pyc \;
    "$BATS_TEST_DIRNAME/../../tools/uninstall" "$BUILD" "$left$prefix"
    run find "$left" ! -type d
    [ "$output" = "$left$prefix/bin/mine" ]
    run find "$left" -name '*fathom*'
    [ "$output" = "" ]
}

@test "install: the examples are as short as they are said to be" {
    [ "$(wc -l <"$examples/symbolize.c")" -lt 45 ]
    [ "$(wc -l <"$examples/crash.c")" -lt 40 ]
}

@test "install: Python's cffi reads the headers as they are and asks a batch of arrays" {
    needs_no_sanitizer
    address=$(nm one | awk '$3 == "twice" { print $1 }')
    run /usr/bin/python3 "$BATS_TEST_DIRNAME/foreign.py" "$root/include" "$lib/libfathom.so" "$PWD/one" twice "$address"
    [ "$output" = "" ]
    [ "$status" = 0 ]
}

@test "install: bindgen reads the headers as they are: no bit-field, no bool, nothing opaque" {
    printf '#include <fathom/fathom.h>\n#include <fathom/compat.h>\n' >all.h
    bindgen --no-rustfmt-bindings all.h -- -I "$root/include" >all.rs
    for item in 'pub fn fathom_lookup' 'pub fn fathom_symbolize' 'pub fn fathom_self_lookup' \
        'pub struct fathom_answer ' 'pub struct fathom_frame ' 'pub struct fathom_instruction '; do
        grep -q "$item" all.rs
    done
    # Opaque by intent are the objects that calls hand out; structs of the interface are not.
    for struct in fathom_answer fathom_frame fathom_pc fathom_match fathom_instruction fathom_options; do
        ! tr '\n' ' ' <all.rs | grep -q "pub struct $struct *{ *_unused"
    done
    run grep -c 'BitfieldUnit\|: bool' all.rs
    [ "$output" = 0 ]
}

@test "install: the shared library exports versioned fathom_ names and nothing else" {
    nm -D --defined-only "$lib/libfathom.so" | awk '$2 != "A" { print $3 }' >names
    [ "$(wc -l <names)" -gt 20 ]
    # GDB prescribes the names of two; by a third, other processes find the registry (docs/jit.md).
    run grep -v '^\(fathom_[a-z_]*\|__jit_debug_descriptor\|__jit_debug_register_code\|__fathom_jit_published\)@@FATHOM_[0-9.]*$' names
    [ "$output" = "" ]
    # All that a header declares is there, and only that.
    sed 's/@@.*//' names | grep '^fathom_' | sort >exported
    cat "$root"/include/fathom/*.h | tr '\n' ' ' | grep -o 'FATHOM_API[^;]*;' |
        grep -o 'fathom_[a-z0-9_]*(' | tr -d '(' | sort -u >declared
    run diff declared exported
    [ "$output" = "" ]
}

@test "install: other tools find the command by their own names" {
    for name in addr2line llvm-addr2line llvm-symbolizer c++filt nm objdump; do
        link=$(find "$root" -path "*/libexec/fathom/$name")
        [ "$(realpath "$link")" = "$(realpath "$root/bin/fathom")" ]
    done
}

@test "install: a manual page is there for the command and each verb, and all are sound" {
    for page in fathom.1 fathom-addr.1 fathom-addr2line.1 fathom-llvm-symbolizer.1 fathom-cache.1 fathom-doctor.1 fathom-filter.1 fathom-find.1 fathom-jit-check.1 fathom-record.1 fathom-report.1 fathom-resolve.1 fathom-store.1 fathom-strace.1 fathom-top.1 \
        libfathom.3 fathom_cache.3 fathom_compat.3 fathom_crash.3 fathom_disasm.3 fathom_filter.3 fathom_find.3 fathom_format.3 fathom_hook.3 \
        fathom_jit.3 fathom_jit_check.3 fathom_limits.3 fathom_profile.3 fathom_record.3 fathom_annotate.3 fathom_report.3 fathom_resolve.3 fathom_self.3 fathom_self_format.3 fathom_session.3 fathom_snapshot.3 fathom_source.3 fathom_store.3 fathom_symbolize.3 fathom_target.3 fathom_trace.3 fathom_value.3; do
        found=$(find "$root" -name "$page*")
        [ -f "$found" ]
        if command -v mandoc >/dev/null; then
            # Pages of other packages need not be here.
            run bash -c "mandoc -T lint -W warning '$found' | grep -v 'referenced manual not found'"
            [ "$output" = "" ] || { echo "$output"; false; }
        fi
    done
}

@test "install: each public function has its place in a manual page, whose example compiles" {
    mkdir -p examples_of_pages
    run python3 "$BATS_TEST_DIRNAME/manual.py" "$root/include/fathom" "$BATS_TEST_DIRNAME/../../docs/man" examples_of_pages
    [ "$output" = "" ]
    [ "$status" = 0 ]
    [ "$(ls examples_of_pages | wc -l)" = 30 ]
    for example in examples_of_pages/*.c; do
        compile -Wall -Wextra -Werror -o "${example%.c}" "$example" "$(pkg-config --cflags --libs fathom)"
    done
}

@test "install: completion is sound shell, and knows every verb and option of the help" {
    bash -n "$(find "$root" -path '*bash-completion*' -name fathom)"
    complete=$(cat "$(find "$root" -path '*bash-completion*' -name fathom)")
    zsh=$(cat "$(find "$root" -name _fathom)")
    for word in $("$FATHOM" --help | awk '/^  [a-z]/ { print $1 }') \
        $("$FATHOM" addr --help | grep -o '^ .*--[a-z-]*' | grep -o -- '--[a-z-]*'); do
        [[ "$complete" == *"$word"* ]] || { echo "bash completion lacks $word"; false; }
        [[ "$zsh" == *"$word"* ]] || { echo "zsh completion lacks $word"; false; }
    done
}
