/* SPDX-License-Identifier: MIT */
#include "host/store/container.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/base/pool.h"
#include "host/base/progress.h"
#include "host/file/codec.h"
#include "safe/base/hex.h"
#include "safe/index/index.h"

_Static_assert(sizeof(struct fathom_container_header) == 176, "the format of files");
_Static_assert(sizeof(struct fathom_container_piece) == 16, "the format of files");
_Static_assert(FATHOM_CONTAINER_PIECE % FATHOM_INDEX_PAGE == 0, "a page is in one piece");

/*
 * Of zstd. Of an index of C++, level 3 makes 1/5, this one a tenth less, level 19 another eighth
 * less in ten times the time.
 */
#define LEVEL 9

#define BYTE_ORDER_MARK 0x01020304u

/* Larger pieces are refused, as each costs its memory; and smaller ones, as each has a row. */
#define MAX_PIECE ((uint64_t)1 << 20)
#define MIN_PIECE ((uint64_t)16 << 10)

bool fathom_container_key(struct fathom_bytes build_id, char key[FATHOM_CONTAINER_KEY])
{
	const bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	char id[2 * FATHOM_BUILD_ID_MAX + 1];

	if (build_id.size < 2 || build_id.size > FATHOM_BUILD_ID_MAX)
		return false;
	fathom_hex_put(id, build_id.data, build_id.size);
	(void)snprintf(key, FATHOM_CONTAINER_KEY, "%d.%d-%s/%.2s/%s.fathom",
		       FATHOM_CONTAINER_VERSION, FATHOM_INDEX_VERSION, is_big ? "be" : "le", id,
		       id + 2);
	return true;
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

uint64_t fathom_container_pieces_off(const struct fathom_container_header *h)
{
	return sizeof *h + (uint64_t)h->n_pieces * sizeof(struct fathom_container_piece);
}

uint64_t fathom_container_index_off(const struct fathom_container_header *h)
{
	return round_up(h->skeleton_size, FATHOM_INDEX_PAGE);
}

uint64_t fathom_container_image_size(const struct fathom_container_header *h)
{
	return fathom_container_index_off(h) + h->index_size;
}

uint64_t fathom_container_piece_size(const struct fathom_container_header *h, uint32_t i)
{
	const uint64_t left = fathom_container_image_size(h) - (uint64_t)i * h->piece_size;

	return left < h->piece_size ? left : h->piece_size;
}

/* Returns whether the sizes of @h fit each other. */
static bool has_sound_sizes(const struct fathom_container_header *h)
{
	const uint64_t most = FATHOM_CONTAINER_MAX_IMAGE / 2;

	return h->file_size <= FATHOM_CONTAINER_MAX_FILE && h->skeleton_size <= most &&
	       h->index_size <= most && h->skeleton_size && h->index_size >= FATHOM_INDEX_PAGE &&
	       h->piece_size >= MIN_PIECE && h->piece_size <= MAX_PIECE &&
	       h->piece_size % FATHOM_INDEX_PAGE == 0 && h->build_id_size <= sizeof h->build_id &&
	       h->build_id_size >= 2 && h->codec <= FATHOM_CONTAINER_ZSTD &&
	       h->n_pieces ==
		       round_up(fathom_container_image_size(h), h->piece_size) / h->piece_size &&
	       fathom_container_pieces_off(h) + h->n_pieces <= h->file_size;
}

static fathom_err fail(struct fathom_errinfo *reterr, const char *why)
{
	return fathom_fail(reterr, FATHOM_E_CORRUPT, "", 0, why);
}

fathom_err fathom_container_read_header(struct fathom_bytes bytes, struct fathom_bytes build_id,
					struct fathom_container_header *ret,
					struct fathom_errinfo *reterr)
{
	struct fathom_container_header h;

	if (bytes.size < sizeof h.magic || memcmp(bytes.data, FATHOM_CONTAINER_MAGIC, 8) != 0)
		return fail(reterr, "the store has something else than an index here");
	if (bytes.size < sizeof h)
		return fail(reterr, "the index in the store is cut short");
	memcpy(&h, bytes.data, sizeof h);
	if (h.version != FATHOM_CONTAINER_VERSION || h.byte_order != BYTE_ORDER_MARK ||
	    h.index_version != FATHOM_INDEX_VERSION)
		return fail(reterr, "the index in the store is of another version or machine");
	if (h.check != fathom_index_check(&h, offsetof(struct fathom_container_header, check)) ||
	    !has_sound_sizes(&h))
		return fail(reterr, "the index in the store is damaged");
	if (build_id.size &&
	    !bytes_equal(build_id, (struct fathom_bytes){ h.build_id, h.build_id_size }))
		return fail(reterr, "the store has the index of another build here");
	*ret = h;
	return FATHOM_OK;
}

bool fathom_container_check_table(const struct fathom_container_header *h,
				  const struct fathom_container_piece *table, uint64_t *offs)
{
	uint64_t off = fathom_container_pieces_off(h);

	if (h->table_check != fathom_index_check(table, h->n_pieces * sizeof *table))
		return false;
	for (uint32_t i = 0; i < h->n_pieces; i++) {
		offs[i] = off;
		if (!table[i].size || table[i].size > fathom_container_piece_size(h, i))
			return false;
		off += table[i].size;
	}
	offs[h->n_pieces] = off;
	return off == h->file_size;
}

fathom_err fathom_container_unpack(struct fathom_memory *m, const struct fathom_container_header *h,
				   const struct fathom_container_piece *piece, uint32_t i,
				   struct fathom_bytes bytes, uint8_t *to)
{
	const uint64_t size = fathom_container_piece_size(h, i);

	if (bytes.size != piece->size ||
	    fathom_index_check(bytes.data, (size_t)bytes.size) != piece->check)
		return FATHOM_E_CORRUPT;
	if (piece->size == size) {
		memcpy(to, bytes.data, (size_t)size);
		return FATHOM_OK;
	}
	return h->codec == FATHOM_CONTAINER_ZSTD ? fathom_codec_zstd.unpack(m, bytes, to, size)
						 : FATHOM_E_CORRUPT;
}

/* A checksum of the image, from those of its pieces. */
static uint64_t add_check(uint64_t sum, const uint8_t *piece, uint64_t size)
{
	const uint64_t both[2] = { sum, fathom_index_check(piece, (size_t)size) };

	return fathom_index_check(both, sizeof both);
}

/* Unpacks all pieces of @bytes, and sums them up. */
static fathom_err verify_pieces(struct fathom *session, const struct fathom_container_header *h,
				struct fathom_bytes bytes,
				const struct fathom_container_piece *table, const uint64_t *offs,
				struct fathom_errinfo *reterr)
{
	uint8_t *piece = malloc(h->piece_size);
	fathom_err err = piece ? FATHOM_OK : fathom_fail_memory(reterr);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->n_pieces && !err; i++) {
		if (i % 256 == 0 && !fathom_goes_on(session, FATHOM_PHASE_STORE, i, h->n_pieces))
			err = fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "cancelled");
		else if (fathom_container_unpack(&session->memory, h, &table[i], i,
						 bytes_slice(bytes, offs[i], table[i].size), piece))
			err = fail(reterr, "the index in the store is damaged");
		else
			sum = add_check(sum, piece, fathom_container_piece_size(h, i));
	}
	if (!err && sum != h->image_check)
		err = fail(reterr, "the index in the store is damaged");
	free(piece);
	return err;
}

