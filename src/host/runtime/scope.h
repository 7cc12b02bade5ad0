/* SPDX-License-Identifier: MIT */
/*
 * What the dynamic linker of a process knows: which modules it has loaded, in which order it looks
 * for names, where it put the code of IFUNCs and each thread's copy of TLS symbols. Read in the
 * process's memory, while that may be changed; what contradicts itself is not believed.
 *
 * The list of loaded modules is the interface for debuggers (glibc's <link.h>: struct r_debug and
 * struct link_map, whose first five members all C libraries have). The order of look-ups is not in
 * it: see scope.c. For TLS, glibc's own descriptions for debuggers are used (symbols _thread_db_*,
 * of nptl_db/structs.def).
 */
#ifndef FATHOM_RUNTIME_SCOPE_H
#define FATHOM_RUNTIME_SCOPE_H

#include "host/find/search.h"

/* A struct link_map that was read. */
struct fathom_link {
	uint64_t at; /* avma */
	uint64_t bias;
	uint64_t dynamic; /* avma of its PT_DYNAMIC */
	uint32_t module;  /* of the search; FATHOM_NONE: it is none of them */
	uint32_t space;   /* of dlmopen(); 0: the program's */
};

/* Reads what is loaded and gives the modules of @f the order in which they are searched. */
fathom_err fathom_scope_order(struct fathom_find *f);
void fathom_scope_deinit(struct fathom_find *f);

/* What was read of module @module; NULL: the dynamic linker does not know it. */
const struct fathom_link *fathom_scope_link(const struct fathom_find *f, uint32_t module);

/*
 * Adds the matches of @c, which all are like @m: one, but for TLS symbols in a process. False
 * without memory.
 */
bool fathom_scope_emit(struct fathom_find *f, const struct fathom_candidate_symbol *c,
		       struct fathom_match *m);

/* What an IFUNC was resolved to, as avma; 0 when that is not known (ifunc.c). */
uint64_t fathom_ifunc_resolved(struct fathom_find *f, const struct fathom_candidate_symbol *c);

/* Calls @fn for each thread's copy of TLS symbol @c; false when they cannot be known. */
bool fathom_tls_walk(struct fathom_find *f, const struct fathom_candidate_symbol *c,
		     bool (*fn)(int32_t tid, uint64_t avma, void *data), void *data);

/* The same in a static program, which has no dynamic linker (tls_static.c). */
bool fathom_tls_walk_static(struct fathom_find *f, const struct fathom_candidate_symbol *c,
			    bool (*fn)(int32_t tid, uint64_t avma, void *data), void *data);

/*
 * Reads a list of threads into @ret, uint64_t: the avmas of what follows @head. The link to the
 * next stands @next bytes behind each. Each is there once: a list that is being changed, or is
 * damaged, may lead in a circle that does not come back to @head. What cannot be read ends it.
 */
void fathom_scope_read_threads(struct fathom_find *f, const struct fathom_object *o, uint64_t head,
			       uint64_t next, struct fathom_array *ret);

/* Reads a number of @size bytes, 4 or 8, in memory as a module like @o has it. */
bool fathom_scope_read(struct fathom_find *f, const struct fathom_object *o, uint64_t avma,
		       uint8_t size, uint64_t *ret);

#endif
