#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Prints where members are in the structures of interpreters, by version, as the tables of src/host/interpreters have them: what
offsetof() says in the headers of each version. Each FOLDER has one version's headers: of PHP .../include/php/20220829, of
php8.2-dev; of Lua the folder src of its sources (apt-get source lua5.4), as no package has lstate.h.

    tools/interpreter_rows.py php FOLDER...
    tools/interpreter_rows.py lua FOLDER...
"""
import os
import subprocess
import sys
import tempfile

# By name of the row's member: an expression of C.
PHP = {
    "api": "ZEND_MODULE_API_NO",
    "major": "PHP_MAJOR_VERSION",
    "minor": "PHP_MINOR_VERSION",
    "bailout": "offsetof(zend_executor_globals, bailout)",
    "current": "offsetof(zend_executor_globals, current_execute_data)",
    "before_exception": "offsetof(zend_executor_globals, opline_before_exception)",
    "op_codes": "offsetof(zend_op_array, opcodes)",
    "op_number": "offsetof(zend_op_array, last)",
    "file": "offsetof(zend_op_array, filename)",
    "generator_frame": "offsetof(zend_generator, execute_data)",
    "generator_parent": "offsetof(zend_generator, node.parent)",
    "generator_fake": "offsetof(zend_generator, execute_fake)",
}
# What no version may have changed, as php.h has it.
PHP_SAME = {
    "offsetof(zend_execute_data, opline)": 0, "offsetof(zend_execute_data, func)": 24, "offsetof(zend_execute_data, This)": 32,
    "offsetof(zend_execute_data, This.u1.type_info)": 40, "offsetof(zend_execute_data, prev_execute_data)": 48,
    "offsetof(zend_function, common.function_name)": 8, "offsetof(zend_function, common.scope)": 16,
    "offsetof(zend_op, extended_value)": 20, "offsetof(zend_op, lineno)": 24, "offsetof(zend_op, opcode)": 28, "sizeof(zend_op)": 32,
    "offsetof(zend_class_entry, name)": 8, "offsetof(zend_string, len)": 16, "offsetof(zend_string, val)": 24,
    "offsetof(HashTable, arData)": 16, "offsetof(HashTable, nNumUsed)": 24, "offsetof(zend_module_entry, zend_api)": 4,
    "offsetof(zend_module_entry, zend_debug)": 8, "offsetof(zend_module_entry, zts)": 9, "ZEND_CALL_TOP": 1 << 17, "ZEND_CALL_CODE": 1 << 16,
    "IS_OBJECT": 8, "ZEND_INTERNAL_FUNCTION": 1, "ZEND_USER_FUNCTION": 2, "ZEND_EVAL_CODE": 4, "ZEND_INCLUDE_OR_EVAL": 73, "ZEND_EVAL": 1,
    "ZEND_INCLUDE": 2, "ZEND_INCLUDE_ONCE": 4, "ZEND_REQUIRE": 8, "ZEND_REQUIRE_ONCE": 16,
}


LUA = {
    "minor": "LUA_VERSION_NUM % 100",
    "patch": "atoi(LUA_VERSION_RELEASE)",
    "status": "offsetof(lua_State, status)",
    "ci": "offsetof(lua_State, ci)",
    "stack_last": "offsetof(lua_State, stack_last)",
    "stack": "offsetof(lua_State, stack)",
    "jump": "offsetof(lua_State, errorJmp)",
    "base_ci": "offsetof(lua_State, base_ci)",
    "main_thread": "offsetof(global_State, mainthread)",
    "registry": "offsetof(global_State, l_registry)",
    "saved_pc": "offsetof(CallInfo, u.l.savedpc)",
    "call_status": "offsetof(CallInfo, callstatus)",
    "is_fresh": "CIST_FRESH",
    "op_number": "offsetof(Proto, sizecode)",
    "line_number": "offsetof(Proto, sizelineinfo)",
    "first_line": "offsetof(Proto, linedefined)",
    "op_codes": "offsetof(Proto, code)",
    "lines": "offsetof(Proto, lineinfo)",
    "base_number": "BASE_NUMBER",
    "base_lines": "BASE_LINES",
    "source": "offsetof(Proto, source)",
    "text": "(size_t)getstr((TString *)0)",
    "node_size": "sizeof(Node)",
    "key": "KEY",
    "key_type": "KEY_TYPE",
    "node": "offsetof(Table, node)",
}
LUA_SAME = {
    "offsetof(GCObject, tt)": 8, "offsetof(lua_State, top)": 16, "offsetof(lua_State, l_G)": 24, "offsetof(CallInfo, func)": 0,
    "offsetof(CallInfo, previous)": 16, "sizeof(TValue)": 16, "offsetof(TValue, tt_)": 8, "offsetof(LClosure, p)": 24,
    "offsetof(CClosure, f)": 24, "offsetof(TString, shrlen)": 11, "offsetof(TString, u.lnglen)": 16, "offsetof(Table, lsizenode)": 11,
    "LUA_TTHREAD": 8, "LUA_TTABLE": 5, "TAG_LUA": 6, "TAG_C": 22, "TAG_C_CLOSURE": 38, "TAG_SHORT": 4,
    "TAG_LONG": 20, "CIST_TAIL": 32, "offsetof(Node, i_val)": 0,
}
# What versions call differently.
LUA_WORDS = """
#if LUA_VERSION_NUM == 503
#define KEY offsetof(Node, i_key.nk.value_)
#define KEY_TYPE offsetof(Node, i_key.nk.tt_)
#define BASE_NUMBER 0
#define BASE_LINES 0
#define TAG_LUA LUA_TLCL
#define TAG_C LUA_TLCF
#define TAG_C_CLOSURE LUA_TCCL
#define TAG_SHORT LUA_TSHRSTR
#define TAG_LONG LUA_TLNGSTR
#else
#define KEY offsetof(Node, u.key_val)
#define KEY_TYPE offsetof(Node, u.key_tt)
#define BASE_NUMBER offsetof(Proto, sizeabslineinfo)
#define BASE_LINES offsetof(Proto, abslineinfo)
#define TAG_LUA LUA_VLCL
#define TAG_C LUA_VLCF
#define TAG_C_CLOSURE LUA_VCCL
#define TAG_SHORT LUA_VSHRSTR
#define TAG_LONG LUA_VLNGSTR
#endif
"""


def values_of(headers, options, expressions, words=""):
    """The value of each of @expressions, by the machine's C compiler."""
    lines = [f"#include <{header}>" for header in ("stddef.h", "stdio.h", "stdlib.h", *headers)]
    lines += words.splitlines()
    lines += ["int main(void)", "{"] + [f'\tprintf("%llu\\n", (unsigned long long)({e}));' for e in expressions] + ["}"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "print.c"), os.path.join(folder, "print")
        with open(source, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run(["cc", "-w", *options, "-o", program, source], check=True)
        return [int(word) for word in subprocess.run([program], check=True, capture_output=True).stdout.split()]


def row_of(folder, wanted, same, *how):
    """{member: value} of the version at @folder; what may not have changed has not."""
    expressions = [*wanted.values(), *same]
    values = values_of(how[0], how[1], expressions, *how[2:])
    for expression, value in list(zip(expressions, values))[len(wanted):]:
        if value != same[expression]:
            raise SystemExit(f"{folder}: {expression} is {value}")
    return dict(zip(wanted, values))


def php_row(folder):
    options = ["-I" + os.path.join(folder, sub) for sub in ("", "main", "Zend", "TSRM")]
    return row_of(folder, PHP, PHP_SAME, ("php.h", "zend_generators.h", "zend_modules.h"), options)


def lua_row(folder):
    return row_of(folder, LUA, LUA_SAME, ("lstate.h", "lfunc.h", "lstring.h", "ltable.h", "lobject.h"), ["-I" + folder], LUA_WORDS)


def print_rows(rows):
    for row in rows:
        for i, (name, value) in enumerate(row.items()):
            print(("\t{ " if not i else "\t  ") + f".{name} = {value}" + (" }," if i == len(row) - 1 else ","))


def main():
    make = {"php": php_row, "lua": lua_row}.get(sys.argv[1] if len(sys.argv) > 2 else "")
    if not make:
        raise SystemExit(__doc__.strip())
    print_rows(sorted((make(folder) for folder in sys.argv[2:]), key=lambda row: list(row.values())))


if __name__ == "__main__":
    main()
