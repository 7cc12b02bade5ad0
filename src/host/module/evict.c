/* SPDX-License-Identifier: MIT */
#include "host/module/evict.h"

#include "host/module/debug.h"
#include "host/module/unit_data.h"

void fathom_evict_register(struct fathom *session, struct fathom_debug *d)
{
	pthread_mutex_lock(&session->debugs_lock);
	d->next = session->debugs;
	session->debugs = d;
	pthread_mutex_unlock(&session->debugs_lock);
}

void fathom_evict_unregister(struct fathom *session, struct fathom_debug *d)
{
	struct fathom_debug **link = &session->debugs;

	pthread_mutex_lock(&session->debugs_lock);
	while (*link && *link != d)
		link = &(*link)->next;
	if (*link)
		*link = d->next;
	pthread_mutex_unlock(&session->debugs_lock);
}

static void free_retired(struct fathom_retired *r, void *data)
{
	fathom_unit_data_free((struct fathom_unit_data *)r, data);
}

void fathom_evict_retire(struct fathom *session, struct fathom_unit_data *data)
{
	data->retired.free_it = free_retired;
	fathom_epoch_retire(&session->epochs, &data->retired);
}

/* Retires the data of @node, unless @spare_used and it was used lately; returns whether it did. */
static bool evict_node(struct fathom *session, struct fathom_unit_node *node, bool spare_used)
{
	struct fathom_unit_data *data;

	if (!atomic_load_explicit(&node->data, memory_order_relaxed))
		return false;
	if (atomic_exchange_explicit(&node->used, 0, memory_order_relaxed) && spare_used)
		return false;
	data = atomic_exchange(&node->data, NULL);
	if (!data)
		return false;
	fathom_evict_retire(session, data);
	return true;
}

/* Makes one round over the units of @d; stops once *@excess bytes are retired. */
static void evict_units(struct fathom *session, struct fathom_debug *d, bool spare_used,
			uint64_t *excess)
{
	for (size_t b = 0; b < d->units.n_buckets && *excess; b++) {
		struct fathom_unit_node *node =
			atomic_load_explicit(&d->units.buckets[b], memory_order_acquire);

		for (; node && *excess; node = node->next) {
			struct fathom_unit_data *data = atomic_load(&node->data);
			const uint64_t bytes = data ? atomic_load(&data->bytes) : 0;

			if (evict_node(session, node, spare_used))
				*excess = bytes < *excess ? *excess - bytes : 0;
		}
	}
}

void fathom_evict(struct fathom *session)
{
	uint64_t used = atomic_load_explicit(&session->memory.used, memory_order_relaxed);
	uint64_t excess;
	size_t place;

	if (used <= session->memory.budget)
		return;
	/* Freeing what other threads have retired may be enough. */
	fathom_epoch_reclaim(&session->epochs, &session->memory);
	if (!fathom_memory_over(&session->memory) ||
	    pthread_mutex_trylock(&session->debugs_lock) != 0)
		return;
	used = atomic_load_explicit(&session->memory.used, memory_order_relaxed);
	/* A tenth of the budget more than needed, to stay below it for a while. */
	excess = used > session->memory.budget
			 ? used - session->memory.budget + session->memory.budget / 10
			 : 0;
	place = fathom_epoch_enter(&session->epochs);
	for (int round = 0; round < 2; round++)
		for (struct fathom_debug *d = session->debugs; d && excess; d = d->next)
			evict_units(session, d, round == 0, &excess);
	fathom_epoch_leave(&session->epochs, place);
	pthread_mutex_unlock(&session->debugs_lock);
	fathom_epoch_reclaim(&session->epochs, &session->memory);
}
