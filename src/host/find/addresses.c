/* SPDX-License-Identifier: MIT */
/* From names to addresses only: runs the search of fathom_find() without texts in the matches. */
#include <stdlib.h>

#include "host/base/array.h"
#include "host/find/search.h"
#include "host/space/target.h"

/* Most names of one search, if the memory budget allows. */
#define MAX_NAMES ((size_t)1 << 17)
/* Least names of one search. */
#define MIN_NAMES 1024
/* Approximate memory of one name in a search. */
#define NAME_BYTES 512

/* Names and their results. */
struct lookup {
	const char **names; /* each once */
	size_t n;
	uint32_t *number_of; /* index in names of each given name */
	uint8_t *reasons;    /* enum fathom_reason of each */
	size_t *first;       /* first index in addresses of each, and the end */
	struct fathom_u64_array addresses;
};

/* Stores the @n @names without duplicates. Returns false without memory. */
static bool unite(struct lookup *l, const char *const *names, size_t n)
{
	struct fathom_name_keys keys = { 0 };

	l->names = malloc((n + 1) * sizeof *l->names);
	l->number_of = malloc((n + 1) * sizeof *l->number_of);
	l->reasons = malloc(n + 1);
	l->first = malloc((n + 1) * sizeof *l->first);
	if (!l->names || !l->number_of || !l->reasons || !l->first ||
	    !fathom_name_keys_init(&keys, n)) {
		fathom_name_keys_deinit(&keys);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		const struct fathom_str name = { names[i], (uint32_t)strlen(names[i]) };
		uint32_t k = fathom_name_keys_first(&keys, name.data, name.size);

		while (k && strcmp(l->names[keys.item[k - 1].value], names[i]) != 0)
			k = fathom_name_keys_next(&keys, k);
		if (!k) {
			fathom_name_keys_add(&keys, name, (uint32_t)l->n);
			l->names[l->n++] = names[i];
		}
		l->number_of[i] = k ? keys.item[k - 1].value : (uint32_t)l->n - 1;
	}
	fathom_name_keys_deinit(&keys);
	return true;
}

static void lookup_deinit(struct lookup *l)
{
	free(l->names);
	free(l->number_of);
	free(l->reasons);
	free(l->first);
	fathom_array_free(&l->addresses);
}

/* Returns why a name has no address, without saying which names a file lacks. */
static uint8_t reason_of(const struct fathom_match *m)
{
	switch (m->reason) {
	case FATHOM_REASON_UNMAPPED:
	case FATHOM_REASON_NO_PERMISSION:
	case FATHOM_REASON_UNSUPPORTED:
	case FATHOM_REASON_CHANGED:
		return m->reason;
	default:
		return FATHOM_REASON_NO_SUCH_SYMBOL;
	}
}

/* Most neighbouring aliases, such as those of constructors. */
#define ALIASES 16

/* Adds the address of @m to its name, unless it is known. Returns false without memory. */
static bool take_address(struct lookup *l, size_t name, const struct fathom_match *m)
{
	const uint64_t *known = l->addresses.items;

	for (size_t i = l->addresses.n; i > l->first[name] && l->addresses.n - i < ALIASES; i--)
		if (known[i - 1] == m->address)
			return true;
	return fathom_array_push(&l->addresses, m->address);
}

/* Stores the matches of names [from, to). Returns false without memory. */
static bool take_matches(struct lookup *l, const struct fathom_matches *matches, size_t from,
			 size_t to)
{
	const size_t n = fathom_matches_count(matches);
	size_t i = 0;

	for (size_t name = from; name < to; name++) {
		l->first[name] = l->addresses.n;
		l->reasons[name] = FATHOM_REASON_NO_SUCH_SYMBOL;
		for (; i < n && fathom_matches_get(matches, i)->query == name - from; i++) {
			const struct fathom_match *m = fathom_matches_get(matches, i);

			if (!(m->flags & FATHOM_MATCH_ADDRESS))
				l->reasons[name] = reason_of(m);
			else if (!take_address(l, name, m))
				return false;
		}
		if (l->first[name] < l->addresses.n)
			l->reasons[name] = FATHOM_REASON_NONE;
	}
	l->first[to] = l->addresses.n;
	return true;
}

