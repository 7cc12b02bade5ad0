/* SPDX-License-Identifier: MIT */
#include "host/filter/log_evidence.h"

#include <elf.h>

#include "host/file/bias.h"
#include "host/module/module.h"
#include "safe/unwind/ends.h"

/* Bytes of the longest function that is looked through. */
#define MAX_FUNCTION 16384

/* Mappings begin at multiples of this, at the least. */
#define PAGE 4096

const struct fathom_image *fathom_log_image_of(const struct fathom_log_module *m)
{
	return m->target && m->target->stated ? &m->target->stated->main->image : NULL;
}

/* Finds the first segment that is loaded, or with @is_code the only one with code. */
static bool find_segment(const struct fathom_image *image, bool is_code, struct fathom_segment *ret)
{
	bool is_found = false;

	for (uint32_t i = 0; i < image->phnum; i++) {
		struct fathom_segment s;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD ||
		    (is_code && !(s.flags & PF_X)))
			continue;
		if (is_found)
			return !is_code;
		*ret = s;
		is_found = true;
	}
	return is_found;
}

enum fathom_reason fathom_log_address_of(const struct fathom_log_number *n,
					 const struct fathom_log_module *module, uint64_t *ret)
{
	const struct fathom_image *image = fathom_log_image_of(module);
	struct fathom_segment s;
	uint64_t first;

	*ret = n->value + n->raised;
	if (!image) /* memory: the target's own */
		return n->base == FATHOM_LOG_LIVE ? FATHOM_REASON_NONE : FATHOM_REASON_NO_BASE;
	switch (n->is_file_offset ? FATHOM_LOG_FILE_OFFSET : n->base) {
	case FATHOM_LOG_FILE_OFFSET:
		return fathom_image_svma(image, *ret, ret) ? FATHOM_REASON_NONE
							   : FATHOM_REASON_UNMAPPED;
	case FATHOM_LOG_FIRST_MAPPING:
	case FATHOM_LOG_CODE_MAPPING:
		if (!find_segment(image, n->base == FATHOM_LOG_CODE_MAPPING, &s))
			return FATHOM_REASON_NO_BASE;
		first = s.vaddr & ~(uint64_t)(PAGE - 1);
		/* A part of a mapping whose rights were changed is one of its own. */
		if (n->base == FATHOM_LOG_CODE_MAPPING &&
		    n->mapping_size !=
			    ((s.vaddr - first + s.memsz + PAGE - 1) & ~(uint64_t)(PAGE - 1)))
			return FATHOM_REASON_NO_BASE;
		*ret += first;
		return FATHOM_REASON_NONE;
	case FATHOM_LOG_LIVE:
		return !n->module.size || image->type == ET_EXEC ? FATHOM_REASON_NONE
								 : FATHOM_REASON_NO_BASE;
	default:
		return FATHOM_REASON_NONE;
	}
}

static size_t read_memory(void *data, uint64_t address, void *to, size_t size)
{
	return (size_t)fathom_object_read(data, address, to, size);
}

void fathom_log_code_of(const struct fathom_log_module *m, struct fathom_log_code *ret)
{
	const struct fathom_image *image = fathom_log_image_of(m);

	*ret = (struct fathom_log_code){ .arch = image ? fathom_unwind_arch(image->machine)
						       : NULL };
	if (!ret->arch)
		return;
	ret->reader =
		(struct fathom_reader){ .read = read_memory, .data = m->target->stated->main };
	ret->memory = (struct fathom_step_memory){ &ret->reader, &ret->reader, image->swap };
}

bool fathom_log_is_after_other(const struct fathom_log_code *c, uint64_t address)
{
	uint8_t byte;

	return fathom_reader_read(&c->reader, address - 1, &byte, 1) &&
	       !fathom_step_is_behind_call(c->arch, &c->memory, address);
}

