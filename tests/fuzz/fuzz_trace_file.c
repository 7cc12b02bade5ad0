/* SPDX-License-Identifier: MIT */
/*
 * Trace files. Each event that is told is whole; what a writer makes of the events of a file is
 * told as the same events; writers of all formats take them.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is told: a number that stands for all events, and who writes them. */
struct told {
	uint64_t hash;
	struct fathom_trace_writer *writers[FATHOM_TRACE_TREE_JSON + 1];
};

/* What a writer has written. */
struct written {
	uint8_t *bytes;
	size_t n;
};

static int append(void *data, const void *bytes, size_t n)
{
	struct written *w = data;

	w->bytes = realloc(w->bytes, w->n + n);
	if (!w->bytes)
		abort();
	memcpy(w->bytes + w->n, bytes, n);
	w->n += n;
	return 1;
}

static void mix(struct told *t, uint64_t value)
{
	t->hash = (t->hash ^ value) * UINT64_C(1099511628211);
}

static void mix_text(struct told *t, const char *text)
{
	for (; text && *text; text++)
		mix(t, (uint8_t)*text);
	mix(t, text != NULL);
}

static void mix_stack(struct told *t, const struct fathom_trace_stack *s)
{
	mix(t, s->stop);
	if (s->n_frames > FATHOM_SYSCALLS_FRAMES)
		abort();
	for (size_t i = 0; i < s->n_frames; i++) {
		const struct fathom_stack_frame *f = &s->frames[i].frame;
		const struct fathom_answer *a = f->answer;

		mix(t, f->pc.address);
		mix(t, f->sp);
		mix(t, (uint64_t)f->pc.kind << 8 | f->trust);
		mix(t, s->frames[i].file_offset);
		mix(t, a->module_address);
		mix_text(t, a->module ? a->module->path : NULL);
		mix_text(t, a->symbol);
		mix_text(t, a->linkage_name);
		for (const struct fathom_frame *in = a->frame; in; in = in->outer) {
			mix(t, (uint64_t)in->line << 32 | in->column);
			mix_text(t, in->function);
			mix_text(t, in->file);
		}
	}
}

static int take(void *data, const struct fathom_trace_event *events, size_t n)
{
	struct told *t = data;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_trace_event *e = &events[i];

		if (!e->type || !e->thread || !e->function == !e->text)
			abort();
		mix(t, e->ns);
		mix(t, e->stack);
		mix(t, e->count);
		mix(t, e->duration_ns);
		mix(t, (uint64_t)e->pid << 32 | (uint32_t)e->tid);
		mix(t, (uint64_t)e->depth << 32 | (uint32_t)e->type << 8 | e->stack_number);
		mix_text(t, e->text);
		mix_text(t, e->function ? e->function->name : NULL);
		mix_text(t, e->function ? e->function->module : NULL);
		if (e->call_stack)
			mix_stack(t, e->call_stack);
	}
	for (size_t i = 0; i < sizeof t->writers / sizeof *t->writers; i++)
		if (t->writers[i])
			(void)fathom_trace_writer_take(t->writers[i], events, n);
	return 1;
}

static uint64_t read_bytes(const uint8_t *bytes, size_t n, struct fathom_trace_options *o,
			   struct told *t)
{
	char path[64];
	const int fd = fuzz_file(bytes, n, path);

	o->data = t;
	(void)fathom_trace_read(NULL, path, o, NULL, NULL);
	close(fd);
	return t->hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "main", "*f*" };
	struct fuzz f = fuzz_init(data, size);
	const uint8_t flags = fuzz_byte(&f);
	const struct fathom_trace_at at = { .query = "main", .actions = flags >> 4 };
	struct fathom_trace_options o = { .size = sizeof o,
					  .flags = flags & 1 ? FATHOM_TRACE_NO_FOLD : 0,
					  .events = take,
					  .only = names,
					  .n_only = flags >> 1 & 1,
					  .under = names + 1,
					  .n_under = flags >> 2 & 1,
					  .at = &at,
					  .n_at = flags >> 3 & 1 };
	struct fathom_trace_options plain = { .size = sizeof plain,
					      .flags = FATHOM_TRACE_NO_FOLD,
					      .events = take };
	struct told first = { .hash = 1 };
	struct told again = { .hash = 1 };
	struct written written[FATHOM_TRACE_TREE_JSON + 1] = { { NULL, 0 } };

	for (int i = FATHOM_TRACE_FILE; i <= FATHOM_TRACE_TREE_JSON; i++)
		(void)fathom_trace_writer_create((enum fathom_trace_format)i, append, &written[i],
						 &first.writers[i], NULL);
	(void)read_bytes(f.p, (size_t)(f.end - f.p), &o, &first);
	for (int i = FATHOM_TRACE_FILE; i <= FATHOM_TRACE_TREE_JSON; i++) {
		if (first.writers[i])
			(void)fathom_trace_writer_finish(first.writers[i], NULL, NULL);
		fathom_trace_writer_free(first.writers[i]);
	}
	if (read_bytes(written[FATHOM_TRACE_FILE].bytes, written[FATHOM_TRACE_FILE].n, &plain,
		       &again) != first.hash)
		abort();
	for (int i = FATHOM_TRACE_FILE; i <= FATHOM_TRACE_TREE_JSON; i++)
		free(written[i].bytes);
	return 0;
}
