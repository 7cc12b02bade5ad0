/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_rewriter.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/code/x86_64/x86_instructions.h"
#include "host/syscalls/syscall_plans.h"
#include "host/trace/hook_image.h"
#include "safe/base/bytes.h"
#include "trace/syscall_hook.h"

/* A load is a mov of four bytes to %eax. */
enum { JUMP_SIZE = FATHOM_X86_BRANCH_SIZE, LEA_SIZE = 7, LOAD_SIZE = 5 };

/* Bytes of a stub at the most, for which as many short ones are taken as it needs. */
#define STUBS     4
#define STUB_SIZE (STUBS * FATHOM_STUB_SIZE)

/* In front of its `syscall`, behind the instructions that were moved into it. */
static const uint8_t to_hook[] = {
	0x48, 0x8d, 0x0d, 13, 0, 0, 0,          /* lea 13(%rip), %rcx */
	0x49, 0xbb, 0,    0,  0, 0, 0, 0, 0, 0, /* movabs $entry, %r11 */
	0x41, 0xff, 0xe3,                       /* jmp *%r11 */
};

_Static_assert(FATHOM_SYSCALL_MOVED_MAX + sizeof to_hook + sizeof fathom_x86_syscall + JUMP_SIZE <=
		       STUB_SIZE,
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
	const size_t size = moved_size + sizeof to_hook + sizeof fathom_x86_syscall + JUMP_SIZE;

	return (size + FATHOM_STUB_SIZE - 1) / FATHOM_STUB_SIZE;
}

/* Makes the stub at @stub of @c, whose instruction is at @site; the moved bytes are @moved. */
static bool make_stub(const struct fathom_traced *p, uint64_t stub, uint64_t site,
		      const uint8_t *moved, const struct fathom_syscall_insn *c)
{
	const uint64_t entry = p->program->image + fathom_image_calls().entry;
	const uint8_t moved_size = c->moved_size;
	const size_t at = moved_size + sizeof to_hook + sizeof fathom_x86_syscall;
	uint8_t code[STUB_SIZE] = { 0 };

	memcpy(code, moved, moved_size);
	if (!fathom_syscall_insn_move(c, stub - (site - moved_size), code))
		return false;
	memcpy(code + moved_size, to_hook, sizeof to_hook);
	memcpy(code + moved_size + LEA_SIZE + 2, &entry, sizeof entry);
	memcpy(code + moved_size + sizeof to_hook, fathom_x86_syscall, sizeof fathom_x86_syscall);
	return fathom_x86_put_jump(stub + at, site + FATHOM_X86_SYSCALL_SIZE, code + at) &&
	       fathom_tracee_write(&p->tracee, stub, code,
				   stubs_for(moved_size) * FATHOM_STUB_SIZE);
}

/*
 * Returns whether the call at @site has a number that is left out, which is loaded right before it.
 * Bytes that only look so do no harm: the filter of the program sees what is not rewritten.
 */
static bool is_left_out(const struct fathom_syscall_rewriter *r, struct fathom_text_window *w,
			uint64_t site)
{
	const uint8_t *load = fathom_text_at(w, site - LOAD_SIZE, site);
	const uint32_t number =
		load && *load == FATHOM_X86_MOV_EAX ? load_u32(load + 1, false) : UINT32_MAX;

	return number < FATHOM_TRACE_PLANS && r->is_left_out[number];
}

/* Leads the call @c to a stub, in the bytes of the window. */
static void rewrite(const struct fathom_syscall_rewriter *r, struct fathom_text_window *w,
		    struct fathom_traced *p, uint64_t bias, const struct fathom_syscall_insn *c)
{
	const uint64_t site = c->svma + bias;
	const uint64_t jump = c->moved_size ? site - c->moved_size : c->padding + bias;
	const uint64_t low = jump < site ? jump : site;
	const uint64_t high = jump < site ? site + FATHOM_X86_SYSCALL_SIZE : jump + JUMP_SIZE;
	uint8_t *bytes =
		jump - bias && !is_left_out(r, w, site) ? fathom_text_at(w, low, high) : NULL;
	uint8_t code[JUMP_SIZE];
	uint64_t stub;

	if ((!c->moved_size && !c->padding) || !bytes ||
	    !fathom_x86_is_syscall(bytes + (site - low)))
		return;
	stub = fathom_program_stubs_near(p, stubs_for(c->moved_size), low, high);
	if (!stub || !fathom_x86_put_jump(jump, stub, code) || !make_stub(p, stub, site, bytes, c))
		return;
	memcpy(bytes + (jump - low), code, sizeof code);
	if (!c->moved_size)
		(void)fathom_x86_put_short_jump(site, jump, bytes + (site - low));
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
	struct fathom_text_window *w;
	const struct fathom_syscall_insns *calls;
	bool is_alone;

	if (!p->program->is_fixed)
		return;
	calls = calls_of(r, m);
	w = calls ? calloc(1, sizeof *w) : NULL;
	if (!w)
		return;
	w->tracee = &p->tracee;
	is_alone = has_one_thread(p);
	for (size_t i = 0; i < calls->n; i++)
		if (!calls->items[i].is_line || is_alone)
			rewrite(r, w, p, m->bias, &calls->items[i]);
	(void)fathom_text_put_back(w);
	free(w);
}

/* Returns whether the stub of a call has its `syscall` at @avma. */
static bool is_call_of_stub(const struct fathom_traced *p, uint64_t avma)
{
	const uint64_t entry = p->program->image + fathom_image_calls().entry;
	uint8_t now[sizeof to_hook + sizeof fathom_x86_syscall];
	uint8_t expected[sizeof now];

	memcpy(expected, to_hook, sizeof to_hook);
	memcpy(expected + LEA_SIZE + 2, &entry, sizeof entry);
	memcpy(expected + sizeof to_hook, fathom_x86_syscall, sizeof fathom_x86_syscall);
	return fathom_tracee_read(&p->tracee, avma - sizeof to_hook, now, sizeof now) &&
	       !memcmp(now, expected, sizeof now);
}

/* Returns where the program goes on behind the `syscall` of a stub at @avma. */
static uint64_t behind(const struct fathom_traced *p, uint64_t avma)
{
	const uint64_t jump = avma + sizeof fathom_x86_syscall;
	uint8_t code[JUMP_SIZE] = { 0 };

	(void)fathom_tracee_read(&p->tracee, jump, code, sizeof code);
	return fathom_x86_target(jump, code, sizeof code);
}

static bool may_be_stub(const struct fathom_traced *p, uint64_t pc)
{
	return p->program && p->program->is_fixed && fathom_program_is_inside(p, pc) &&
	       pc - p->program->image >= fathom_image_size();
}

uint64_t fathom_syscalls_pc(const struct fathom_traced *p, uint64_t pc)
{
	const uint64_t call = pc - sizeof fathom_x86_syscall;

	return may_be_stub(p, pc) && is_call_of_stub(p, call) ? behind(p, call) : pc;
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
		if (!fathom_x86_is_syscall(code + i) || !is_call_of_stub(p, pc + i))
			continue;
		*ret_off = i;
		return true;
	}
	return false;
}

bool fathom_syscalls_is_moved(const struct fathom_traced *p, uint64_t pc)
{
	uint64_t off;

	return fathom_syscalls_pc(p, pc) == pc && find_call(p, pc, &off) && off > sizeof to_hook;
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
	own = behind(p, pc + off) - sizeof fathom_x86_syscall;
	return off > sizeof to_hook ? own - (off - sizeof to_hook) : own;
}
