/* SPDX-License-Identifier: MIT */
/*
 * Index files. Their checksums would keep a fuzzer out, so the header's and the pages' are put
 * right first: what is tested is that nothing else is believed.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "safe/index/index.h"

/* Copies the input into pages and makes its checksums right. */
static uint8_t *repair(const uint8_t *data, size_t size)
{
	uint8_t *file = aligned_alloc(FATHOM_INDEX_PAGE, (size + FATHOM_INDEX_PAGE) &
								 ~(size_t)(FATHOM_INDEX_PAGE - 1));
	struct fathom_index_header *h = (void *)file;

	memcpy(file, data, size);
	if (size < FATHOM_INDEX_PAGE)
		return file;
	memcpy(h->magic, FATHOM_INDEX_MAGIC, sizeof h->magic);
	h->version = FATHOM_INDEX_VERSION;
	h->byte_order = 0x01020304;
	h->file_size = size;
	for (uint64_t i = 0; i < h->checks.n && h->checks.off <= size &&
			     range_inside(h->checks.off + 4 * i, 4, size) && i < 64;
	     i++) {
		const uint64_t start = i * FATHOM_INDEX_PAGE;
		const uint64_t end = start + FATHOM_INDEX_PAGE < h->checks.off
					     ? start + FATHOM_INDEX_PAGE
					     : h->checks.off;
		const uint32_t check =
			start < end ? (uint32_t)fathom_index_check(file + start, end - start) : 0;

		memcpy(file + h->checks.off + 4 * i, &check, sizeof check);
	}
	h->check = fathom_index_check(h, offsetof(struct fathom_index_header, check));
	return file;
}

static void use_block(const struct fathom_block_view *view, uint64_t svma)
{
	struct fathom_block_function function;
	struct fathom_block_node node;
	struct fathom_block_row row;
	uint32_t i;
	uint32_t file;

	if (!fathom_block_find(view->block, svma, &row, &i))
		return;
	if (fathom_block_file(view->block, row.file, &file))
		fuzz_use_str(fathom_block_string(view, file));
	for (i = 0; i < 100 && fathom_block_node(view->block, i, &node); i++)
		if (fathom_block_function(view->block, node.function, &function))
			fuzz_use_str(fathom_block_string(view, function.name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = repair(data, size);
	_Atomic uint64_t *checked = calloc(fathom_index_checked_words(size), sizeof *checked);
	struct fathom_index_segment segment;
	struct fathom_index_symbol symbol;
	struct fathom_block_view view;
	struct fathom_index x;
	uint32_t number;

	if (fathom_index_init(&x, (struct fathom_bytes){ file, size }, checked)) {
		for (uint64_t i = 0; i < 100 && fathom_index_segment(&x, i, &segment); i++)
			if (fathom_index_find_block(&x, segment.low, &view))
				use_block(&view, segment.low);
		for (uint64_t svma = 0; svma < 100; svma++)
			if (fathom_index_find_symbol(&x, svma << 8, &number) &&
			    fathom_index_symbol(&x, number, &symbol))
				fuzz_use_str(fathom_index_string(&x, symbol.name));
	}
	free((void *)checked);
	free(file);
	return 0;
}
