/* SPDX-License-Identifier: MIT */
#include "host/sites/site_work.h"

#include "host/stack/follow_aarch64.h"

/* Makes w->code the piece of code that holds @svma; an empty one if the file has none there. */
static void load_code(struct fathom_site_work *w, uint64_t svma)
{
	const struct fathom_object *o = w->object;
	const struct fathom_range *range = fathom_object_code_at(o, svma);
	const uint32_t section = fathom_object_section_at(o, svma);
	const struct fathom_section *s = &o->sections[section].header;
	struct fathom_bytes bytes;
	uint64_t low = 0;

	w->code = (struct fathom_bytes){ NULL, 0 };
	if (!range || (section && s->type == SHT_NOBITS))
		return;
	if (o->image.type == ET_REL) {
		if (!section)
			return;
		low = o->sections[section].base;
		bytes = fathom_image_section_bytes(&o->image, s);
	} else {
		bytes = fathom_image_loaded_at(&o->image, svma, &low);
	}
	w->code_svma = range->low > low ? range->low : low;
	bytes = bytes_from(bytes, w->code_svma - low);
	if (bytes.size > range->high - w->code_svma)
		bytes.size = range->high - w->code_svma;
	w->code = bytes;
}

struct fathom_bytes fathom_site_code(struct fathom_site_work *w, uint64_t svma)
{
	if (svma < w->code_svma || svma - w->code_svma >= w->code.size)
		load_code(w, svma);
	return bytes_from(w->code, svma - w->code_svma);
}

fathom_err fathom_site_add(struct fathom_site_work *w, const struct fathom_raw_site *site)
{
	if (w->to->n == FATHOM_SITES_MAX)
		return FATHOM_E_LIMIT;
	return fathom_array_push(w->to, *site) ? FATHOM_OK : FATHOM_E_MEMORY;
}

bool fathom_site_decode(struct fathom_site_work *w, uint64_t svma, struct fathom_stack_code *ret)
{
	struct fathom_bytes code = fathom_site_code(w, svma);

	if (!fathom_site_may_go_on(w, 1))
		return false;
	if (w->is_aarch64) {
		if (code.size < 4 || svma % 4)
			return false;
		fathom_aarch64_flow(code.data, svma, ret);
		return true;
	}
	if (!code.size || !w->decoder)
		return false;
	if (code.size > FATHOM_MAX_INSN)
		code.size = FATHOM_MAX_INSN;
	w->decoder->decode_stack(w->decoder, code, svma, ret);
	return !ret->bad;
}

struct fathom_site_line fathom_site_line_init(uint64_t start)
{
	return (struct fathom_site_line){ .start = start, .svma = start, .is_prologue = true };
}

/* Numbers of x86-64's registers, as in encodings. */
enum { RSP = 4, RBP = 5, R10 = 10 };

/* Returns whether an instruction belongs to a prologue: it saves registers or makes the frame. */
static bool is_of_prologue(const struct fathom_stack_code *c)
{
	switch (c->move) {
	case FATHOM_MOVE_PUSH:
		return true;
	case FATHOM_MOVE_COPY:
		return c->reg == RSP || c->reg == RBP || c->reg == R10;
	case FATHOM_MOVE_OTHER: /* aligns the stack, or touches its pages */
		return c->is_landing || !(c->writes & ~(UINT32_C(1) << RSP));
	default:
		return false;
	}
}

/* Follows the stack pointer through @c, of x86. */
static void follow_stack(struct fathom_site_line *line, const struct fathom_stack_code *c)
{
	const bool is_straight = line->svma >= line->joined;
	const bool is_push = c->move == FATHOM_MOVE_PUSH;
	const bool is_moved = c->move == FATHOM_MOVE_COPY && c->reg == RSP;

	/* Where only one of the ways comes through, the others do not move it. */
	if (is_push && is_straight)
		line->frame += c->width;
	else if (is_moved && is_straight && c->base == RSP)
		line->frame -= c->value;
	else if (is_push || is_moved || c->move == FATHOM_MOVE_POP ||
		 c->move == FATHOM_MOVE_LEAVE || c->move == FATHOM_MOVE_ENTER ||
		 c->writes >> RSP & 1)
		line->is_lost = true;
}

bool fathom_site_line_next(struct fathom_site_work *w, struct fathom_site_line *line)
{
	struct fathom_stack_code c;

	if (!fathom_site_decode(w, line->svma, &c))
		return false;
	if (c.flow == FATHOM_FLOW_BRANCH) {
		/* Prologues may touch the pages of a large frame in a loop. */
		if (!c.is_direct || c.target < line->start)
			return false;
		if (c.target > line->joined)
			line->joined = c.target;
	} else if (c.flow != FATHOM_FLOW_NEXT) {
		return false;
	}
	line->has_frame |= c.move == FATHOM_MOVE_COPY && c.reg == RBP && c.base == RSP;
	line->is_prologue = line->is_prologue && is_of_prologue(&c);
	if (!w->is_aarch64)
		follow_stack(line, &c);
	line->svma += c.size;
	return true;
}

bool fathom_site_is_instruction(struct fathom_site_work *w, struct fathom_site_line *line,
				uint64_t svma)
{
	const struct fathom_function *f = fathom_functions_holding(&w->functions, svma);
	struct fathom_stack_code c;

	if (w->is_aarch64)
		return f && svma % 4 == 0;
	if (!f)
		return false;
	if (line->start != f->svma || line->svma > svma)
		*line = fathom_site_line_init(f->svma);
	while (line->svma < svma && fathom_site_decode(w, line->svma, &c))
		line->svma += c.size;
	return line->svma == svma;
}

struct fathom_site_words fathom_site_words_init(struct fathom_site_work *w, const char *name)
{
	return (struct fathom_site_words){ .w = w, .name = name };
}

/* Moves to the next section of that name; returns false if there is none. */
static bool next_section(struct fathom_site_words *words)
{
	const struct fathom_object *o = words->w->object;

	for (uint32_t i = words->section + 1; i < o->n_sections; i++) {
		const struct fathom_section *s = &o->sections[i].header;

		if (!s->name.data || !str_is(s->name, words->name) || !(s->flags & SHF_ALLOC))
			continue;
		words->section = i;
		words->off = 0;
		words->fixup = 0;
		return true;
	}
	words->section = o->n_sections;
	return false;
}

uint64_t fathom_site_word(struct fathom_site_work *w, struct fathom_bytes word, uint64_t svma,
			  size_t *i)
{
	struct fathom_fixup f;

	while (fathom_fixups_find(w->fixups, svma, svma + 8, i, &f)) {
		++*i;
		if (f.svma != svma)
			continue;
		if (f.kind == FATHOM_FIXUP_BASE)
			return f.addend;
		if (f.kind == FATHOM_FIXUP_ADDRESS && f.defined)
			return f.value + f.addend;
	}
	return word.size < 8 ? 0 : load_u64(word.data, w->object->image.swap);
}

bool fathom_site_words_next(struct fathom_site_words *words, uint64_t *ret)
{
	const struct fathom_object *o = words->w->object;
	struct fathom_bytes word = { NULL, 0 };

	for (;;) {
		if (words->section && words->section < o->n_sections)
			word = bytes_slice(fathom_image_section_bytes(
						   &o->image, &o->sections[words->section].header),
					   words->off, 8);
		if (word.size)
			break;
		if (!next_section(words))
			return false;
	}
	*ret = fathom_site_word(words->w, word, o->sections[words->section].base + words->off,
				&words->fixup);
	words->off += 8;
	return true;
}
