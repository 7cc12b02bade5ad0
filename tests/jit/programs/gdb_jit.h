/* SPDX-License-Identifier: MIT */
/* GDB's JIT interface, from the side of the program that makes code ("JIT Interface" in GDB's
 * manual). */
#ifndef GDB_JIT_H
#define GDB_JIT_H

#include <stddef.h>
#include <stdint.h>

struct jit_code_entry {
	struct jit_code_entry *next_entry;
	struct jit_code_entry *prev_entry;
	const char *symfile_addr;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version;
	uint32_t action_flag;
	struct jit_code_entry *relevant_entry;
	struct jit_code_entry *first_entry;
};

struct jit_descriptor __jit_debug_descriptor = { 1, 0, NULL, NULL };

__attribute__((noinline)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

static void act(uint32_t action, struct jit_code_entry *e)
{
	__jit_debug_descriptor.relevant_entry = e;
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_register_code();
}

/* Puts @e, whose symbol file is there, before all others. */
static void register_entry(struct jit_code_entry *e)
{
	e->prev_entry = NULL;
	e->next_entry = __jit_debug_descriptor.first_entry;
	if (e->next_entry)
		e->next_entry->prev_entry = e;
	__jit_debug_descriptor.first_entry = e;
	act(1, e);
}

static void unregister_entry(struct jit_code_entry *e)
{
	if (e->prev_entry)
		e->prev_entry->next_entry = e->next_entry;
	else
		__jit_debug_descriptor.first_entry = e->next_entry;
	if (e->next_entry)
		e->next_entry->prev_entry = e->prev_entry;
	act(2, e);
}

#endif
