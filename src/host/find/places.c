/* SPDX-License-Identifier: MIT */
/*
 * Run-time addresses of symbols: the function that an IFUNC resolved to, and each thread's copy of
 * a TLS symbol.
 */
#include <stdlib.h>

#include "host/base/array.h"
#include "host/find/search.h"
#include "host/runtime/ifunc.h"
#include "host/runtime/tls.h"
#include "safe/base/text.h"

/* A thread's copy of a TLS symbol. */
struct copy {
	uint64_t avma;
	int32_t tid;
};

struct copy_array {
	FATHOM_ARRAY_OF(struct copy);
};

/* The copies of a TLS symbol. */
struct copies {
	struct fathom_find *f;
	int32_t only; /* the thread whose copy is wanted; 0: all */
	struct copy_array all;
	bool failed; /* no memory */
};

static bool take_copy(int32_t tid, uint64_t avma, void *data)
{
	struct copies *c = data;
	const struct copy copy = { avma, tid };

	if (c->only && tid != c->only)
		return true;
	c->failed = !fathom_budget_room(&c->f->budget, &c->all, 1);
	if (c->failed)
		return false;
	c->all.items[c->all.n++] = copy;
	return !c->only;
}

/* Sorts by thread number, the main thread first. */
static int compare_copies(const void *a, const void *b, void *data)
{
	const int32_t first = *(const int32_t *)data;
	const int32_t x = ((const struct copy *)a)->tid;
	const int32_t y = ((const struct copy *)b)->tid;

	if ((x == first) != (y == first))
		return x == first ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Returns the main thread's number in the process's own PID namespace; 0 if unknown. */
static int32_t main_tid(struct fathom_find *f)
{
	const struct fathom_target *t = f->view->target;

	if (f->main_tid < 0)
		f->main_tid = t->ops->main_tid ? t->ops->main_tid(t) : 0;
	return f->main_tid;
}

static fathom_err walk(struct copies *c, const struct fathom_candidate *s)
{
	const fathom_err err =
		fathom_tls_walk(&c->f->runtime, s->module, s->symbol.value, take_copy, c);

	return c->failed ? FATHOM_E_MEMORY : err;
}

/* Returns whether one copy is enough. */
static bool wants_one(const struct fathom_find *f)
{
	return f->limit == 1 || f->yield == FATHOM_YIELD_ADDRESSES;
}

/*
 * Finds the wanted copies of @c. If only the first is wanted, tries the main thread first.
 * FATHOM_E_UNSUPPORTED: the copies cannot be known; FATHOM_E_MEMORY.
 */
static fathom_err find_copies(struct copies *ret, const struct fathom_candidate *c)
{
	fathom_err err;

	if (!ret->only && wants_one(ret->f)) {
		ret->only = main_tid(ret->f);
		err = walk(ret, c);
		ret->only = 0;
		if (ret->all.n || err)
			return err;
	}
	return walk(ret, c);
}

/* Notes that the requested thread has no copy of @m. */
static void note_no_copy(struct fathom_find *f, const struct fathom_match *m)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, FATHOM_E_NOT_FOUND, "", 0,
			  "the thread that was chosen has no copy of it: it has not used it, or "
			  "there is no such thread");
	fathom_copy_cstr(info.file, sizeof info.file, m->name ? m->name : "");
	fathom_notes_add(f->notes, &info);
}

/* Adds the matches of TLS symbol @c in a process. */
static fathom_err emit_tls(struct fathom_find *f, const struct fathom_candidate *c,
			   struct fathom_match *m)
{
	struct copies copies = { .f = f, .only = f->tid };
	fathom_err err = find_copies(&copies, c);
	int32_t first;
	bool done = true;

	if (err == FATHOM_E_UNSUPPORTED) {
		m->reason = FATHOM_REASON_UNSUPPORTED;
		err = FATHOM_OK;
	} else if (!err && f->tid && !copies.all.n) {
		m->reason = FATHOM_REASON_UNMAPPED;
		note_no_copy(f, m);
	}
	if (copies.all.n > 1) {
		first = main_tid(f);
		qsort_r(copies.all.items, copies.all.n, sizeof(struct copy), compare_copies,
			&first);
	}
	for (size_t i = 0; i < copies.all.n && done && fathom_find_has_room(f, m->query); i++) {
		const struct copy *copy = copies.all.items + i;

		m->tid = copy->tid;
		m->address = copy->avma;
		m->flags |= FATHOM_MATCH_ADDRESS;
		done = fathom_find_add(f, m);
		if (wants_one(f))
			break;
	}
	/* A symbol without a copy is still a match. */
	if (!copies.all.n && !err)
		done = fathom_find_add(f, m);
	fathom_budget_free(&f->budget, &copies.all);
	return done ? err : FATHOM_E_MEMORY;
}

/* Sets @m to the function that IFUNC @c resolved to. */
static fathom_err place_ifunc(struct fathom_find *f, const struct fathom_candidate *c,
			      struct fathom_match *m)
{
	const bool is_dynamic = c->table == f->modules[c->module].dynsym->number;
	const struct fathom_ifunc i = { .module = c->module,
					.number = is_dynamic ? c->number : FATHOM_NONE,
					.svma = c->svma,
					.name = c->name,
					.version = c->version };
	const fathom_err err = fathom_ifunc_resolved(&f->runtime, &i, &m->address);

	if (err == FATHOM_E_MEMORY)
		return err;
	if (err) {
		m->address = 0;
		m->flags &= (uint8_t)~FATHOM_MATCH_ADDRESS;
		m->reason = FATHOM_REASON_UNSUPPORTED;
	} else {
		m->size = 0;
		m->flags |= FATHOM_MATCH_RESOLVED;
	}
	return FATHOM_OK;
}

fathom_err fathom_find_place(struct fathom_find *f, const struct fathom_candidate *c,
			     struct fathom_match *m)
{
	if (c->symbol.type == STT_TLS) {
		m->address = 0;
		m->flags &= (uint8_t)~FATHOM_MATCH_ADDRESS;
		if (f->process)
			return emit_tls(f, c, m);
	}
	if (c->symbol.type == STT_GNU_IFUNC) {
		m->resolver = m->address;
		if (f->process)
			FATHOM_TRY(place_ifunc(f, c, m));
	}
	return fathom_find_add(f, m) ? FATHOM_OK : FATHOM_E_MEMORY;
}
