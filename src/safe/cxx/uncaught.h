/* SPDX-License-Identifier: MIT */
/*
 * Stacks of threads that have an exception: whether nobody takes it.
 *
 * Safety: as-safe, if the functions of struct fathom_cxx_frames are.
 */
#ifndef FATHOM_CXX_UNCAUGHT_H
#define FATHOM_CXX_UNCAUGHT_H

#include <stdbool.h>
#include <stddef.h>

/* No frame. */
#define FATHOM_NO_FRAME SIZE_MAX

/* A stack, whose frames have numbers, the innermost 0. */
struct fathom_cxx_frames {
	size_t n;
	/* Returns whether frame @i is of the function with the linkage name @name. */
	bool (*is)(const struct fathom_cxx_frames *f, size_t i, const char *name);
	/* Returns whether frame @i is of the unwinder, a library of its own. */
	bool (*is_of_unwinder)(const struct fathom_cxx_frames *f, size_t i);
	/* Returns whether frame @i is of the C++ library that throws in frame @thrower. */
	bool (*is_of_library)(const struct fathom_cxx_frames *f, size_t i, size_t thrower);
	/* Returns whether frames are left out between @from and @to. */
	bool (*has_gap)(const struct fathom_cxx_frames *f, size_t from, size_t to);
	void *data; /* of these */
};

/* Returns the first frame from @from on that is of @name; FATHOM_NO_FRAME: none is. */
size_t fathom_cxx_find(const struct fathom_cxx_frames *f, size_t from, const char *name);

/* Returns whether std::terminate() runs because nobody takes the exception. */
bool fathom_cxx_is_uncaught(const struct fathom_cxx_frames *f);

/* Returns whether none of the frames throws, or ends the program because of an exception. */
bool fathom_cxx_is_calm(const struct fathom_cxx_frames *f);

#endif
