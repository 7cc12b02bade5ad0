/* SPDX-License-Identifier: MIT */
#include "safe/index/block.h"

#include "safe/base/sort.h"
#include "safe/index/index.h"

#define NARROW_NONE UINT16_MAX

_Static_assert(sizeof(struct fathom_block) % 8 == 0, "what follows the header is aligned");
_Static_assert(sizeof(struct fathom_block_row) == 32, "the format of cache files");
_Static_assert(sizeof(struct fathom_block_narrow) == 16, "the format of cache files");
_Static_assert(sizeof(struct fathom_block_node) == 32, "the format of cache files");
_Static_assert(sizeof(struct fathom_block_function) == 12, "the format of cache files");

static uint64_t row_size(uint32_t flags)
{
	return flags & FATHOM_BLOCK_WIDE ? sizeof(struct fathom_block_row)
					 : sizeof(struct fathom_block_narrow);
}

static uint64_t declaration_size(uint32_t flags)
{
	return flags & FATHOM_BLOCK_DECLARED ? sizeof(struct fathom_block_declaration) : 0;
}

uint64_t fathom_block_bytes(uint32_t flags, uint64_t n_rows, uint64_t n_nodes, uint64_t n_functions,
			    uint64_t n_files)
{
	/* The counts are below 2^32 and the sizes below 2^6: the sum cannot overflow. */
	if ((n_rows | n_nodes | n_functions | n_files) > UINT32_MAX)
		return 0;
	return sizeof(struct fathom_block) + n_rows * row_size(flags) +
	       n_nodes * sizeof(struct fathom_block_node) +
	       n_functions * (sizeof(struct fathom_block_function) + declaration_size(flags)) +
	       n_files * sizeof(uint32_t);
}

bool fathom_block_is_sound(const struct fathom_block *b, uint64_t available)
{
	uint64_t bytes;

	if (available < sizeof *b)
		return false;
	bytes = fathom_block_bytes(b->flags, b->n_rows, b->n_nodes, b->n_functions, b->n_files);
	return bytes && bytes + b->pool_size <= b->bytes && b->bytes <= available;
}

/* Returns where a part starts. No padding is needed: alignment only decreases after the rows. */
static uint8_t *part(struct fathom_block *b, bool nodes, bool functions, bool files, bool rest)
{
	uint8_t *p = (uint8_t *)b + sizeof *b;

	if (nodes)
		p += b->n_rows * row_size(b->flags);
	if (functions)
		p += (uint64_t)b->n_nodes * sizeof(struct fathom_block_node);
	if (files)
		p += (uint64_t)b->n_functions * sizeof(struct fathom_block_function);
	if (rest)
		p += (uint64_t)b->n_files * sizeof(uint32_t);
	return p;
}

void *fathom_block_rows(struct fathom_block *b)
{
	return part(b, false, false, false, false);
}

struct fathom_block_node *fathom_block_nodes(struct fathom_block *b)
{
	return (void *)part(b, true, false, false, false);
}

struct fathom_block_function *fathom_block_functions(struct fathom_block *b)
{
	return (void *)part(b, true, true, false, false);
}

uint32_t *fathom_block_files(struct fathom_block *b)
{
	return (void *)part(b, true, true, true, false);
}

struct fathom_block_declaration *fathom_block_declarations(struct fathom_block *b)
{
	return (void *)part(b, true, true, true, true);
}

char *fathom_block_pool(struct fathom_block *b)
{
	return (char *)part(b, true, true, true, true) +
	       b->n_functions * declaration_size(b->flags);
}

/* Casts const away: readers and writers of a block share the functions that find its parts. */
static struct fathom_block *writable(const struct fathom_block *b)
{
	return (struct fathom_block *)(uintptr_t)b;
}

static uint32_t widen(uint16_t number)
{
	return number == NARROW_NONE ? FATHOM_BLOCK_NONE : number;
}

void fathom_block_get_row(const struct fathom_block *b, uint32_t i, struct fathom_block_row *ret)
{
	const struct fathom_block_narrow *narrow;

	if (b->flags & FATHOM_BLOCK_WIDE) {
		*ret = ((const struct fathom_block_row *)fathom_block_rows(writable(b)))[i];
		return;
	}
	narrow = (const struct fathom_block_narrow *)fathom_block_rows(writable(b)) + i;
	*ret = (struct fathom_block_row){ .off = narrow->off,
					  .line = narrow->line,
					  .column = narrow->column,
					  .discriminator = narrow->discriminator,
					  .file = widen(narrow->file),
					  .node = widen(narrow->node) };
}

static uint64_t row_off(const struct fathom_block *b, uint32_t i)
{
	const void *rows = fathom_block_rows(writable(b));

	return b->flags & FATHOM_BLOCK_WIDE ? ((const struct fathom_block_row *)rows)[i].off
					    : ((const struct fathom_block_narrow *)rows)[i].off;
}

bool fathom_block_find(const struct fathom_block *b, uint64_t svma, struct fathom_block_row *ret,
		       uint32_t *ret_index)
{
	const uint32_t low =
		(uint32_t)FATHOM_BISECT(b->n_rows, i, row_off(b, (uint32_t)i) <= svma - b->low);

	if (svma < b->low || svma - b->low >= b->size)
		return false;
	if (!low)
		return false;
	*ret_index = low - 1;
	fathom_block_get_row(b, low - 1, ret);
	return true;
}

bool fathom_block_node(const struct fathom_block *b, uint32_t i, struct fathom_block_node *ret)
{
	if (i >= b->n_nodes)
		return false;
	*ret = fathom_block_nodes(writable(b))[i];
	return true;
}

bool fathom_block_function(const struct fathom_block *b, uint32_t i,
			   struct fathom_block_function *ret)
{
	if (i >= b->n_functions)
		return false;
	*ret = fathom_block_functions(writable(b))[i];
	return true;
}

bool fathom_block_declaration(const struct fathom_block *b, uint32_t i,
			      struct fathom_block_declaration *ret)
{
	if (i >= b->n_functions || !(b->flags & FATHOM_BLOCK_DECLARED))
		return false;
	*ret = fathom_block_declarations(writable(b))[i];
	return true;
}

bool fathom_block_file(const struct fathom_block *b, uint32_t i, uint32_t *ret_string)
{
	if (i >= b->n_files)
		return false;
	*ret_string = fathom_block_files(writable(b))[i];
	return true;
}

struct fathom_str fathom_block_string(const struct fathom_block_view *view, uint32_t reference)
{
	const struct fathom_bytes pool = view->pool;
	struct fathom_str s = { NULL, 0 };
	uint32_t size;

	if (view->index)
		return fathom_index_string(view->index, reference);
	if (!reference || !range_inside(reference, sizeof size, pool.size))
		return s;
	size = load_u32(pool.data + reference, false);
	if (!range_inside(reference + sizeof size, (uint64_t)size + 1, pool.size))
		return s;
	s.data = (const char *)pool.data + reference + sizeof size;
	s.size = size;
	return s;
}

struct fathom_block_view fathom_block_own_view(const struct fathom_block *b)
{
	return (struct fathom_block_view){
		b, { (const uint8_t *)fathom_block_pool(writable(b)), b->pool_size }, NULL
	};
}
