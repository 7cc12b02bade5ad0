/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_rewriter.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/code/x86_64/x86_stub.h"
#include "host/patch/syscall_change.h"
#include "host/syscalls/syscall_plans.h"
#include "host/trace/hook_image.h"
#include "safe/base/bytes.h"
#include "trace/syscall_hook.h"

/* A load is a mov of four bytes to %eax. */
enum { JUMP_SIZE = FATHOM_X86_BRANCH_SIZE, LOAD_SIZE = 5 };

/* Bytes of a stub at the most, for which as many short ones are taken as it needs. */
#define STUBS     4
#define STUB_SIZE (STUBS * FATHOM_STUB_SIZE)

_Static_assert(FATHOM_SYSCALL_MOVED_MAX + FATHOM_X86_SYSCALL_STUB_SIZE <= STUB_SIZE,
	       "a stub has room");

void fathom_syscall_rewriter_init(struct fathom_syscall_rewriter *r,
				  const struct fathom_syscall_set *set,
				  const struct fathom_syscall_set *apart,
				  const struct fathom_syscall_options *options, bool names_files)
{
	for (uint32_t i = 0; i < FATHOM_TRACE_PLANS; i++)
		if (!fathom_syscall_set_has(set, EM_X86_64, i))
			r->is_left_out[i] = true;
		else if (!fathom_syscall_set_has(apart, EM_X86_64, i))
			(void)fathom_syscall_plan_make(EM_X86_64, i, options, names_files,
						       &r->plans);
	r->plans.has_words = !r->is_only;
}

void fathom_syscall_rewriter_deinit(struct fathom_syscall_rewriter *r)
{
	for (size_t i = 0; i < r->memo.n; i++)
		fathom_array_free(&r->memo.items[i].calls);
	fathom_array_free(&r->memo);
}

/* Returns the calls of @m, which the memo keeps; NULL without memory, or without a decoder. */
static const struct fathom_syscall_insns *calls_of(struct fathom_syscall_rewriter *r,
						   const struct fathom_module_at *m)
{
	struct fathom_syscalls_of_file fresh = { .file = m->module->main->file->id };

	for (size_t i = 0; fresh.file.inode && i < r->memo.n; i++)
		if (!memcmp(&r->memo.items[i].file, &fresh.file, sizeof fresh.file))
			return &r->memo.items[i].calls;
	if (!fathom_array_room(&r->memo, 1) || fathom_syscall_insns_find(m->module, &fresh.calls))
		return NULL;
	(void)fathom_array_push(&r->memo, fresh);
	return &r->memo.items[r->memo.n - 1].calls;
}

/* Returns how many short stubs the one of a call needs before which @moved_size bytes are moved. */
static size_t stubs_for(uint8_t moved_size)
{
	const size_t size = moved_size + FATHOM_X86_SYSCALL_STUB_SIZE;

	return (size + FATHOM_STUB_SIZE - 1) / FATHOM_STUB_SIZE;
}

/* Makes the stub at @stub of @c, whose instruction is at @site; the moved bytes are @moved. */
static bool make_stub(const struct fathom_traced *p, uint64_t stub, uint64_t site,
		      const uint8_t *moved, const struct fathom_syscall_insn *c)
{
	const uint64_t entry = p->program->image + fathom_image_calls().entry;
	const uint8_t moved_size = c->moved_size;
	uint8_t code[STUB_SIZE] = { 0 };

	memcpy(code, moved, moved_size);
	if (!fathom_syscall_insn_move(c, stub - (site - moved_size), code))
		return false;
	return fathom_x86_put_syscall_stub(stub + moved_size, entry, site + FATHOM_X86_SYSCALL_SIZE,
					   code + moved_size) &&
	       fathom_tracee_write(&p->tracee, stub, code,
				   stubs_for(moved_size) * FATHOM_STUB_SIZE);
}

/*
 * Returns whether the call at @site has a number that is left out, which is loaded right before it.
 * Bytes that only look so do no harm: the filter of the program sees what is not rewritten.
 */
static bool is_left_out(const struct fathom_syscall_rewriter *r, struct fathom_tracee_text *text,
			uint64_t site)
{
	uint8_t load[LOAD_SIZE];
	const bool has_load = text->memory.read(&text->memory, site - LOAD_SIZE, load, sizeof load);
	const uint32_t number =
		has_load && *load == FATHOM_X86_MOV_EAX ? load_u32(load + 1, false) : UINT32_MAX;

	return number < FATHOM_TRACE_PLANS && r->is_left_out[number];
}

/* Leads the call @c to a stub; @plan is empty, before and after. */
static void rewrite(const struct fathom_syscall_rewriter *r, struct fathom_tracee_text *text,
		    struct fathom_text_plan *plan, struct fathom_traced *p, uint64_t bias,
		    const struct fathom_syscall_insn *c)
{
	struct fathom_text_memory *m = &text->memory;
	const uint64_t site = c->svma + bias;
	const uint64_t jump = fathom_syscall_jump(c, bias);
	const uint64_t low = jump < site ? jump : site;
	const uint64_t high = jump < site ? site + FATHOM_X86_SYSCALL_SIZE : jump + JUMP_SIZE;
	uint8_t moved[FATHOM_SYSCALL_MOVED_MAX];
	uint64_t stub;
	bool fits;

	if (!fathom_syscall_can_change(c, bias, m) || is_left_out(r, text, site) ||
	    !m->read(m, site - c->moved_size, moved, c->moved_size))
		return;
	stub = fathom_program_stubs_near(p, stubs_for(c->moved_size), low, high);
	if (fathom_syscall_plan_change(c, bias, stub, m, plan, &fits) && fits &&
	    make_stub(p, stub, site, moved, c))
		(void)fathom_text_plan_put(plan, 0, true, m);
	fathom_text_plan_cut(plan, 0);
}

