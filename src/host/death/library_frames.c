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

static const char *const throwers[] = {
	"__cxa_throw",
	"__cxa_rethrow",
	"__cxa_rethrow_primary_exception",
	"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
	"_ZSt17rethrow_exceptionSt13exception_ptr",
};

/* Functions that take the exception and call std::terminate() for code that may not throw. */
static const char *const terminators[] = { "__cxa_call_terminate", "__clang_call_terminate" };

/* Parts of the C++ library and of the unwinder, in a static program. */
static const char *const unwinders[] = {
	"_Unwind_RaiseException", "_Unwind_Resume_or_Rethrow", "_Unwind_RaiseException_Phase2",
	"__gxx_personality_v0",   "__cxa_call_terminate",
};

/*
 * Returns whether frame @f can stand between a throw, of the module at @thrower, and
 * std::terminate(): it is of the C++ library or of the unwinder.
 */
static bool is_between(const struct fathom_death_work *w, const struct fathom_stack_frame *f,
		       const struct fathom_place *thrower)
{
	struct fathom_place place;

	if (IS_ANY(f, unwinders))
		return true;
	if (!fathom_frame_place(w, f, &place))
		return false;
	if (fathom_place_is_same(&place, thrower))
		return fathom_module_is_cxx_library(place.holder->module);
	return is_library(place.holder->module, "libgcc_s.so.1") ||
	       is_library(place.holder->module, "libunwind.so.1");
}

/* Returns the index of the first throw from @from on; FATHOM_NO_FRAME: none. */
static size_t find_throw(const struct fathom_thread *t, size_t from)
{
	for (size_t i = from; i < t->n_frames; i++)
		if (IS_ANY(&t->frames[i], throwers))
			return i;
	return FATHOM_NO_FRAME;
}

/* Returns whether a throw leads to frame @end by the C++ library and the unwinder alone. */
static bool is_below_throw(const struct fathom_death_work *w, const struct fathom_thread *t,
			   size_t end)
{
	const size_t i = find_throw(t, end + 1);
	struct fathom_place thrower;

	if (i == FATHOM_NO_FRAME ||
	    (t->n_left_out && end < t->left_out_at && t->left_out_at <= i) ||
	    !fathom_frame_place(w, &t->frames[i], &thrower))
		return false;
	for (size_t k = end + 1; k < i; k++)
		if (!is_between(w, &t->frames[k], &thrower))
			return false;
	return true;
}

/* Returns the index of the first frame of a function of terminators; FATHOM_NO_FRAME: none. */
static size_t find_terminator(const struct fathom_thread *t)
{
	for (size_t i = 0; i < t->n_frames; i++)
		if (IS_ANY(&t->frames[i], terminators))
			return i;
	return FATHOM_NO_FRAME;
}

bool fathom_frames_is_uncaught(const struct fathom_death_work *w, const struct fathom_thread *t)
{
	const size_t terminate = fathom_frame_find(t, 0, "_ZSt9terminatev");
	const size_t terminator = find_terminator(t);
	const size_t aborts = fathom_frame_find(t, 0, "abort");

	if (terminator != FATHOM_NO_FRAME &&
	    (terminate == FATHOM_NO_FRAME || terminator < terminate ||
	     (terminator == terminate + 1 && is_caller(t, terminator))))
		return true;
	if (terminate != FATHOM_NO_FRAME)
		return is_below_throw(w, t, terminate);
	/* libc++abi's own functions have no names. */
	return aborts != FATHOM_NO_FRAME && is_below_throw(w, t, aborts);
}

bool fathom_frames_is_handled(const struct fathom_thread *t)
{
	return t->stop == FATHOM_STOP_ENTRY && !t->n_left_out &&
	       find_throw(t, 0) == FATHOM_NO_FRAME && find_terminator(t) == FATHOM_NO_FRAME &&
	       fathom_frame_find(t, 0, "_ZSt9terminatev") == FATHOM_NO_FRAME;
}
