/* SPDX-License-Identifier: MIT */
#include "host/death/library_frames.h"

#include "host/base/demangle.h"
#include "host/module/module.h"
#include "host/symbol/dynsym.h"
#include "safe/base/pc.h"

bool fathom_frame_is(const struct fathom_stack_frame *f, const char *name)
{
	const struct fathom_answer *a = f->answer;
	const struct fathom_str symbol = { a->linkage_name ? a->linkage_name : a->symbol,
					   a->linkage_name ? a->linkage_size : a->symbol_size };

	return symbol.data && fathom_clone_suffix(symbol) == strlen(name) &&
	       memcmp(symbol.data, name, strlen(name)) == 0;
}

static bool is_any(const struct fathom_stack_frame *f, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fathom_frame_is(f, names[i]))
			return true;
	return false;
}

#define IS_ANY(f, names) is_any((f), (names), sizeof(names) / sizeof *(names))

/* Returns whether @m is the shared library that is called @soname. */
static bool is_library(struct fathom_module *m, const char *soname)
{
	const struct fathom_dynsym *d = fathom_module_dynsym(m);
	const struct fathom_str name =
		d && d->number != FATHOM_NONE ? fathom_dynsym_soname(d) : (struct fathom_str){ 0 };

	return name.data && name.size == strlen(soname) &&
	       memcmp(name.data, soname, name.size) == 0;
}

bool fathom_module_is_cxx_library(struct fathom_module *m)
{
	return is_library(m, "libstdc++.so.6") || is_library(m, "libc++abi.so.1") ||
	       is_library(m, "libc++.so.1");
}

size_t fathom_frame_find(const struct fathom_thread *t, size_t from, const char *name)
{
	for (size_t i = from; i < t->n_frames; i++)
		if (fathom_frame_is(&t->frames[i], name))
			return i;
	return FATHOM_NO_FRAME;
}

bool fathom_frame_place(const struct fathom_death_work *w, const struct fathom_stack_frame *f,
			struct fathom_place *ret)
{
	const uint64_t avma = fathom_pc_subtract(f->pc.address, f->pc.kind);

	return !fathom_view_locate(w->view, avma, ret) && ret->holder && ret->holder->module;
}

/* Returns whether frame @i is next to the one before it: no frames are left out between them. */
static bool is_caller(const struct fathom_thread *t, size_t i)
{
	return i < t->n_frames && (!t->n_left_out || i != t->left_out_at);
}

/* Functions of glibc that call abort() after they have written why, in a static program. */
static const char *const writers[] = { "__libc_message", "__libc_message_impl",
				       "__assert_fail_base" };

bool fathom_frames_abort_by_libc(const struct fathom_death_work *w, const struct fathom_thread *t,
				 struct fathom_place *ret)
{
	for (size_t i = fathom_frame_find(t, 0, "abort"); i != FATHOM_NO_FRAME;
	     i = fathom_frame_find(t, i + 1, "abort")) {
		const struct fathom_stack_frame *f = &t->frames[i];
		struct fathom_place caller;

		if (!is_caller(t, i + 1) || !fathom_frame_place(w, f, ret) ||
		    !fathom_frame_place(w, f + 1, &caller) || !fathom_place_is_same(ret, &caller))
			continue;
		if (is_library(ret->holder->module, "libc.so.6") || IS_ANY(f + 1, writers))
			return true;
	}
	return false;
}

/* The stack of a thread, for safe/cxx. */
struct stack {
	const struct fathom_death_work *w;
	const struct fathom_thread *t;
};

static bool stack_is(const struct fathom_cxx_frames *f, size_t i, const char *name)
{
	const struct stack *s = f->data;

	return fathom_frame_is(&s->t->frames[i], name);
}

static bool stack_is_of_unwinder(const struct fathom_cxx_frames *f, size_t i)
{
	const struct stack *s = f->data;
	struct fathom_place place;

	return fathom_frame_place(s->w, &s->t->frames[i], &place) &&
	       (is_library(place.holder->module, "libgcc_s.so.1") ||
		is_library(place.holder->module, "libunwind.so.1"));
}

static bool stack_is_of_library(const struct fathom_cxx_frames *f, size_t i, size_t thrower)
{
	const struct stack *s = f->data;
	struct fathom_place place;
	struct fathom_place library;

	return fathom_frame_place(s->w, &s->t->frames[i], &place) &&
	       fathom_frame_place(s->w, &s->t->frames[thrower], &library) &&
	       fathom_place_is_same(&place, &library) &&
	       fathom_module_is_cxx_library(place.holder->module);
}

static bool stack_has_gap(const struct fathom_cxx_frames *f, size_t from, size_t to)
{
	const struct fathom_thread *t = ((const struct stack *)f->data)->t;

	return t->n_left_out && from < t->left_out_at && t->left_out_at <= to;
}

static struct fathom_cxx_frames frames_of(struct stack *s)
{
	return (struct fathom_cxx_frames){ .n = s->t->n_frames,
					   .is = stack_is,
					   .is_of_unwinder = stack_is_of_unwinder,
					   .is_of_library = stack_is_of_library,
					   .has_gap = stack_has_gap,
					   .data = s };
}

bool fathom_frames_is_uncaught(const struct fathom_death_work *w, const struct fathom_thread *t)
{
	struct stack s = { w, t };
	const struct fathom_cxx_frames f = frames_of(&s);

	return fathom_cxx_is_uncaught(&f);
}

bool fathom_frames_is_handled(const struct fathom_thread *t)
{
	struct stack s = { NULL, t };
	const struct fathom_cxx_frames f = frames_of(&s);

	return t->stop == FATHOM_STOP_ENTRY && !t->n_left_out && fathom_cxx_is_calm(&f);
}
