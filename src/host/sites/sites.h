/* SPDX-License-Identifier: MIT */
/* The sites of one module: places at function entries and returns whose bytes may be replaced. */
#ifndef FATHOM_SITES_SITES_H
#define FATHOM_SITES_SITES_H

#include "fathom/trace.h"
#include "fathom/unwind.h"
#include "host/base/array.h"
#include "host/module/module.h"
#include "host/sites/raw_got_slots.h"

/* A site as it stands in its file. */
struct fathom_raw_site {
	uint64_t svma;     /* of the slot */
	uint64_t function; /* svma of the function's entry */
	uint16_t size;     /* bytes of the slot */
	uint16_t prefix;   /* bytes of NOPs in front of the function */
	uint16_t frame;    /* of fathom_site */
	uint8_t kind;      /* enum fathom_site_kind */
	uint8_t place;     /* enum fathom_site_place */
	uint8_t content;   /* enum fathom_site_content */
	bool is_behind;    /* an entry after the prologue */
	bool is_bare;      /* of fathom_site */
};

struct fathom_module_sites {
	FATHOM_ARRAY_OF(struct fathom_raw_site); /* sorted by svma */
	uint32_t n_functions;
	uint32_t n_kind[FATHOM_SITE_KINDS];
	uint32_t n_refused[FATHOM_SITE_REFUSALS];
	struct fathom_raw_got_slots slots;
	bool has_slots;                    /* they were looked for */
	struct fathom_unwind_table *rules; /* of the module, where they are wanted; else NULL */
};

/*
 * Finds the sites of @m in its file; none for machines that are not traced. FATHOM_E_LIMIT,
 * FATHOM_E_MEMORY, FATHOM_E_CANCELLED.
 */
fathom_err fathom_module_sites_find(struct fathom_module *m, struct fathom_module_sites *ret);
void fathom_module_sites_deinit(struct fathom_module_sites *s);

#endif
