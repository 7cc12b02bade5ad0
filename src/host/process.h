/* SPDX-License-Identifier: MIT */
/*
 * A process as a target: which file, or what stands for one, an address is in.
 *
 * Each batch reads the memory map once and is answered from it; what it says was true at that
 * moment. Files stay open between batches, as modules, so that they are read once; a module that
 * nothing maps any more is closed.
 */
#ifndef FATHOM_PROCESS_H
#define FATHOM_PROCESS_H

#include "context.h"
#include "fathom/symbolize.h"
#include "maps.h"
#include "notes.h"

struct fathom_process;
struct fathom_module;

/* Opens process @pid, which must be there and ours to look at; what goes wrong later is noted. */
fathom_err fathom_process_open(struct fathom *session, int pid, struct fathom_notes *notes,
			       struct fathom_process **ret, struct fathom_errinfo *reterr);
void fathom_process_close(struct fathom_process *p);

/* The path of the executable when the process was opened; "" when it cannot be known. */
const char *fathom_process_exe(const struct fathom_process *p);

/* Answers @n @addresses (avma) into @answers. */
fathom_err fathom_process_symbolize(struct fathom_process *p,
				    const struct fathom_symbolize_options *options,
				    const uint64_t *addresses, size_t n,
				    struct fathom_answers *answers, struct fathom_errinfo *reterr);

/* The address of the symbol called @name in the first module, in the map's order, that has it. */
bool fathom_process_find_symbol(struct fathom_process *p, const char *name, uint64_t *ret_avma);

/* Calls @fn for each module that is open; none is closed meanwhile. */
void fathom_process_each_module(struct fathom_process *p,
				void (*fn)(struct fathom_module *m, void *data), void *data);

#endif