/* Returns whether the function of @fde, of code of @c, may go on in another one. */
static bool may_jump_out(const struct fathom_log_code *c, const struct fathom_fde *fde)
{
	uint8_t bytes[MAX_FUNCTION];
	const uint64_t size = fde->high - fde->low;

	return size > sizeof bytes ||
	       !fathom_reader_read(&c->reader, fde->low, bytes, (size_t)size) ||
	       c->arch->may_jump_out((struct fathom_bytes){ bytes, size });
}

enum fathom_log_link fathom_log_link(const struct fathom_log_module *m,
				     const struct fathom_log_code *c, uint64_t address,
				     uint64_t inner)
{
	struct fathom_unwind_tables *tables = &m->target->stated->unwind;
	struct fathom_fde callee;
	struct fathom_fde frame;
	uint64_t target;

	if (!fathom_step_call_target(c->arch, &c->memory, address, &target) ||
	    fathom_unwind_tables_find(tables, inner, &frame))
		return FATHOM_LOG_LINK_UNKNOWN;
	if (frame.low == target)
		return FATHOM_LOG_LINKED;
	/* Stubs for the linkage are one FDE; a call between two instructions leads anywhere. */
	if (fathom_unwind_tables_find(tables, target, &callee) || callee.low != target ||
	    may_jump_out(c, &callee))
		return FATHOM_LOG_LINK_UNKNOWN;
	return FATHOM_LOG_NOT_LINKED;
}

/* Returns how far a lowered number of code of @c is below the return address. */
static uint64_t lowered_by(const struct fathom_log_code *c)
{
	return c->arch ? c->arch->code_alignment : 1;
}

uint64_t fathom_log_raise(const struct fathom_log_number *n, const struct fathom_log_code *c,
			  uint64_t address)
{
	return n->kind == FATHOM_LOG_LOWERED ? address + lowered_by(c) : address;
}

uint64_t fathom_log_inside(const struct fathom_log_number *n, uint64_t address)
{
	return n->kind == FATHOM_LOG_RETURN ? address - 1 : address;
}

bool fathom_log_refutes(const struct fathom_log_module *m, const struct fathom_log_number *n,
			uint64_t address)
{
	const struct fathom_image *image = fathom_log_image_of(m);
	struct fathom_log_code c;

	fathom_log_code_of(m, &c);
	if (!c.arch || n->kind == FATHOM_LOG_EXACT || n->symbol_size)
		return false;
	if (image->phnum && !fathom_bias_covers(image, 0, address))
		return true;
	address = fathom_log_raise(n, &c, address);
	return fathom_log_is_after_other(&c, address) &&
	       !fathom_is_context_end(c.arch, &c.reader, address);
}

/* Makes @n the exact number that it was before it was taken for a return address. */
static void make_exact(struct fathom_log_number *n, const struct fathom_log_code *c)
{
	n->raised = fathom_log_raise(n, c, n->raised);
	n->kind = FATHOM_LOG_EXACT;
}

/* Returns whether @n, of @m, is where the code begins by which signal handlers return. */
static bool returns_from_handler(const struct fathom_log_number *n,
				 const struct fathom_log_module *m, const struct fathom_log_code *c)
{
	uint64_t address;

	if (n->kind == FATHOM_LOG_EXACT || n->base == FATHOM_LOG_SYMBOL || !c->arch ||
	    fathom_log_address_of(n, m, &address))
		return false;
	return fathom_step_is_signal_return(c->arch, &c->memory, fathom_log_raise(n, c, address));
}

/* Decides what @n, of @m, is, which its format leaves open: by the calls before it. */
static void settle(struct fathom_log_number *n, const struct fathom_log_module *m,
		   const struct fathom_log_code *c)
{
	uint64_t address;

	if (!n->is_doubtful || !c->arch || fathom_log_address_of(n, m, &address) ||
	    !fathom_log_is_after_other(c, address))
		return;
	if (fathom_step_is_behind_call(c->arch, &c->memory, address + lowered_by(c)))
		n->kind = FATHOM_LOG_LOWERED;
}