/* Returns the number of names of one search that the memory budget allows. */
static size_t names_at_once(const struct fathom_target *target)
{
	const uint64_t n = fathom_memory_left(&target->session->memory) / NAME_BYTES;

	return n > MAX_NAMES ? MAX_NAMES : n < MIN_NAMES ? MIN_NAMES : (size_t)n;
}

static fathom_err look_up(struct fathom_target *target, const struct fathom_find_options *options,
			  struct lookup *l, struct fathom_errinfo *reterr)
{
	const size_t most = names_at_once(target);
	fathom_err err = FATHOM_OK;
	size_t to;

	for (size_t from = 0; !err && from < l->n; from = to) {
		struct fathom_matches *matches;

		to = l->n - from > most ? from + most : l->n;
		err = fathom_find_run(target, options, FATHOM_YIELD_ADDRESSES, l->names + from,
				      to - from, &matches, reterr);
		if (err)
			break;
		if (!take_matches(l, matches, from, to))
			err = fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
		fathom_matches_free(matches);
	}
	return err;
}

/* Finds the first @limit addresses of each name; 0: all. */
static fathom_err find_addresses(struct fathom_target *target, uint32_t flags, uint32_t limit,
				 const char *const *names, size_t n, uint8_t *ret_reasons,
				 fathom_symbol_fn fn, void *data, struct fathom_errinfo *reterr)
{
	const struct fathom_find_options options = { .size = sizeof options,
						     .flags = flags | FATHOM_FIND_NAMES,
						     .limit = limit };
	struct lookup l = { .n = 0 };
	fathom_err err;

	if (n > UINT32_MAX / 2 || (flags & ~(uint32_t)FATHOM_FIND_LINKED))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more names than one batch may have, or an unknown flag");
	if (unite(&l, names, n))
		err = look_up(target, &options, &l, reterr);
	else
		err = fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	for (size_t i = 0; !err && i < n; i++) {
		const uint32_t name = l.number_of[i];

		ret_reasons[i] = l.reasons[name];
		for (size_t a = l.first[name]; a < l.first[name + 1]; a++)
			fn(data, i, l.addresses.items[a]);
	}
	lookup_deinit(&l);
	return err;
}

fathom_err fathom_target_find_all_symbols(struct fathom_target *target, uint32_t flags,
					  const char *const *names, size_t n, uint8_t *ret_reasons,
					  fathom_symbol_fn fn, void *data,
					  struct fathom_errinfo *reterr)
{
	return find_addresses(target, flags, 0, names, n, ret_reasons, fn, data, reterr);
}

static void store_address(void *data, size_t i, uint64_t address)
{
	((uint64_t *)data)[i] = address;
}

fathom_err fathom_target_find_symbols(struct fathom_target *target, uint32_t flags,
				      const char *const *names, size_t n, uint64_t *ret_addresses,
				      uint8_t *ret_reasons, struct fathom_errinfo *reterr)
{
	return find_addresses(target, flags, 1, names, n, ret_reasons, store_address, ret_addresses,
			      reterr);
}

fathom_err fathom_target_find_symbol(struct fathom_target *target, const char *name,
				     uint64_t *ret_address)
{
	uint8_t reason;

	FATHOM_TRY(fathom_target_find_symbols(target, 0, &name, 1, ret_address, &reason, NULL));
	return reason == FATHOM_REASON_NONE            ? FATHOM_OK
	       : reason == FATHOM_REASON_NO_PERMISSION ? FATHOM_E_OS
						       : FATHOM_E_NOT_FOUND;
}
