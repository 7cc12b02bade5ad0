/* SPDX-License-Identifier: MIT */
#include "safe/index/index.h"

#include "safe/base/sort.h"

_Static_assert(sizeof(struct fathom_index_header) <= FATHOM_INDEX_SEEN_OFF,
	       "the header is one page");
_Static_assert(sizeof(struct fathom_index_symbol) == 24, "the format of the file");
_Static_assert(sizeof(struct fathom_index_segment) == 32, "the format of the file");
_Static_assert(sizeof(struct fathom_index_nameless) == 40, "the format of the file");

/* Four lanes of multiply and rotate: about as fast as memory. No protection against forgery. */
uint64_t fathom_index_check(const void *data, size_t size)
{
	const uint64_t prime = UINT64_C(0x9e3779b97f4a7c15);
	const uint8_t *p = data;
	uint64_t lane[4] = { 1, 2, 3, 4 };
	uint64_t sum = size * prime;

	for (; size >= 32; size -= 32, p += 32)
		for (int i = 0; i < 4; i++) {
			lane[i] = (lane[i] ^ load_u64(p + 8 * i, false)) * prime;
			lane[i] = lane[i] << 29 | lane[i] >> 35;
		}
	for (int i = 0; i < 4; i++)
		sum = (sum ^ lane[i]) * prime;
	for (; size; size--)
		sum = (sum ^ *p++) * prime;
	return sum ^ sum >> 32;
}

static bool part_inside(const struct fathom_index_header *h, const struct fathom_index_part *part,
			uint64_t item)
{
	uint64_t size;

	return part->off >= FATHOM_INDEX_PAGE && !(part->off & 7) &&
	       !__builtin_mul_overflow(part->n, item, &size) &&
	       range_inside(part->off, size, h->file_size);
}

/* Returns whether the header is one of this version and machine, and all parts are inside. */
static bool header_is_sound(struct fathom_bytes file)
{
	const struct fathom_index_header *h = (const void *)file.data;

	if (file.size < FATHOM_INDEX_PAGE ||
	    memcmp(h->magic, FATHOM_INDEX_MAGIC, sizeof h->magic) != 0 ||
	    h->version != FATHOM_INDEX_VERSION || h->byte_order != 0x01020304 ||
	    h->file_size != file.size ||
	    h->check != fathom_index_check(h, offsetof(struct fathom_index_header, check)))
		return false;
	return part_inside(h, &h->blocks, 1) && part_inside(h, &h->pool, 1) &&
	       part_inside(h, &h->symbol_starts, sizeof(uint64_t)) &&
	       part_inside(h, &h->symbol_winners, sizeof(uint32_t)) &&
	       part_inside(h, &h->symbols, sizeof(struct fathom_index_symbol)) &&
	       part_inside(h, &h->segments, sizeof(struct fathom_index_segment)) &&
	       part_inside(h, &h->nameless, sizeof(struct fathom_index_nameless)) &&
	       part_inside(h, &h->checks, sizeof(uint32_t)) &&
	       h->n_sources <= FATHOM_INDEX_SOURCES && h->build_id_size <= sizeof h->build_id &&
	       h->symbol_starts.n == h->symbol_winners.n;
}

bool fathom_index_init(struct fathom_index *x, struct fathom_bytes file, _Atomic uint64_t *checked)
{
	const struct fathom_index_header *h = (const void *)file.data;

	if (!header_is_sound(file) || h->flags & FATHOM_INDEX_ALONE ||
	    h->checks.n < (h->checks.off + FATHOM_INDEX_PAGE - 1) / FATHOM_INDEX_PAGE)
		return false;
	*x = (struct fathom_index){ file, h, checked, NULL, NULL };
	return true;
}

bool fathom_index_init_filled(struct fathom_index *x, struct fathom_bytes file,
			      _Atomic uint64_t *checked, fathom_index_fill_fn *fill, void *data)
{
	const struct fathom_index_header *h = (const void *)file.data;
	const uint32_t flags = FATHOM_INDEX_COMPLETE | FATHOM_INDEX_ALONE;

	if (!header_is_sound(file) || (h->flags & flags) != flags)
		return false;
	*x = (struct fathom_index){ file, h, checked, fill, data };
	return true;
}

