#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Prints where members are in the structures of interpreters, by version, as src/host/interpreters/php_rows.c has them: what
offsetof() says in the headers of each version. Each FOLDER has one version's headers (.../include/php/20220829, of
php8.2-dev).

    tools/interpreter_rows.py php FOLDER...
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


def values_of(headers, options, expressions):
    """What each of @expressions is, by the machine's C compiler."""
    lines = [f"#include <{header}>" for header in ("stddef.h", "stdio.h", *headers)]
    lines += ["int main(void)", "{"] + [f'\tprintf("%llu\\n", (unsigned long long)({e}));' for e in expressions] + ["}"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "print.c"), os.path.join(folder, "print")
        with open(source, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run(["cc", "-w", *options, "-o", program, source], check=True)
        return [int(word) for word in subprocess.run([program], check=True, capture_output=True).stdout.split()]


def php_row(folder):
    options = ["-I" + os.path.join(folder, sub) for sub in ("", "main", "Zend", "TSRM")]
    expressions = [*PHP.values(), *PHP_SAME]
    values = values_of(("php.h", "zend_generators.h", "zend_modules.h"), options, expressions)
    for expression, value in list(zip(expressions, values))[len(PHP):]:
        if value != PHP_SAME[expression]:
            raise SystemExit(f"{folder}: {expression} is {value}")
    return dict(zip(PHP, values))


def print_rows(rows):
    for row in rows:
        for i, (name, value) in enumerate(row.items()):
            print(("\t{ " if not i else "\t  ") + f".{name} = {value}" + (" }," if i == len(row) - 1 else ","))


def main():
    if len(sys.argv) < 3 or sys.argv[1] != "php":
        raise SystemExit(__doc__.strip())
    print_rows(sorted((php_row(folder) for folder in sys.argv[2:]), key=lambda row: row["api"]))


if __name__ == "__main__":
    main()
