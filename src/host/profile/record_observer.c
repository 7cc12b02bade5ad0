/* SPDX-License-Identifier: MIT */
#include "host/profile/record_observer.h"

#include <stdlib.h>
#include <string.h>

#include "fathom/stack.h"
#include "host/profile/samples_writer.h"

/* Returns a copy of @text that lives as long as @o; NULL without memory. */
static const char *keep(struct fathom_record_observer *o, const char *text)
{
	const uint32_t number = fathom_name_table_add(&o->texts, text);

	return number == FATHOM_KEY_NEW ? NULL : o->texts.items[number].text;
}

/* As keep(), of a text that may be nothing, which *@ret is NULL for. False without memory. */
static bool keep_str(struct fathom_record_observer *o, struct fathom_str s, const char **ret)
{
	char *text;

	*ret = NULL;
	if (!s.size)
		return true;
	text = strndup(s.data, s.size);
	*ret = text ? keep(o, text) : NULL;
	free(text);
	return *ret != NULL;
}

bool fathom_record_observe_cgroup(struct fathom_record_observer *o, const char *path)
{
	const char *kept = keep(o, path);

	return kept && fathom_array_push(&o->cgroups, kept);
}

bool fathom_record_observe_thread(struct fathom_record_observer *o,
				  const struct fathom_profile_thread *t, uint32_t cgroup)
{
	struct fathom_profile_thread kept = *t;
	uint32_t *first;

	kept.name = keep(o, t->name);
	kept.cgroup = cgroup < o->cgroups.n ? o->cgroups.items[cgroup] : "";
	first = fathom_key_map_at(&o->by_pid, (uint32_t)t->pid);
	if (!kept.name || !first)
		return false;
	if (t->pid == t->tid)
		*first = (uint32_t)o->threads.n;
	kept.process = *first < o->threads.n ? o->threads.items[*first].name : kept.name;
	return fathom_array_push(&o->threads, kept);
}

bool fathom_record_observe_module(struct fathom_record_observer *o,
				  const struct fathom_profile_module *m)
{
	struct fathom_record_observed_module *kept = malloc(sizeof *kept + m->build_id_size);
	uint8_t *id;

	if (!kept)
		return false;
	*kept = (struct fathom_record_observed_module){ .m = *m };
	kept->m.path = keep(o, m->path);
	id = (uint8_t *)(kept + 1);
	if (m->build_id_size)
		memcpy(id, m->build_id, m->build_id_size);
	kept->m.build_id = m->build_id_size ? id : NULL;
	if (m->kind == FATHOM_PROFILE_MODULE_SCRIPT) {
		kept->kind = FATHOM_FRAME_SCRIPT;
		if (m->runtime < o->modules.n)
			o->modules.items[m->runtime]->kind = FATHOM_FRAME_RUNTIME;
	}
	if (kept->m.path && fathom_array_push(&o->modules, kept))
		return true;
	free(kept);
	return false;
}

bool fathom_record_observe_symbol(struct fathom_record_observer *o,
				  const struct fathom_profile_symbol *s)
{
	struct fathom_record_frame kept = { .line = s->line };

	return keep_str(o, s->name, &kept.name) &&
	       keep_str(o, s->linkage_name, &kept.linkage_name) &&
	       keep_str(o, s->file, &kept.file) && fathom_array_push(&o->symbols, kept);
}

bool fathom_record_observe_location(struct fathom_record_observer *o,
				    const struct fathom_profile_location *l, uint32_t symbol)
{
	struct fathom_record_frame kept = { .line = 0 };

	if (symbol < o->symbols.n)
		kept = o->symbols.items[symbol];
	kept.pc = l->pc;
	kept.module = l->module < o->modules.n ? &o->modules.items[l->module]->m : NULL;
	kept.trust = l->trust;
	kept.is_signal_return = l->is_signal_return;
	return fathom_array_push(&o->locations, kept);
}

bool fathom_record_observe_node(struct fathom_record_observer *o,
				const struct fathom_profile_node *n)
{
	return fathom_array_push(&o->nodes, *n);
}

bool fathom_record_observe_sample(struct fathom_record_observer *o,
				  const struct fathom_profile_sample *s)
{
	struct fathom_record_sample told = {
		.ns = s->ns, .weight = s->weight, .part = s->part, .stop = s->stop
	};

	if (o->is_over || s->thread >= o->threads.n)
		return true;
	o->frames.n = 0;
	/* A node's caller has a lower number. */
	for (uint32_t node = s->node; node; node = o->nodes.items[node - 1].caller) {
		struct fathom_record_frame f =
			o->locations.items[o->nodes.items[node - 1].location];

		/* A module may turn out to be an interpreter later. */
		if (f.module)
			f.kind = ((const struct fathom_record_observed_module *)f.module)->kind;
		if (!fathom_array_push(&o->frames, f))
			return false;
	}
	told.thread = &o->threads.items[s->thread];
	told.frames = o->frames.items;
	told.n_frames = o->frames.n;
	o->is_over = o->sample(o->data, &told) != 0;
	return true;
}

void fathom_record_observer_deinit(struct fathom_record_observer *o)
{
	for (size_t i = 0; i < o->modules.n; i++)
		free(o->modules.items[i]);
	fathom_name_table_deinit(&o->texts);
	fathom_array_free(&o->cgroups);
	fathom_array_free(&o->threads);
	fathom_key_map_deinit(&o->by_pid);
	fathom_array_free(&o->modules);
	fathom_array_free(&o->symbols);
	fathom_array_free(&o->locations);
	fathom_array_free(&o->nodes);
	fathom_array_free(&o->frames);
}