fathom_err fathom_container_verify(struct fathom *session, struct fathom_bytes bytes,
				   struct fathom_bytes build_id,
				   struct fathom_container_header *ret,
				   struct fathom_errinfo *reterr)
{
	struct fathom_container_header h;
	struct fathom_container_piece *table;
	uint64_t *offs;
	fathom_err err;

	FATHOM_TRY(fathom_container_read_header(bytes, build_id, &h, reterr));
	if (h.file_size != bytes.size)
		return fail(reterr, "the index in the store has not the size that it states");
	table = malloc((size_t)h.n_pieces * sizeof *table);
	offs = malloc(((size_t)h.n_pieces + 1) * sizeof *offs);
	err = table && offs ? FATHOM_OK : fathom_fail_memory(reterr);
	if (!err) {
		memcpy(table, bytes.data + sizeof h, (size_t)h.n_pieces * sizeof *table);
		if (!fathom_container_check_table(&h, table, offs))
			err = fail(reterr, "the index in the store is damaged");
	}
	if (!err)
		err = verify_pieces(session, &h, bytes, table, offs, reterr);
	free(table);
	free(offs);
	if (!err)
		*ret = h;
	return err;
}

/* Making. */

/* A piece that was compressed. */
struct packed {
	uint8_t *data;
	uint64_t size;
	uint64_t image_check;
};

