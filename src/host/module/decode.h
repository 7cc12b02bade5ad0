/* SPDX-License-Identifier: MIT */
/*
 * From debugging entries and line rows to blocks (safe/index/block.h): the inlined calls of a
 * function are laid over its rows, so that what remains is one sorted list of stretches.
 */
#ifndef FATHOM_MODULE_DECODE_H
#define FATHOM_MODULE_DECODE_H

#include "host/module/debug.h"
#include "host/module/unit_data.h"

/*
 * Makes the blocks of the @n wants in the worker's wants, which are sorted by from, and publishes
 * them in the slots of @data. Returns FATHOM_OK or the worst error: the blocks of the wants are
 * made all the same, with what could be read, except after FATHOM_E_MEMORY.
 */
fathom_err fathom_decode(struct fathom_worker *w, struct fathom_debug *d,
			 const struct fathom_open_unit *u, struct fathom_unit_data *data,
			 struct fathom_errinfo *reterr);

#endif