bool fathom_index_has_seen(const struct fathom_index *x, uint64_t seen, uint64_t *ret_place)
{
	uint64_t place = FATHOM_INDEX_SEEN_OFF + seen % FATHOM_INDEX_SEEN * sizeof seen;
	bool is_free = false;

	for (uint64_t off = FATHOM_INDEX_SEEN_OFF; off < FATHOM_INDEX_PAGE; off += sizeof seen) {
		const uint64_t here = load_u64(x->file.data + off, false);

		if (here == seen || (!here && !is_free)) {
			is_free = true;
			place = off;
		}
		if (here == seen)
			break;
	}
	*ret_place = place;
	return load_u64(x->file.data + place, false) == seen;
}

static _Atomic uint64_t *damage_word(const struct fathom_index *x)
{
	return &x->checked[fathom_index_checked_words(x->file.size) - 1];
}

bool fathom_index_is_damaged(const struct fathom_index *x)
{
	return atomic_load_explicit(damage_word(x), memory_order_relaxed) != 0;
}

/* Returns whether page @i, of [@start, @end), is there and as it was written. */
static bool verify_page(const struct fathom_index *x, uint64_t i, uint64_t start, uint64_t end)
{
	if (x->fill)
		return x->fill(x->fill_data, start);
	return load_u32(x->file.data + x->header->checks.off + i * sizeof(uint32_t), false) ==
	       (uint32_t)fathom_index_check(x->file.data + start, (size_t)(end - start));
}

/* Returns whether page @i is as it was written. Verifies it only once. */
static bool page_is_sound(const struct fathom_index *x, uint64_t i)
{
	const struct fathom_index_header *h = x->header;
	const uint64_t bit = UINT64_C(1) << (i & 63);
	const uint64_t start = i * FATHOM_INDEX_PAGE;
	uint64_t end = start + FATHOM_INDEX_PAGE;

	/* Another thread may have filled it in. */
	if (atomic_load_explicit(&x->checked[i / 64], memory_order_acquire) & bit)
		return true;
	end = end < h->checks.off ? end : h->checks.off;
	if (!verify_page(x, i, start, end)) {
		atomic_store_explicit(damage_word(x), 1, memory_order_relaxed);
		return false;
	}
	atomic_fetch_or_explicit(&x->checked[i / 64], bit, memory_order_release);
	return true;
}

/* As fathom_index_bytes(). Inlined where look-ups spend their time. */
static inline __attribute__((always_inline)) const void *bytes_at(const struct fathom_index *x,
								  uint64_t off, uint64_t size)
{
	if (!size || !range_inside(off, size, x->header->checks.off))
		return NULL;
	for (uint64_t i = off / FATHOM_INDEX_PAGE; i <= (off + size - 1) / FATHOM_INDEX_PAGE; i++)
		if (i && !page_is_sound(x, i)) /* page 0, the header, has a checksum of its own */
			return NULL;
	return x->file.data + off;
}

const void *fathom_index_bytes(const struct fathom_index *x, uint64_t off, uint64_t size)
{
	return bytes_at(x, off, size);
}

struct fathom_str fathom_index_string(const struct fathom_index *x, uint32_t reference)
{
	const struct fathom_index_part *pool = &x->header->pool;
	const struct fathom_str none = { NULL, 0 };
	const uint8_t *p;
	uint32_t size;

	if (!reference || !range_inside(reference, sizeof size, pool->n))
		return none;
	p = fathom_index_bytes(x, pool->off + reference, sizeof size);
	if (!p)
		return none;
	size = load_u32(p, false);
	/* Page checksums protect these bytes, and fathom wrote them: only a bug breaks them. */
	if (!range_inside(reference + sizeof size, (uint64_t)size + 1, pool->n) ||
	    !fathom_index_bytes(x, pool->off + reference + sizeof size, (uint64_t)size + 1) ||
	    p[sizeof size + size])
		return none;
	return (struct fathom_str){ (const char *)p + sizeof size, size };
}

/* Returns item @i of a part; the caller has checked @i against its count. */
static const void *part_item(const struct fathom_index *x, const struct fathom_index_part *part,
			     uint64_t i, uint64_t size)
{
	return bytes_at(x, part->off + i * size, size);
}

