/* SPDX-License-Identifier: MIT */
#include "host/fleet/open_builds.h"

#include <stdlib.h>
#include <string.h>

#include "fathom/cache.h"
#include "host/base/clock.h"
#include "host/base/hash.h"
#include "host/fleet/resident.h"
#include "host/module/module.h"
#include "host/space/target.h"
#include "safe/base/error.h"

/* Buckets of the smallest table. */
#define MIN_BUCKETS 64

/*
 * Files that are open at once. Each has up to four mappings, and Linux allows a process 65,530
 * (vm.max_map_count); none has a descriptor.
 */
#define MAX_OPEN 15000

/* Missing builds that are remembered, and bytes that they take. */
#define MAX_MISSING       (1u << 16)
#define MAX_MISSING_BYTES ((size_t)16 << 20)

/*
 * Bytes that an open file counts for beside what the session counts: small allocations, and tables
 * of the kernel. Measured with 3,000 small files: 50 KiB each.
 */
#define FILE_BYTES ((uint64_t)64 << 10)

/*
 * An index is stored on closing if decoding took longer than storing does, and at once if it took
 * this long.
 */
#define STORE_AT_ONCE_NS 1000000000
#define STORE_WITHIN_MS  2000

/* The time to store an index, before one was stored. */
#define STORE_NS 500000

#define MS_NS 1000000

