# SPDX-License-Identifier: MIT
# bash completion for fathom(1)

_fathom()
{
    local current=${COMP_WORDS[COMP_CWORD]}
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    local verbs="addr addr2line cache disasm doctor filter find jit-check llvm-addr2line llvm-symbolizer record report resolve snapshot stack store strace top trace"
    local common="--help"
    local colours="--color=always --color=never --color=auto"
    local files="--debug-dir --sysroot --debuginfod --debuginfod-timeout --file-timeout --memory"
    local cached="--no-cache --cache-dir"
    local sources="--source --source-dir"
    local own=""

    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$verbs help --help --version" -- "$current")
        return
    fi
    case $previous in
    -e)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    -p)
        mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$current")
        return
        ;;
    --cache-dir | --debug-dir | --module-dir | --source-dir | --sysroot)
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return
        ;;
    --store)
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return
        ;;
    --by)
        mapfile -t COMPREPLY < <(compgen -W "function line module thread process reason cgroup waker" -- "$current")
        return
        ;;
    --time)
        mapfile -t COMPREPLY < <(compgen -W "cpu waiting wall" -- "$current")
        return
        ;;
    --per)
        mapfile -t COMPREPLY < <(compgen -W "cpu wall" -- "$current")
        return
        ;;
    --frames)
        mapfile -t COMPREPLY < <(compgen -W "merged script native all" -- "$current")
        return
        ;;
    --format | --output-format)
        mapfile -t COMPREPLY < <(compgen -W "tsv json binary" -- "$current")
        return
        ;;
    --chunks)
        mapfile -t COMPREPLY < <(compgen -W "in both" -- "$current")
        return
        ;;
    --style)
        mapfile -t COMPREPLY < <(compgen -W "names tool" -- "$current")
        return
        ;;
    --memory | --threads | --debuginfod-timeout | --file-timeout | -j | --section | -b | --target | -r | --read | --limit | --thread | -w | --wait | --tid | --max-frames | --stop-timeout | --max-rate | --top | --min | --input-columns | --columns | --join | --deadline | --forget | --store-timeout | --callers | --callees | --from | --to) return ;;
    esac
    case ${COMP_WORDS[1]} in
    addr)
        own="--section --decimal --return-addresses --names-only --no-demangle --cache=auto
            --cache=off --cache=build --json --threads --exe --unverified-files $cached $colours $sources $files"
        ;;
    resolve)
        own="--input-columns --columns --format --output-format --chunks --return-addresses --file-offsets --join --nulls --names-only
            --no-demangle --module-dir --store --store-put --store-timeout --deadline --forget --stats --json --threads $cached $files"
        ;;
    filter) own="--all --maps --module-dir --store --style --json --threads --exe --unverified-files $cached $colours $sources $files" ;;
    find)
        own="--read --inlined --regex --literal --exported --limit --first --thread --wait --json
            --threads --exe --unverified-files $colours $files"
        ;;
    cache)
        own="--json --threads --cache-dir $files"
        if [ "$COMP_CWORD" -eq 2 ] && [[ "$current" != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "build clear path" -- "$current")
            return
        fi
        ;;
    disasm)
        own="--intel --bytes --no-lines --no-demangle --section --decimal --json --threads --exe --unverified-files $cached
            $colours $sources $files"
        ;;
    doctor) own="--json --exe --unverified-files $cached $colours $files" ;;
    jit-check) own="--register --section --decimal --frames-only --need-rules --slice --log --json --threads --exe --unverified-files
        $cached $files" ;;
    record) own="--output --frequency --event --pid --all --method=perf-events --method=polling --no-off-cpu --for --max-size --quiet --memory" ;;
    report)
        own="--by --time --top --min --annotate --hot-first --all-lines --intel --source-dir --bottom-up --callers --callees --from --to --only --under --not --frames --diff --per --export --output
            --no-source --names-only --no-demangle --json --threads $cached $colours $files"
        ;;
    snapshot) own="--stacks --stop-timeout --stop=auto --stop=never --stop=all --exe --unverified-files $files" ;;
    stack)
        own="--tid --max-frames --frames --stop-timeout --stop=auto --stop=never --stop=all --fold --kernel --samples --every --registers --rules --rank --merge
            --names-only --no-demangle --json
            --threads --exe --unverified-files $cached $colours $sources $files"
        ;;
    store)
        own="--store-timeout --json --threads $cached $files"
        if [ "$COMP_CWORD" -eq 2 ] && [[ "$current" != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "build check get put" -- "$current")
            return
        fi
        ;;
    top) own="--all --pid --frequency --interval --window --count --top --program-output --method=perf-events --method=polling --frames --names-only --json --threads
        $cached $colours $files" ;;
    trace)
        own="--sites --calls --max-rate --for --read --diff --log --export --count --tree --last --at --only --under --not --depth --thread --exits
            --syscalls --no-functions --stacks --string-limit --path --durations --inject --method --clock --lossy --no-children --no-fold --json --threads --exe --unverified-files $files"
        ;;
    strace)
        common=""
        own="--trace= --trace-path= --status= --signal= --inject= --fault= --read= --write= --abbrev= --verbose= --raw= --seccomp-bpf --method= --output= --follow-forks --attach= --string-limit= --summary --summary-only
            --summary-wall-clock --summary-sort-by= --summary-columns= --syscall-times --relative-timestamps --instruction-pointer --stack-traces --syscall-number --no-abbrev
            --decode-fds= --columns= --successful-only --failed-only --env= --user= --quiet= --help --version"
        ;;
    help)
        mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current")
        return
        ;;
    addr2line)
        common=""
        own="--addresses --basenames --demangle --demangle=auto --demangle=dlang
            --demangle=gnat --demangle=gnu-v3 --demangle=java --demangle=none --demangle=rust
            --exe --functions --inlines --no-recurse-limit --pretty-print --recurse-limit
            --section --target --help --version"
        ;;
    llvm-addr2line | llvm-symbolizer)
        common=""
        own="--obj= --build-id= --inlines --no-inlines --functions=linkage --functions=short
            --functions=none --demangle --no-demangle --output-style=LLVM --output-style=GNU
            --output-style=JSON --pretty-print --print-address --verbose --basenames
            --relativenames --print-source-context-lines= --adjust-vma=
            --debug-file-directory= --fallback-debug-path= --debuginfod --no-debuginfod
            --help --version"
        ;;
    esac
    case $current in
    -*) mapfile -t COMPREPLY < <(compgen -W "$own $common" -- "$current") ;;
    [0-9]*) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$current") ;;
    k*) mapfile -t COMPREPLY < <(compgen -f -W kernel -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    esac
}

complete -o filenames -F _fathom fathom
