/* SPDX-License-Identifier: MIT */
#include "safe/elf/version.h"

#include <elf.h>

/* The records are the same in both classes. */
_Static_assert(sizeof(Elf64_Verdef) == 20 && sizeof(Elf32_Verdef) == 20, "Verdef");
_Static_assert(sizeof(Elf64_Verneed) == 16 && sizeof(Elf64_Vernaux) == 16, "Verneed");
/* Bytes of the smallest record that a step reads. */
#define MIN_RECORD 16

uint16_t fathom_version_number(const struct fathom_versions *v, uint32_t i)
{
	const struct fathom_bytes b = bytes_slice(v->numbers, (uint64_t)i * 2, 2);

	return b.size ? load_u16(b.data, v->swap) : FATHOM_VERSION_GLOBAL;
}

void fathom_version_walk_init(struct fathom_version_walk *w, const struct fathom_versions *v)
{
	*w = (struct fathom_version_walk){
		.versions = v,
		.n = v->n_defined,
		.steps = (v->defined.size + v->needed.size) / MIN_RECORD,
	};
}

/* Returns a cursor over @bytes from @at on. */
static struct fathom_cursor cursor_at(const struct fathom_versions *v, struct fathom_bytes bytes,
				      uint64_t at)
{
	struct fathom_cursor c = cur_init(bytes_from(bytes, at), v->swap);

	if (at > bytes.size)
		cur_fail(&c);
	return c;
}

/* Reads an Elf_Verdef and its first name. Its other names are the versions that it includes. */
static bool next_defined(struct fathom_version_walk *w, struct fathom_version *ret)
{
	const struct fathom_versions *v = w->versions;
	struct fathom_cursor c = cursor_at(v, v->defined, w->at);
	uint16_t flags;
	uint32_t aux;
	uint32_t next;

	cur_skip(&c, 2);
	flags = cur_u16(&c);
	ret->number = cur_u16(&c) & (uint16_t)~FATHOM_VERSION_HIDDEN;
	cur_skip(&c, 2 + 4);
	aux = cur_u32(&c);
	next = cur_u32(&c);
	if (!cur_ok(&c))
		return false;
	c = cursor_at(v, v->defined, w->at + aux);
	ret->name = fathom_bytes_str(v->strings, cur_u32(&c));
	if (!cur_ok(&c))
		ret->name = (struct fathom_str){ NULL, 0 };
	ret->is_needed = false;
	ret->is_base = (flags & VER_FLG_BASE) != 0;
	w->n = next ? w->n - 1 : 0;
	w->at += next;
	return true;
}

/* Reads an Elf_Verneed: moves to its first entry, and remembers where the next need is. */
static bool open_need(struct fathom_version_walk *w)
{
	const struct fathom_versions *v = w->versions;
	struct fathom_cursor c = cursor_at(v, v->needed, w->at);
	uint32_t aux;
	uint32_t next;

	cur_skip(&c, 2);
	w->n_aux = cur_u16(&c);
	cur_skip(&c, 4);
	aux = cur_u32(&c);
	next = cur_u32(&c);
	if (!cur_ok(&c))
		return false;
	w->aux = w->at + aux;
	w->n = next ? w->n - 1 : 0;
	w->at += next;
	return true;
}

/* Reads an Elf_Vernaux. */
static bool next_entry(struct fathom_version_walk *w, struct fathom_version *ret)
{
	const struct fathom_versions *v = w->versions;
	struct fathom_cursor c = cursor_at(v, v->needed, w->aux);
	uint32_t next;

	cur_skip(&c, 4 + 2);
	ret->number = cur_u16(&c) & (uint16_t)~FATHOM_VERSION_HIDDEN;
	ret->name = fathom_bytes_str(v->strings, cur_u32(&c));
	ret->is_needed = true;
	ret->is_base = false;
	next = cur_u32(&c);
	w->n_aux = next && cur_ok(&c) ? w->n_aux - 1 : 0;
	w->aux += next;
	return cur_ok(&c);
}

bool fathom_version_next(struct fathom_version_walk *w, struct fathom_version *ret)
{
	while (w->steps) {
		w->steps--;
		if (!w->is_in_needed && w->n && next_defined(w, ret))
			return true;
		if (!w->is_in_needed) {
			w->is_in_needed = true;
			w->at = 0;
			w->n = w->versions->n_needed;
			w->steps++;
			continue;
		}
		if (w->n_aux) {
			if (next_entry(w, ret))
				return true;
		} else if (!w->n || !open_need(w)) {
			return false;
		}
	}
	return false;
}