static void count(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static void set(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* The lists. */

static size_t size_of(const struct fathom_open_build *e)
{
	return sizeof *e + e->key.build_id_size + e->key.module_size + 1;
}

static struct fathom_build_list *list_of(struct fathom_open_builds *b,
					 const struct fathom_open_build *e)
{
	return e->target ? &b->open : &b->missing;
}

static void unlink_entry(struct fathom_build_list *list, struct fathom_open_build *e)
{
	*(e->newer ? &e->newer->older : &list->newest) = e->older;
	*(e->older ? &e->older->newer : &list->oldest) = e->newer;
	list->n--;
	list->n_bytes -= size_of(e);
}

static void link_newest(struct fathom_build_list *list, struct fathom_open_build *e)
{
	e->newer = NULL;
	e->older = list->newest;
	*(e->older ? &e->older->newer : &list->oldest) = e;
	list->newest = e;
	list->n++;
	list->n_bytes += size_of(e);
}

/* The table. */

static uint64_t hash_of(const struct fathom_open_builds *b, const struct fathom_build *key)
{
	/* Rows cannot know this address, so they cannot choose builds of one hash. */
	uint64_t hash = fathom_hash_bytes((uintptr_t)b + key->build_id_size,
					  (const char *)key->build_id, key->build_id_size);

	return fathom_hash_bytes(hash, key->module, key->module_size);
}

static bool is_key(const struct fathom_open_build *e, const struct fathom_build *key)
{
	return e->key.build_id_size == key->build_id_size &&
	       e->key.module_size == key->module_size &&
	       (!key->build_id_size ||
		memcmp(e->key.build_id, key->build_id, key->build_id_size) == 0) &&
	       (!key->module_size || memcmp(e->key.module, key->module, key->module_size) == 0);
}

static struct fathom_open_build **bucket_of(const struct fathom_open_builds *b, uint64_t hash)
{
	return &b->buckets[hash & (b->n_buckets - 1)];
}

/* Puts the entries of @list into the table. */
static void enter_all(struct fathom_open_builds *b, const struct fathom_build_list *list)
{
	for (struct fathom_open_build *e = list->newest; e; e = e->older) {
		struct fathom_open_build **bucket = bucket_of(b, e->hash);

		e->next = *bucket;
		*bucket = e;
	}
}

/* Makes the table larger, if there is memory: else it stays as it is. */
static void grow(struct fathom_open_builds *b)
{
	const size_t n = 2 * b->n_buckets;
	struct fathom_open_build **buckets = calloc(n, sizeof(struct fathom_open_build *));

	if (!buckets)
		return;
	free(b->buckets);
	b->buckets = buckets;
	b->n_buckets = n;
	enter_all(b, &b->open);
	enter_all(b, &b->missing);
}

static struct fathom_open_build *look_up(const struct fathom_open_builds *b, uint64_t hash,
					 const struct fathom_build *key)
{
	struct fathom_open_build *e = *bucket_of(b, hash);

	while (e && (e->hash != hash || !is_key(e, key)))
		e = e->next;
	return e;
}

/* Frees @e, which it takes out of the table and its list. */
static void remove_entry(struct fathom_open_builds *b, struct fathom_open_build *e)
{
	struct fathom_open_build **at = bucket_of(b, e->hash);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	unlink_entry(list_of(b, e), e);
	fathom_target_release(e->target);
	free(e);
	set(&b->counts.open, b->open.n);
	set(&b->counts.missing, b->missing.n);
}

/* Creates an entry for @key, in no list; NULL without memory. */
static struct fathom_open_build *create_entry(const struct fathom_build *key, uint64_t hash)
{
	struct fathom_open_build *e =
		calloc(1, sizeof *e + key->build_id_size + (size_t)key->module_size + 1);
	uint8_t *texts = (uint8_t *)(e + 1);

	if (!e)
		return NULL;
	if (key->build_id_size)
		memcpy(texts, key->build_id, key->build_id_size);
	if (key->module_size)
		memcpy(texts + key->build_id_size, key->module, key->module_size);
	e->key = *key;
	e->key.build_id = texts;
	e->key.module = (const char *)texts + key->build_id_size;
	e->hash = hash;
	return e;
}

/* Closing. */

/* Returns the time that was spent decoding @e, which is open. */
static uint64_t cost_of(const struct fathom_open_build *e)
{
	const struct fathom_module *m = e->target->stated;

	return m ? atomic_load_explicit(&m->cost_ns, memory_order_relaxed) : 0;
}

/* Stores the index of @e if decoding has taken @above_ns since it was stored. */
static void store_index(struct fathom_open_builds *b, struct fathom_open_build *e,
			uint64_t above_ns)
{
	const uint64_t cost = cost_of(e);
	uint64_t took;

	if ((b->places.session->flags & FATHOM_NO_CACHE) || cost < e->stored_ns + above_ns)
		return;
	took = (uint64_t)fathom_now_ns();
	/* It may fail: nothing is lost without it but time. */
	(void)fathom_cache_store(e->target, 0, STORE_WITHIN_MS, NULL, NULL);
	took = (uint64_t)fathom_now_ns() - took;
	e->stored_ns = cost;
	/* A directory of many indexes takes longer. */
	b->store_ns = (b->store_ns + took) / 2;
	count(&b->counts.store_ns, took);
}

/* Returns whether open files take more than there is room for. */
static bool is_over(const struct fathom_open_builds *b)
{
	struct fathom_usage usage;
	uint64_t mapped;

	fathom_get_usage(b->places.session, &usage);
	if (b->open.n >= MAX_OPEN || usage.memory_used > usage.memory_budget / 4 * 3)
		return true;
	mapped = fathom_resident_file_bytes();
	mapped -= mapped < b->first_file_bytes ? mapped : b->first_file_bytes;
	return usage.memory_used + mapped + b->open.n * FILE_BYTES > usage.memory_budget;
}

/* Closes builds that were used in no turn but earlier ones; returns whether there is room. */
static bool make_room(struct fathom_open_builds *b)
{
	while (is_over(b)) {
		struct fathom_open_build *e = b->open.oldest;

		if (!e)
			return true;
		if (e->turn == b->turn)
			return false;
		store_index(b, e, b->store_ns);
		remove_entry(b, e);
		count(&b->counts.evicted, 1);
	}
	return true;
}

static void forget_missing(struct fathom_open_builds *b)
{
	while (b->missing.n > MAX_MISSING || b->missing.n_bytes > MAX_MISSING_BYTES)
		remove_entry(b, b->missing.oldest);
}

/* Opening. */

/* Looks for the file of @e, which is in no list, and puts it into one. */
static fathom_err open_entry(struct fathom_open_builds *b, struct fathom_open_build *e,
			     struct fathom_errinfo *reterr)
{
	const int64_t begun = fathom_now_ns();
	struct fathom_build_found found = { .is_stored = false };
	struct fathom_open_build **bucket;
	fathom_err err = FATHOM_OK;

	e->reason = FATHOM_REASON_NO_FILE;
	if (e->key.build_id_size <= FATHOM_BUILD_ID_MAX &&
	    !memchr(e->key.module, '\0', e->key.module_size))
		err = fathom_build_search(&b->places, &e->key, &e->target, &e->reason, &found,
					  reterr);
	e->looked_ns = fathom_now_ns();
	count(&b->counts.open_ns, (uint64_t)(e->looked_ns - begun));
	if (err) {
		free(e);
		return err;
	}
	if (b->open.n + b->missing.n >= b->n_buckets)
		grow(b);
	bucket = bucket_of(b, e->hash);
	e->next = *bucket;
	*bucket = e;
	link_newest(list_of(b, e), e);
	count(&b->counts.opened, e->target != NULL);
	count(&b->counts.from_stores, found.is_stored);
	count(&b->counts.put, found.was_put);
	set(&b->counts.open, b->open.n);
	set(&b->counts.missing, b->missing.n);
	return FATHOM_OK;
}

/* Uses @e, which is known, in this turn. */
static void use(struct fathom_open_builds *b, struct fathom_open_build *e,
		struct fathom_open_build **ret, enum fathom_reason *ret_reason)
{
	unlink_entry(list_of(b, e), e);
	link_newest(list_of(b, e), e);
	e->turn = b->turn;
	*ret_reason = e->reason;
	*ret = e->target ? e : NULL;
}

bool fathom_open_builds_look(struct fathom_open_builds *b, const struct fathom_build *build,
			     struct fathom_open_build **ret, enum fathom_reason *ret_reason)
{
	struct fathom_open_build *e = look_up(b, hash_of(b, build), build);

	if (e && !e->target && fathom_now_ns() - e->looked_ns > b->missing_ns) {
		remove_entry(b, e);
		e = NULL;
	}
	if (!e)
		return false;
	use(b, e, ret, ret_reason);
	count(e->target ? &b->counts.hits : &b->counts.known_missing, 1);
	return true;
}

fathom_err fathom_open_builds_find(struct fathom_open_builds *b, const struct fathom_build *build,
				   struct fathom_open_build **ret, enum fathom_reason *ret_reason,
				   struct fathom_errinfo *reterr)
{
	struct fathom_open_build *e;

	*ret = NULL;
	*ret_reason = FATHOM_REASON_NONE;
	if (fathom_open_builds_look(b, build, ret, ret_reason) || !make_room(b))
		return FATHOM_OK;
	e = create_entry(build, hash_of(b, build));
	if (!e)
		return fathom_fail_memory(reterr);
	FATHOM_TRY(open_entry(b, e, reterr));
	count(&b->counts.misses, 1);
	use(b, e, ret, ret_reason);
	forget_missing(b);
	return FATHOM_OK;
}

void fathom_open_builds_drop(struct fathom_open_builds *b, struct fathom_open_build *build)
{
	remove_entry(b, build);
}

void fathom_open_builds_end_turn(struct fathom_open_builds *b)
{
	for (struct fathom_open_build *e = b->open.newest; e && e->turn == b->turn; e = e->older) {
		const uint64_t cost = cost_of(e);

		count(&b->counts.decode_ns, cost - e->counted_ns);
		e->counted_ns = cost;
		store_index(b, e, STORE_AT_ONCE_NS);
	}
	b->turn++;
	(void)make_room(b);
}

fathom_err fathom_open_builds_init(struct fathom_open_builds *b, uint32_t missing_ms,
				   struct fathom_errinfo *reterr)
{
	b->missing_ns = (int64_t)missing_ms * MS_NS;
	b->turn = 1;
	b->store_ns = STORE_NS;
	b->first_file_bytes = fathom_resident_file_bytes();
	b->n_buckets = MIN_BUCKETS;
	b->buckets = calloc(MIN_BUCKETS, sizeof *b->buckets);
	return b->buckets ? FATHOM_OK : fathom_fail_memory(reterr);
}

void fathom_open_builds_deinit(struct fathom_open_builds *b)
{
	for (struct fathom_open_build *e = b->open.newest; e; e = e->older)
		store_index(b, e, b->store_ns);
	while (b->open.oldest)
		remove_entry(b, b->open.oldest);
	while (b->missing.oldest)
		remove_entry(b, b->missing.oldest);
	free(b->buckets);
	fathom_store_list_close(&b->places.stores);
	fathom_dirs_free(b->places.module_dirs);
	fathom_search_paths_release(b->places.paths);
}
