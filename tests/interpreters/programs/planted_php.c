/* SPDX-License-Identifier: MIT */
/*
 * planted_php KIND [SEED]: a program that has the symbols of PHP 8.2, and frames and functions that
 * it makes by hand, in two loops. KIND says what of it is wrong. With "damage", SEED chooses bytes
 * that are changed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD(o, off) (*(uint64_t *)((char *)(o) + (off)))
#define HALF(o, off) (*(uint32_t *)((char *)(o) + (off)))
#define BYTE(o, off) (*((uint8_t *)(o) + (off)))

typedef uint64_t object[32];

uint64_t executor_globals[225];
uint64_t module_registry[7];
void (*zend_execute_ex)(int level);

/* All that is damaged: frames, functions, strings, instructions, a generator, a module. */
static struct {
	object calls[6], functions[5], strings[8], ops[5][3], generator, a_class, module, bucket;
} made;

enum { TOP = 1 << 17, CODE = 1 << 16, OBJECT = 8 };

static const char *kind;

static int is(const char *wanted)
{
	return !strcmp(kind, wanted);
}

static uint64_t make_string(int i, const char *text)
{
	WORD(made.strings[i], 16) = strlen(text);
	memcpy((char *)made.strings[i] + 24, text, strlen(text));
	return (uintptr_t)made.strings[i];
}

/* Makes function @i; without @line it is one of C. */
static void make_function(int i, uint64_t name, uint32_t line)
{
	BYTE(made.functions[i], 0) = line ? 2 : 1;
	WORD(made.functions[i], 8) = name;
	if (!line)
		return;
	HALF(made.functions[i], 80) = 3;
	WORD(made.functions[i], 88) = (uintptr_t)made.ops[i];
	WORD(made.functions[i], 152) = (uintptr_t)made.strings[7];
	for (int k = 0; k < 3; k++)
		HALF((char *)made.ops[i] + 32 * k, 24) = line + (uint32_t)k;
}

/* Makes frame @i of function @function, which frame @i + 1 has called. */
static void make_call(int i, int function, uint32_t info)
{
	WORD(made.calls[i], 0) = (uintptr_t)made.ops[function] + 32;
	WORD(made.calls[i], 24) = (uintptr_t)made.functions[function];
	HALF(made.calls[i], 40) = info;
	WORD(made.calls[i], 48) = (uintptr_t)made.calls[i + 1];
}

static void make_wrong(void)
{
	if (is("version"))
		HALF(made.module, 4) = 20180731;
	if (is("threads"))
		BYTE(made.module, 9) = 1;
	if (is("circle"))
		WORD(made.calls[4], 48) = (uintptr_t)made.calls[1];
	if (is("previous"))
		WORD(made.calls[2], 48) = 0x7ffffffff000;
	if (is("function"))
		WORD(made.calls[2], 24) = (uintptr_t)&made + sizeof made + (1 << 24);
	if (is("kind"))
		BYTE(made.functions[1], 0) = 77;
	if (is("ops"))
		WORD(made.calls[1], 0) = 0x10000;
	if (is("length"))
		WORD(made.strings[1], 16) = UINT64_MAX;
	if (is("escapes"))
		make_string(1, "\33[31mred\33]0;title\7");
	if (is("generators"))
		WORD(made.generator, 152) = (uintptr_t)made.generator;
}

static void plant(void)
{
	make_string(7, "planted.php");
	make_function(0, make_string(0, "waits"), 0);
	make_function(1, make_string(1, "inner"), 10);
	make_function(2, make_string(2, "map"), 0);
	make_function(3, make_string(3, "outer"), 30);
	make_function(4, 0, 50);
	WORD(made.a_class, 8) = make_string(4, "Class");
	WORD(made.functions[1], 16) = (uintptr_t)made.a_class;
	make_call(0, 0, 0);
	make_call(1, 1, TOP | OBJECT);
	make_call(2, 2, 0);
	make_call(3, 3, 0);
	make_call(4, 4, TOP | CODE);
	WORD(made.calls[4], 48) = 0;
	HALF(made.module, 4) = 20220829;
	WORD(made.bucket, 0) = (uintptr_t)made.module;
	WORD(module_registry, 16) = (uintptr_t)made.bucket;
	HALF(module_registry, 24) = 1;
	WORD(executor_globals, 488) = (uintptr_t)made.calls[0];
	if (is("generators")) {
		/* The frame between stands for a generator that never comes to the one which runs. */
		WORD(made.generator, 56) = (uintptr_t)made.calls[3];
		WORD(made.calls[1], 48) = (uintptr_t)made.generator + 184;
		WORD(made.generator, 184 + 32) = (uintptr_t)made.generator;
		HALF(made.generator, 184 + 40) = OBJECT;
		WORD(made.generator, 184 + 48) = (uintptr_t)made.calls[2];
	}
	make_wrong();
}

__attribute__((noinline)) static void wait_here(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

void execute_ex(int level);

/* Stands for a function that the loop calls; it keeps what the loop needs afterwards. */
__attribute__((noinline)) static void map(int level)
{
	uint64_t *volatile saved = is("apart") ? NULL : made.calls[3];

	execute_ex(level - 1);
	if (saved)
		puts("back");
}

__attribute__((noinline)) void execute_ex(int level)
{
	if (level)
		map(level);
	else
		wait_here();
	puts("back");
}

int main(int argc, char **argv)
{
	uint64_t jump[8];

	kind = argc > 1 ? argv[1] : "right";
	zend_execute_ex = execute_ex;
	plant();
	if (is("damage")) {
		srand((unsigned)atoi(argv[2]));
		for (int i = 0; i < 40; i++)
			((uint8_t *)&made)[(size_t)rand() % sizeof made] = (uint8_t)rand();
	}
	WORD(executor_globals, 416) = (uintptr_t)jump;
	zend_execute_ex(1);
	puts("back");
	return 0;
}
