/* SPDX-License-Identifier: MIT */
/* Call frame information of a Go program, from the sizes of frames that its table has. */
#ifndef FATHOM_GOLANG_GO_FRAMES_H
#define FATHOM_GOLANG_GO_FRAMES_H

#include "host/golang/go_made_file.h"
#include "host/golang/pclntab.h"
#include "safe/dwarf/cfi_write.h"

/* How calls of a machine leave their return address. */
struct fathom_go_convention;

struct fathom_go_frames {
	struct fathom_go_part part; /* .eh_frame */
	struct fathom_go_part scratch;
	struct fathom_cie_form cie;
	size_t cie_off;
	const struct fathom_go_convention *convention; /* NULL: nothing is written */
};

/* Begins the section of a program of @machine (EM_). FATHOM_E_MEMORY, FATHOM_E_LIMIT. */
fathom_err fathom_go_frames_init(struct fathom_go_frames *g, struct fathom_memory *m,
				 uint32_t machine);
void fathom_go_frames_deinit(struct fathom_go_frames *g);

/* Adds function @f, whose code ends at @end. Likewise. */
fathom_err fathom_go_frames_add(struct fathom_go_frames *g, const struct fathom_pclntab *t,
				const struct fathom_go_function *f, uint64_t end);

#endif
