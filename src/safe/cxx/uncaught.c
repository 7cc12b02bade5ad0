/* SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "safe/cxx/uncaught.h"

static const char *const throwers[] = {
	"__cxa_throw",
	"__cxa_rethrow",
	"__cxa_rethrow_primary_exception",
	"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
	"_ZSt17rethrow_exceptionSt13exception_ptr",
};

/*
 * Functions that take the exception and call std::terminate(): for code that may not throw;
 * libc++abi's own where nobody takes it, which has a name in programs that it was linked into.
 */
static const char *const terminators[] = {
	"__cxa_call_terminate",
	"__clang_call_terminate",
	"_ZN10__cxxabiv1L12failed_throwEPNS_15__cxa_exceptionE",
};

/* Parts of the C++ library and of the unwinder, in a static program. */
static const char *const unwinders[] = {
	"_Unwind_RaiseException", "_Unwind_Resume_or_Rethrow", "_Unwind_RaiseException_Phase2",
	"__gxx_personality_v0",   "__cxa_call_terminate",
};

static const char terminate[] = "_ZSt9terminatev";

static bool is_any(const struct fathom_cxx_frames *f, size_t i, const char *const *names, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (f->is(f, i, names[k]))
			return true;
	return false;
}

#define IS_ANY(f, i, names) is_any((f), (i), (names), sizeof(names) / sizeof *(names))

/* Returns the first frame from @from on that is of one of @names; FATHOM_NO_FRAME: none is. */
static size_t find_any(const struct fathom_cxx_frames *f, size_t from, const char *const *names,
		       size_t n)
{
	for (size_t i = from; i < f->n; i++)
		if (is_any(f, i, names, n))
			return i;
	return FATHOM_NO_FRAME;
}

#define FIND_ANY(f, from, names) find_any((f), (from), (names), sizeof(names) / sizeof *(names))

size_t fathom_cxx_find(const struct fathom_cxx_frames *f, size_t from, const char *name)
{
	return find_any(f, from, &name, 1);
}

static bool is_unwinder(const struct fathom_cxx_frames *f, size_t i)
{
	return IS_ANY(f, i, unwinders) || f->is_of_unwinder(f, i);
}

/* Returns whether a throw leads to frame @end by the C++ library and the unwinder alone. */
static bool is_below_throw(const struct fathom_cxx_frames *f, size_t end)
{
	const size_t thrower = FIND_ANY(f, end + 1, throwers);

	if (thrower == FATHOM_NO_FRAME || f->has_gap(f, end, thrower))
		return false;
	for (size_t i = end + 1; i < thrower; i++)
		if (!is_unwinder(f, i) && !f->is_of_library(f, i, thrower))
			return false;
	return true;
}

bool fathom_cxx_is_uncaught(const struct fathom_cxx_frames *f)
{
	const size_t ends = fathom_cxx_find(f, 0, terminate);
	const size_t terminator = FIND_ANY(f, 0, terminators);
	const size_t aborts = fathom_cxx_find(f, 0, "abort");

	if (terminator != FATHOM_NO_FRAME &&
	    (ends == FATHOM_NO_FRAME || terminator < ends ||
	     (terminator == ends + 1 && !f->has_gap(f, ends, terminator))))
		return true;
	if (ends != FATHOM_NO_FRAME)
		return is_below_throw(f, ends);
	/*
	 * libc++abi's own functions have no names. If the unwinder itself aborts, the exception
	 * that is thrown is not in the list yet: the one that is has been taken.
	 */
	return aborts != FATHOM_NO_FRAME && is_below_throw(f, aborts) && aborts + 1 < f->n &&
	       !is_unwinder(f, aborts + 1);
}

bool fathom_cxx_is_calm(const struct fathom_cxx_frames *f)
{
	return FIND_ANY(f, 0, throwers) == FATHOM_NO_FRAME &&
	       FIND_ANY(f, 0, terminators) == FATHOM_NO_FRAME &&
	       fathom_cxx_find(f, 0, terminate) == FATHOM_NO_FRAME;
}