struct making {
	struct fathom *session;
	const struct fathom_alone *a;
	struct fathom_container_header h;
	struct packed *pieces;
	_Atomic int err;
};

/* Copies what lies in [@off, @off + @size) of the image to @to, which is zero. */
static void copy_part(struct fathom_bytes part, uint64_t part_off, uint64_t off, uint64_t size,
		      uint8_t *to)
{
	const uint64_t low = part_off > off ? part_off : off;
	const uint64_t end = part_off + part.size < off + size ? part_off + part.size : off + size;

	if (low < end)
		memcpy(to + (low - off), part.data + (low - part_off), (size_t)(end - low));
}

static void pack_piece(void *data, size_t task, unsigned thread)
{
	struct making *k = data;
	const uint32_t i = (uint32_t)task;
	const uint64_t size = fathom_container_piece_size(&k->h, i);
	const uint64_t off = (uint64_t)i * k->h.piece_size;
	uint8_t *piece = calloc(1, (size_t)size);
	struct packed *p = &k->pieces[i];
	fathom_err err = FATHOM_E_UNSUPPORTED;

	(void)thread;
	p->data = malloc((size_t)size);
	if (!piece || !p->data) {
		atomic_store(&k->err, FATHOM_E_MEMORY);
		free(piece);
		return;
	}
	copy_part(k->a->skeleton, 0, off, size, piece);
	copy_part(k->a->index, fathom_container_index_off(&k->h), off, size, piece);
	p->image_check = fathom_index_check(piece, (size_t)size);
	/* One byte less, so that a piece of the whole size is known to be as it was. */
	if (k->h.codec == FATHOM_CONTAINER_ZSTD)
		err = fathom_zstd_pack(&k->session->memory, (struct fathom_bytes){ piece, size },
				       LEVEL, p->data, size - 1, &p->size);
	if (err || !p->size) {
		memcpy(p->data, piece, (size_t)size);
		p->size = size;
	} else {
		uint8_t *fitting = realloc(p->data, (size_t)p->size);

		p->data = fitting ? fitting : p->data;
	}
	free(piece);
}

/* Puts the header, the table and the pieces together. */
static fathom_err join(struct making *k, struct fathom_bytes *ret)
{
	struct fathom_container_header *h = &k->h;
	uint64_t off = fathom_container_pieces_off(h);
	struct fathom_container_piece *table;
	uint8_t *data;

	h->file_size = off;
	for (uint32_t i = 0; i < h->n_pieces; i++) {
		const uint64_t both[2] = { h->image_check, k->pieces[i].image_check };

		h->file_size += k->pieces[i].size;
		h->image_check = fathom_index_check(both, sizeof both);
	}
	if (h->file_size > FATHOM_CONTAINER_MAX_FILE)
		return FATHOM_E_LIMIT;
	data = malloc((size_t)h->file_size);
	if (!data)
		return FATHOM_E_MEMORY;
	table = (void *)(data + sizeof *h);
	for (uint32_t i = 0; i < h->n_pieces; i++) {
		const struct packed *p = &k->pieces[i];

		table[i] = (struct fathom_container_piece){ .check = fathom_index_check(
								    p->data, (size_t)p->size),
							    .size = (uint32_t)p->size };
		memcpy(data + off, p->data, (size_t)p->size);
		off += p->size;
	}
	h->table_check = fathom_index_check(table, h->n_pieces * sizeof *table);
	h->check = fathom_index_check(h, offsetof(struct fathom_container_header, check));
	memcpy(data, h, sizeof *h);
	*ret = (struct fathom_bytes){ data, h->file_size };
	return FATHOM_OK;
}

