/* SPDX-License-Identifier: MIT */
#include "host/publish/body.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/option_struct.h"

/* A function of this size would not fit a table with offsets of 32 bits. */
#define MOST_CODE INT32_MAX

static bool same_bytes(struct fathom_bytes a, struct fathom_bytes b)
{
	return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

static bool same_form(const struct fathom_cie_form *a, const struct fathom_cie_form *b)
{
	return a->personality == b->personality && a->code_alignment == b->code_alignment &&
	       a->data_alignment == b->data_alignment && a->return_register == b->return_register &&
	       a->has_lsda == b->has_lsda && a->is_signal_frame == b->is_signal_frame &&
	       a->uses_b_key == b->uses_b_key && same_bytes(a->instructions, b->instructions);
}

const struct fathom_jit_cie *fathom_jit_cie_find(struct fathom_jit_registry *r,
						 const struct fathom_cie_form *form)
{
	struct fathom_jit_cie *c;

	for (c = r->cies; c; c = c->next)
		if (same_form(&c->form, form))
			return c;
	c = calloc(1, sizeof *c + (size_t)form->instructions.size);
	if (!c)
		return NULL;
	c->form = *form;
	if (form->instructions.size)
		memcpy(c->bytes, form->instructions.data, (size_t)form->instructions.size);
	c->form.instructions.data = c->bytes;
	c->next = r->cies;
	r->cies = c;
	return c;
}

/* Returns the chain of @name: its hash is that of FNV-1a (draft-eastlake-fnv). */
static struct fathom_jit_file **files_of(struct fathom_jit_registry *r, const char *name)
{
	uint32_t hash = UINT32_C(0x811c9dc5);

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * UINT32_C(0x01000193);
	return &r->files[(hash ^ hash >> 16) % (sizeof r->files / sizeof *r->files)];
}

/* Finds the file @name, or makes it; NULL without memory. */
static struct fathom_jit_file *look_up_file(struct fathom_jit_registry *r, const char *name)
{
	struct fathom_jit_file **chain = files_of(r, name);
	struct fathom_jit_file *f;

	for (f = *chain; f; f = f->next)
		if (!strcmp(f->name, name))
			return f;
	f = calloc(1, sizeof *f + strlen(name) + 1);
	if (!f)
		return NULL;
	memcpy(f->name, name, strlen(name));
	f->next = *chain;
	*chain = f;
	return f;
}

/* Uses the file @name, or @other without a name; *ret is NULL without either. */
static bool find_file(struct fathom_jit_registry *r, const char *name,
		      struct fathom_jit_file *other, struct fathom_jit_file **ret)
{
	/* Lines of one function mostly come from one file. */
	if (name && !(other && !strcmp(other->name, name)))
		other = look_up_file(r, name);
	*ret = other;
	if (!other)
		return !name;
	other->uses++;
	return true;
}

/* Gives back @f, which may be NULL. */
static void release_file(struct fathom_jit_registry *r, struct fathom_jit_file *f)
{
	struct fathom_jit_file **link;

	if (!f || --f->uses)
		return;
	link = files_of(r, f->name);
	while (*link != f)
		link = &(*link)->next;
	*link = f->next;
	free(f);
}

static bool refuse(struct fathom_jit_blame *b, enum fathom_cause cause, size_t part,
		   const char *what)
{
	*b = (struct fathom_jit_blame){ .what = what, .cause = cause, .part = part };
	return false;
}

static bool check_lines(const struct fathom_jit_function *f, struct fathom_jit_blame *b)
{
	for (size_t i = 0; i < f->n_lines; i++)
		if (f->lines[i].reserved)
			return refuse(b, FATHOM_CAUSE_LINE, i, "lines: reserved is not 0");
		else if (f->lines[i].offset > f->code_size ||
			 (i && f->lines[i].offset < f->lines[i - 1].offset))
			return refuse(b, FATHOM_CAUSE_LINE, i,
				      "lines: not in order, or after the end of the code");
		else if (!f->file && !f->lines[i].file)
			return refuse(b, FATHOM_CAUSE_LINE, i, "lines: of no file");
	return true;
}

static bool check_inlines(const struct fathom_jit_function *f, struct fathom_jit_blame *b)
{
	for (size_t i = 0; i < f->n_inlines; i++)
		if (f->inlines[i].reserved)
			return refuse(b, FATHOM_CAUSE_INLINE, i, "inlines: reserved is not 0");
		else if (f->inlines[i].begin >= f->inlines[i].end ||
			 f->inlines[i].end > f->code_size || !f->inlines[i].function)
			return refuse(
				b, FATHOM_CAUSE_INLINE, i,
				"inlines: empty, after the end of the code, or without a name");
	return true;
}

static bool check_function(const struct fathom_jit_arena *arena,
			   const struct fathom_jit_function *f, struct fathom_jit_blame *b)
{
	const uint64_t low = (uintptr_t)f->code;

	if (!f->name || !*f->name)
		return refuse(b, FATHOM_CAUSE_CHANGE, 0, "function: without a name");
	if (!f->code_size || low < arena->low || low >= arena->high ||
	    f->code_size > arena->high - low)
		return refuse(b, FATHOM_CAUSE_CHANGE, 0,
			      "function: empty, or outside of its arena");
	if (f->unwind && arena->cie)
		return refuse(b, FATHOM_CAUSE_CHANGE, 0,
			      "function: has a rule, and so has its arena");
	return check_lines(f, b) && check_inlines(f, b);
}

/* Where the parts of a body lie after it. */
struct body_layout {
	size_t rows;
	size_t copies;
	size_t instructions;
	size_t name;
	size_t copy_names;
	size_t size;
};

static struct body_layout lay_out(const struct fathom_jit_function *f, size_t n_instructions)
{
	struct body_layout l;

	l.rows = sizeof(struct fathom_jit_body);
	l.copies = l.rows + f->n_lines * sizeof(struct fathom_jit_row);
	l.instructions = l.copies + f->n_inlines * sizeof(struct fathom_jit_copy);
	l.name = l.instructions + n_instructions;
	l.copy_names = l.name + strlen(f->name) + 1;
	l.size = l.copy_names;
	for (size_t i = 0; i < f->n_inlines; i++)
		l.size += strlen(f->inlines[i].function) + 1;
	return l;
}

static bool copy_lines(struct fathom_jit_registry *r, const struct fathom_jit_function *f,
		       struct fathom_jit_body *b, struct fathom_jit_row *to)
{
	struct fathom_jit_file *last = b->file;

	for (size_t i = 0; i < f->n_lines; i++) {
		const struct fathom_jit_line *l = &f->lines[i];

		if (!find_file(r, l->file, l->file ? last : b->file, &last))
			return false;
		to[i] = (struct fathom_jit_row){ last, l->offset, l->line, l->column };
		b->n_rows++;
	}
	return true;
}

static bool copy_inlines(struct fathom_jit_registry *r, const struct fathom_jit_function *f,
			 struct fathom_jit_body *b, struct fathom_jit_copy *to, char *names)
{
	for (size_t i = 0; i < f->n_inlines; i++) {
		const struct fathom_jit_inline *from = &f->inlines[i];
		const size_t size = strlen(from->function) + 1;

		if (!find_file(r, from->call_file, b->file, &to[i].file))
			return false;
		to[i].begin = from->begin;
		to[i].end = from->end;
		to[i].line = from->call_line;
		b->n_copies++;
		to[i].name = memcpy(names, from->function, size);
		names += size;
	}
	return true;
}

static fathom_err copy_function(struct fathom_jit_registry *r, const struct fathom_jit_function *f,
				const struct fathom_jit_frame *frame, struct fathom_jit_body **ret)
{
	const struct body_layout l = lay_out(f, (size_t)frame->instructions.size);
	uint8_t *at = malloc(l.size);
	struct fathom_jit_body *b = (void *)at;

	if (!b)
		return FATHOM_E_MEMORY;
	*b = (struct fathom_jit_body){
		.instructions = at + l.instructions,
		.name = (char *)at + l.name,
		.rows = (void *)(at + l.rows),
		.copies = (void *)(at + l.copies),
		.size = f->code_size,
		.framed = frame->size < f->code_size ? frame->size : f->code_size,
		.lsda = frame->lsda,
		.n_instructions = (uint32_t)frame->instructions.size,
		.n_name = (uint32_t)(l.copy_names - l.name - 1),
		.uses = 1,
	};
	if (frame->instructions.size)
		memcpy(at + l.instructions, frame->instructions.data,
		       (size_t)frame->instructions.size);
	memcpy(at + l.name, f->name, b->n_name + 1);
	if (frame->size)
		b->cie = fathom_jit_cie_find(r, &frame->cie);
	if ((frame->size && !b->cie) || !find_file(r, f->file, NULL, &b->file) ||
	    !copy_lines(r, f, b, (void *)(at + l.rows)) ||
	    !copy_inlines(r, f, b, (void *)(at + l.copies), (char *)at + l.copy_names)) {
		fathom_jit_body_release(r, b);
		return FATHOM_E_MEMORY;
	}
	*ret = b;
	return FATHOM_OK;
}

fathom_err fathom_jit_body_make(struct fathom_jit_registry *r, const struct fathom_jit_arena *arena,
				const struct fathom_jit_function *from,
				struct fathom_jit_body **ret, struct fathom_jit_blame *ret_blame)
{
	struct fathom_jit_frame frame = { .size = 0 };
	struct fathom_jit_function known = { .size = 0 };
	const struct fathom_jit_function *f = &known;
	fathom_err err = FATHOM_OK;

	(void)refuse(ret_blame, FATHOM_CAUSE_CHANGE, 0,
		     fathom_size_is_set(from)
			     ? "function: this version does not know it"
			     : "function: .size is not sizeof(struct fathom_jit_function)");
	if (!FATHOM_STRUCT_READ(from, &known) || !check_function(arena, f, ret_blame))
		return FATHOM_E_ARGUMENT;
	if (f->code_size > MOST_CODE || f->n_lines > UINT32_MAX || f->n_inlines > UINT32_MAX ||
	    strlen(f->name) > UINT16_MAX) {
		ret_blame->what = "function: 2 GiB of code, or a name of 64 KiB";
		return FATHOM_E_LIMIT;
	}
	if (f->unwind)
		err = fathom_jit_frame_read(f->unwind, r->machine, (uintptr_t)f->code, f->code_size,
					    &frame, ret_blame);
	if (err < 0)
		return err;
	err = copy_function(r, f, &frame, ret);
	fathom_jit_frame_deinit(&frame);
	return err;
}

void fathom_jit_body_release(struct fathom_jit_registry *r, struct fathom_jit_body *b)
{
	if (--b->uses)
		return;
	release_file(r, b->file);
	for (uint32_t i = 0; i < b->n_rows; i++)
		release_file(r, b->rows[i].file);
	for (uint32_t i = 0; i < b->n_copies; i++)
		release_file(r, b->copies[i].file);
	free(b);
}
