/* SPDX-License-Identifier: MIT */
/*
 * planted_ruby KIND [SEED]: a program that has the symbols of Ruby 3.1, and frames, tags and names
 * that it makes by hand. KIND says what of it is wrong, or how its tags are made. With "damage",
 * SEED chooses bytes that are changed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef uint64_t object[128];

int ruby_api_version[3] = { 3, 1, 0 };
uint64_t rb_cThread;

/* The VM, beside rb_cThread; the last number of a name, a table, the names. Nothing exports them. */
static volatile uint64_t vm_at;
static volatile uint64_t symbols[3] = { 200 };

static object vm, ractor, thread, thread_object, thread_class, ec;
static object codes[4], bodies[4], labels[4], file, method, definition;
static object names, texts[8];
static uint64_t name_items[1024], name_list[1];
static uint64_t stack[4096];
static uint64_t instructions[600];
static uint32_t lines[8][3];
static uint64_t index_of_lines[6 + 10];

#define WORD(o, off) (*(uint64_t *)((char *)(o) + (off)))
#define HALF(o, off) (*(uint32_t *)((char *)(o) + (off)))

enum { STRING = 5, ARRAY = 7, DATA = 0xc, INTERNAL = 0x1a, ELSEWHERE = 1 << 13 };

/* A tag of the longest form; the shorter one has the one before at 56. */
struct tag {
	uint64_t words[28];
};

static const char *kind;
static struct tag *innermost;
static int previous_at = 56;

/* Makes a String. */
static void make_text(object o, const char *text)
{
	WORD(o, 0) = STRING | ELSEWHERE;
	WORD(o, 16) = strlen(text);
	WORD(o, 24) = (uintptr_t)text;
}

/* Makes code, whose line is @line; of the index, if @line is 0. */
static void make_code(int i, const char *name, uint32_t line)
{
	make_text(labels[i], name);
	WORD(codes[i], 0) = INTERNAL | 7 << 12;
	WORD(codes[i], 16) = (uintptr_t)bodies[i];
	HALF(bodies[i], 0) = 1;
	HALF(bodies[i], 4) = 600;
	WORD(bodies[i], 8) = (uintptr_t)instructions;
	WORD(bodies[i], 64) = (uintptr_t)file;
	WORD(bodies[i], 80) = (uintptr_t)labels[i];
	WORD(bodies[i], 120) = (uintptr_t)lines[line ? i : 3];
	HALF(bodies[i], 136) = line ? 1 : 3;
	WORD(bodies[i], 144) = (uintptr_t)index_of_lines;
	lines[i][0] = line;
}

#define FRAMES 7

/* Makes frame @i, of code @code; -1: of the method of C. It ends a loop if @is_last. */
static void make_frame(int i, int code, int is_last)
{
	uint64_t *const frame = stack + 4096 - 8 * (FRAMES - i);
	uint64_t *const ep = stack + 8 + 8 * i;

	frame[0] = code < 0 ? 0 : (uintptr_t)(instructions + (code == 2 ? 301 : 4));
	frame[2] = code < 0 ? 0 : (uintptr_t)codes[code];
	frame[4] = (uintptr_t)ep;
	ep[-2] = code < 0 ? (uintptr_t)method : 0;
	ep[0] = (code < 0 ? 0x55550083 : 0x11110003) | (is_last ? 0x20 : 0);
}

/* Names of operators have their characters as numbers. */
static void make_names(void)
{
	const char *const all[] = { "+", "-", "*", "/", "<", "!" };

	for (int i = 0; i < 6; i++) {
		const uint64_t number = (unsigned char)all[i][0];

		WORD(texts[i], 0) = STRING | 1 << 14;
		memcpy((char *)texts[i] + 16, all[i], 2);
		name_items[2 * number] = (uintptr_t)texts[i];
		name_items[2 * number + 1] = number << 8 | 0xc;
	}
	WORD(texts[6], 0) = ARRAY;
	WORD(texts[6], 16) = 1024;
	WORD(texts[6], 32) = (uintptr_t)name_items;
	name_list[0] = (uintptr_t)texts[6];
	WORD(names, 0) = ARRAY;
	WORD(names, 16) = 1;
	WORD(names, 32) = (uintptr_t)name_list;
	symbols[1] = (uintptr_t)texts[7];
	symbols[2] = (uintptr_t)names;
}

