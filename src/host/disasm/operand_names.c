/* SPDX-License-Identifier: MIT */
/*
 * Names what instructions refer to. All addresses are looked up as one batch: branch targets,
 * slots, and what the slots hold. Then the texts are put together.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host/base/demangle.h"
#include "host/disasm/work.h"
#include "host/space/target.h"
#include "safe/base/cursor.h"

#define NO_QUESTION SIZE_MAX

/* A reference of one instruction, as far as it is known. */
struct reference {
	uint64_t target;
	size_t ask_target; /* index in questions, or NO_QUESTION */
	size_t ask_slot;
	size_t ask_constant;
	const char *name; /* name of the target, known without asking */
	uint64_t offset;
	bool has_target;
	bool has_slot;
	bool by_contents; /* the target is what the slot holds */
};

/* The naming of all references. */
struct naming {
	struct fathom_disasm_work *w;
	struct reference *references;      /* one per code */
	struct fathom_u64_array questions; /* addresses to look up */
	struct fathom_bytes_array text;    /* the final texts */
	/* address of the target's memory that was read last */
	uint64_t window;
	size_t window_size;
	uint8_t window_bytes[4096];
	struct fathom_frame *last_frame; /* made last, or NULL */
	fathom_err err;
};

/* A name to print. */
struct name {
	const char *text; /* NULL: none */
	uint64_t offset;
};

static size_t ask(struct naming *n, uint64_t address)
{
	if (fathom_array_push(&n->questions, address))
		return n->questions.n - 1;
	n->err = FATHOM_E_MEMORY;
	return NO_QUESTION;
}

static bool window_has(const struct naming *n, uint64_t address, size_t size)
{
	return range_inside(address - n->window, size, n->window_size);
}

/* Reads the memory at and after @address: slots stand side by side. */
static void move_window(struct naming *n, uint64_t address)
{
	n->window = address;
	n->window_size = 0;
	if (n->w->target)
		(void)fathom_target_read(n->w->target, address, n->window_bytes,
					 sizeof n->window_bytes, &n->window_size, NULL);
}

/* Returns @size bytes at @address, of the code itself or of the target's memory; or NULL. */
static const uint8_t *memory_at(struct naming *n, uint64_t address, size_t size)
{
	const struct fathom_disasm_work *w = n->w;
	const struct fathom_bytes own = bytes_slice(w->bytes, address - w->start, size);

	if (own.size)
		return own.data;
	if (!window_has(n, address, size))
		move_window(n, address & ~(uint64_t)(sizeof n->window_bytes - 1));
	if (!window_has(n, address, size))
		move_window(n, address);
	return window_has(n, address, size) ? n->window_bytes + (address - n->window) : NULL;
}

/* Returns a symbol's name as it is shown: demangled if wanted, and kept in the arena. */
static const char *keep_name(struct naming *n, struct fathom_str name)
{
	struct fathom_bytes_array out = { 0 };
	struct fathom_str shown = name;
	const char *kept;

	if (!(n->w->options.flags & FATHOM_DISASM_NO_DEMANGLE) &&
	    fathom_demangle(name, false, &out) == FATHOM_OK)
		shown = (struct fathom_str){ out.items, (uint32_t)out.n };
	kept = fathom_arena_strdup(&n->w->to->arena, shown);
	fathom_array_free(&out);
	if (!kept)
		n->err = FATHOM_E_MEMORY;
	return kept;
}

/* Returns whether the contents of @c's slot are what @c refers to. */
static bool holds_address(const struct naming *n, const struct fathom_code *c)
{
	return c->flow == FATHOM_FLOW_CALL || c->flow == FATHOM_FLOW_JUMP ||
	       (c->pointer && c->slot_size == n->w->decoder->word);
}

