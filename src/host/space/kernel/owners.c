/* SPDX-License-Identifier: MIT */
#include "host/space/kernel/owners.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/module/module.h"

/* No kernel has so many modules; any beyond stay nameless. */
#define MAX_OWNERS 4096

static uint32_t bucket_of(struct fathom_str name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (uint32_t i = 0; i < name.size; i++)
		hash = (hash ^ (uint8_t)name.data[i]) * 16777619u;
	return (hash ^ hash >> 16) % FATHOM_OWNER_BUCKETS;
}

/* Returns the name of an owner, without brackets; the image's is no module's name. */
static struct fathom_str name_of(const struct fathom_kernel_owner *o)
{
	return (struct fathom_str){ o->path + 1, (uint32_t)strlen(o->path) - 2 };
}

static fathom_err add(struct fathom_kernel_owners *o, struct fathom_str name, uint32_t *next)
{
	struct fathom_kernel_owner *item = calloc(1, sizeof *item);

	if (!item || !fathom_array_room(o, 1) ||
	    asprintf(&item->path, "[%.*s]", (int)name.size, name.data) < 0) {
		free(item);
		return FATHOM_E_MEMORY;
	}
	item->holder = (struct fathom_holder){ .name = item->path };
	item->reason = FATHOM_REASON_NO_DEBUG_INFO;
	o->items[o->n++] = item;
	if (next) {
		item->next = *next;
		*next = (uint32_t)o->n;
	}
	return FATHOM_OK;
}

fathom_err fathom_kernel_owners_init(struct fathom_kernel_owners *o, struct fathom_kernel *k)
{
	*o = (struct fathom_kernel_owners){ .kernel = k };
	FATHOM_TRY(add(o, (struct fathom_str){ "kernel", 6 }, NULL));
	o->items[0]->holder.build_id = (struct fathom_bytes){ k->build_id.data, k->build_id.size };
	return FATHOM_OK;
}

void fathom_kernel_owners_deinit(struct fathom_kernel_owners *o)
{
	for (size_t i = 0; i < o->n; i++) {
		free(o->items[i]->path);
		free(o->items[i]->sections);
		free(o->items[i]);
	}
	fathom_array_free(o);
}

fathom_err fathom_kernel_owners_use(struct fathom_kernel_owners *o, struct fathom_str name,
				    uint32_t *ret)
{
	uint32_t *bucket = &o->bucket[bucket_of(name)];

	*ret = 0;
	for (uint32_t i = name.size ? *bucket : 1; i; i = o->items[i - 1]->next)
		if (i == 1 || str_equal(name_of(o->items[i - 1]), name)) {
			*ret = i - 1;
			return FATHOM_OK;
		}
	*ret = FATHOM_NONE;
	if (o->n > MAX_OWNERS)
		return FATHOM_OK;
	FATHOM_TRY(add(o, name, bucket));
	*ret = (uint32_t)o->n - 1;
	return FATHOM_OK;
}

/* Finds the image's file, or why there is none. */
static fathom_err open_image(struct fathom_kernel *k, struct fathom_kernel_owner *item)
{
	const struct fathom_kernel_image *image = fathom_kernel_image(k);

	if (!image)
		return FATHOM_E_MEMORY;
	item->holder.module = image->module;
	item->reason = image->reason;
	return FATHOM_OK;
}

static fathom_err open_module(struct fathom_kernel *k, struct fathom_kernel_owner *item)
{
	const struct fathom_kernel_module *file;

	if (!fathom_kernel_may_have_file(name_of(item)))
		return FATHOM_OK;
	file = fathom_kernel_module(k, name_of(item));
	if (!file)
		return FATHOM_E_MEMORY;
	item->holder.build_id = (struct fathom_bytes){ file->build_id.data, file->build_id.size };
	item->reason = file->reason;
	if (!file->module)
		return FATHOM_OK;
	item->sections = calloc((size_t)file->module->main->n_sections + 1, sizeof *item->sections);
	if (!item->sections)
		return FATHOM_E_MEMORY;
	if (fathom_kernel_read_sections(&k->place, name_of(item), file->module->main,
					item->sections))
		item->holder.module = file->module;
	else
		item->reason = FATHOM_REASON_NO_PERMISSION;
	return FATHOM_OK;
}

fathom_err fathom_kernel_owners_open(struct fathom_kernel_owners *o, uint32_t i,
				     struct fathom_kernel_owner **ret)
{
	struct fathom_kernel_owner *item = o->items[i];

	*ret = item;
	if (item->is_known)
		return FATHOM_OK;
	FATHOM_TRY(i ? open_module(o->kernel, item) : open_image(o->kernel, item));
	item->is_known = true;
	return FATHOM_OK;
}
