/* SPDX-License-Identifier: MIT */
/*
 * Where a file was loaded: bias = avma - svma.
 *
 * The loader maps each PT_LOAD by whole pages (gABI, "Program Loading"). So a mapping at file
 * offset off belongs to a segment whose page-rounded file range holds off, and says that
 *
 *	bias = start - (page(p_vaddr) + off - page(p_offset))
 *
 * One page of a file may belong to two segments; then the mappings of the same file have to decide
 * together. Mappings that nobody may use, which loaders leave in gaps, say nothing. A file may also
 * be loaded more than once, or have pages mapped a second time elsewhere (libffi's trampolines):
 * each mapping is asked for by itself, and what agrees with most others wins.
 */
#ifndef FATHOM_FILE_BIAS_H
#define FATHOM_FILE_BIAS_H

#include "host/base/array.h"
#include "host/file/maps.h"
#include "safe/elf/image.h"

/* How many mappings of one file agree with each bias that any of them may have. */
struct fathom_bias_votes {
	/* sorted: one for each mapping that agrees with it; NULL: not counted yet */
	uint64_t *biases;
	size_t n;
};

/*
 * The bias of mapping number @i, which is of the file @image; false when no segment fits it. @votes
 * keeps what was counted for other mappings of the same file, and may be NULL.
 */
bool fathom_bias_of_mapping(const struct fathom_image *image, const struct fathom_maps *maps,
			    size_t i, uint64_t page, struct fathom_bias_votes *votes,
			    uint64_t *ret_bias);
void fathom_bias_votes_deinit(struct fathom_bias_votes *votes);

/* Returns whether the bias of @m cannot be told without the other mappings of the file. */
bool fathom_bias_is_disputed(const struct fathom_image *image, const struct fathom_mapping *m,
			     uint64_t page);

/*
 * Returns whether @image was loaded at @bias, which one of its mappings has: then its code, if it
 * has any, may be run there. A file that is mapped whole, to be read, may fill its segments just as
 * well.
 */
bool fathom_bias_is_loaded(const struct fathom_image *image, const struct fathom_maps *maps,
			   uint64_t bias);

/* Returns whether a segment of @image, loaded at @bias, has memory at @avma, in the file or not. */
bool fathom_bias_covers(const struct fathom_image *image, uint64_t bias, uint64_t avma);

/*
 * Returns whether mapping @m, of the file @image loaded at @bias, holds at its own address @at what
 * the segment that covers @avma has there. @at is @avma where the mapping holds that; else the
 * mapping is a neighbour of memory that no file backs.
 */
bool fathom_bias_holds(const struct fathom_image *image, uint64_t bias,
		       const struct fathom_mapping *m, uint64_t at, uint64_t avma, uint64_t page);

#endif
