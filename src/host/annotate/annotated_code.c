/* SPDX-License-Identifier: MIT */
/*
 * Instructions of functions. All spots of one module are together, those of one piece of code one
 * after the other by address, and one file is open at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "fathom/disasm.h"
#include "host/annotate/annotating.h"
#include "host/profile/module_files.h"
#include "safe/base/error.h"

/* A function that is larger has no instructions. */
#define MOST_CODE (UINT64_C(4) << 20)
/* Bytes of memory for each byte of code, about. */
#define MEMORY_EACH 128
/* Bytes after the last sample of a function whose size is not stated. */
#define LONGEST_INSTRUCTION 16

/* Flags with which no file is needed. */
#define NOTHING (FATHOM_ANNOTATE_NO_INSTRUCTIONS | FATHOM_ANNOTATE_NO_SOURCE)

/* A spot, as it is sorted. */
struct sorted {
	uint32_t module;
	uint32_t rank;    /* of the function */
	uint64_t start;   /* of the linked function; FATHOM_NO_ADDRESS: not known */
	uint64_t address; /* of the instruction */
	uint32_t spot;
};

/* Spots of one module, and its file. */
struct module_work {
	struct fathom_annotating *a;
	const struct sorted *spots;
	size_t n;
	struct fathom_target *target;
	enum fathom_reason reason; /* why there is no file */
};

/* One piece of code with its spots. */
struct piece {
	struct module_work *m;
	const struct sorted *spots;
	size_t n;
	uint32_t function;
	struct fathom_annotated_code code;
	struct fathom_key_map by_frame; /* places by address of the innermost frame */
	struct {
		FATHOM_ARRAY_OF(struct where);
	} places;
};

/* The place of an instruction in its function. */
struct where {
	uint32_t line;
	uint32_t inner;
	bool is_outside;
};

const char *fathom_annotate_copy(struct fathom_annotating *a, const char *s)
{
	const struct fathom_str str = { s, s ? (uint32_t)strlen(s) : 0 };
	const char *copy = s ? fathom_arena_strdup(&a->annotation->arena, str) : NULL;

	a->no_memory |= s && !copy;
	return copy;
}

static int compare_sorted(const void *pa, const void *pb)
{
	const struct sorted *a = pa;
	const struct sorted *b = pb;

	return a->module != b->module     ? u64_compare(a->module, b->module)
	       : a->rank != b->rank       ? u64_compare(a->rank, b->rank)
	       : a->start != b->start     ? u64_compare(a->start, b->start)
	       : a->address != b->address ? u64_compare(a->address, b->address)
					  : u64_compare(a->spot, b->spot);
}

/* Returns where the linked function of @l begins; FATHOM_NO_ADDRESS: it is not known. */
static uint64_t start_of(const struct fathom_profile *p, const struct fathom_profile_location *l)
{
	const uint8_t kind =
		l->module == UINT32_MAX ? FATHOM_PROFILE_MODULE_MEMORY : p->modules[l->module].kind;
	const bool is_file =
		kind == FATHOM_PROFILE_MODULE_FILE || kind == FATHOM_PROFILE_MODULE_VDSO;

	return is_file && l->answer->symbol ? l->pc.address - l->answer->offset : FATHOM_NO_ADDRESS;
}

/* Sorts the spots of all functions that are kept; NULL without memory. */
static struct sorted *sort_spots(const struct fathom_annotating *a, size_t *ret_n)
{
	struct sorted *all = malloc((a->spots.n + 1) * sizeof *all);
	size_t n = 0;

	for (uint32_t i = 0; all && i < a->spots.n; i++) {
		const struct fathom_annotate_spot *s = &a->spots.items[i];
		const struct fathom_profile_location *l = &a->profile->locations[s->location];

		if (s->weight.total_samples && a->functions.items[s->function].rank != NONE)
			all[n++] = (struct sorted){ l->module, a->functions.items[s->function].rank,
						    start_of(a->profile, l),
						    fathom_pc_lookup(l->pc), i };
	}
	if (n > 1)
		qsort(all, n, sizeof *all, compare_sorted);
	*ret_n = n;
	return all;
}

