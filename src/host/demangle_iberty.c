/* SPDX-License-Identifier: MIT */
/*
 * Demangling by libiberty. Mangled names come from files and may be built to explode: output is
 * taken piece by piece and cut off at a limit. libiberty cannot be told to stop, so it is left by
 * longjmp; its C++ demangler allocates nothing while it prints, the Rust one at most one short
 * buffer, which is then lost.
 */
#include "demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

#include "../safe/base/limits.h"

struct output {
	struct fathom_array *out;
	size_t start;
	jmp_buf stop;
};

static void take_piece(const char *text, size_t size, void *opaque)
{
	struct output *o = opaque;

	if (o->out->n - o->start + size > FATHOM_MAX_DEMANGLED ||
	    !fathom_array_reserve(o->out, 1, size))
		longjmp(o->stop, 1);
	memcpy((char *)o->out->data + o->out->n, text, size);
	o->out->n += size;
}

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* C++, or Rust's legacy scheme, which looks like C++; or Rust's own. */
static bool demangle_pieces(const char *name, struct fathom_array *out)
{
	struct output o = { .out = out, .start = out->n };

	if (setjmp(o.stop)) {
		out->n = o.start;
		return false;
	}
	if (rust_demangle_callback(name, OPTIONS, take_piece, &o))
		return true;
	out->n = o.start;
	if (name[1] == 'Z' && cplus_demangle_v3_callback(name, OPTIONS, take_piece, &o))
		return true;
	out->n = o.start;
	return false;
}

/* D and Ada come back as one allocated string. */
static bool take_whole(char *text, struct fathom_array *out)
{
	const size_t size = text ? strlen(text) : 0;
	const bool taken =
		size && size <= FATHOM_MAX_DEMANGLED && fathom_array_reserve(out, 1, size);

	if (taken) {
		memcpy((char *)out->data + out->n, text, size);
		out->n += size;
	}
	free(text);
	return taken;
}

bool fathom_demangle(struct fathom_str name, bool ada, struct fathom_array *out)
{
	char buf[256];
	char *copy = buf;
	bool done = false;

	if (name.size < 3 || name.size > FATHOM_MAX_MANGLED)
		return false;
	if (!ada && name.data[0] != '_')
		return false;
	if (name.size >= sizeof buf)
		copy = malloc((size_t)name.size + 1);
	if (!copy)
		return false;
	memcpy(copy, name.data, name.size);
	copy[name.size] = '\0';
	if (copy[0] == '_' && (copy[1] == 'Z' || copy[1] == 'R'))
		done = demangle_pieces(copy, out);
	else if (copy[0] == '_' && copy[1] == 'D')
		done = take_whole(dlang_demangle(copy, OPTIONS), out);
	else if (ada)
		done = take_whole(ada_demangle(copy, 0), out);
	if (copy != buf)
		free(copy);
	return done;
}
