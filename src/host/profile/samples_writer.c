/* SPDX-License-Identifier: MIT */
#include "host/profile/samples_writer.h"

#include <errno.h>
#include <string.h>

#include "host/base/leb.h"
#include "host/profile/samples_format.h"

/* Bytes that are passed on at once. */
#define PIECE ((size_t)1 << 16)

static void put_bytes(struct fathom_profile_writer *w, struct fathom_bytes_array *to,
		      const void *bytes, size_t n)
{
	if (!fathom_array_room(to, n)) {
		w->no_memory = true;
		return;
	}
	if (n)
		memcpy(to->items + to->n, bytes, n);
	to->n += n;
}

static void put_number_to(struct fathom_profile_writer *w, struct fathom_bytes_array *to,
			  uint64_t value)
{
	uint8_t bytes[FATHOM_LEB_SIZE];

	put_bytes(w, to, bytes, fathom_leb_put(bytes, value));
}

static void put_number(struct fathom_profile_writer *w, uint64_t value)
{
	put_number_to(w, &w->record, value);
}

static void put_text(struct fathom_profile_writer *w, struct fathom_str s)
{
	const size_t n = s.size < FATHOM_PROFILE_TEXT ? s.size : FATHOM_PROFILE_TEXT;

	put_number(w, n);
	put_bytes(w, &w->record, s.data, n);
}

static void put_string(struct fathom_profile_writer *w, const char *s)
{
	put_text(w, (struct fathom_str){ s, (uint32_t)strnlen(s, FATHOM_PROFILE_TEXT) });
}

/* Ends the record with @tag. */
static void put_record(struct fathom_profile_writer *w, unsigned tag)
{
	put_number_to(w, &w->out, tag);
	put_number_to(w, &w->out, w->record.n);
	put_bytes(w, &w->out, w->record.items, w->record.n);
	w->record.n = 0;
	if (w->out.n >= PIECE)
		(void)fathom_profile_writer_flush(w);
}

void fathom_profile_writer_begin(struct fathom_profile_writer *w, fathom_profile_write_fn write,
				 void *data)
{
	w->write = write;
	w->data = data;
	w->n_nodes = 1;
	put_bytes(w, &w->out, FATHOM_PROFILE_MAGIC, FATHOM_PROFILE_MAGIC_SIZE);
}

void fathom_profile_write_about(struct fathom_profile_writer *w, const char *key, const char *text)
{
	put_string(w, key);
	put_string(w, text);
	put_record(w, FATHOM_RECORD_ABOUT);
}

uint32_t fathom_profile_write_cgroup(struct fathom_profile_writer *w, const char *path)
{
	put_string(w, path);
	put_record(w, FATHOM_RECORD_CGROUP);
	w->no_memory |= w->observer && !fathom_record_observe_cgroup(w->observer, path);
	return w->n_cgroups++;
}

uint32_t fathom_profile_write_thread(struct fathom_profile_writer *w,
				     const struct fathom_profile_thread *t, uint32_t cgroup)
{
	put_number(w, (uint32_t)t->pid);
	put_number(w, (uint32_t)t->tid);
	put_number(w, (uint32_t)t->parent);
	put_number(w, t->ns);
	put_string(w, t->name);
	put_number(w, cgroup == UINT32_MAX ? 0 : (uint64_t)cgroup + 1);
	put_record(w, FATHOM_RECORD_THREAD);
	w->no_memory |= w->observer && !fathom_record_observe_thread(w->observer, t, cgroup);
	return w->n_threads++;
}

uint32_t fathom_profile_write_module(struct fathom_profile_writer *w,
				     const struct fathom_profile_module *m)
{
	put_number(w, m->kind);
	put_string(w, m->path);
	put_number(w, m->build_id_size);
	put_bytes(w, &w->record, m->build_id, m->build_id_size);
	put_number(w, m->file_size);
	put_number(w, m->changed);
	if (m->kind == FATHOM_PROFILE_MODULE_SCRIPT)
		put_number(w, m->runtime == UINT32_MAX ? 0 : (uint64_t)m->runtime + 1);
	put_record(w, FATHOM_RECORD_MODULE);
	w->no_memory |= w->observer && !fathom_record_observe_module(w->observer, m);
	return w->n_modules++;
}