/* Returns why there is no file to read. */
static const char *reason_text(enum fathom_reason reason)
{
	switch (reason) {
	case FATHOM_REASON_BUILD_ID_MISMATCH:
		return "the file is of another build than the one that was recorded";
	case FATHOM_REASON_NO_PERMISSION:
		return "there is no permission to read the file";
	case FATHOM_REASON_TIMEOUT:
		return "the file did not answer in time";
	case FATHOM_REASON_CHANGED:
		return "the file has changed while it was read";
	case FATHOM_REASON_CORRUPT:
		return "the file is damaged";
	case FATHOM_REASON_LIMIT:
		return "the file meets a limit";
	default:
		return "the file is not there";
	}
}

/* Returns why spots of @module have no instructions, though nothing is wrong. */
static const char *kind_text(const struct fathom_profile *p, uint32_t module)
{
	const struct fathom_profile_module *m = module == UINT32_MAX ? NULL : &p->modules[module];

	switch (m ? m->kind : FATHOM_PROFILE_MODULE_MEMORY) {
	case FATHOM_PROFILE_MODULE_JIT:
		return "JIT code: its instructions are gone";
	case FATHOM_PROFILE_MODULE_KERNEL:
		return "code of the kernel, which is not read";
	case FATHOM_PROFILE_MODULE_WAITS:
		return "a wait, no code";
	case FATHOM_PROFILE_MODULE_SCRIPT:
		return "a script, which has no instructions: --by line has its lines";
	case FATHOM_PROFILE_MODULE_MEMORY:
		return "memory that no file describes";
	}
	return "no symbol says where the function begins";
}

/* Returns whether @f is the function of @p, where it is no linked one. */
static bool is_own(const struct piece *p, const struct fathom_frame *f)
{
	const struct fathom_annotating *a = p->m->a;
	const struct fathom_report_row *row = &a->rows.items[a->functions.items[p->function].row];
	const char *wanted = row->linkage_name ? row->linkage_name : row->name;
	const char *name = f->linkage_name ? f->linkage_name : f->function;

	if (!f->outer)
		return !p->code.is_inlined_here;
	return name && strcmp(name, wanted) == 0;
}

/* Finds the place of an instruction whose innermost frame is @innermost. */
static struct where find_where(struct piece *p, const struct fathom_frame *innermost,
			       uint64_t address)
{
	struct fathom_annotating *a = p->m->a;
	const struct fathom_frame *own = innermost;
	struct where w = { .line = NONE, .inner = NONE };
	struct fathom_annotate_origin origin = { .module = p->spots->module, .address = address };

	while (own && !is_own(p, own))
		own = own->outer;
	w.is_outside = !own && (innermost || p->code.is_inlined_here);
	if (!own || !a->has_lines)
		return w;
	origin.file = own->file;
	origin.line = own->line;
	w.line = fathom_annotate_line_at(a, p->function, NULL, &origin);
	origin.file = innermost->file;
	origin.line = innermost->line;
	if (own != innermost)
		w.inner = fathom_annotate_line_at(
			a, p->function, innermost->function ? innermost->function : "??", &origin);
	return w;
}

/* Returns the same, which is known for all instructions of one frame. */
static struct where where_of(struct piece *p, const struct fathom_instruction *i)
{
	struct fathom_annotating *a = p->m->a;
	const struct where none = { .line = NONE, .inner = NONE };
	uint32_t *number = fathom_key_map_at(&p->by_frame, (uintptr_t)i->frame);

	if (number && *number == FATHOM_KEY_NEW) {
		const struct where w = find_where(p, i->frame, i->address);

		if (w.line != NONE)
			a->lines.items[w.line].has_code = true;
		if (w.inner != NONE)
			a->lines.items[w.inner].has_code = true;
		if (fathom_array_push(&p->places, w))
			*number = (uint32_t)p->places.n - 1;
	}
	if (number && *number != FATHOM_KEY_NEW)
		return p->places.items[*number];
	a->no_memory = true;
	return none;
}

