/* SPDX-License-Identifier: MIT */
/*
 * planted KIND [SEED]: a program that has the symbols of CPython 3.11, and a chain of frames that it
 * makes by hand. KIND says what of it is wrong. With "damage", SEED chooses bytes that are changed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef uint64_t object[256];

uint32_t Py_Version = 0x030b02f0;
object _PyRuntime, PyCode_Type, PyUnicode_Type, PyBytes_Type;

static object interpreter, thread, table;
static object codes[8], texts[16];
static object frames[1 << 12];

static struct member {
	const char *name;
	uint64_t type, offset, flags;
	const char *doc;
} members[] = { { "co_filename", 6, 112, 1, NULL },
		{ "co_qualname", 6, 128, 1, NULL },
		{ NULL, 0, 0, 0, NULL } };

#define WORD(o, off) (*(uint64_t *)((char *)(o) + (off)))
#define BYTE(o, off) (*((uint8_t *)(o) + (off)))

/* Makes a str of ASCII. */
static void make_text(object o, const char *text)
{
	WORD(o, 8) = (uintptr_t)PyUnicode_Type;
	WORD(o, 16) = strlen(text);
	WORD(o, 32) = 1u << 2 | 1u << 5 | 1u << 6;
	memcpy((char *)o + 48, text, strlen(text));
}

/* Makes a code object, whose first instruction has line @line. */
static void make_code(int i, const char *name, uint32_t line)
{
	make_text(texts[2 * i], name);
	make_text(texts[2 * i + 1], "planted.py");
	WORD(codes[i], 8) = (uintptr_t)PyCode_Type;
	WORD(codes[i], 112) = (uintptr_t)texts[2 * i + 1];
	WORD(codes[i], 128) = (uintptr_t)texts[2 * i];
	*(uint32_t *)((char *)codes[i] + 72) = line;
	WORD(codes[i], 136) = (uintptr_t)table;
}

/* Makes frame @i of code @code, called by frame @previous. */
static void make_frame(int i, int code, int previous, int is_entry)
{
	WORD(frames[i], 32) = (uintptr_t)codes[code];
	WORD(frames[i], 48) = previous < 0 ? 0 : (uintptr_t)frames[previous];
	WORD(frames[i], 56) = (uintptr_t)codes[code] + 184;
	BYTE(frames[i], 68) = (uint8_t)is_entry;
}

struct cframe {
	uint64_t use_tracing;
	uint64_t current;
	uint64_t previous;
};

static struct cframe *innermost;
static const char *kind;

__attribute__((noinline)) static void wait_here(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

static void plant(void);

/* A loop whose frames are those from @frame on; it calls another loop, or waits. */
__attribute__((noinline)) void loop(int frame, int n)
{
	volatile struct cframe own = { 0, (uintptr_t)frames[frame], (uintptr_t)innermost };

	innermost = (struct cframe *)&own;
	WORD(thread, 56) = (uintptr_t)&own;
	if (n) {
		loop(frame - 2, n - 1);
	} else {
		plant();
		wait_here();
	}
	innermost = (struct cframe *)own.previous;
}

/* Does what the kind says to what has been made. */
static void plant(void)
{
	static object elsewhere;

	if (!strcmp(kind, "circle"))
		WORD(frames[5], 48) = (uintptr_t)frames[4], BYTE(frames[5], 68) = 0;
	else if (!strcmp(kind, "own-circle"))
		WORD(frames[0], 48) = (uintptr_t)frames[0];
	else if (!strcmp(kind, "anchor")) {
		WORD(elsewhere, 8) = innermost->current;
		WORD(elsewhere, 16) = innermost->previous;
		WORD(thread, 56) = (uintptr_t)elsewhere;
	} else if (!strcmp(kind, "long")) {
		for (int i = 0; i < 1 << 12; i++)
			make_frame(i, i & 3, (i + 1) % (1 << 12), 0);
	} else if (!strcmp(kind, "type"))
		WORD(codes[1], 8) = (uintptr_t)PyBytes_Type;
	else if (!strcmp(kind, "length"))
		WORD(texts[2], 16) = UINT64_MAX / 2;
	else if (!strcmp(kind, "threads"))
		WORD(thread, 8) = (uintptr_t)thread, WORD(thread, 160)++;
	else if (!strcmp(kind, "table"))
		WORD(table, 16) = (uint64_t)1 << 40;
	else if (!strcmp(kind, "nowhere"))
		WORD(frames[1], 48) = 0x10;
}

int main(int argc, char **argv)
{
	object *const all[] = { &_PyRuntime, &interpreter, &thread, &table,
				codes,	     texts,	   frames,  &PyCode_Type };
	const size_t sizes[] = { sizeof(object), sizeof(object), sizeof(object), sizeof(object),
				 sizeof codes,	 sizeof texts,	 6 * sizeof(object), sizeof(object) };

	kind = argv[1];
	if (!strcmp(kind, "version"))
		Py_Version = 0x03630000;
	WORD(PyCode_Type, 32) = strcmp(kind, "size") ? 184 : 192;
	WORD(PyCode_Type, 240) = (uintptr_t)members;
	if (!strcmp(kind, "member"))
		members[1].offset += 8;
	WORD(_PyRuntime, 40) = (uintptr_t)interpreter;
	WORD(interpreter, 16) = (uintptr_t)thread;
	WORD(thread, 160) = (uint64_t)syscall(SYS_gettid);
	WORD(table, 8) = (uintptr_t)PyBytes_Type;
	/* One entry without columns, for two instructions: a byte that says so, and one of the line. */
	WORD(table, 16) = 2;
	BYTE(table, 32) = 0x80 | 13 << 3 | 1;
	make_code(0, "inner", 10);
	make_code(1, strcmp(kind, "escapes") ? "middle" : "\x1b[31mred\x1b]0;title\x07", 20);
	make_code(2, "outer", 30);
	for (int i = 0; i < 6; i++)
		make_frame(i, i % 3, i < 5 ? i + 1 : -1, i % 2);
	if (!strcmp(kind, "damage")) {
		srand((unsigned)atoi(argv[2]));
		/* The chain itself stays on the stack; what it leads to does not stay. */
		for (int i = 0; i < 24; i++) {
			const int which = rand() % 8;
			uint8_t *at = (uint8_t *)all[which] + (size_t)rand() % sizes[which];

			*at = rand() & 1 ? (uint8_t)rand() : (uint8_t)(*at ^ 1u << rand() % 8);
		}
	}
	(void)argc;
	loop(4, 2);
	return 0;
}
