/* SPDX-License-Identifier: MIT */
#include "host/space/user/hung_mappings.h"

#include "safe/base/sort.h"

void fathom_hung_mappings_init(struct fathom_hung_mappings *h, struct fathom_fs_probe *reach)
{
	*h = (struct fathom_hung_mappings){ .reach = reach };
	pthread_mutex_init(&h->lock, NULL);
}

void fathom_hung_mappings_deinit(struct fathom_hung_mappings *h)
{
	fathom_array_free(&h->list);
	pthread_mutex_destroy(&h->lock);
}

bool fathom_hung_mappings_has(const struct fathom_hung_mappings *h, const struct fathom_mapping *m)
{
	return m->inode && fathom_fs_probe_hangs(h->reach, m->device);
}

/* Lists the hazards in @maps; returns false if out of memory. */
static bool list(const struct fathom_hung_mappings *h, const struct fathom_maps *maps,
		 struct fathom_hung_mapping_array *ret)
{
	uint64_t device = 0;
	bool hangs = false;

	for (size_t i = 0; i < maps->n; i++) {
		const struct fathom_mapping *m = &maps->items[i];

		if (!m->inode)
			continue;
		/* Adjacent mappings are likely on one device. */
		if (m->device != device)
			hangs = fathom_hung_mappings_has(h, m);
		device = m->device;
		if (!hangs)
			continue;
		if (!fathom_array_push(ret,
				       (struct fathom_hung_mapping){ m->start, m->end, m->device }))
			return false;
	}
	return true;
}

void fathom_hung_mappings_note(struct fathom_hung_mappings *h, const struct fathom_maps *maps)
{
	struct fathom_hung_mapping_array other = { NULL, 0, 0 };

	if (!h->reach)
		return;
	if (list(h, maps, &other)) {
		const struct fathom_hung_mapping_array found = other;

		pthread_mutex_lock(&h->lock);
		other = h->list;
		h->list = found;
		atomic_store(&h->any, found.n != 0);
		atomic_store(&h->known, true);
		pthread_mutex_unlock(&h->lock);
	}
	fathom_array_free(&other);
}

struct fathom_hung_mapping fathom_hung_mappings_next(struct fathom_hung_mappings *h, uint64_t avma)
{
	struct fathom_hung_mapping found = { UINT64_MAX, UINT64_MAX, 0 };
	const struct fathom_hung_mapping *item;
	size_t low;

	pthread_mutex_lock(&h->lock);
	item = h->list.items;
	low = FATHOM_BISECT(h->list.n, i, item[i].end <= avma);
	if (low < h->list.n)
		found = item[low];
	pthread_mutex_unlock(&h->lock);
	return found;
}
