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

#include "../../safe/base/limits.h"
#include "fathom/demangle.h"

enum { STOP_LIMIT = 1, STOP_MEMORY };

struct output {
	struct fathom_array *out;
	size_t start;
	jmp_buf stop;
};

static void take_piece(const char *text, size_t size, void *opaque)
{
	struct output *o = opaque;

	if (!size)
		return;
	if (o->out->n - o->start + size > FATHOM_MAX_DEMANGLED)
		longjmp(o->stop, STOP_LIMIT);
	if (!fathom_array_reserve(o->out, 1, size))
		longjmp(o->stop, STOP_MEMORY);
	memcpy((char *)o->out->data + o->out->n, text, size);
	o->out->n += size;
}

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* A demangler that hands its output over piece by piece. */
typedef int piecewise(const char *name, int options, demangle_callbackref take, void *opaque);

static int java_callback(const char *name, int options, demangle_callbackref take, void *opaque)
{
	(void)options;
	return java_demangle_v3_callback(name, take, opaque);
}

static fathom_err take_pieces(piecewise *demangler, const char *name, int options,
			      struct fathom_array *out)
{
	struct output o = { .out = out, .start = out->n };

	switch (setjmp(o.stop)) {
	case 0:
		if (demangler(name, options, take_piece, &o))
			return FATHOM_OK;
		break;
	case STOP_MEMORY:
		out->n = o.start;
		return FATHOM_E_MEMORY;
	default:
		break;
	}
	out->n = o.start;
	return FATHOM_END;
}

/*
 * D and Ada come back as one allocated string. (Where there is no memory for that, libiberty ends
 * the process: it knows no other way.)
 */
static fathom_err take_whole(char *text, struct fathom_array *out)
{
	const size_t size = text ? strlen(text) : 0;
	fathom_err err = FATHOM_END;

	if (size && size <= FATHOM_MAX_DEMANGLED)
		err = fathom_array_reserve(out, 1, size) ? FATHOM_OK : FATHOM_E_MEMORY;
	if (!err) {
		memcpy((char *)out->data + out->n, text, size);
		out->n += size;
	}
	free(text);
	return err;
}

/*
 * Returns whether @name may be of one of Rust's two schemes: v0 begins with "_R", the legacy one is
 * an Itanium name whose last part is a hash of 16 digits. A suffix may follow either.
 */
static bool may_be_rust(const char *name)
{
	return name[1] == 'R' || strstr(name, "17h");
}

static fathom_err demangle_text(const char *name, uint32_t mangling, int options,
				struct fathom_array *out)
{
	fathom_err err;

	switch (mangling) {
	case FATHOM_MANGLING_AUTO:
		/* Rust's legacy scheme looks like C++. */
		err = may_be_rust(name) ? take_pieces(rust_demangle_callback, name, options, out)
					: FATHOM_END;
		return err == FATHOM_END
			       ? take_pieces(cplus_demangle_v3_callback, name, options, out)
			       : err;
	case FATHOM_MANGLING_CXX:
		return take_pieces(cplus_demangle_v3_callback, name, options, out);
	case FATHOM_MANGLING_RUST:
		return take_pieces(rust_demangle_callback, name, options, out);
	case FATHOM_MANGLING_D:
		return take_whole(dlang_demangle(name, options), out);
	case FATHOM_MANGLING_JAVA:
		return take_pieces(java_callback, name, options, out);
	case FATHOM_MANGLING_ADA:
		return take_whole(ada_demangle(name, options), out);
	default:
		return FATHOM_END;
	}
}

fathom_err fathom_demangle_as(struct fathom_str name, uint32_t mangling, uint32_t flags,
			      struct fathom_array *out)
{
	const int deep = flags & FATHOM_DEMANGLE_DEEP ? DMGL_NO_RECURSE_LIMIT : 0;
	char buf[256];
	char *copy = buf;
	fathom_err err;

	if (!name.size || name.size > FATHOM_MAX_MANGLED)
		return FATHOM_END;
	if (name.size >= sizeof buf)
		copy = malloc((size_t)name.size + 1);
	if (!copy)
		return FATHOM_E_MEMORY;
	memcpy(copy, name.data, name.size);
	copy[name.size] = '\0';
	err = demangle_text(copy, mangling, OPTIONS | deep, out);
	if (copy != buf)
		free(copy);
	return err;
}

/* Names that a program has chosen itself are none of GNAT's: they come back in angle brackets. */
static fathom_err demangle_ada(struct fathom_str name, struct fathom_array *out)
{
	const size_t start = out->n;
	const fathom_err err = fathom_demangle_as(name, FATHOM_MANGLING_ADA, 0, out);

	if (err || ((const char *)out->data)[start] != '<')
		return err;
	out->n = start;
	return FATHOM_END;
}

fathom_err fathom_demangle(struct fathom_str name, bool ada, struct fathom_array *out)
{
	const char kind = name.size > 2 && name.data[0] == '_' ? name.data[1] : '\0';

	if (name.size < 3)
		return FATHOM_END;
	if (kind == 'Z' || kind == 'R')
		return fathom_demangle_as(name, FATHOM_MANGLING_AUTO, 0, out);
	if (kind == 'D')
		return fathom_demangle_as(name, FATHOM_MANGLING_D, 0, out);
	return ada ? demangle_ada(name, out) : FATHOM_END;
}