/* Appends @i to the function's instructions. */
static void take_instruction(struct piece *p, const struct fathom_instruction *i)
{
	struct fathom_annotating *a = p->m->a;
	struct fathom_annotate_function *f = &a->functions.items[p->function];
	const struct where w = where_of(p, i);
	const struct fathom_annotated_instruction to = {
		.address = i->address,
		.bytes = fathom_arena_alloc(&a->annotation->arena, i->size),
		.text = fathom_annotate_copy(a, i->text),
		.target = i->flags & FATHOM_INSTRUCTION_TARGET &&
					  i->reference == FATHOM_REFERENCE_BRANCH
				  ? i->target
				  : 0,
		.jump = NONE,
		.line = w.line,
		.inlined_line = w.inner,
		.code = (uint32_t)f->codes.n,
		.size = i->size,
		.flow = i->flow,
		.is_outside = w.is_outside,
	};

	if (!to.bytes || !fathom_array_push(&f->instructions, to)) {
		a->no_memory = true;
		return;
	}
	memcpy((void *)(uintptr_t)to.bytes, i->bytes, i->size);
	a->taken += sizeof to + i->size + i->text_size;
}

/* Returns the number of the instruction of @p at @address or, if it @holds it, around it. */
static uint32_t find_instruction(const struct piece *p, uint64_t address, bool holds)
{
	const struct fathom_annotate_function *f = &p->m->a->functions.items[p->function];
	size_t low = p->code.first;
	size_t high = f->instructions.n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct fathom_annotated_instruction *i = &f->instructions.items[middle];

		if (address >= i->address && address - i->address < (holds ? i->size : 1))
			return (uint32_t)middle;
		if (i->address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return NONE;
}

/* Finds the targets of jumps within the code. */
static void link_jumps(struct piece *p)
{
	struct fathom_annotate_function *f = &p->m->a->functions.items[p->function];

	for (size_t k = p->code.first; k < f->instructions.n; k++) {
		struct fathom_annotated_instruction *i = &f->instructions.items[k];

		if (i->target && (i->flow == FATHOM_FLOW_JUMP || i->flow == FATHOM_FLOW_BRANCH))
			i->jump = find_instruction(p, i->target, false);
	}
}

/* Gives the instruction @number a place, unless it has the last one; returns that. */
static uint32_t place_at(struct piece *p, uint32_t number)
{
	struct fathom_annotating *a = p->m->a;
	const struct fathom_annotate_place place = { .function = p->function,
						     .instruction = number };
	const struct fathom_annotate_place *last =
		a->places.n ? &a->places.items[a->places.n - 1] : NULL;

	if (!last || last->function != p->function || last->instruction != number)
		a->no_memory |= !fathom_array_push(&a->places, place);
	return (uint32_t)a->places.n - 1;
}

/* Gives instructions the weights of the spots, which are in their order. */
static void take_weights(struct piece *p)
{
	struct fathom_annotating *a = p->m->a;
	struct fathom_annotate_function *f = &a->functions.items[p->function];

	for (size_t k = 0; k < p->n && !a->no_memory; k++) {
		struct fathom_annotate_spot *s = &a->spots.items[p->spots[k].spot];
		const uint32_t number = find_instruction(p, p->spots[k].address, true);

		fathom_annotate_add(number == NONE ? &p->code.elsewhere
						   : &f->instructions.items[number].weight,
				    &s->weight);
		if (number != NONE)
			s->place = place_at(p, number);
	}
}

/* Decodes the code of @p, which ends before @end. */
static fathom_err decode(struct piece *p, uint64_t end, struct fathom_errinfo *reterr)
{
	struct fathom_annotating *a = p->m->a;
	const uint32_t flags = a->options->flags;
	const struct fathom_disasm_options o = {
		.size = sizeof o,
		.flags = (flags & FATHOM_ANNOTATE_INTEL ? FATHOM_DISASM_INTEL : 0) |
			 (flags & FATHOM_ANNOTATE_NO_DEMANGLE ? FATHOM_DISASM_NO_DEMANGLE : 0) |
			 (a->has_lines ? 0 : FATHOM_DISASM_NO_LINES)
	};
	const uint64_t last = p->spots[p->n - 1].address;
	struct fathom_disasm *d;

	FATHOM_TRY(fathom_disassemble(p->m->target, &o, p->code.start, end, &d, reterr));
	for (size_t i = 0; i < fathom_disasm_count(d) && !a->no_memory; i++) {
		const struct fathom_instruction *instruction = fathom_disasm_get(d, i);

		/* Code after the last sample may be of another function. */
		if (!p->code.size && instruction->address > last)
			break;
		take_instruction(p, instruction);
	}
	fathom_disasm_free(d);
	p->code.n = (uint32_t)a->functions.items[p->function].instructions.n - p->code.first;
	return a->no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

/* Returns the text of @info, which belongs to the annotation. */
static const char *error_text(struct fathom_annotating *a, const struct fathom_errinfo *info)
{
	char text[512];

	(void)fathom_errinfo_format(info, text, sizeof text);
	return fathom_annotate_copy(a, text);
}

/* Reads the instructions of @p, or says why there are none. */
static fathom_err read_code(struct piece *p, struct fathom_errinfo *reterr)
{
	struct fathom_annotating *a = p->m->a;
	const uint64_t last = p->spots[p->n - 1].address;
	const uint64_t size =
		p->code.size ? p->code.size : last - p->code.start + LONGEST_INSTRUCTION;
	struct fathom_errinfo why = { .err = FATHOM_OK };
	fathom_err err;

	if (!p->m->target)
		p->code.why = reason_text(p->m->reason);
	else if (size > MOST_CODE || p->code.start + size < p->code.start)
		p->code.why = "the function is larger than 4 MiB";
	else if (!fathom_annotate_fits(a, size * MEMORY_EACH))
		p->code.why = "its instructions do not fit the memory budget";
	if (p->code.why)
		return FATHOM_OK;
	err = decode(p, p->code.start + size, &why);
	if (!err)
		return FATHOM_OK;
	if (fathom_module_files_is_fatal(err)) {
		if (reterr)
			*reterr = why;
		return err;
	}
	p->code.why = err == FATHOM_E_NOT_FOUND ? "the file that has its names has no code"
						: error_text(a, &why);
	return FATHOM_OK;
}

/* Returns whether the spots of @p are of the linked function, and how large that is. */
static void describe(struct piece *p)
{
	struct fathom_annotating *a = p->m->a;
	const struct fathom_profile *profile = a->profile;
	const struct fathom_profile_location *l = NULL;

	p->code.is_inlined_here = 1;
	for (size_t i = 0; i < p->n; i++) {
		const struct fathom_annotate_spot *s = &a->spots.items[p->spots[i].spot];

		l = &profile->locations[s->location];
		if (!s->is_inlined)
			p->code.is_inlined_here = 0;
		if (l->answer->size > p->code.size)
			p->code.size = l->answer->size;
	}
	p->code.name = fathom_annotate_copy(a, l->answer->symbol);
	p->code.module = fathom_annotate_copy(a, profile->modules[l->module].path);
	p->code.module_index = l->module;
}

/* Makes one piece of code of @n @spots. */
static fathom_err make_piece(struct module_work *m, const struct sorted *spots, size_t n,
			     struct fathom_errinfo *reterr)
{
	struct fathom_annotating *a = m->a;
	const uint32_t function = a->spots.items[spots->spot].function;
	struct fathom_annotate_function *f = &a->functions.items[function];
	struct piece p = { .m = m, .spots = spots, .n = n, .function = function };
	fathom_err err = FATHOM_OK;

	p.code.start = spots->start;
	p.code.first = (uint32_t)f->instructions.n;
	describe(&p);
	if (!(a->options->flags & FATHOM_ANNOTATE_NO_INSTRUCTIONS)) {
		err = read_code(&p, reterr);
		link_jumps(&p);
		take_weights(&p);
	}
	fathom_annotate_add(&f->elsewhere, &p.code.elsewhere);
	a->no_memory |= !fathom_array_push(&f->codes, p.code);
	fathom_key_map_deinit(&p.by_frame);
	fathom_array_free(&p.places);
	return err;
}

/* Adds the weights of @n spots without any code. */
static void take_codeless(struct module_work *m, const struct sorted *spots, size_t n)
{
	struct fathom_annotating *a = m->a;
	struct fathom_annotate_function *f =
		&a->functions.items[a->spots.items[spots->spot].function];

	f->why = m->reason ? reason_text(m->reason) : kind_text(a->profile, spots->module);
	for (size_t i = 0; i < n; i++)
		fathom_annotate_add(&f->elsewhere, &a->spots.items[spots[i].spot].weight);
}

/* Makes the code and texts of all functions of a module. */
static fathom_err read_module(struct module_work *m, struct fathom_errinfo *reterr)
{
	struct fathom_annotating *a = m->a;

	for (size_t first = 0, end; first < m->n; first = end) {
		const struct sorted *s = &m->spots[first];

		for (end = first + 1;
		     end < m->n && m->spots[end].rank == s->rank && m->spots[end].start == s->start;
		     end++)
			continue;
		if (!fathom_goes_on(a->profile->session, FATHOM_PHASE_DISASM, first, m->n))
			return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0,
					   "the caller has given it up");
		if (s->start == FATHOM_NO_ADDRESS)
			take_codeless(m, s, end - first);
		else
			FATHOM_TRY(make_piece(m, s, end - first, reterr));
		if (end == m->n || m->spots[end].rank != s->rank)
			fathom_annotate_texts(a, a->spots.items[s->spot].function, s->module,
					      m->target);
	}
	return a->no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

/* Reads a module from its file. */
static fathom_err read_from(void *data, struct fathom_target *t, bool *ret_done,
			    struct fathom_errinfo *reterr)
{
	struct module_work *m = data;

	m->target = t;
	*ret_done = true;
	return read_module(m, reterr);
}

/* Reads the module of @m. */
static fathom_err read_any(struct module_work *m, struct fathom_errinfo *reterr)
{
	struct fathom_annotating *a = m->a;
	const struct fathom_annotation_options *o = a->options;
	const uint32_t module = m->spots->module;
	struct fathom_module_files files = { .session = a->profile->session,
					     .sysroot = o->sysroot,
					     .debug_dirs = o->debug_dirs,
					     .use = read_from,
					     .data = m };
	bool done = false;

	if (module == UINT32_MAX || (o->flags & NOTHING) == NOTHING)
		return read_module(m, reterr);
	files.module = &a->profile->modules[module];
	if (files.module->kind == FATHOM_PROFILE_MODULE_FILE)
		FATHOM_TRY(fathom_module_files_try(&files, &done, reterr));
	else if (files.module->kind == FATHOM_PROFILE_MODULE_VDSO)
		FATHOM_TRY(fathom_module_files_try_debug(&files, &done, reterr));
	else
		return read_module(m, reterr);
	m->reason = files.reason ? files.reason : FATHOM_REASON_NO_FILE;
	return done ? FATHOM_OK : read_module(m, reterr);
}

fathom_err fathom_annotate_read(struct fathom_annotating *a, struct fathom_errinfo *reterr)
{
	size_t n;
	struct sorted *all = sort_spots(a, &n);
	fathom_err err = all ? FATHOM_OK : fathom_fail_memory(reterr);

	for (size_t first = 0, end; !err && first < n; first = end) {
		struct module_work m = { .a = a, .spots = all + first };

		for (end = first + 1; end < n && all[end].module == all[first].module; end++)
			continue;
		m.n = end - first;
		err = read_any(&m, reterr);
	}
	free(all);
	return err;
}