/* Positions of the index: lines 1 to 3 from words 0, 60 and 299 on. */
static void make_index(void)
{
	uint64_t *const block = index_of_lines + 6;

	for (int i = 0; i < 6; i++)
		for (int k = 0; k < 9; k++)
			index_of_lines[i] |= (uint64_t)1 << (7 * k);
	HALF(block, 0) = 1;
	block[2 + (60 - 54) / 64] |= (uint64_t)1 << (60 - 54) % 64;
	block[2 + (299 - 54) / 64] |= (uint64_t)1 << (299 - 54) % 64;
	/* Ranks before words 1 to 7. */
	for (int i = 1; i < 8; i++)
		block[1] |= (uint64_t)(i > (299 - 54) / 64 ? 2 : 1) << (9 * (i - 1));
	lines[3][0] = 50;
	memcpy(lines[4], (uint32_t[]){ 60 }, 4);
	memcpy(lines[5], (uint32_t[]){ 71 }, 4);
}

__attribute__((noinline)) static void wait_here(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

static void plant(void);
void begin(int n);

/* The function with the instructions: begins another loop, or waits. */
__attribute__((noinline)) void execute(int n)
{
	volatile int again = n;

	if (again > 0) {
		begin(again - 1);
	} else {
		plant();
		wait_here();
	}
	again = 0;
}

/* Writes the tag of a function: @sp: its stack pointer, @pc: a place in it. */
static void fill(volatile uint64_t *words, uint64_t sp, uint64_t pc)
{
	uint64_t guard = 0;

	if (previous_at == 56) {
		words[3] = pc;
		words[strcmp(kind, "shadow") ? 4 : 5] = sp;
	} else {
		if (!strcmp(kind, "guarded"))
			__asm__("mov %%fs:0x30, %0" : "=r"(guard));
		pc ^= guard;
		sp ^= guard;
		words[8] = guard ? sp << 17 | sp >> 47 : sp;
		words[9] = guard ? pc << 17 | pc >> 47 : pc;
	}
	words[previous_at / 8] = (uintptr_t)innermost;
}

/* A function with a tag that guards another: no loop. */
__attribute__((noinline)) void protect(int n)
{
	volatile struct tag own = { { 0 } };
	uint64_t sp;

	__asm__("mov %%rsp, %0" : "=r"(sp));
	fill(own.words, sp, (uintptr_t)protect + 4);
	innermost = (struct tag *)&own;
	begin(n);
	innermost = (struct tag *)own.words[previous_at / 8];
}

/* Begins a loop. */
__attribute__((noinline)) void begin(int n)
{
	volatile struct tag own = { { 0 } };
	uint64_t sp;

	__asm__("mov %%rsp, %0" : "=r"(sp));
	fill(own.words, sp, (uintptr_t)begin + 4);
	innermost = (struct tag *)&own;
	execute(n);
	innermost = (struct tag *)own.words[previous_at / 8];
}

/* Does what the kind says to what has been made. */
static void plant(void)
{
	struct tag *outer = (struct tag *)innermost->words[previous_at / 8];

	WORD(ec, 24) = (uintptr_t)innermost;
	if (!strcmp(kind, "begun"))
		WORD(ec, 24) = (uintptr_t)outer;
	else if (!strcmp(kind, "begun-twice"))
		WORD(ec, 24) = outer->words[previous_at / 8];
	else if (!strcmp(kind, "tag-circle"))
		outer->words[previous_at / 8] = (uintptr_t)innermost;
	else if (!strcmp(kind, "thread-circle"))
		WORD(thread, 0) = (uintptr_t)thread, WORD(ec, 144) -= 8;
	else if (!strcmp(kind, "thread-circle-of-nothing"))
		WORD(thread, 0) = (uintptr_t)thread, WORD(thread, 40) = 0x10;
	else if (!strcmp(kind, "ractor-circle"))
		WORD(ractor, 568) = (uintptr_t)ractor + 568;
	else if (!strcmp(kind, "size"))
		WORD(ec, 8) = UINT64_MAX / 8;
	else if (!strcmp(kind, "frame"))
		WORD(ec, 16) = (uintptr_t)stack + 8;
	else if (!strcmp(kind, "ep"))
		stack[4096 - 8 * (FRAMES - 2) + 4] = 0x10;
	else if (!strcmp(kind, "length"))
		WORD(labels[1], 16) = UINT64_MAX / 2;
	else if (!strcmp(kind, "type"))
		WORD(codes[1], 0) = DATA;
	else if (!strcmp(kind, "lines"))
		HALF(bodies[2], 136) = UINT32_MAX;
	else if (!strcmp(kind, "index"))
		WORD(bodies[2], 144) = 0x10;
	else if (!strcmp(kind, "symbol"))
		name_items[2 * '*' + 1] += 1 << 8;
	else if (!strcmp(kind, "names"))
		((char *)texts[5])[16] = '?';
	else if (!strcmp(kind, "compiled"))
		stack[4096 - 8 * (FRAMES - 2) + 7] = (uintptr_t)execute;
	else if (!strcmp(kind, "nested"))
		for (int i = 0; i < 3; i++)
			WORD(bodies[i], 168) = WORD(bodies[i], 176) = (uintptr_t)codes[i];
}

/* Changes bytes of what has been made. */
static void damage(unsigned seed)
{
	const struct {
		void *at;
		size_t size;
	} all[] = { { vm, 64 },		{ ractor, 640 },     { thread, 128 },	    { ec, 160 },
		    { codes, 2048 },	{ bodies, 2048 },    { labels, 2048 },	    { method, 64 },
		    { definition, 64 }, { names, 64 },	     { texts, 4096 },	    { lines, 96 },
		    { stack, 512 },	{ stack + 4032, 512 }, { index_of_lines, 128 }, { thread_object, 64 } };

	srand(seed);
	for (int i = 0; i < 24; i++) {
		const size_t which = (size_t)rand() % (sizeof all / sizeof *all);
		uint8_t *at = (uint8_t *)all[which].at + (size_t)rand() % all[which].size;

		*at = rand() & 1 ? (uint8_t)rand() : (uint8_t)(*at ^ 1u << rand() % 8);
	}
}

static void make_thread(void)
{
	rb_cThread = (uintptr_t)thread_class;
	vm_at = (uintptr_t)vm;
	/* A list of one ractor, which has a list of one thread. */
	WORD(vm, 8) = (uintptr_t)ractor + 568;
	WORD(vm, 40) = (uintptr_t)thread;
	WORD(ractor, 568) = (uintptr_t)vm + 8;
	WORD(ractor, 304) = (uintptr_t)thread;
	WORD(thread, 0) = (uintptr_t)ractor + 304;
	WORD(thread, 16) = (uintptr_t)thread_object;
	WORD(thread, 32) = (uintptr_t)vm;
	WORD(thread, 40) = (uintptr_t)ec;
	WORD(thread, 80) = (uintptr_t)pthread_self();
	HALF(thread, 88) = (uint32_t)syscall(SYS_gettid);
	WORD(thread_object, 0) = DATA;
	WORD(thread_object, 8) = (uintptr_t)(strcmp(kind, "class") ? thread_class : ec);
	WORD(thread_object, 32) = (uintptr_t)thread + (strcmp(kind, "thread") ? 0 : 8);
	WORD(ec, 0) = (uintptr_t)stack;
	WORD(ec, 8) = 4096;
	WORD(ec, 16) = (uintptr_t)(stack + 4096 - 8 * FRAMES);
	WORD(ec, 48) = (uintptr_t)thread;
}

int main(int argc, char **argv)
{
	kind = argv[1];
	if (!strcmp(kind, "version"))
		ruby_api_version[1] = 9;
	if (!strcmp(kind, "guarded") || !strcmp(kind, "long-tags"))
		previous_at = 216;
	make_thread();
	make_index();
	make_names();
	make_text(file, "planted.rb");
	make_code(0, "inner", 10);
	make_code(1, strcmp(kind, "escapes") ? "middle" : "\x1b[31mred\x1b]0;title\x07", 20);
	make_code(2, "outer", 0);
	instructions[0] = (uintptr_t)execute + 8;
	WORD(method, 0) = INTERNAL | 6 << 12;
	WORD(method, 16) = (uintptr_t)definition;
	WORD(definition, 0) = 1;
	WORD(definition, 32) = '*';
	make_frame(0, 0, 0);
	/* A method of C cannot end a loop: the next frame of code does. */
	make_frame(1, -1, 0);
	make_frame(2, 2, 1);
	make_frame(3, 0, 1);
	make_frame(4, 1, 0);
	make_frame(5, 2, 1);
	make_frame(6, -1, 1);
	/* The start of the C stack. */
	WORD(ec, 144) = (uintptr_t)__builtin_frame_address(0);
	if (!strcmp(kind, "damage"))
		damage((unsigned)atoi(argv[2]));
	protect(2);
	(void)argc;
	return 0;
}
