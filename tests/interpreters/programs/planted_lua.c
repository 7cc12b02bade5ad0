/* SPDX-License-Identifier: MIT */
/*
 * planted_lua KIND [SEED]: a program that has the symbols of Lua 5.4, and a state, calls, functions
 * and tables that it makes by hand, in two loops. KIND says what of it is wrong. With "damage",
 * SEED chooses bytes that are changed.
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

char lua_ident[] = "$LuaVersion: Lua 5.4.4  Made by hand $";

/* All that is damaged. */
static struct {
	object state, calls[4], closures[2], protos[2], strings[8], tables[3];
	object global[2];
	uint64_t values[32], nodes[3][8 * 3];
	uint32_t ops[2][8];
	int8_t lines[2][8];
} made;

enum { C = 1 << 1, FRESH = 1 << 2, TAIL = 1 << 5, COLLECTED = 64 };

static const char *kind;

static int is(const char *wanted)
{
	return !strcmp(kind, wanted);
}

static uint64_t make_string(int i, const char *text)
{
	BYTE(made.strings[i], 8) = 4;
	BYTE(made.strings[i], 11) = (uint8_t)strlen(text);
	memcpy((char *)made.strings[i] + 24, text, strlen(text));
	return (uintptr_t)made.strings[i];
}

/* Makes the function of C that all tables have. */
static int of_c(void *l)
{
	return l != NULL;
}

/* Makes function @i, which begins at @line. */
static void make_function(int i, uint32_t line)
{
	BYTE(made.closures[i], 8) = 6;
	WORD(made.closures[i], 24) = (uintptr_t)made.protos[i];
	HALF(made.protos[i], 24) = 8;
	HALF(made.protos[i], 28) = 8;
	HALF(made.protos[i], 44) = line;
	WORD(made.protos[i], 64) = (uintptr_t)made.ops[i];
	WORD(made.protos[i], 88) = (uintptr_t)made.lines[i];
	WORD(made.protos[i], 112) = (uintptr_t)made.strings[7];
	memset(made.lines[i], 1, 8);
}

/* Makes call @i of the value @value of type @type. */
static void make_call(int i, uint64_t value, unsigned type, unsigned status)
{
	made.values[2 * i] = value;
	made.values[2 * i + 1] = type;
	WORD(made.calls[i], 0) = (uintptr_t)&made.values[2 * i];
	WORD(made.calls[i], 16) = i < 3 ? (uintptr_t)made.calls[i + 1] : (uintptr_t)made.state + 96;
	WORD(made.calls[i], 32) = (uintptr_t)(made.ops[i % 2] + 3);
	HALF(made.calls[i], 60) = status << 16;
}

/* Makes table @i, whose place @at has @value of @type by the string @name. */
static void put(int i, int at, const char *name, int string, uint64_t value, unsigned type)
{
	BYTE(made.tables[i], 8) = 5;
	BYTE(made.tables[i], 11) = 3;
	WORD(made.tables[i], 24) = (uintptr_t)made.nodes[i];
	made.nodes[i][3 * at] = value;
	BYTE(made.nodes[i], 24 * at + 8) = (uint8_t)type;
	BYTE(made.nodes[i], 24 * at + 9) = 4 | COLLECTED;
	made.nodes[i][3 * at + 2] = make_string(string, name);
}

static void make_wrong(void)
{
	if (is("version"))
		lua_ident[19] = '0';
	if (is("circle"))
		WORD(made.calls[3], 16) = (uintptr_t)made.calls[1];
	if (is("previous"))
		WORD(made.calls[1], 16) = 0x7ffffffff000;
	if (is("function"))
		WORD(made.calls[2], 0) = 0x10008;
	if (is("closure"))
		made.values[2] = (uintptr_t)&made + (1 << 26);
	if (is("returning"))
		made.values[1] = 3;
	if (is("type"))
		made.values[5] = 3;
	if (is("length"))
		BYTE(made.strings[7], 8) = 20, WORD(made.strings[7], 16) = UINT64_MAX;
	if (is("bits"))
		BYTE(made.tables[1], 11) = 255;
	if (is("lines"))
		HALF(made.protos[0], 28) = 0xffffffff, WORD(made.protos[0], 88) = 16;
	if (is("base-lines"))
		HALF(made.protos[0], 40) = 0x7fffffff, WORD(made.protos[0], 96) = 16;
	if (is("global"))
		WORD(made.global, 264) = 0x7ffffffff000;
	if (is("escapes"))
		make_string(7, "@\33[31mred\33]0;title\7");
}

static void plant(void)
{
	const uint64_t c = (uintptr_t)of_c;

	make_string(7, "@planted.lua");
	make_function(0, 10);
	make_function(1, 0);
	make_call(0, c, 22, C);
	make_call(1, (uintptr_t)made.closures[1], 6 | COLLECTED, FRESH);
	make_call(2, (uintptr_t)made.closures[0], 6 | COLLECTED, TAIL);
	make_call(3, (uintptr_t)made.closures[1], 6 | COLLECTED, FRESH);
	put(0, 5, "_LOADED", 0, (uintptr_t)made.tables[1], 5 | COLLECTED);
	put(1, 2, "library", 1, (uintptr_t)made.tables[2], 5 | COLLECTED);
	put(2, 3, "of_c", 2, c, 22);
	BYTE(made.state, 8) = 8;
	WORD(made.state, 24) = (uintptr_t)made.global;
	WORD(made.state, 32) = (uintptr_t)made.calls[0];
	WORD(made.state, 48) = (uintptr_t)made.values;
	WORD(made.state, 16) = (uintptr_t)&made.values[8];
	WORD(made.state, 40) = (uintptr_t)&made.values[30];
	WORD(made.global, 264) = (uintptr_t)made.state;
	WORD(made.global, 64) = (uintptr_t)made.tables[0];
	make_wrong();
}

__attribute__((noinline)) static void wait_here(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

void luaV_execute(void *state, void *volatile call);

/* Calls the inner loop. */
__attribute__((noinline)) static void of_c_calls(void *state)
{
	luaV_execute(state, made.calls[1]);
	puts("back");
}

/* Stands for the loop: @call is used after what it calls, so it stays on the stack. */
__attribute__((noinline)) void luaV_execute(void *state, void *volatile call)
{
	if (call == made.calls[1])
		wait_here();
	else
		of_c_calls(state);
	if (call)
		puts("back");
}

int main(int argc, char **argv)
{
	void *volatile state = made.state;

	kind = argc > 1 ? argv[1] : "right";
	plant();
	if (is("damage")) {
		srand((unsigned)atoi(argv[2]));
		for (int i = 0; i < 60; i++)
			((uint8_t *)&made)[(size_t)rand() % sizeof made] = (uint8_t)rand();
	}
	luaV_execute(state, is("apart") ? made.calls[0] : made.calls[2]);
	puts(state ? "back" : "");
	return 0;
}