uint32_t fathom_profile_write_symbol(struct fathom_profile_writer *w,
				     const struct fathom_profile_symbol *s)
{
	put_number(w, s->source);
	put_text(w, s->name);
	put_text(w, s->linkage_name);
	put_text(w, s->file);
	put_number(w, s->line);
	put_number(w, s->outer);
	put_number(w, s->column);
	put_record(w, FATHOM_RECORD_SYMBOL);
	w->no_memory |= w->observer && !fathom_record_observe_symbol(w->observer, s);
	return w->n_symbols++;
}

uint32_t fathom_profile_write_location(struct fathom_profile_writer *w,
				       const struct fathom_profile_location *l, uint32_t symbol)
{
	put_number(w, l->module == UINT32_MAX ? 0 : (uint64_t)l->module + 1);
	put_number(w, l->pc.address);
	put_number(w, l->pc.kind);
	put_number(w, l->trust | (l->is_signal_return ? FATHOM_PROFILE_SIGNAL_RETURN : 0));
	put_number(w, symbol == UINT32_MAX ? 0 : (uint64_t)symbol + 1);
	put_record(w, FATHOM_RECORD_LOCATION);
	w->no_memory |= w->observer && !fathom_record_observe_location(w->observer, l, symbol);
	return w->n_locations++;
}

uint32_t fathom_profile_write_node(struct fathom_profile_writer *w,
				   const struct fathom_profile_node *n)
{
	put_number(w, n->caller);
	put_number(w, n->location);
	put_record(w, FATHOM_RECORD_NODE);
	w->no_memory |= w->observer && !fathom_record_observe_node(w->observer, n);
	return w->n_nodes++;
}

/* Returns how the wait that @s is of ended, as files have it. */
static uint64_t waker_of(const struct fathom_profile_sample *s)
{
	if (s->goes_on)
		return FATHOM_PROFILE_WAKER_GOES_ON;
	if (s->waker == FATHOM_PROFILE_INTERRUPT)
		return FATHOM_PROFILE_WAKER_INTERRUPT;
	return s->waker ? (uint64_t)s->waker - 1 + FATHOM_PROFILE_WAKER_THREAD : 0;
}

void fathom_profile_write_sample(struct fathom_profile_writer *w,
				 const struct fathom_profile_sample *s)
{
	put_number(w, s->part | (uint64_t)s->stop << 4);
	put_number(w, fathom_zigzag(s->ns - w->ns));
	put_number(w, s->thread);
	put_number(w, s->node);
	put_number(w, s->weight);
	if (waker_of(s))
		put_number(w, waker_of(s));
	put_record(w, FATHOM_RECORD_SAMPLE);
	w->no_memory |= w->observer && !fathom_record_observe_sample(w->observer, s);
	w->ns = s->ns;
}

void fathom_profile_write_lost(struct fathom_profile_writer *w, uint64_t ns, uint64_t n)
{
	put_number(w, ns);
	put_number(w, n);
	put_record(w, FATHOM_RECORD_LOST);
}

void fathom_profile_write_throttled(struct fathom_profile_writer *w, uint64_t ns)
{
	put_number(w, ns);
	put_record(w, FATHOM_RECORD_THROTTLED);
}

void fathom_profile_write_end(struct fathom_profile_writer *w, uint64_t ns)
{
	put_number(w, ns);
	put_record(w, FATHOM_RECORD_END);
}

bool fathom_profile_writer_flush(struct fathom_profile_writer *w)
{
	if (w->write && !w->has_failed && !w->no_memory && w->out.n) {
		errno = 0;
		w->has_failed = !w->write(w->data, w->out.items, w->out.n);
		w->number = w->has_failed ? errno : 0;
		w->bytes += w->out.n;
	}
	w->out.n = 0;
	return !w->has_failed && !w->no_memory;
}

void fathom_profile_writer_deinit(struct fathom_profile_writer *w)
{
	fathom_array_free(&w->record);
	fathom_array_free(&w->out);
}