/* Reads what a file's relocations say about @slot; returns false if they say nothing. */
static bool read_fixup(struct naming *n, uint64_t slot, struct reference *r)
{
	struct fathom_fixup f;
	size_t at = 0;

	if (!n->w->fixups || !fathom_fixups_find(n->w->fixups, slot, slot + 1, &at, &f))
		return false;
	if (f.kind == FATHOM_FIXUP_BASE || (f.kind == FATHOM_FIXUP_ADDRESS && f.defined)) {
		r->target = f.value + f.addend;
		r->has_target = true;
		r->ask_target = ask(n, r->target);
	} else if (f.kind == FATHOM_FIXUP_ADDRESS && f.name.data) {
		r->name = keep_name(n, f.name);
		r->offset = f.addend;
	}
	/* A relocation of another kind: the contents will be replaced. */
	return true;
}

static void read_slot(struct naming *n, const struct fathom_code *c, struct reference *r)
{
	const uint8_t word = n->w->decoder->word;
	const bool swap = n->w->object && n->w->object->image.swap;
	const uint8_t *bytes;

	r->by_contents = true;
	if (read_fixup(n, c->value, r))
		return;
	/* An address there would have a relocation. */
	bytes = n->w->relocatable || n->w->movable ? NULL : memory_at(n, c->value, word);
	if (!bytes)
		return;
	r->target = word == 8 ? load_u64(bytes, swap) : load_u32(bytes, swap);
	r->has_target = true;
	r->ask_target = ask(n, r->target);
}

/* Code of a file that may be loaded anywhere cannot state an address, only a distance to one. */
static bool is_mere_number(const struct naming *n, const struct fathom_code *c,
			   const struct fathom_external *e)
{
	return n->w->movable && !c->relative && !(e && e->name.data);
}

static void begin_reference(struct naming *n, size_t i)
{
	const struct fathom_code *c = fathom_work_code(n->w, i);
	const struct fathom_external *e = n->w->external.n ? n->w->external.items + i : NULL;
	struct reference *r = &n->references[i];

	*r = (struct reference){ .ask_target = NO_QUESTION,
				 .ask_slot = NO_QUESTION,
				 .ask_constant = NO_QUESTION };
	if (!c->kind || is_mere_number(n, c, e))
		return;
	if (c->has_constant && !n->w->movable)
		r->ask_constant = ask(n, c->constant);
	if (e && e->name.data) {
		r->name = keep_name(n, e->name);
		r->offset = e->offset;
		r->by_contents = c->kind == FATHOM_REFERENCE_SLOT;
		return;
	}
	if (c->kind != FATHOM_REFERENCE_SLOT) {
		r->target = c->value;
		r->has_target = true;
		r->ask_target = ask(n, c->value);
		return;
	}
	r->has_slot = true;
	r->ask_slot = ask(n, c->value);
	if (holds_address(n, c))
		read_slot(n, c, r);
}

static fathom_err look_up(struct naming *n, struct fathom_errinfo *reterr)
{
	const struct fathom_disasm_work *w = n->w;
	const uint32_t flags = w->options.flags;
	struct fathom_batch_options o = { .flags = FATHOM_NAMES_ONLY | FATHOM_BATCH_UNFOLD };
	struct fathom_disasm *to = w->to;
	uint64_t *own;
	fathom_err err;

	if (!w->target)
		return FATHOM_OK;
	if (flags & FATHOM_DISASM_NO_DEMANGLE)
		o.flags |= FATHOM_NO_DEMANGLE;
	FATHOM_TRY(fathom_target_answer(w->target, &o, n->questions.items, n->questions.n,
					&to->names, reterr));
	own = malloc((w->codes.n + 1) * sizeof *own);
	if (!own)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < w->codes.n; i++)
		own[i] = fathom_work_code(w, i)->address;
	if (!(flags & FATHOM_DISASM_NO_LINES))
		o.flags &= ~(uint32_t)FATHOM_NAMES_ONLY;
	if (flags & FATHOM_DISASM_ONE_SHOT)
		o.flags |= FATHOM_ONE_SHOT;
	err = fathom_target_answer(w->target, &o, own, w->codes.n, &to->places, reterr);
	free(own);
	return err;
}

/* Bytes for the longest name from the caller. */
#define MAX_CALLERS_NAME 4096

