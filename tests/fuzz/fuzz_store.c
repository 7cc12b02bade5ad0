/* SPDX-License-Identifier: MIT */
/*
 * Indexes of a store, as a hostile one has them. The first byte chooses what of the file is put
 * right: nothing, its header and table, or all checksums; then what is tested is that nothing else
 * is believed. In the last case two bytes have the size of the skeleton, which is followed by the
 * index.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "host/base/search_paths.h"
#include "host/store/indexes.h"

static const uint8_t id[20] = { 0xab, 0xcd, 1, 2, 3 };

/* A store with one file. */
struct one_file {
	struct fathom_store_backend b; /* first */
	struct fathom_bytes file;
};

static fathom_err read_file(struct fathom_store_backend *b, const char *key, uint64_t off, void *to,
			    size_t size, int64_t deadline_ns, size_t *ret_size,
			    struct fathom_errinfo *reterr)
{
	const struct fathom_bytes rest = bytes_from(((struct one_file *)b)->file, off);

	(void)key;
	(void)deadline_ns;
	(void)reterr;
	*ret_size = rest.size < size ? (size_t)rest.size : size;
	if (*ret_size)
		memcpy(to, rest.data, *ret_size);
	return FATHOM_OK;
}

static const struct fathom_store_backend_ops ops = { .read = read_file };

/* Makes a file of @skeleton and @data, an index, whose header is put right. */
static bool make_file(struct fathom *session, struct fathom_bytes skeleton,
		      struct fathom_bytes data, struct fathom_bytes *ret)
{
	const size_t size = (size_t)data.size + FATHOM_INDEX_PAGE;
	uint8_t *index = calloc(1, size);
	struct fathom_index_header *h = (void *)index;
	struct fathom_alone a = { .index = { index, size }, .skeleton = skeleton };
	bool done;

	if (data.size)
		memcpy(index, data.data, (size_t)data.size);
	memcpy(h->magic, FATHOM_INDEX_MAGIC, sizeof h->magic);
	h->version = FATHOM_INDEX_VERSION;
	h->byte_order = 0x01020304;
	h->file_size = size;
	h->flags = FATHOM_INDEX_COMPLETE | FATHOM_INDEX_ALONE;
	h->build_id_size = sizeof id;
	memcpy(h->build_id, id, sizeof id);
	h->check = fathom_index_check(h, offsetof(struct fathom_index_header, check));
	done = skeleton.size && !fathom_container_make(session, &a, ret, NULL);
	free(index);
	return done;
}

/* Copies @data, and puts its header and table right. */
static struct fathom_bytes repair(struct fathom_bytes data)
{
	uint8_t *file = malloc((size_t)data.size + sizeof(struct fathom_container_header));
	struct fathom_container_header *h = (void *)file;
	const uint64_t room = data.size - sizeof *h;

	memcpy(file, data.data, (size_t)data.size);
	memcpy(h->magic, FATHOM_CONTAINER_MAGIC, sizeof h->magic);
	h->version = FATHOM_CONTAINER_VERSION;
	h->byte_order = 0x01020304;
	h->index_version = FATHOM_INDEX_VERSION;
	h->file_size = data.size;
	h->build_id_size = sizeof id;
	memcpy(h->build_id, id, sizeof id);
	if (h->n_pieces <= room / sizeof(struct fathom_container_piece))
		h->table_check = fathom_index_check(
			h + 1, h->n_pieces * sizeof(struct fathom_container_piece));
	h->check = fathom_index_check(h, offsetof(struct fathom_container_header, check));
	return (struct fathom_bytes){ file, data.size };
}

/* Asks for addresses of a small program, and others. */
static void ask(struct fathom_target *t)
{
	uint64_t addresses[256];
	struct fathom_answers *answers;
	size_t n = 0;

	for (; n < 200; n++)
		addresses[n] = n * 37;
	for (; n < 256; n++)
		addresses[n] = 0x1000 + (n - 200) * 16;
	if (fathom_symbolize(t, NULL, addresses, NULL, n, &answers, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, i);

		for (const struct fathom_frame *f = a->frame; f; f = f->outer)
			fuzz_use_str((struct fathom_str){ f->function, f->function_size });
		for (const char *c = a->symbol; c && *c; c++)
			fuzz_use((uint8_t)*c);
	}
	fathom_answers_free(answers);
}

static void use_file(struct fathom *session, struct fathom_bytes file)
{
	struct one_file place = { .b = { .ops = &ops, .session = session, .place = (char *)"" },
				  .file = file };
	struct fathom_store store = { .session = session, .backend = &place.b };
	struct fathom_container_header h;
	struct fathom_search_paths *paths;
	struct fathom_target *t;

	(void)fathom_container_verify(session, file, (struct fathom_bytes){ NULL, 0 }, &h, NULL);
	if (fathom_search_paths_create(session, NULL, &paths, NULL))
		return;
	if (!fathom_stored_index_open(&store, paths, (struct fathom_bytes){ id, sizeof id }, &t,
				      NULL)) {
		ask(t);
		fathom_target_release(t);
	}
	fathom_search_paths_release(paths);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	struct fathom *session = fuzz_session(NULL);
	const unsigned mode = fuzz_byte(&f) % 3;
	struct fathom_bytes file;

	if (mode == 0) {
		use_file(session, fuzz_rest(&f));
	} else if (mode == 1) {
		file = fuzz_rest(&f);
		if (file.size >= sizeof(struct fathom_container_header)) {
			file = repair(file);
			use_file(session, file);
			free((void *)(uintptr_t)file.data);
		}
	} else {
		const struct fathom_bytes skeleton = fuzz_section(&f);

		if (make_file(session, skeleton, fuzz_rest(&f), &file)) {
			use_file(session, file);
			free((void *)(uintptr_t)file.data);
		}
	}
	fathom_destroy(session);
	return 0;
}
