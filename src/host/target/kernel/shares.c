/* SPDX-License-Identifier: MIT */
/*
 * Answering a batch of addresses of the kernel: first what has files, as shares of the batch, then
 * by kallsyms what has none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host/base/path.h"
#include "host/file/kernel_text.h"
#include "host/module/module.h"
#include "host/symbolize/batch.h"
#include "host/target/kernel/kernel.h"
#include "host/target/kernel/loaded_modules.h"
#include "safe/base/cursor.h"
#include "safe/base/sort.h"

/* So few addresses are worth reading a part of kallsyms. */
#define FEW 8

/* No kernel has so many modules; addresses of further ones are left without a name. */
#define MAX_OWNERS 4096

/* An owner of symbols, the image aside: a module, or what else kallsyms has in brackets. */
struct owner {
	struct fathom_str name;                  /* in one of the lists */
	const struct fathom_kernel_module *file; /* or NULL */
	uint64_t *sections; /* of the file: avma of each; 0: not loaded; NULL: no file to use */
	enum fathom_reason reason;
	const struct fathom_module_info *info; /* its module as answers have it */
};

/* A batch while it is being answered. */
struct kernel_batch {
	struct fathom_kernel *kernel;
	const struct fathom_batch_options *options;
	const uint64_t *addresses;
	size_t n;
	struct fathom_answers *answers;
	struct fathom_errinfo *reterr;
	const struct fathom_kernel_image *image;
	struct fathom_kernel_modules modules;
	struct fathom_kernel_table *table; /* NULL: not needed */
	struct owner *owners;
	uint32_t n_owners;
	struct fathom_keyed *shares; /* by share, then address: the places of those with a file */
	size_t n_shares;
	struct fathom_keyed *rest; /* by avma: the places of the others */
	size_t n_rest;
	uint32_t *places;
	const struct fathom_module_info *info; /* the image as answers have it */
	uint32_t last_id;                      /* the function that was made last, */
	uint64_t last;                         /* of the symbol that starts there */
};

/* The share of the image; those of modules are from 1 on, see share_of(). */
#define SHARE_IMAGE 0

static uint64_t share_of(uint32_t owner, uint32_t section)
{
	return (uint64_t)(owner + 1) << 32 | section;
}

static uint64_t looked_up(const struct kernel_batch *b, size_t i)
{
	return fathom_looked_up(b->options, b->addresses, i);
}

static bool in_image(const struct fathom_kernel_image *image, uint64_t avma)
{
	return image->module && avma >= image->low && avma < image->high;
}

/* Addresses of the image, and the others, whose order is that of their values. */
static void part_addresses(struct kernel_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const uint64_t avma = looked_up(b, i);

		if (in_image(b->image, avma))
			b->shares[b->n_shares++] = (struct fathom_keyed){ SHARE_IMAGE, i };
		else
			b->rest[b->n_rest++] = (struct fathom_keyed){ avma, i };
	}
	fathom_sort_keyed(b->rest, b->rest + b->n_rest, b->n_rest);
}

/* Whether all that has no file yet is in the image: that stays as it is. */
static bool rest_is_image(const struct kernel_batch *b)
{
	for (size_t i = 0; i < b->n_rest; i++)
		if (!fathom_kallsyms_in_image(&b->table->symbols, b->rest[i].key))
			return false;
	return true;
}

/* Takes a table that is true of all that has no file. */
static fathom_err take_table(struct kernel_batch *b)
{
	const int64_t now = fathom_now_ns();
	const bool part = b->n_rest <= FEW && b->rest[0].key >= b->kernel->start;
	const uint64_t last = b->rest[b->n_rest - 1].key;

	FATHOM_TRY(fathom_kernel_take_table(b->kernel, 0, part ? last : UINT64_MAX, &b->table,
					    b->reterr));
	if (b->table->read_ns >= now || rest_is_image(b))
		return FATHOM_OK;
	fathom_kernel_give_table(b->kernel, b->table);
	b->table = NULL;
	return fathom_kernel_take_table(b->kernel, now, UINT64_MAX, &b->table, b->reterr);
}