/*
 * Returns whether the memory of @p has no other thread than the one that is stopped: then nobody
 * stands among instructions that go away.
 */
static bool has_one_thread(const struct fathom_traced *p)
{
	/* A folder has two links, and one for each folder in it. */
	enum { LINKS = 3 };
	struct stat s;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)p->tracee.pid);
	return !p->shares && !stat(path, &s) && s.st_nlink == LINKS;
}

void fathom_syscalls_rewrite(struct fathom_syscall_rewriter *r, struct fathom_traced *p,
			     const struct fathom_module_at *m)
{
	const struct fathom_syscall_insns *calls;
	struct fathom_text_plan plan = { 0 };
	struct fathom_tracee_text text;
	bool is_alone;

	if (!p->program->is_fixed)
		return;
	calls = calls_of(r, m);
	if (!calls)
		return;
	fathom_tracee_text_init(&text, &p->tracee);
	is_alone = has_one_thread(p);
	for (size_t i = 0; i < calls->n; i++)
		if (!calls->items[i].is_line || is_alone)
			rewrite(r, &text, &plan, p, m->bias, &calls->items[i]);
	(void)fathom_tracee_text_flush(&text);
	fathom_text_plan_clear(&plan);
}

/*
 * Returns where the program goes on after the stub of a call that has its `syscall` at @avma; 0:
 * none has.
 */
static uint64_t back_of(const struct fathom_traced *p, uint64_t avma)
{
	const uint64_t stub = avma - FATHOM_X86_SYSCALL_STUB_BEFORE;
	uint8_t code[FATHOM_X86_SYSCALL_STUB_SIZE];

	return fathom_tracee_read(&p->tracee, stub, code, sizeof code)
		       ? fathom_x86_back_of_stub(
				 stub, p->program->image + fathom_image_calls().entry, code)
		       : 0;
}

static bool may_be_stub(const struct fathom_traced *p, uint64_t pc)
{
	return p->program && p->program->is_fixed && fathom_program_is_inside(p, pc) &&
	       pc - p->program->image >= fathom_image_size();
}

uint64_t fathom_syscalls_pc(const struct fathom_traced *p, uint64_t pc)
{
	const uint64_t back = may_be_stub(p, pc) ? back_of(p, pc - sizeof fathom_x86_syscall) : 0;

	return back ? back : pc;
}

/*
 * Finds the `syscall` of the stub in which @pc is, at that instruction or one before it; *@ret_off
 * is its distance.
 */
static bool find_call(const struct fathom_traced *p, uint64_t pc, uint64_t *ret_off)
{
	uint8_t code[STUB_SIZE];

	if (!may_be_stub(p, pc) || !fathom_tracee_read(&p->tracee, pc, code, sizeof code))
		return false;
	for (uint64_t i = 0; i + sizeof fathom_x86_syscall <= sizeof code; i++) {
		if (!fathom_x86_is_syscall(code + i) || !back_of(p, pc + i))
			continue;
		*ret_off = i;
		return true;
	}
	return false;
}

bool fathom_syscalls_is_moved(const struct fathom_traced *p, uint64_t pc)
{
	uint64_t off;

	return fathom_syscalls_pc(p, pc) == pc && find_call(p, pc, &off) &&
	       off > FATHOM_X86_SYSCALL_STUB_BEFORE;
}

bool fathom_syscalls_is_gone(const struct fathom_traced *p, uint64_t pc)
{
	const uint64_t own = fathom_syscalls_is_moved(p, pc) ? fathom_syscalls_own_pc(p, pc) : 0;
	uint8_t code[JUMP_SIZE];
	uint8_t jump[JUMP_SIZE];

	/* A jump that begins before it leads as far before @pc: to the beginning of the stub. */
	for (uint64_t i = 1; own && i < JUMP_SIZE; i++)
		if (fathom_tracee_read(&p->tracee, own - i, code, sizeof code) &&
		    fathom_x86_put_jump(own - i, pc - i, jump) && !memcmp(code, jump, sizeof code))
			return true;
	return false;
}

uint64_t fathom_syscalls_own_pc(const struct fathom_traced *p, uint64_t pc)
{
	uint64_t off;
	uint64_t own;

	if (fathom_syscalls_pc(p, pc) != pc)
		return fathom_syscalls_pc(p, pc);
	if (!find_call(p, pc, &off))
		return pc;
	own = back_of(p, pc + off) - sizeof fathom_x86_syscall;
	return off > FATHOM_X86_SYSCALL_STUB_BEFORE ? own - (off - FATHOM_X86_SYSCALL_STUB_BEFORE)
						    : own;
}