static struct name callers_name(struct naming *n, uint64_t address)
{
	const struct fathom_disasm_options *o = &n->w->options;
	char text[MAX_CALLERS_NAME];
	struct name name = { NULL, 0 };
	size_t size;

	if (!o->name || !o->name(o->name_data, address, text, sizeof text, &name.offset))
		return (struct name){ NULL, 0 };
	size = strnlen(text, sizeof text - 1);
	name.text =
		fathom_arena_strdup(&n->w->to->arena, (struct fathom_str){ text, (uint32_t)size });
	if (!name.text)
		n->err = FATHOM_E_MEMORY;
	return name;
}

/* Names a place without a symbol in a relocatable file, such as a string, by its section. */
static struct name section_name(struct naming *n, uint64_t address)
{
	const struct fathom_object *o = n->w->object;
	const uint32_t i = fathom_object_section_at(o, address);
	struct name name = { NULL, address - o->sections[i].base };

	if (i && o->sections[i].header.name.size)
		name.text = keep_name(n, o->sections[i].header.name);
	return name;
}

/* Returns the symbol that covers address number @question; bounds alone are no name. */
static struct name answer_to(struct naming *n, size_t question)
{
	const struct fathom_answers *answers = n->w->to->names;
	const struct fathom_answer *a;
	struct name name;
	uint64_t address;

	if (question == NO_QUESTION)
		return (struct name){ NULL, 0 };
	if (answers) {
		a = fathom_answers_get(answers, question);
		if (a->symbol && a->source != FATHOM_SOURCE_FDE) {
			name.text = a->symbol;
			name.offset = a->offset;
			/* A slot's place in the linker's table says nothing about it. */
			if (!name.offset || strcmp(name.text, "_GLOBAL_OFFSET_TABLE_") != 0)
				return name;
		}
	}
	address = n->questions.items[question];
	name = callers_name(n, address);
	return name.text || !n->w->relocatable ? name : section_name(n, address);
}

static bool is_plausible_constant(const struct naming *n, uint64_t value, struct name name)
{
	const struct fathom_object *o = n->w->object;

	return name.offset == 0 || (o && !fathom_object_has_code(o, value));
}

/*
 * Returns whether @name may be shown for a constant, or for the contents of a data slot: many
 * numbers happen to lie in a program. References to code are to its first byte.
 */
static bool is_plausible(const struct naming *n, const struct fathom_code *c,
			 const struct reference *r, struct name name)
{
	if (c->kind == FATHOM_REFERENCE_SLOT)
		return name.offset == 0 || r->name || c->flow == FATHOM_FLOW_CALL ||
		       c->flow == FATHOM_FLOW_JUMP;
	return c->relative || c->kind == FATHOM_REFERENCE_BRANCH || r->name ||
	       is_plausible_constant(n, r->target, name);
}

static void put_bytes(struct naming *n, const char *s, size_t size)
{
	if (!fathom_array_room(&n->text, size)) {
		n->err = FATHOM_E_MEMORY;
		return;
	}
	memcpy(n->text.items + n->text.n, s, size);
	n->text.n += size;
}

static void put(struct naming *n, const char *s)
{
	put_bytes(n, s, strlen(s));
}

static void put_hex(struct naming *n, uint64_t value)
{
	char digits[32];
	struct fathom_text t = text_init(digits, sizeof digits);

	fathom_text_hex(&t, value);
	put_bytes(n, digits, t.len);
}

/* Writes an address; in a relocatable file, from the start of its section. */
static void put_address(struct naming *n, uint64_t address)
{
	const struct fathom_object *o = n->w->object;

	if (n->w->relocatable)
		address -= o->sections[fathom_object_section_at(o, address)].base;
	put_hex(n, address);
}

static void put_name(struct naming *n, struct name name)
{
	put(n, name.text);
	if (!name.offset)
		return;
	/* Some code refers to its tables from a little before the symbol. */
	put(n, (int64_t)name.offset < 0 ? "-" : "+");
	put_hex(n, (int64_t)name.offset < 0 ? 0 - name.offset : name.offset);
}

