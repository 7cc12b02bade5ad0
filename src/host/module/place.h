/* SPDX-License-Identifier: MIT */
/* Places of addresses: the module that holds an address, and at which bias; loaded modules. */
#ifndef FATHOM_MODULE_PLACE_H
#define FATHOM_MODULE_PLACE_H

#include "fathom/answer.h"
#include "safe/base/bytes.h"

struct fathom_fde;
struct fathom_module;

/* The module of an answer; it lives as long as the view of the target. */
struct fathom_holder {
	struct fathom_module *module; /* NULL: it has no file */
	const char *name;             /* the target's name for it */
	struct fathom_bytes build_id;
	const struct fathom_module_info
		*info;   /* the record of it in the answers of a batch; NULL: none yet */
	uint64_t serial; /* of these answers */
};

struct fathom_place {
	struct fathom_holder *holder; /* has a module; NULL: no module holds the address */
	uint64_t bias;                /* address - bias is the address that the module states */
	uint64_t key; /* equal for all addresses of this module and bias that lie together */
	enum fathom_reason reason; /* why no module holds the address */
	bool is_code;              /* it may be code: other sources than modules may name it */
	/*
	 * The source that describes code of no file, if that was asked: GDB's list has the module,
	 * jitdumps and perf maps have none; NONE: no source, or it was not asked
	 */
	enum fathom_source source;
	/*
	 * How code of no file is unwound, if that was asked and its holder does not say: its
	 * addresses are avma; it lives as long as the view. NULL: not known
	 */
	const struct fathom_fde *fde;
};

/* A loaded module. */
struct fathom_module_at {
	struct fathom_module *module;
	const char *name; /* the target's name for it */
	uint64_t bias;
	uint64_t start;           /* avma of its first mapping */
	const uint64_t *sections; /* avma of a kernel module's sections, 0: not loaded; or NULL */
	enum fathom_reason
		no_file; /* why its image in memory stands for its file; NONE: none does */
	bool is_deleted; /* a live process has mapped a file that was deleted or replaced */
};

/* Takes one module, which is valid during the call; returns whether to go on. */
typedef bool (*fathom_module_fn)(const struct fathom_module_at *m, void *data);

/* Returns whether JIT code of @source is described by symbol files, of a registry or GDB's list. */
static inline bool fathom_source_has_files(uint8_t source)
{
	return source == FATHOM_SOURCE_REGISTERED || source == FATHOM_SOURCE_GDB_JIT;
}

#endif
