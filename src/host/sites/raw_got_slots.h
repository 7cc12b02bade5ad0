/* SPDX-License-Identifier: MIT */
/*
 * Slots of the global offset table through which a module calls functions of others (System V ABI,
 * AMD64 supplement 1.0, section 5.2): those of the procedure linkage table, and those through which
 * the code itself calls (-fno-plt). Of a function whose address is taken, too, the linker makes one
 * slot for both, and a stub in .plt.got: of that only the stub's operand may lead elsewhere.
 */
#ifndef FATHOM_SITES_RAW_GOT_SLOTS_H
#define FATHOM_SITES_RAW_GOT_SLOTS_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/module/module.h"

/* A slot as it stands in its file. */
struct fathom_raw_got_slot {
	uint64_t svma;
	uint64_t relocation; /* svma of its relocation */
	uint64_t operand; /* svma of its stub's, 4 bytes; 0: the slot itself may lead elsewhere */
	const char *name; /* of the function, as linked */
	uint8_t flags;    /* FATHOM_SLOT_ bits */
	uint8_t refusal;  /* enum fathom_slot_refusal; 0: it can be recorded */
};

struct fathom_raw_got_slots {
	FATHOM_ARRAY_OF(struct fathom_raw_got_slot); /* sorted by svma, each once */
	struct fathom_arena names;
};

/* Finds the slots of @m in its file; none but for x86-64. FATHOM_E_LIMIT, FATHOM_E_MEMORY. */
fathom_err fathom_raw_got_slots_find(struct fathom_module *m, struct fathom_raw_got_slots *ret);
void fathom_raw_got_slots_deinit(struct fathom_raw_got_slots *s);

#endif
