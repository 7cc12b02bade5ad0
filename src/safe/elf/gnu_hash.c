/* SPDX-License-Identifier: MIT */
#include "safe/elf/gnu_hash.h"

#include "safe/base/cursor.h"

/* Bytes before the Bloom filter of DT_GNU_HASH. */
#define GNU_HEADER 16

bool fathom_gnu_hash_init(struct fathom_hash_table *t, struct fathom_bytes bytes, bool is64,
			  bool swap)
{
	struct fathom_cursor c = cur_init(bytes, swap);
	uint64_t at;

	*t = (struct fathom_hash_table){ .word = is64 ? 8 : 4, .is_gnu = true, .swap = swap };
	t->n_buckets = cur_u32(&c);
	t->first = cur_u32(&c);
	t->n_bloom = cur_u32(&c);
	t->shift = cur_u32(&c);
	if (!cur_ok(&c) || !t->n_buckets || !t->n_bloom)
		return false;
	t->bloom = bytes_slice(bytes, GNU_HEADER, (uint64_t)t->n_bloom * t->word);
	at = GNU_HEADER + (uint64_t)t->n_bloom * t->word;
	t->buckets = bytes_slice(bytes, at, (uint64_t)t->n_buckets * 4);
	t->chains = bytes_from(bytes, at + (uint64_t)t->n_buckets * 4);
	return t->bloom.size && t->buckets.size;
}

bool fathom_sysv_hash_init(struct fathom_hash_table *t, struct fathom_bytes bytes, uint8_t word,
			   bool swap)
{
	struct fathom_cursor c = cur_init(bytes, swap);
	uint64_t n_buckets;
	uint64_t n_chains;

	*t = (struct fathom_hash_table){ .word = word, .swap = swap };
	n_buckets = cur_uint(&c, word);
	n_chains = cur_uint(&c, word);
	if (!cur_ok(&c) || !n_buckets || n_buckets > UINT32_MAX || n_chains > UINT32_MAX)
		return false;
	t->n_buckets = (uint32_t)n_buckets;
	t->n_chains = (uint32_t)n_chains;
	t->buckets = bytes_slice(bytes, 2u * word, n_buckets * word);
	t->chains = bytes_slice(bytes, (2 + n_buckets) * word, n_chains * word);
	return t->buckets.size && t->chains.size;
}

/* Returns element @i of @words, whose elements have @size bytes; 0 if it is outside. */
static uint64_t word_at(const struct fathom_hash_table *t, struct fathom_bytes words, uint64_t i,
			uint8_t size)
{
	const struct fathom_bytes b = bytes_slice(words, i * size, size);

	if (!b.size)
		return 0;
	return size == 8 ? load_u64(b.data, t->swap) : load_u32(b.data, t->swap);
}

/* The hash of DT_GNU_HASH: h * 33 + c, from 5381. */
uint32_t fathom_gnu_hash(struct fathom_str name)
{
	uint32_t h = 5381;

	for (uint32_t i = 0; i < name.size; i++)
		h = h * 33 + (uint8_t)name.data[i];
	return h;
}

/* The hash of DT_HASH (gABI, "Hash Table"), computed in 32 bits. */
static uint32_t sysv_hash(struct fathom_str name)
{
	uint32_t h = 0;

	for (uint32_t i = 0; i < name.size; i++) {
		h = (h << 4) + (uint8_t)name.data[i];
		h ^= (h & 0xf0000000) >> 24;
		h &= 0x0fffffff;
	}
	return h;
}

/* Returns whether @hash passes the Bloom filter: two bits of one word are set. */
static bool may_hold(const struct fathom_hash_table *t, uint32_t hash)
{
	const uint32_t bits = 8u * t->word;
	const uint64_t word = word_at(t, t->bloom, (hash / bits) % t->n_bloom, t->word);
	const uint32_t other = t->shift < 32 ? hash >> t->shift : 0;

	return (word >> (hash % bits)) & (word >> (other % bits)) & 1;
}

void fathom_hash_search_init(struct fathom_hash_search *s, const struct fathom_hash_table *t,
			     struct fathom_str name)
{
	*s = (struct fathom_hash_search){ .table = t };
	s->hash = t->is_gnu ? fathom_gnu_hash(name) : sysv_hash(name);
	if (t->is_gnu && !may_hold(t, s->hash))
		return;
	s->next = (uint32_t)word_at(t, t->buckets, s->hash % t->n_buckets, t->is_gnu ? 4 : t->word);
	s->left = t->is_gnu ? UINT32_MAX : t->n_chains;
	/* Symbol 0 ends a bucket. Those before the first hashed one are in no bucket. */
	if (t->is_gnu && s->next < t->first)
		s->next = 0;
}

/* Follows a chain of DT_GNU_HASH to a symbol with this hash, its lowest bit ignored. */
static bool next_gnu(struct fathom_hash_search *s, uint32_t *ret_symbol)
{
	const struct fathom_hash_table *t = s->table;

	while (s->next) {
		const uint32_t symbol = s->next;
		const struct fathom_bytes b =
			bytes_slice(t->chains, (uint64_t)(symbol - t->first) * 4, 4);
		const uint32_t word = b.size ? load_u32(b.data, t->swap) : 1;

		/* The last word of a chain has its lowest bit set. */
		s->next = word & 1 || symbol == UINT32_MAX ? 0 : symbol + 1;
		if (b.size && (word | 1) == (s->hash | 1)) {
			*ret_symbol = symbol;
			return true;
		}
	}
	return false;
}

bool fathom_hash_search_next(struct fathom_hash_search *s, uint32_t *ret_symbol)
{
	const struct fathom_hash_table *t = s->table;

	if (t->is_gnu)
		return next_gnu(s, ret_symbol);
	if (!s->next || s->next >= t->n_chains || !s->left)
		return false;
	s->left--;
	*ret_symbol = s->next;
	s->next = (uint32_t)word_at(t, t->chains, s->next, t->word);
	return true;
}