/* Returns whether symbol start @i is at or before @svma; sets *@bad if it cannot be read. */
static inline bool starts_upto(const struct fathom_index *x, uint64_t i, uint64_t svma, bool *bad)
{
	const uint64_t *start = part_item(x, &x->header->symbol_starts, i, sizeof *start);

	*bad |= !start;
	return start && *start <= svma;
}

bool fathom_index_find_symbol(const struct fathom_index *x, uint64_t svma, uint32_t *ret_number)
{
	bool bad = false;
	const uint64_t low =
		FATHOM_BISECT(x->header->symbol_starts.n, i, starts_upto(x, i, svma, &bad));
	const uint32_t *winner;

	if (!low || bad)
		return false;
	winner = part_item(x, &x->header->symbol_winners, low - 1, sizeof *winner);
	if (!winner || *winner >= x->header->symbols.n)
		return false;
	*ret_number = *winner;
	return true;
}

bool fathom_index_symbol(const struct fathom_index *x, uint32_t number,
			 struct fathom_index_symbol *ret)
{
	const struct fathom_index_symbol *s;

	if (number >= x->header->symbols.n)
		return false;
	s = part_item(x, &x->header->symbols, number, sizeof *s);
	if (!s)
		return false;
	*ret = *s;
	return true;
}

bool fathom_index_segment(const struct fathom_index *x, uint64_t i,
			  struct fathom_index_segment *ret)
{
	const struct fathom_index_segment *s;

	if (i >= x->header->segments.n)
		return false;
	s = part_item(x, &x->header->segments, i, sizeof *s);
	if (!s)
		return false;
	*ret = *s;
	return true;
}

/* Returns the block at @off of the file, with all its pages checked; NULL if it is damaged. */
static const struct fathom_block *block_at(const struct fathom_index *x, uint64_t off)
{
	const struct fathom_index_part *part = &x->header->blocks;
	const struct fathom_block *b;

	if (off < part->off || off & 7 || !range_inside(off - part->off, sizeof *b, part->n))
		return NULL;
	b = fathom_index_bytes(x, off, sizeof *b);
	if (!b || !fathom_block_is_sound(b, part->n - (off - part->off)) ||
	    (x->fill && b->bytes > FATHOM_INDEX_MAX_BLOCK) || !fathom_index_bytes(x, off, b->bytes))
		return NULL;
	return b;
}

/* Returns whether segment @i begins at or before @svma; sets *@bad if it cannot be read. */
static inline bool begins_upto(const struct fathom_index *x, uint64_t i, uint64_t svma, bool *bad)
{
	struct fathom_index_segment s;

	if (fathom_index_segment(x, i, &s))
		return s.low <= svma;
	*bad = true;
	return false;
}

bool fathom_index_find_block(const struct fathom_index *x, uint64_t svma,
			     struct fathom_block_view *ret)
{
	const struct fathom_index_part *pool = &x->header->pool;
	struct fathom_index_segment s;
	bool bad = false;
	const uint64_t low = FATHOM_BISECT(x->header->segments.n, i, begins_upto(x, i, svma, &bad));

	if (!low || bad || !fathom_index_segment(x, low - 1, &s) || svma >= s.high)
		return false;
	ret->block = block_at(x, s.block);
	ret->pool = bytes_slice(x->file, pool->off, pool->n);
	ret->index = x;
	return ret->block != NULL;
}

/* Returns range @i of code without symbols; NULL, and sets *@bad, if it cannot be read. */
static const struct fathom_index_nameless *nameless_at(const struct fathom_index *x, uint64_t i,
						       bool *bad)
{
	const struct fathom_index_nameless *n =
		part_item(x, &x->header->nameless, i, sizeof(struct fathom_index_nameless));

	*bad |= !n;
	return n;
}

static bool lies_upto(const struct fathom_index *x, uint64_t i, uint64_t svma, bool *bad)
{
	const struct fathom_index_nameless *n = nameless_at(x, i, bad);

	return n && n->low <= svma;
}

bool fathom_index_find_nameless(const struct fathom_index *x, uint64_t svma,
				struct fathom_index_nameless *ret)
{
	bool bad = false;
	const uint64_t n = FATHOM_BISECT(x->header->nameless.n, i, lies_upto(x, i, svma, &bad));
	const struct fathom_index_nameless *found = n ? nameless_at(x, n - 1, &bad) : NULL;

	if (!found || bad || svma >= found->high)
		return false;
	*ret = *found;
	return true;
}