/* Finds the file of a module, if it is one, and where its sections are. */
static fathom_err find_file(struct kernel_batch *b, struct owner *owner)
{
	struct fathom_str name = owner->name;

	owner->reason = FATHOM_REASON_NO_DEBUG_INFO;
	if (!fathom_kernel_may_have_file(name))
		return FATHOM_OK;
	owner->file = fathom_kernel_module(b->kernel, name);
	if (!owner->file)
		return FATHOM_E_MEMORY;
	owner->reason = owner->file->reason;
	if (!owner->file->module)
		return FATHOM_OK;
	owner->sections =
		calloc((size_t)owner->file->module->main->n_sections + 1, sizeof *owner->sections);
	if (!owner->sections)
		return FATHOM_E_MEMORY;
	if (fathom_kernel_read_sections(&b->kernel->place, name, owner->file->module->main,
					owner->sections))
		return FATHOM_OK;
	owner->reason = FATHOM_REASON_NO_PERMISSION;
	free(owner->sections);
	owner->sections = NULL;
	return FATHOM_OK;
}

static fathom_err describe_owner(struct kernel_batch *b, struct owner *owner)
{
	struct fathom_bytes id = { NULL, 0 };
	char *path;

	if (owner->file)
		id = (struct fathom_bytes){ owner->file->build_id.data,
					    owner->file->build_id.size };
	if (asprintf(&path, "[%.*s]", (int)owner->name.size, owner->name.data) < 0)
		return FATHOM_E_MEMORY;
	owner->info = fathom_answers_add_module(b->answers, path, id);
	free(path);
	return owner->info ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* The number of the owner called @name in the batch; FATHOM_NONE when there are too many. */
static fathom_err use_owner(struct kernel_batch *b, struct fathom_str name, uint32_t *ret)
{
	struct owner *larger;

	/* Addresses come sorted: nearly always it is the last. */
	for (uint32_t i = b->n_owners; i-- > 0;)
		if (str_equal(b->owners[i].name, name)) {
			*ret = i;
			return FATHOM_OK;
		}
	*ret = FATHOM_NONE;
	if (b->n_owners == MAX_OWNERS)
		return FATHOM_OK;
	larger = realloc(b->owners, (b->n_owners + 1) * sizeof *larger);
	if (!larger)
		return FATHOM_E_MEMORY;
	b->owners = larger;
	b->owners[b->n_owners] = (struct owner){ .name = name };
	b->n_owners++;
	FATHOM_TRY(find_file(b, &b->owners[b->n_owners - 1]));
	FATHOM_TRY(describe_owner(b, &b->owners[b->n_owners - 1]));
	*ret = b->n_owners - 1;
	return FATHOM_OK;
}

/* Moves what stands at @i of the rest to the shares, if it is in a section of @owner's file. */
static bool move_to_share(struct kernel_batch *b, size_t i, uint32_t owner)
{
	const struct fathom_keyed r = b->rest[i];
	const uint32_t section =
		owner != FATHOM_NONE && b->owners[owner].sections
			? fathom_kernel_section_at(b->owners[owner].file->module->main,
						   b->owners[owner].sections, r.key)
			: 0;

	if (section)
		b->shares[b->n_shares++] =
			(struct fathom_keyed){ share_of(owner, section), r.value };
	return section != 0;
}

/*
 * Moves what is in a section of the file of a module of the list to the shares: if that is all, as
 * it mostly is, kallsyms need not be read.
 */
static fathom_err find_listed(struct kernel_batch *b)
{
	struct fathom_path path;

	if (!fathom_path_format(&path, "%s/proc/modules", b->kernel->place.root))
		return FATHOM_OK;
	FATHOM_TRY(fathom_kernel_modules_read(path.text, &b->modules));
	for (size_t m = 0; m < b->modules.n; m++) {
		const struct fathom_kernel_range *range = &b->modules.items[m];
		const size_t first = fathom_lower_bound(b->rest, b->n_rest, range->start);
		const size_t end =
			fathom_lower_bound(b->rest, b->n_rest, range->start + range->size);
		size_t left = first;
		uint32_t owner;

		if (first == end)
			continue;
		FATHOM_TRY(use_owner(b, range->name, &owner));
		for (size_t i = first; i < end; i++)
			if (!move_to_share(b, i, owner))
				b->rest[left++] = b->rest[i];
		memmove(b->rest + left, b->rest + end, (b->n_rest - end) * sizeof *b->rest);
		b->n_rest -= end - left;
	}
	return FATHOM_OK;
}

/* The same for those that are where kallsyms says that the module has something. */
static fathom_err find_modules(struct kernel_batch *b)
{
	size_t left = 0;

	for (size_t i = 0; i < b->n_rest; i++) {
		const struct fathom_str name =
			fathom_kallsyms_owner(&b->table->symbols, b->rest[i].key);
		uint32_t owner;

		if (name.size) {
			FATHOM_TRY(use_owner(b, name, &owner));
			if (move_to_share(b, i, owner))
				continue;
		}
		b->rest[left++] = b->rest[i];
	}
	b->n_rest = left;
	return FATHOM_OK;
}

/* Says what the share @key is of. */
static void begin_share(const struct kernel_batch *b, uint64_t key, struct fathom_share *share)
{
	const uint32_t section = (uint32_t)key;
	const struct owner *owner;

	if (key == SHARE_IMAGE) {
		share->module = b->image->module;
		share->bias = b->image->bias;
		share->info = b->info;
		return;
	}
	owner = &b->owners[(key >> 32) - 1];
	share->module = owner->file->module;
	share->bias = owner->sections[section] - share->module->main->sections[section].base;
	share->info = owner->info;
}

static fathom_err answer_shares(struct kernel_batch *b)
{
	struct fathom_share share = { .addresses = b->addresses };

	fathom_sort_keyed(b->shares, b->shares + b->n_shares, b->n_shares);
	for (size_t i = 0; i < b->n_shares; i++)
		b->places[i] = (uint32_t)b->shares[i].value;
	for (size_t i = 0; i < b->n_shares; i += share.n) {
		begin_share(b, b->shares[i].key, &share);
		share.places = b->places + i;
		share.n = 1;
		while (i + share.n < b->n_shares && b->shares[i + share.n].key == b->shares[i].key)
			share.n++;
		FATHOM_TRY(fathom_symbolize_share(&share, b->options, b->answers));
	}
	return FATHOM_OK;
}

/* Why there is nothing at @avma. */
static enum fathom_reason reason_without(const struct kernel_batch *b, uint64_t avma)
{
	if (!b->kernel->start)
		return FATHOM_REASON_NO_PERMISSION;
	/* The kernel is in the upper half: below it, addresses are of processes, or offsets. */
	return avma >> 63 != b->kernel->start >> 63 ? FATHOM_REASON_UNMAPPED
						    : FATHOM_REASON_NO_SYMBOLS;
}

/* The id of the function for @hit; the addresses of one come one behind the other. */
static uint32_t function_of(struct kernel_batch *b, const struct fathom_kallsym_hit *hit)
{
	const struct fathom_symbol_hit symbol = { .start = hit->start,
						  .size = hit->size,
						  .name = hit->name,
						  .source = FATHOM_SOURCE_KALLSYMS };

	if (b->last_id == FATHOM_NONE || b->last != hit->start)
		b->last_id = fathom_part_symbol(&b->answers->parts[0], &symbol);
	b->last = hit->start;
	return b->last_id;
}

/* Answers what no file knows. */
static fathom_err answer_rest(struct kernel_batch *b)
{
	const bool lines = !(b->options->flags & FATHOM_NAMES_ONLY);

	fathom_part_begin(&b->answers->parts[0], 0, b->options->flags, 0);
	b->last_id = FATHOM_NONE;
	for (size_t i = 0; i < b->n_rest; i++) {
		const struct fathom_keyed r = b->rest[i];
		struct fathom_answer *a = &b->answers->answers[r.value];
		enum fathom_reason reason = b->image->reason;
		struct fathom_kallsym_hit hit;
		uint32_t owner;

		*a = fathom_answer_without_module(b->addresses[r.value], reason_without(b, r.key));
		if (!b->table || !fathom_kallsyms_at(&b->table->symbols, r.key, &hit))
			continue;
		if (!hit.owner.size) {
			a->module = b->info;
		} else {
			FATHOM_TRY(use_owner(b, hit.owner, &owner));
			if (owner == FATHOM_NONE) {
				a->reason = FATHOM_REASON_LIMIT;
				continue;
			}
			a->module = b->owners[owner].info;
			reason = b->owners[owner].reason;
		}
		fathom_part_name_answer(&b->answers->parts[0], b->answers, a, function_of(b, &hit));
		a->source = FATHOM_SOURCE_KALLSYMS;
		a->offset = a->pc.address - hit.start;
		a->size = hit.size;
		a->reason = (uint8_t)(lines ? reason : FATHOM_REASON_NONE);
	}
	return b->answers->parts[0].err;
}

/* Says once why there are no lines. */
static void note_no_image(const struct kernel_batch *b)
{
	if (!b->image->module && !(b->options->flags & FATHOM_NAMES_ONLY) && b->n_rest)
		fathom_kernel_note_no_image(b->kernel);
}

static fathom_err answer_batch(struct kernel_batch *b)
{
	const struct fathom_kernel *k = b->kernel;

	b->info = fathom_answers_add_module(
		b->answers, "[kernel]",
		(struct fathom_bytes){ k->build_id.data, k->build_id.size });
	if (!b->info)
		return FATHOM_E_MEMORY;
	part_addresses(b);
	if (b->n_rest && k->start)
		FATHOM_TRY(find_listed(b));
	if (b->n_rest && k->start) {
		note_no_image(b);
		FATHOM_TRY(take_table(b));
		FATHOM_TRY(find_modules(b));
	}
	FATHOM_TRY(answer_shares(b));
	return answer_rest(b);
}

static void batch_deinit(struct kernel_batch *b)
{
	for (uint32_t i = 0; i < b->n_owners; i++)
		free(b->owners[i].sections);
	if (b->table)
		fathom_kernel_give_table(b->kernel, b->table);
	fathom_kernel_modules_deinit(&b->modules);
	free(b->owners);
	free(b->shares);
	free(b->rest);
	free(b->places);
}

/* The image of a kernel that shows no addresses is nowhere. */
static const struct fathom_kernel_image *image_of(struct fathom_kernel *k)
{
	static const struct fathom_kernel_image nowhere = { .reason = FATHOM_REASON_NO_PERMISSION };

	return k->start ? fathom_kernel_image(k) : &nowhere;
}

fathom_err fathom_kernel_symbolize(struct fathom_kernel *k,
				   const struct fathom_batch_options *options,
				   const uint64_t *addresses, size_t n,
				   struct fathom_answers *answers, struct fathom_errinfo *reterr)
{
	struct fathom_errinfo info = { .err = FATHOM_OK };
	struct kernel_batch b = { .kernel = k,
				  .options = options,
				  .addresses = addresses,
				  .n = n,
				  .answers = answers,
				  .reterr = &info,
				  .image = image_of(k),
				  .shares = malloc((2 * n + 1) * sizeof *b.shares),
				  .rest = malloc((2 * n + 1) * sizeof *b.rest),
				  .places = malloc((n + 1) * sizeof *b.places) };
	fathom_err err = FATHOM_E_MEMORY;

	if (b.image && b.shares && b.rest && b.places)
		err = answer_batch(&b);
	batch_deinit(&b);
	if (!err)
		return FATHOM_OK;
	if (info.err != err)
		return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	if (reterr)
		*reterr = info;
	return err;
}