/* Writes "SLOT", "TARGET", or "SLOT -> TARGET", in parentheses. */
static void put_names(struct naming *n, struct name slot, struct name target)
{
	put(n, "(");
	if (slot.text)
		put_name(n, slot);
	if (slot.text && target.text)
		put(n, " -> ");
	if (target.text)
		put_name(n, target);
	put(n, ")");
}

/* Writes the comment of an instruction without the address in its text; returns false if none. */
static bool put_comment(struct naming *n, const struct fathom_code *c, const struct reference *r,
			struct name slot, struct name target)
{
	const bool known = r->has_slot || r->has_target;

	if (!slot.text && !target.text && !(known && c->relative))
		return false;
	put(n, "        ");
	put(n, n->w->decoder->comment);
	put(n, " ");
	if (known)
		put_address(n, r->has_slot ? c->value : r->target);
	if (slot.text || target.text) {
		put(n, known ? " " : "");
		put_names(n, slot, target);
	}
	return true;
}

/* Adds the name of a constant beside memory to the comment. */
static void put_constant(struct naming *n, const struct fathom_code *c, const struct reference *r,
			 bool commented)
{
	const struct name name = answer_to(n, r->ask_constant);

	if (!name.text || !is_plausible_constant(n, c->constant, name))
		return;
	if (commented) {
		put(n, ", ");
	} else {
		put(n, "        ");
		put(n, n->w->decoder->comment);
		put(n, " ");
	}
	put_address(n, c->constant);
	put(n, " ");
	put_names(n, (struct name){ NULL, 0 }, name);
}

/* Writes the text of instruction @i, with names. */
static void put_text(struct naming *n, size_t i, struct name slot, struct name target)
{
	const struct fathom_code *c = fathom_work_code(n->w, i);
	const struct reference *r = &n->references[i];
	const char *text = n->w->text.items + c->text;
	const bool stated = c->operand_size && c->kind;
	const bool external = stated && !r->has_target && !r->has_slot && target.text;

	if (stated && n->w->relocatable) {
		put_bytes(n, text, c->operand);
		if (external)
			put_name(n, target);
		else
			put_address(n, r->has_slot ? c->value : r->target);
		put_bytes(n, text + c->operand + c->operand_size,
			  (size_t)(c->text_size - c->operand - c->operand_size));
	} else {
		put_bytes(n, text, c->text_size);
	}
	if (external)
		return;
	if (!stated) {
		put_constant(n, c, r, put_comment(n, c, r, slot, target));
	} else if (slot.text || target.text) {
		put(n, " ");
		put_names(n, slot, target);
	}
}

/* Returns the frame of code of which @a knows only the symbol; the last one if it is the same. */
static const struct fathom_frame *symbol_frame(struct naming *n, const struct fathom_answer *a)
{
	const uint64_t start = a->pc.address - a->offset;
	struct fathom_frame *frame = n->last_frame;

	if (frame && frame->function == a->symbol && frame->start == start)
		return frame;
	frame = fathom_arena_alloc(&n->w->to->arena, sizeof *frame);
	if (!frame) {
		n->err = FATHOM_E_MEMORY;
		return NULL;
	}
	*frame = (struct fathom_frame){ .function = a->symbol,
					.linkage_name = a->linkage_name,
					.start = start,
					.function_size = a->symbol_size,
					.linkage_size = a->linkage_size };
	n->last_frame = frame;
	return frame;
}

/* Fills in where the instruction itself is. */
static void fill_place(struct naming *n, size_t i, struct fathom_instruction *to)
{
	const struct fathom_answers *places = n->w->to->places;
	const struct fathom_answer *a = places ? fathom_answers_get(places, i) : NULL;

	to->module_address = a ? a->module_address : FATHOM_NO_ADDRESS;
	if (!a)
		return;
	to->frame = a->frame || !a->symbol ? a->frame : symbol_frame(n, a);
	to->function_offset = a->offset;
}

