/* SPDX-License-Identifier: MIT */
#include "host/sites/syscall_insns.h"

#include "host/code/x86_64/x86_instructions.h"
#include "host/sites/syscall_lines.h"
#include "safe/base/nops.h"
#include "host/sites/site_work.h"

/* How often each byte of a file may be looked at (as in sites.c). */
#define MAX_LOOKS 16

enum { JUMP_SIZE = FATHOM_X86_BRANCH_SIZE, REACH = FATHOM_X86_SHORT_REACH };
enum { LEA = 0x8d, MOV_LOAD = 0x8b, MOV_STORE = 0x89, DISPLACEMENT_SIZE = 4 };

/* mov $15, %eax: before a call of rt_sigreturn(), as fathom_x86_sigreturn has it, too */
static const uint8_t sigreturn_short[] = { FATHOM_X86_MOV_EAX, 15, 0, 0, 0 };

/* Padding between two functions. */
struct gap {
	uint64_t svma; /* of what is left */
	uint64_t end;
};

struct gaps {
	FATHOM_ARRAY_OF(struct gap); /* sorted */
};

/* Finds the padding that has room for a jump: NOPs that no function has. */
static fathom_err find_gaps(struct fathom_site_work *w, struct gaps *gaps)
{
	uint64_t end = 0;

	for (size_t i = 0; i + 1 < w->functions.n; i++) {
		const struct fathom_function *f = &w->functions.items[i];
		const uint64_t next = f[1].svma;
		struct fathom_bytes code;

		end = f->end > end ? f->end : end;
		if (f->end <= f->svma || end >= next || next - end < JUMP_SIZE)
			continue;
		code = fathom_site_code(w, end);
		if (code.size < next - end || fathom_nops_size(false, code, next - end) < JUMP_SIZE)
			continue;
		code.size = next - end;
		const uint64_t size = fathom_nops_size(false, code, code.size);
		const struct gap gap = { end, end + size };

		if (!fathom_array_push(gaps, gap))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

/* Takes five bytes that a short jump at @svma leads to; returns 0 if there are none. */
static uint64_t take_padding(const struct gaps *gaps, uint64_t svma)
{
	const uint64_t from = svma + FATHOM_X86_SYSCALL_SIZE;
	size_t i = FATHOM_BISECT(gaps->n, k, gaps->items[k].end + REACH + 1 < from);

	for (; i < gaps->n && gaps->items[i].svma <= from + REACH; i++) {
		struct gap *gap = &gaps->items[i];
		const uint64_t at = gap->svma;

		if (gap->end - at < JUMP_SIZE || at + REACH + 1 < from)
			continue;
		gap->svma += JUMP_SIZE;
		return at;
	}
	return 0;
}

/* An instruction of a line. */
struct item {
	uint8_t size;
	bool is_relative; /* its last four bytes are a displacement from what is after it */
	bool is_simple;   /* it may be one of several that become a jump */
};

/* Instructions in a line that can be moved, up to the one that is looked at. */
struct line {
	size_t n;
	struct item items[FATHOM_SYSCALL_MOVED_MAX]; /* the last ones, the latest first */
};

/*
 * Returns whether @code, an instruction with an operand relative to it, is a lea or mov of a whole
 * register, without other prefixes than REX: it ends in the displacement.
 */
static bool ends_in_displacement(struct fathom_bytes code)
{
	const uint64_t rex = (code.data[0] & 0xf0) == 0x40;
	const uint8_t *at = code.data + rex;

	return code.size == rex + 2 + DISPLACEMENT_SIZE && (at[1] & 0xc7) == 5 &&
	       (at[0] == LEA || at[0] == MOV_LOAD || at[0] == MOV_STORE);
}

/* Takes the instruction @c at @svma into the line. */
static void take_instruction(struct fathom_site_work *w, struct line *line, uint64_t svma,
			     const struct fathom_stack_code *c)
{
	const struct fathom_bytes code = { fathom_site_code(w, svma).data, c->size };
	struct fathom_code decoded;

	w->decoder->decode(w->decoder, code, svma, &decoded, NULL);
	/* Old code jumps to what is behind a prefix, LOCK. */
	if (decoded.bad || (decoded.relative && !ends_in_displacement(code)) ||
	    decoded.flow != FATHOM_FLOW_NEXT || code.data[0] == FATHOM_X86_LOCK) {
		line->n = 0;
		return;
	}
	if (line->n == FATHOM_SYSCALL_MOVED_MAX)
		line->n--;
	memmove(line->items + 1, line->items, line->n * sizeof *line->items);
	line->items[0] =
		(struct item){ c->size, decoded.relative, fathom_syscall_insn_line_has(code) };
	line->n++;
}

/* Plans to move the @n last instructions of the line, of @size bytes, for a jump before @call. */
static void move(const struct line *line, size_t n, size_t size, struct fathom_syscall_insn *call)
{
	size_t at = size;

	call->moved_size = (uint8_t)size;
	for (size_t i = 0; i < n; i++) {
		if (line->items[i].is_relative)
			call->displacements |= UINT64_C(1) << (at - DISPLACEMENT_SIZE);
		at -= line->items[i].size;
	}
}

/*
 * Does so with the end of the line from its last instruction of five bytes on; returns false if
 * there is none in reach.
 */
static bool move_from_long(const struct line *line, struct fathom_syscall_insn *call)
{
	size_t size = 0;

	for (size_t i = 0; i < line->n; i++) {
		size += line->items[i].size;
		if (size > FATHOM_SYSCALL_MOVED_MAX)
			return false;
		if (line->items[i].size >= JUMP_SIZE) {
			move(line, i + 1, size, call);
			return true;
		}
	}
	return false;
}

/* Returns whether the @n bytes @before stand right before @svma. */
static bool stands_before(struct fathom_site_work *w, uint64_t svma, const uint8_t *before,
			  size_t n)
{
	const struct fathom_bytes code = fathom_site_code(w, svma - n);

	return code.size >= n && memcmp(code.data, before, n) == 0;
}

/*
 * Returns whether the call at @svma is one of rt_sigreturn(): unwinders know frames of handlers by
 * its bytes. glibc has its call frame information begin within the padding before, so what is
 * decoded from there need not be instructions.
 */
static bool is_sigreturn(struct fathom_site_work *w, uint64_t svma)
{
	return stands_before(w, svma, fathom_x86_sigreturn,
			     sizeof fathom_x86_sigreturn - FATHOM_X86_SYSCALL_SIZE) ||
	       stands_before(w, svma, sigreturn_short, sizeof sigreturn_short);
}

/*
 * Adds the shortest end of the line that gives a jump room, before call number @call at @svma, to
 * @lines, if it is of simple instructions.
 */
static fathom_err add_line(const struct line *line, size_t call, uint64_t svma,
			   struct fathom_syscall_insn_lines *lines)
{
	struct fathom_syscall_insn_line add = { .call = call };
	size_t n = 0;

	while (add.size < JUMP_SIZE) {
		if (n == line->n || !line->items[n].is_simple)
			return FATHOM_OK;
		add.size = (uint8_t)(add.size + line->items[n++].size);
	}
	svma -= add.size;
	for (uint64_t off = line->items[--n].size; off < JUMP_SIZE; off += line->items[--n].size)
		add.inner[add.n_inner++] = svma + off;
	if (lines->n == FATHOM_SYSCALL_LINES_MAX)
		return FATHOM_OK;
	return fathom_array_push(lines, add) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* The calls of a module, and the bytes that stubs may use. */
struct search {
	struct gaps gaps;
	struct fathom_syscall_insn_lines lines;
	struct fathom_syscall_insns *to;
};

/* Adds the call at @svma, after @line. */
static fathom_err add_call(struct search *s, const struct line *line, uint64_t svma)
{
	struct fathom_syscall_insn call = { .svma = svma };

	if (!move_from_long(line, &call))
		call.padding = take_padding(&s->gaps, svma);
	if (!call.moved_size && !call.padding)
		FATHOM_TRY(add_line(line, s->to->n, svma, &s->lines));
	return fathom_array_push(s->to, call) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Adds the calls in the code from @svma to @end, which starts with an instruction. */
static fathom_err find_in(struct fathom_site_work *w, uint64_t svma, uint64_t end, struct search *s)
{
	struct line line = { .n = 0 };
	struct fathom_stack_code c;

	for (; svma < end && fathom_site_decode(w, svma, &c); svma += c.size) {
		const struct fathom_bytes code = fathom_site_code(w, svma);

		if (c.size != FATHOM_X86_SYSCALL_SIZE || !fathom_x86_is_syscall(code.data)) {
			take_instruction(w, &line, svma, &c);
			continue;
		}
		if ((!s->to->n || s->to->items[s->to->n - 1].svma < svma) && !is_sigreturn(w, svma))
			FATHOM_TRY(add_call(s, &line, svma));
		line.n = 0;
	}
	return FATHOM_OK;
}

static bool has_prefixes(const struct fathom_site_work *w)
{
	const struct fathom_object *o = w->object;

	for (uint32_t i = 1; i < o->n_sections; i++)
		if (o->sections[i].header.name.data &&
		    str_is(o->sections[i].header.name, "__patchable_function_entries"))
			return true;
	return false;
}

/* Plans to move the lines that are proven, for the calls after them. */
static fathom_err use_lines(struct fathom_site_work *w, struct search *s)
{
	FATHOM_TRY(fathom_syscall_insn_lines_prove(w, &s->lines));
	for (size_t i = 0; i < s->lines.n; i++) {
		const struct fathom_syscall_insn_line *line = &s->lines.items[i];

		if (line->is_refused)
			continue;
		s->to->items[line->call].moved_size = line->size;
		s->to->items[line->call].is_line = true;
	}
	return FATHOM_OK;
}

/* Adds the calls of all functions; those in which the bytes do not occur are not decoded. */
static fathom_err find_syscalls(struct fathom_site_work *w, struct fathom_syscall_insns *to)
{
	struct search s = { .to = to };
	fathom_err err;

	FATHOM_TRY(fathom_functions_init(&w->functions, w->module));
	/* The bytes before a function may be room for its own site. */
	err = has_prefixes(w) ? FATHOM_OK : find_gaps(w, &s.gaps);
	for (size_t i = 0; !err && i < w->functions.n; i++) {
		const struct fathom_function *f = &w->functions.items[i];
		struct fathom_bytes code = fathom_site_code(w, f->svma);
		const uint64_t end = fathom_functions_end(&w->functions, f);

		if (code.size > end - f->svma)
			code.size = end - f->svma;
		if (code.size && fathom_site_may_go_on(w, code.size) &&
		    memmem(code.data, (size_t)code.size, fathom_x86_syscall,
			   FATHOM_X86_SYSCALL_SIZE))
			err = find_in(w, f->svma, f->svma + code.size, &s);
	}
	if (!err)
		err = use_lines(w, &s);
	fathom_array_free(&s.gaps);
	fathom_array_free(&s.lines);
	return err;
}

/* Finds the calls of a module for x86-64. */
static fathom_err find_x86(struct fathom_site_work *w, struct fathom_syscall_insns *to)
{
	fathom_err err;

	FATHOM_TRY(fathom_x86_open(true, false, &w->decoder, NULL));
	err = find_syscalls(w, to);
	w->decoder->close(w->decoder);
	return err;
}

bool fathom_syscall_insn_move(const struct fathom_syscall_insn *c, uint64_t distance, uint8_t *code)
{
	for (size_t i = 0; i < c->moved_size; i++) {
		int32_t displacement;
		int64_t moved;

		if (!(c->displacements >> i & 1))
			continue;
		memcpy(&displacement, code + i, sizeof displacement);
		moved = displacement - (int64_t)distance;
		displacement = (int32_t)moved;
		if (displacement != moved)
			return false;
		memcpy(code + i, &displacement, sizeof displacement);
	}
	return true;
}

fathom_err fathom_syscall_insns_find(struct fathom_module *m, struct fathom_syscall_insns *ret)
{
	struct fathom_site_work w = { .module = m, .object = m->main };
	fathom_err err = FATHOM_OK;

	*ret = (struct fathom_syscall_insns){ 0 };
	if (!m->main->image.is64)
		return FATHOM_OK;
	w.left = MAX_LOOKS * m->main->image.bytes.size;
	if (m->main->image.machine == EM_X86_64)
		err = find_x86(&w, ret);
	else if (m->main->image.machine == EM_AARCH64)
		err = fathom_syscall_insns_find_arm(&w, ret);
	fathom_functions_deinit(&w.functions);
	if (err)
		fathom_array_free(ret);
	return err;
}