void fathom_log_mark_interrupted(struct fathom_log_scan *s,
				 const struct fathom_log_modules *modules,
				 const uint32_t *of_numbers, const char **interrupted)
{
	for (size_t i = 0; i < s->numbers.n; i++) {
		struct fathom_log_number *n = &s->numbers.items[i];
		const struct fathom_log_module *m = &modules->modules.items[of_numbers[i]];
		const bool is_interrupted = *interrupted == n->format;
		struct fathom_log_code c;

		fathom_log_code_of(m, &c);
		settle(n, m, &c);
		*interrupted = NULL;
		if (is_interrupted) {
			make_exact(n, &c);
		} else if (returns_from_handler(n, m, &c)) {
			make_exact(n, &c);
			*interrupted = n->format;
		}
	}
}

bool fathom_log_is_around(const struct fathom_log_number *inner,
			  const struct fathom_log_number *outer)
{
	/* One frame has several lines for what is inlined there. */
	return outer == inner + 1 && outer->format == inner->format &&
	       outer->process == inner->process && outer->value != inner->value &&
	       (outer->frame ? outer->frame == inner->frame + 1
			     : !inner->frame && outer->line == inner->line + 1);
}

/* Returns whether frame @n, of a stack, shows that its module @m is not where it was placed. */
static bool is_misplaced(const struct fathom_log_number *n, bool has_inner,
			 const struct fathom_log_module *m)
{
	const struct fathom_log_number *inner = n - 1;
	struct fathom_log_code c;
	uint64_t address;
	uint64_t inner_address;

	if (!n->is_placed || n->is_guessed || n->kind == FATHOM_LOG_EXACT || !m->target ||
	    fathom_log_address_of(n, m, &address))
		return false;
	if (fathom_log_refutes(m, n, address))
		return true;
	fathom_log_code_of(m, &c);
	if (!c.arch || !has_inner || !inner->is_placed || !fathom_log_is_around(inner, n) ||
	    fathom_log_address_of(inner, m, &inner_address))
		return false;
	return fathom_log_link(m, &c, fathom_log_raise(n, &c, address),
			       fathom_log_inside(inner, inner_address)) == FATHOM_LOG_NOT_LINKED;
}

size_t fathom_log_stack_end(const struct fathom_log_scan *s, size_t first)
{
	const struct fathom_log_number *items = s->numbers.items;
	size_t end = first + 1;

	while (end < s->numbers.n && items[end].is_frame && !items[end].is_first &&
	       items[end].format == items[first].format &&
	       items[end].process == items[first].process)
		end++;
	return end;
}

/* Checks the stack [@first, @end) of @s. */
static void check_stack(struct fathom_log_scan *s, struct fathom_log_modules *modules,
			const uint32_t *of_numbers, size_t first, size_t end)
{
	struct fathom_log_number *const items = s->numbers.items;

	for (size_t i = first; i < end; i++)
		modules->modules.items[of_numbers[i]].is_misplaced = false;
	for (size_t i = first; i < end; i++) {
		struct fathom_log_module *m = &modules->modules.items[of_numbers[i]];
		const bool has_inner = i > first && of_numbers[i - 1] == of_numbers[i];

		m->is_misplaced = m->is_misplaced || is_misplaced(&items[i], has_inner, m);
	}
	for (size_t i = first; i < end; i++)
		items[i].is_misplaced =
			items[i].is_placed && modules->modules.items[of_numbers[i]].is_misplaced;
}

void fathom_log_check_stacks(struct fathom_log_scan *s, struct fathom_log_modules *modules,
			     const uint32_t *of_numbers)
{
	size_t end;

	for (size_t first = 0; first < s->numbers.n; first = end) {
		end = fathom_log_stack_end(s, first);
		if (s->numbers.items[first].is_frame)
			check_stack(s, modules, of_numbers, first, end);
	}
}