static fathom_err pack_all(struct making *k, struct fathom_bytes *ret)
{
	const unsigned threads = k->session->threads;

	k->pieces = calloc(k->h.n_pieces, sizeof *k->pieces);
	if (!k->pieces)
		return FATHOM_E_MEMORY;
	fathom_run_asking(k->session, FATHOM_PHASE_STORE, threads, k->h.n_pieces, pack_piece, k);
	if (fathom_is_cancelled(k->session))
		return FATHOM_E_CANCELLED;
	return atomic_load(&k->err) ? atomic_load(&k->err) : join(k, ret);
}

fathom_err fathom_container_make(struct fathom *session, const struct fathom_alone *a,
				 struct fathom_bytes *ret, struct fathom_errinfo *reterr)
{
	const struct fathom_index_header *index = (const void *)a->index.data;
	struct making k = { .session = session, .a = a };
	struct fathom_container_header *h = &k.h;
	fathom_err err;

	memcpy(h->magic, FATHOM_CONTAINER_MAGIC, sizeof h->magic);
	h->version = FATHOM_CONTAINER_VERSION;
	h->byte_order = BYTE_ORDER_MARK;
	h->index_version = FATHOM_INDEX_VERSION;
	h->codec = fathom_codec_zstd.open(&session->memory, NULL) ? FATHOM_CONTAINER_PLAIN
								  : FATHOM_CONTAINER_ZSTD;
	h->skeleton_size = a->skeleton.size;
	h->index_size = a->index.size;
	h->piece_size = (uint32_t)FATHOM_CONTAINER_PIECE;
	h->n_pieces =
		(uint32_t)(round_up(fathom_container_image_size(h), h->piece_size) / h->piece_size);
	h->debug_size = a->debug_size;
	h->debug_check = a->debug_check;
	h->debug_info_size = a->debug_info_size;
	h->level = a->level;
	h->build_id_size = index->build_id_size;
	memcpy(h->build_id, index->build_id, sizeof h->build_id);
	err = fathom_container_image_size(h) > FATHOM_CONTAINER_MAX_IMAGE / 2 ? FATHOM_E_LIMIT
									      : FATHOM_OK;
	if (!err)
		err = pack_all(&k, ret);
	for (uint32_t i = 0; k.pieces && i < h->n_pieces; i++)
		free(k.pieces[i].data);
	free(k.pieces);
	return err ? fathom_fail(reterr, err, "", 0, fathom_err_name(err)) : FATHOM_OK;
}

int fathom_container_compare(const struct fathom_container_header *a,
			     const struct fathom_container_header *b)
{
	if (a->level != b->level)
		return a->level < b->level ? -1 : 1;
	if (a->index_size != b->index_size)
		return u64_compare(a->index_size, b->index_size);
	if (a->debug_check != b->debug_check)
		return u64_compare(a->debug_check, b->debug_check);
	return u64_compare(a->image_check, b->image_check);
}

void fathom_container_describe(const struct fathom_container_header *h,
			       struct fathom_store_entry *ret)
{
	*ret = (struct fathom_store_entry){
		.build_id_size = h->build_id_size,
		.level = h->level,
		.file_size = h->file_size,
		.index_size = h->index_size,
		.debug_size = h->debug_size,
		.debug_check = h->debug_check,
		.debug_info_size = h->debug_info_size,
	};
	memcpy(ret->build_id, h->build_id, sizeof ret->build_id);
}
