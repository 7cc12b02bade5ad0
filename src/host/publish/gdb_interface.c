/* SPDX-License-Identifier: MIT */
#include "host/publish/gdb_interface.h"

#include "fathom/error.h"
#include "safe/jit/gdb_layout.h"

/*
 * Symbols that debuggers look up in each loaded object (GDB manual, "JIT Compilation Interface").
 */
enum { JIT_NOACTION = 0, JIT_REGISTER_FN = 1, JIT_UNREGISTER_FN = 2 };

struct jit_descriptor {
	uint32_t version;
	uint32_t action_flag;
	struct fathom_jit_gdb_entry *relevant_entry;
	struct fathom_jit_gdb_entry *first_entry;
};

/*
 * The library's own, by names that no other object can take: LLVM and others export the same names,
 * and the dynamic linker would let us write into theirs.
 */
static struct jit_descriptor descriptor = { .version = FATHOM_GDB_VERSION };

/* Debuggers stop here; it must not be inlined, nor left out. */
static __attribute__((noinline)) void register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Exported whatever FATHOM_API is. */
#define EXPORTED_ALIAS(name) __attribute__((alias(name), visibility("default")))
extern struct jit_descriptor __jit_debug_descriptor EXPORTED_ALIAS("descriptor");
extern void __jit_debug_register_code(void) EXPORTED_ALIAS("register_code");

static void tell(struct fathom_jit_gdb_entry *e, uint32_t action)
{
	descriptor.relevant_entry = e;
	descriptor.action_flag = action;
	register_code();
	descriptor.action_flag = JIT_NOACTION;
	descriptor.relevant_entry = NULL;
}

/*
 * Whoever copies the list while it changes must find it whole: what an entry says is written before
 * the entry can be reached.
 */
static void link_to(struct fathom_jit_gdb_entry **from, struct fathom_jit_gdb_entry *to)
{
	__atomic_store_n(from, to, __ATOMIC_RELEASE);
}

void fathom_jit_gdb_add(struct fathom_jit_gdb_entry *e)
{
	e->prev = NULL;
	e->next = descriptor.first_entry;
	if (e->next)
		link_to(&e->next->prev, e);
	link_to(&descriptor.first_entry, e);
	tell(e, JIT_REGISTER_FN);
}

void fathom_jit_gdb_remove(struct fathom_jit_gdb_entry *e)
{
	link_to(e->prev ? &e->prev->next : &descriptor.first_entry, e->next);
	if (e->next)
		link_to(&e->next->prev, e->prev);
	tell(e, JIT_UNREGISTER_FN);
}
