/* SPDX-License-Identifier: MIT */
/*
 * The file of an index in a store: an image of a skeleton (host/module/skeleton.h) and an index
 * that answers alone (host/module/index_alone.h), compressed in pieces. Each piece can be read by
 * itself.
 *
 *	header   struct fathom_container_header
 *	table    a struct fathom_container_piece for each piece
 *	pieces   one after the other
 *
 * The image is the skeleton, zeros up to a page, and the index. A file is found by build-id and
 * format alone (fathom_container_key()), and says what it was made from. It comes from outside:
 * each part is checked before it is used, and all numbers are bounded.
 *
 * Files are in the byte order of the machines that use them; the key has it, too.
 */
#ifndef FATHOM_STORE_CONTAINER_H
#define FATHOM_STORE_CONTAINER_H

#include "fathom/store.h"
#include "host/base/context.h"
#include "host/module/index_alone.h"

#define FATHOM_CONTAINER_MAGIC   "fathomST"
#define FATHOM_CONTAINER_VERSION 1

/* Bytes of the image in a piece: what a reader reads at least. */
#define FATHOM_CONTAINER_PIECE ((uint64_t)64 << 10)

/* The largest file and image. */
#define FATHOM_CONTAINER_MAX_FILE  ((uint64_t)4 << 30)
#define FATHOM_CONTAINER_MAX_IMAGE ((uint64_t)16 << 30)

enum { FATHOM_CONTAINER_PLAIN, FATHOM_CONTAINER_ZSTD };

struct fathom_container_header {
	char magic[8];
	uint32_t version;
	uint32_t byte_order; /* 0x01020304 */
	uint32_t index_version;
	uint32_t codec;
	uint64_t file_size;
	uint64_t skeleton_size;
	uint64_t index_size;
	uint32_t piece_size;
	uint32_t n_pieces;
	uint64_t table_check;
	uint64_t image_check;
	uint64_t debug_size;  /* of the file that it was made from; as fathom_store_entry */
	uint64_t debug_check; /* checksum of all of its bytes */
	uint64_t debug_info_size;
	uint32_t level; /* FATHOM_STORE_HAS_ bits */
	uint32_t build_id_size;
	uint8_t build_id[64];
	uint64_t check; /* checksum of all members before it */
};

struct fathom_container_piece {
	uint64_t check; /* checksum of the bytes in the file */
	uint32_t size;  /* of these; the whole piece: it is not compressed */
	uint32_t zero;
};

/* Room for the longest key, with its NUL. */
#define FATHOM_CONTAINER_KEY 192

/*
 * Writes the key of @build_id, of 2 to FATHOM_BUILD_ID_MAX bytes: a relative path, of letters,
 * digits, '-', '.' and '/' only. Returns false for other sizes.
 */
bool fathom_container_key(struct fathom_bytes build_id, char key[FATHOM_CONTAINER_KEY]);

/*
 * Reads the header at @bytes, which are the first of a file. Returns FATHOM_E_CORRUPT with why in
 * @reterr unless it is sound and of @build_id, or of any one if that is empty.
 */
fathom_err fathom_container_read_header(struct fathom_bytes bytes, struct fathom_bytes build_id,
					struct fathom_container_header *ret,
					struct fathom_errinfo *reterr);

/* Returns where the pieces begin, and where in the image the index does. */
uint64_t fathom_container_pieces_off(const struct fathom_container_header *h);
uint64_t fathom_container_index_off(const struct fathom_container_header *h);

/* Returns the bytes of the image, and of its piece @i. */
uint64_t fathom_container_image_size(const struct fathom_container_header *h);
uint64_t fathom_container_piece_size(const struct fathom_container_header *h, uint32_t i);

/*
 * Returns whether @table is the table of @h. Stores where each piece begins in @offs, which has
 * room for one more than there are pieces.
 */
bool fathom_container_check_table(const struct fathom_container_header *h,
				  const struct fathom_container_piece *table, uint64_t *offs);

/* Unpacks piece @i from @bytes, after checking them, to @to, which has room for it. */
fathom_err fathom_container_unpack(struct fathom_memory *m, const struct fathom_container_header *h,
				   const struct fathom_container_piece *piece, uint32_t i,
				   struct fathom_bytes bytes, uint8_t *to);

/*
 * Unpacks all of the file @bytes, compares it with its checksums, and its build-id with @build_id,
 * unless that is empty. FATHOM_E_CORRUPT, FATHOM_E_CANCELLED, FATHOM_E_MEMORY.
 */
fathom_err fathom_container_verify(struct fathom *session, struct fathom_bytes bytes,
				   struct fathom_bytes build_id,
				   struct fathom_container_header *ret,
				   struct fathom_errinfo *reterr);

/* Makes the file of @a; *@ret is the caller's to free(). */
fathom_err fathom_container_make(struct fathom *session, const struct fathom_alone *a,
				 struct fathom_bytes *ret, struct fathom_errinfo *reterr);

/*
 * Compares how complete two are: below 0, 0 or above 0. Then by the sizes of what they hold, then
 * by checksums, so that all hosts choose the same one. 0: they hold the same.
 */
int fathom_container_compare(const struct fathom_container_header *a,
			     const struct fathom_container_header *b);

/* Fills @ret in of @h. */
void fathom_container_describe(const struct fathom_container_header *h,
			       struct fathom_store_entry *ret);

#endif
