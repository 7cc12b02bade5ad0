/* SPDX-License-Identifier: MIT */
#include "host/stack/go.h"

#include <elf.h>
#include <string.h>

#include "host/file/object.h"
#include "host/symbol/tables.h"

static const struct {
	const char *name; /* without "runtime." and ".abi0" */
	enum fathom_go_role role;
} roles[] = {
	{ "goexit", FATHOM_GO_END },      { "mcall", FATHOM_GO_END },
	{ "systemstack", FATHOM_GO_END }, { "morestack", FATHOM_GO_END },
	{ "clone", FATHOM_GO_END },       { "mstart", FATHOM_GO_FIRST },
	{ "rt0_go", FATHOM_GO_FIRST },    { "asmcgocall", FATHOM_GO_TO_C },
};

static struct fathom_str cut(struct fathom_str s, const char *prefix, const char *suffix)
{
	const uint32_t before = (uint32_t)strlen(prefix);
	const uint32_t behind = (uint32_t)strlen(suffix);

	if (s.size < before || memcmp(s.data, prefix, before) != 0)
		return (struct fathom_str){ NULL, 0 };
	s.data += before;
	s.size -= before;
	if (s.size > behind && !memcmp(s.data + s.size - behind, suffix, behind))
		s.size -= behind;
	return s;
}

enum fathom_go_role fathom_go_role(struct fathom_module *module, uint64_t svma)
{
	struct fathom_symbol_hit hit;
	struct fathom_str name;

	if (!module->main || !fathom_object_find(module->main, ".note.go.buildid") ||
	    !fathom_symbols_scan(&module->symbols, svma, NULL, &hit))
		return FATHOM_GO_NONE;
	name = cut(hit.name, "runtime.", ".abi0");
	for (size_t i = 0; name.data && i < sizeof roles / sizeof *roles; i++)
		if (name.size == strlen(roles[i].name) &&
		    !memcmp(name.data, roles[i].name, name.size))
			return roles[i].role;
	return FATHOM_GO_NONE;
}

/* Offset of stack.hi in struct g (runtime/runtime2.go). */
#define STACK_HI 8

static bool read_word(const struct fathom_reader *from, bool swap, uint64_t avma, uint64_t *ret)
{
	return fathom_reader_uint(from, avma, 8, swap, ret);
}

bool fathom_go_leave_c(const struct fathom_unwind_arch *arch, const struct fathom_step_memory *m,
		       bool is_newer, struct fathom_registers *r)
{
	/*
	 * It stores its g, and how far below the end of its stack it was; or 0, and where it was.
	 */
	const uint64_t at = r->sp + (is_newer ? 0 : 40);
	uint64_t g;
	uint64_t sp;
	uint64_t pc;

	if (arch->machine != EM_X86_64 || !fathom_register_known(r, arch->sp) ||
	    !read_word(m->stack, m->swap, at, &sp) || !read_word(m->stack, m->swap, at + 8, &g))
		return false;
	if (g) {
		uint64_t high;

		/* Not of the stack, so it is in no copy of it. */
		if (!read_word(m->code, m->swap, g + STACK_HI, &high))
			return false;
		sp = high - sp;
	}
	if (sp % 8 || !read_word(m->stack, m->swap, sp, &pc))
		return false;
	r->known &= UINT64_C(1) << arch->fp;
	r->pc = pc;
	r->sp = sp + 8;
	fathom_register_set(r, arch->pc, r->pc);
	fathom_register_set(r, arch->sp, r->sp);
	return true;
}