static void make_instruction(struct naming *n, size_t i)
{
	const struct fathom_code *c = fathom_work_code(n->w, i);
	const struct reference *r = &n->references[i];
	struct fathom_instruction *to = &n->w->to->instructions[i];
	struct name slot = answer_to(n, r->ask_slot);
	struct name target = { r->name, r->offset };
	const bool branches = c->flow == FATHOM_FLOW_CALL || c->flow == FATHOM_FLOW_JUMP;

	if (!target.text)
		target = answer_to(n, r->ask_target);
	if (target.text && !is_plausible(n, c, r, target))
		target = (struct name){ NULL, 0 };
	/* Data with a name is shown by it, not by its contents at the moment. */
	if (slot.text && !branches && !r->name)
		target = (struct name){ NULL, 0 };
	*to = (struct fathom_instruction){ .address = c->address,
					   .bytes = n->w->to->bytes + (c->address - n->w->start),
					   .slot = r->has_slot ? c->value : 0,
					   .target_name = target.text,
					   .target_offset = target.offset,
					   .slot_name = slot.text,
					   .code_size = c->text_size,
					   .size = c->size,
					   .flow = c->flow,
					   .reference = c->kind,
					   .writes = c->writes };
	to->flags = (uint8_t)(c->bad ? FATHOM_INSTRUCTION_BAD : 0);
	if (c->padding)
		to->flags |= FATHOM_INSTRUCTION_PADDING;
	if (r->has_slot)
		to->flags |= FATHOM_INSTRUCTION_SLOT;
	if (r->has_target && (!r->by_contents || target.text || branches)) {
		to->target = r->target;
		to->flags |= FATHOM_INSTRUCTION_TARGET;
	} else if (r->has_slot && !target.text) {
		to->target = c->value;
		to->target_name = slot.text;
		to->target_offset = slot.offset;
		to->flags |= FATHOM_INSTRUCTION_TARGET;
	}
	/* Constants without a name are numbers. */
	if (c->kind == FATHOM_REFERENCE_VALUE && !target.text) {
		to->flags &= (uint8_t)~FATHOM_INSTRUCTION_TARGET;
		to->target = 0;
	}
	if (!(to->flags & (FATHOM_INSTRUCTION_TARGET | FATHOM_INSTRUCTION_SLOT)) && !target.text)
		to->reference = FATHOM_REFERENCE_NONE;
	fill_place(n, i, to);
	to->text_size = (uint32_t)n->text.n;
	put_text(n, i, slot, target);
	to->text_size = (uint32_t)(n->text.n - to->text_size);
	put_bytes(n, "", 1);
}

static fathom_err make_instructions(struct naming *n)
{
	struct fathom_disasm *to = n->w->to;
	const char *text;

	to->instructions = malloc((n->w->codes.n + 1) * sizeof *to->instructions);
	if (!to->instructions)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < n->w->codes.n && !n->err; i++)
		make_instruction(n, i);
	if (n->err)
		return n->err;
	to->n = n->w->codes.n;
	to->texts = n->text.items;
	n->text.items = NULL;
	text = to->texts;
	for (size_t i = 0; i < to->n; i++) {
		to->instructions[i].text = text;
		text += to->instructions[i].text_size + 1;
	}
	return FATHOM_OK;
}

fathom_err fathom_disasm_name(struct fathom_disasm_work *w, struct fathom_errinfo *reterr)
{
	struct naming *n = calloc(1, sizeof *n);
	fathom_err err = FATHOM_E_MEMORY;

	if (!n)
		return fathom_fail_memory(reterr);
	n->w = w;
	n->references = malloc((w->codes.n + 1) * sizeof *n->references);
	if (n->references && fathom_array_room(&n->questions, 1)) {
		for (size_t i = 0; i < w->codes.n; i++)
			begin_reference(n, i);
		err = n->err ? n->err : look_up(n, reterr);
	}
	if (!err)
		err = make_instructions(n);
	if (err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(reterr);
	free(n->references);
	fathom_array_free(&n->questions);
	fathom_array_free(&n->text);
	free(n);
	return err;
}
