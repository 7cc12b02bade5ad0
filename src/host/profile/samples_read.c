/* SPDX-License-Identifier: MIT */
/*
 * Reads profile files (samples_format.h). A first pass counts the records of each kind, so that all
 * arrays are made at once and the session's budget bounds them; a second one fills them. Samples
 * are decoded anew whenever they are asked for.
 *
 * A record that is cut short ends the profile. A whole one with a number that cannot be is
 * FATHOM_E_CORRUPT.
 */
#include <stdlib.h>
#include <string.h>

#include "host/base/key_map.h"
#include "host/base/leb.h"
#include "host/base/progress.h"
#include "host/profile/samples_format.h"
#include "host/profile/in_memory.h"
#include "safe/base/cursor.h"

/* Bytes of the file that are read before their pages are given back. */
#define WINDOW (UINT64_C(8) << 20)

/* The most records of each kind that are numbered, but nodes. */
#define MOST_DEFINED (UINT64_C(1) << 24)
/* The most nodes. */
#define MOST_NODES (UINT64_C(1) << 30)
/* The longest build-id, in bytes. */
#define MOST_BUILD_ID 256
/* The most functions that are inlined into each other. */
#define MOST_INLINED 1024

struct record {
	uint64_t tag;
	struct fathom_cursor body;
};

enum next { NEXT_RECORD, NEXT_END, NEXT_CUT, NEXT_WRONG };

/* Takes the next record from @c. */
static enum next take_record(struct fathom_cursor *c, struct record *ret)
{
	const uint8_t *end = c->end;
	uint64_t size;

	if (!cur_left(c))
		return NEXT_END;
	ret->tag = cur_uleb(c);
	size = cur_uleb(c);
	if (!cur_ok(c))
		return c->bad == end ? NEXT_CUT : NEXT_WRONG;
	if (size > cur_left(c))
		return NEXT_CUT;
	ret->body = cur_sub(c, size);
	return NEXT_RECORD;
}

/* A pass over the records of a file. */
struct pass {
	const struct fathom_profile *p;
	struct fathom_cursor c;
	uint64_t given_back; /* offset in records up to which pages were */
};

static struct pass pass_init(const struct fathom_profile *p)
{
	return (struct pass){ .p = p, .c = cur_init(p->records, false) };
}

/* Returns the offset of the next record after the magic. */
static uint64_t pass_offset(const struct pass *pass)
{
	return (uint64_t)(pass->c.p - pass->p->records.data);
}

/* Gives back the pages that were read, once they are many. Returns true each time. */
static bool pass_give_back(struct pass *pass)
{
	const uint64_t off = pass_offset(pass);

	if (off - pass->given_back < WINDOW)
		return false;
	fathom_file_give_back(pass->p->file, bytes_slice(pass->p->records, pass->given_back,
							 off - pass->given_back));
	pass->given_back = off;
	return true;
}

struct reading {
	struct fathom_profile *p;
	struct fathom_cursor c; /* of the record that is being read */
	const char *wrong;      /* what is broken; NULL: nothing */
	bool no_memory;
	bool is_ended;    /* END was read */
	uint64_t last_ns; /* of the last sample, which the next one's ns is relative to */
	uint64_t most_ns; /* of all samples */
	/* Of each thread, the last sample of its wait if that goes on: an index in wakers, + 1. */
	uint32_t *going_on;
	uint64_t n[FATHOM_RECORD_TAGS]; /* records of each tag, as counted */
};

/* Notes what is wrong, once. */
static void refuse(struct reading *r, const char *what)
{
	if (!r->wrong)
		r->wrong = what;
}

/* Takes a number of at most @most. */
static uint64_t take_up_to(struct reading *r, uint64_t most, const char *what)
{
	const uint64_t value = cur_uleb(&r->c);

	if (value <= most)
		return value;
	refuse(r, what);
	return 0;
}

/* Takes @size bytes into memory of the profile, with a NUL after them. */
static const char *take_bytes(struct reading *r, uint64_t size)
{
	const uint8_t *bytes = cur_take(&r->c, size);
	const struct fathom_str s = { (const char *)bytes, (uint32_t)size };
	const char *copy;

	if (!bytes || !size)
		return "";
	copy = fathom_arena_strdup(&r->p->texts, s);
	if (!copy)
		r->no_memory = true;
	return copy ? copy : "";
}

/* Takes a text; "" if there is none. A NUL inside ends it. */
static const char *take_text(struct reading *r)
{
	return take_bytes(r, take_up_to(r, FATHOM_PROFILE_TEXT, "a text is too long"));
}

/* Returns the number that @text is; 0 if it is none. */
static uint64_t number_of(const char *text)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return *text ? 0 : value;
}

static void read_about(struct reading *r)
{
	struct fathom_profile_info *info = &r->p->info;
	const struct {
		const char *key;
		const char **to;
	} texts[] = {
		{ FATHOM_ABOUT_COMMAND, &info->command }, { FATHOM_ABOUT_EVENT, &info->event },
		{ FATHOM_ABOUT_UNIT, &info->unit },       { FATHOM_ABOUT_METHOD, &info->method },
		{ FATHOM_ABOUT_MACHINE, &info->machine }, { FATHOM_ABOUT_KERNEL, &info->kernel },
		{ FATHOM_ABOUT_HOST, &info->host }
	};
	const char *key = take_text(r);
	const char *text = take_text(r);

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!strcmp(key, texts[i].key))
			*texts[i].to = text;
	if (!strcmp(key, FATHOM_ABOUT_FREQUENCY))
		info->frequency = (uint32_t)number_of(text);
	else if (!strcmp(key, FATHOM_ABOUT_STARTED))
		info->started = number_of(text);
	else if (!strcmp(key, FATHOM_ABOUT_HIDDEN))
		info->is_kernel_hidden = !strcmp(text, "1");
	else if (!strcmp(key, FATHOM_ABOUT_ENDS))
		info->has_unknown_ends = !strcmp(text, "1");
}

static void read_thread(struct reading *r)
{
	static const char what[] = "a process or thread has an impossible number";
	struct fathom_profile_thread *t = &r->p->threads[r->p->n_threads++];
	uint64_t cgroup;

	t->pid = (int32_t)take_up_to(r, UINT32_MAX, what);
	t->tid = (int32_t)take_up_to(r, UINT32_MAX, what);
	t->parent = (int32_t)take_up_to(r, UINT32_MAX, what);
	t->ns = cur_uleb(&r->c);
	t->name = take_text(r);
	/* A record may end before it. */
	cgroup = cur_left(&r->c) ? take_up_to(r, r->p->n_cgroups,
					      "a thread is in a cgroup that is not defined")
				 : 0;
	t->cgroup = cgroup ? r->p->cgroups[cgroup - 1] : "";
}

static void read_module(struct reading *r)
{
	const size_t i = r->p->n_modules++;
	struct fathom_profile_module *m = &r->p->modules[i];
	uint64_t runtime;
	uint64_t size;

	m->kind = (uint8_t)take_up_to(r, UINT8_MAX, "a module has an impossible kind");
	m->path = take_text(r);
	size = take_up_to(r, MOST_BUILD_ID, "a build-id is too long");
	if (size)
		m->build_id = (const uint8_t *)take_bytes(r, size);
	m->build_id_size = (uint32_t)size;
	/* A record may end before them. */
	m->file_size = cur_left(&r->c) ? cur_uleb(&r->c) : 0;
	m->changed = cur_left(&r->c) ? cur_uleb(&r->c) : 0;
	runtime = m->kind == FATHOM_PROFILE_MODULE_SCRIPT && cur_left(&r->c)
			  ? take_up_to(r, i, "a script is executed by a module that is not defined")
			  : 0;
	m->runtime = runtime ? (uint32_t)runtime - 1 : UINT32_MAX;
	r->p->module_infos[i] = (struct fathom_module_info){ .path = m->path,
							     .build_id = m->build_id,
							     .build_id_size = m->build_id_size };
}

/* Reads which symbol the last one, @s, is inlined into: one before it. */
static void read_outer(struct reading *r, struct fathom_read_symbol *s)
{
	const uint64_t outer = take_up_to(r, r->p->n_symbols - 1,
					  "a function is inlined into one that is not defined");

	if (!outer)
		return;
	s->frame.outer = &r->p->symbols[outer - 1].frame;
	s->symbol = r->p->symbols[outer - 1].symbol;
	s->depth = r->p->symbols[outer - 1].depth + 1;
	if (s->depth > MOST_INLINED)
		refuse(r, "too many functions are inlined into each other");
}

static void read_symbol(struct reading *r)
{
	struct fathom_read_symbol *s = &r->p->symbols[r->p->n_symbols++];
	const char *name;
	const char *linked;
	const char *file;

	s->symbol = s;
	s->source = (uint8_t)take_up_to(r, UINT8_MAX, "a name has an impossible source");
	name = take_text(r);
	linked = take_text(r);
	file = take_text(r);
	if (!*name)
		refuse(r, "a name is empty");
	s->frame = (struct fathom_frame){ .function = name,
					  .linkage_name = *linked ? linked : NULL,
					  .file = *file ? file : NULL,
					  .function_size = (uint32_t)strlen(name),
					  .linkage_size = (uint32_t)strlen(linked),
					  .file_size = (uint32_t)strlen(file) };
	s->frame.line = (uint32_t)take_up_to(r, UINT32_MAX, "a line has an impossible number");
	/* A record may end before them. */
	if (cur_left(&r->c))
		read_outer(r, s);
	if (cur_left(&r->c))
		s->frame.column =
			(uint32_t)take_up_to(r, UINT32_MAX, "a column has an impossible number");
}

/* Gives location @i what the file knows of its names. @symbol: its number + 1; 0: none. */
static void answer(struct fathom_profile *p, size_t i, uint64_t symbol)
{
	struct fathom_profile_location *l = &p->locations[i];
	struct fathom_answer *a = &p->answers[i];

	a->pc = l->pc;
	a->module_address = l->module == UINT32_MAX ? FATHOM_NO_ADDRESS : l->pc.address;
	a->module = l->module == UINT32_MAX ? NULL : &p->module_infos[l->module];
	a->reason = a->module ? FATHOM_REASON_NO_SYMBOLS : FATHOM_REASON_NO_FILE;
	l->answer = a;
	if (symbol) {
		const struct fathom_read_symbol *inner = &p->symbols[symbol - 1];
		const struct fathom_read_symbol *s = inner->symbol;
		const struct fathom_frame *f = &inner->frame;

		a->symbol = s->frame.function;
		a->linkage_name = s->frame.linkage_name;
		a->symbol_size = s->frame.function_size;
		a->linkage_size = s->frame.linkage_size;
		a->source = s->source;
		a->frame = f->file || f->line || f->outer ? f : NULL;
		a->reason = a->frame ? FATHOM_REASON_NONE : FATHOM_REASON_NO_DEBUG_INFO;
	}
}

static void read_location(struct reading *r)
{
	const size_t i = r->p->n_locations++;
	struct fathom_profile_location *l = &r->p->locations[i];
	const uint64_t module =
		take_up_to(r, r->p->n_modules, "a location is in a module that is not defined");
	uint64_t trust;
	uint64_t symbol;

	l->module = module ? (uint32_t)module - 1 : UINT32_MAX;
	l->pc.address = cur_uleb(&r->c);
	l->pc.kind = (uint8_t)take_up_to(r, FATHOM_PC_RETURN, "a pc has an impossible kind");
	trust = take_up_to(r, UINT8_MAX, "a location has an impossible trust");
	l->trust = (uint8_t)(trust & ~FATHOM_PROFILE_SIGNAL_RETURN);
	l->is_signal_return = (trust & FATHOM_PROFILE_SIGNAL_RETURN) != 0;
	symbol = take_up_to(r, r->p->n_symbols, "a location has a name that is not defined");
	answer(r->p, i, symbol);
}

static void read_node(struct reading *r)
{
	struct fathom_profile_node *n = &r->p->nodes[r->p->n_nodes];

	n->caller = (uint32_t)take_up_to(r, r->p->n_nodes - 1, "a caller is not defined");
	n->location = (uint32_t)cur_uleb(&r->c);
	if (n->location >= r->p->n_locations)
		refuse(r, "a node is at a location that is not defined");
	r->p->n_nodes++;
}

/* Takes how the wait that @s is of ended; a record may end before it. */
static void decode_waker(struct fathom_cursor *c, struct fathom_profile_sample *s)
{
	const uint64_t waker = cur_left(c) ? cur_uleb(c) : 0;

	if (s->part != FATHOM_PROFILE_WAITING)
		return;
	s->goes_on = waker == FATHOM_PROFILE_WAKER_GOES_ON;
	if (waker == FATHOM_PROFILE_WAKER_INTERRUPT)
		s->waker = FATHOM_PROFILE_INTERRUPT;
	else if (waker >= FATHOM_PROFILE_WAKER_THREAD &&
		 waker - FATHOM_PROFILE_WAKER_THREAD < MOST_DEFINED)
		s->waker = (uint32_t)(waker - FATHOM_PROFILE_WAKER_THREAD) + 1;
	else if (waker >= FATHOM_PROFILE_WAKER_THREAD)
		cur_fail(c);
}

/* Decodes a sample from @c; *@ns is the time of the one before it, and becomes its own. */
static void decode_sample(struct fathom_cursor *c, uint64_t *ns, struct fathom_profile_sample *ret,
			  uint64_t *ret_thread, uint64_t *ret_node)
{
	const uint64_t kinds = cur_uleb(c);

	*ns += fathom_unzigzag(cur_uleb(c));
	*ret_thread = cur_uleb(c);
	*ret_node = cur_uleb(c);
	*ret = (struct fathom_profile_sample){ .ns = *ns,
					       .weight = cur_uleb(c),
					       .thread = (uint32_t)*ret_thread,
					       .node = (uint32_t)*ret_node,
					       .part = kinds & 0xf,
					       .stop = (uint8_t)(kinds >> 4) };
	if (kinds >> 4 > UINT8_MAX)
		cur_fail(c);
	decode_waker(c, ret);
}

/*
 * Notes who has woken the thread of @s, a sample of a wait, for the samples before it that are of
 * the same wait: these lead from the last one to the first, by numbers + 1, until they are known.
 */
static void note_waker(struct reading *r, const struct fathom_profile_sample *s)
{
	struct fathom_u32_array *wakers = &r->p->wakers;
	uint32_t *last = &r->going_on[s->thread];

	if (s->goes_on) {
		if (wakers->n == MOST_DEFINED || !fathom_array_push(wakers, *last))
			r->no_memory |= wakers->n < MOST_DEFINED;
		else
			*last = (uint32_t)wakers->n;
		return;
	}
	while (*last) {
		uint32_t *item = &wakers->items[*last - 1];

		*last = *item;
		*item = s->waker;
	}
}

/* Forgets the waits that go on at the end of the file: nobody has ended them. */
static void end_waits(struct reading *r)
{
	struct fathom_profile_sample none = { .waker = 0 };

	for (size_t i = 0; r->going_on && i < r->p->n_threads; i++) {
		none.thread = (uint32_t)i;
		note_waker(r, &none);
	}
}

/* Returns whether @waker, of a sample, is of @p, or of no thread. */
static bool is_thread(const struct fathom_profile *p, uint32_t waker)
{
	return waker == FATHOM_PROFILE_INTERRUPT || waker <= p->n_threads;
}

static void read_sample(struct reading *r)
{
	struct fathom_profile_info *info = &r->p->info;
	struct fathom_profile_sample s;
	uint64_t thread;
	uint64_t node;

	decode_sample(&r->c, &r->last_ns, &s, &thread, &node);
	if (thread >= r->p->n_threads)
		refuse(r, "a sample is of a thread that is not defined");
	if (node >= r->p->n_nodes)
		refuse(r, "a sample has a stack that is not defined");
	if (s.ns > INT64_MAX)
		refuse(r, "a sample has an impossible time");
	/* A report may add up both. */
	if (s.weight > UINT64_MAX - info->weight - info->waiting_ns - info->runnable_ns)
		refuse(r, "the weights have a sum of more than 64 bits");
	if (!is_thread(r->p, s.waker))
		refuse(r, "a thread was woken by one that is not defined");
	if (s.ns > r->most_ns)
		r->most_ns = s.ns;
	/* A thread that runs has ended its wait; one that waits for a processor, before that. */
	if (!r->wrong)
		note_waker(r, &s);
	if (fathom_profile_is_wait(s.part)) {
		*(s.part == FATHOM_PROFILE_WAITING ? &info->waiting_ns : &info->runnable_ns) +=
			s.weight;
		info->n_waits++;
		return;
	}
	info->weight += s.weight;
	info->n_samples++;
	info->n_stacks += node != 0;
	info->n_whole += node && s.stop == FATHOM_STOP_ENTRY;
}

static void read_lost(struct reading *r)
{
	uint64_t n;

	(void)cur_uleb(&r->c);
	n = cur_uleb(&r->c);
	if (n > UINT64_MAX - r->p->info.lost)
		refuse(r, "too many samples were lost");
	r->p->info.lost += n;
}

static void read_record(struct reading *r, uint64_t tag)
{
	switch (tag) {
	case FATHOM_RECORD_ABOUT:
		read_about(r);
		break;
	case FATHOM_RECORD_THREAD:
		read_thread(r);
		break;
	case FATHOM_RECORD_MODULE:
		read_module(r);
		break;
	case FATHOM_RECORD_SYMBOL:
		read_symbol(r);
		break;
	case FATHOM_RECORD_LOCATION:
		read_location(r);
		break;
	case FATHOM_RECORD_NODE:
		read_node(r);
		break;
	case FATHOM_RECORD_SAMPLE:
		read_sample(r);
		break;
	case FATHOM_RECORD_LOST:
		read_lost(r);
		break;
	case FATHOM_RECORD_THROTTLED:
		(void)cur_uleb(&r->c);
		r->p->info.throttled++;
		break;
	case FATHOM_RECORD_CGROUP:
		r->p->cgroups[r->p->n_cgroups++] = take_text(r);
		break;
	case FATHOM_RECORD_END:
		r->p->info.duration_ns = cur_uleb(&r->c);
		r->is_ended = true;
		break;
	}
	if (!cur_ok(&r->c))
		refuse(r, "a record is too short, or has a number of more than 64 bits");
}

/* Fails because @what is wrong at @off of the records of @p. */
static fathom_err fail(const struct fathom_profile *p, fathom_err err, uint64_t off,
		       const char *what, struct fathom_errinfo *reterr)
{
	(void)fathom_fail(reterr, err, "", FATHOM_PROFILE_MAGIC_SIZE + off, what);
	if (reterr)
		fathom_errinfo_set_file(reterr, p->file->path);
	return err;
}

/* Fails because the caller has given it up. */
static fathom_err fail_cancelled(struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "the caller has given it up");
}

/* Asks for progress where @pass is; returns false if the caller gives it up. */
static bool goes_on(struct pass *pass)
{
	return !pass_give_back(pass) || fathom_goes_on(pass->p->session, FATHOM_PHASE_READ,
						       pass_offset(pass), pass->p->records.size);
}

/* Returns whether records with @tag define what has a number, and are no nodes. */
static bool is_numbered(int tag)
{
	return tag < FATHOM_RECORD_NODE || tag == FATHOM_RECORD_CGROUP;
}

/* Counts the records, and leaves those out that are cut short or come after the END. */
static fathom_err count(struct reading *r, struct fathom_errinfo *reterr)
{
	struct pass pass = pass_init(r->p);
	struct record record;
	enum next next;
	uint64_t off = 0;

	while ((next = take_record(&pass.c, &record)) == NEXT_RECORD) {
		off = pass_offset(&pass);
		if (record.tag < FATHOM_RECORD_TAGS)
			r->n[record.tag]++;
		if (record.tag == FATHOM_RECORD_END)
			break;
		if (!goes_on(&pass))
			return fail_cancelled(reterr);
	}
	if (next == NEXT_WRONG)
		return fail(r->p, FATHOM_E_CORRUPT, off, "a number has more than 64 bits", reterr);
	r->p->records.size = off;
	for (int tag = 0; tag < FATHOM_RECORD_TAGS; tag++)
		if (r->n[tag] > MOST_DEFINED && is_numbered(tag))
			return fail(r->p, FATHOM_E_LIMIT, 0,
				    "has more threads, cgroups, modules, names or locations than "
				    "are read",
				    reterr);
	return r->n[FATHOM_RECORD_NODE] <= MOST_NODES
		       ? FATHOM_OK
		       : fail(r->p, FATHOM_E_LIMIT, 0, "has more stacks than are read", reterr);
}

/* Makes @n zeroed items of @size bytes at *@ret; false without memory. */
static bool make(void *ret, uint64_t n, size_t size)
{
	void *items = calloc((size_t)n + 1, size);

	memcpy(ret, &items, sizeof items);
	return items != NULL;
}

/* Makes the arrays, for as many records as were counted. */
static fathom_err make_arrays(struct reading *r, struct fathom_errinfo *reterr)
{
	struct fathom_profile *p = r->p;
	const uint64_t *n = r->n;
	const uint64_t bytes =
		n[FATHOM_RECORD_CGROUP] * sizeof *p->cgroups +
		n[FATHOM_RECORD_THREAD] * sizeof *p->threads +
		n[FATHOM_RECORD_MODULE] * (sizeof *p->modules + sizeof *p->module_infos) +
		n[FATHOM_RECORD_SYMBOL] * sizeof *p->symbols +
		n[FATHOM_RECORD_LOCATION] * (sizeof *p->locations + sizeof *p->answers) +
		n[FATHOM_RECORD_NODE] * sizeof *p->nodes;

	if (!fathom_memory_fits(&p->session->memory, bytes)) {
		(void)fail(p, FATHOM_E_LIMIT, 0, "does not fit the memory budget", reterr);
		if (reterr)
			reterr->cause = FATHOM_CAUSE_BUDGET;
		return FATHOM_E_LIMIT;
	}
	fathom_memory_count(&p->session->memory, bytes);
	p->counted = bytes;
	if (!make(&p->cgroups, n[FATHOM_RECORD_CGROUP], sizeof *p->cgroups) ||
	    !make(&p->threads, n[FATHOM_RECORD_THREAD], sizeof *p->threads) ||
	    !make(&p->modules, n[FATHOM_RECORD_MODULE], sizeof *p->modules) ||
	    !make(&p->module_infos, n[FATHOM_RECORD_MODULE], sizeof *p->module_infos) ||
	    !make(&p->symbols, n[FATHOM_RECORD_SYMBOL], sizeof *p->symbols) ||
	    !make(&p->locations, n[FATHOM_RECORD_LOCATION], sizeof *p->locations) ||
	    !make(&p->answers, n[FATHOM_RECORD_LOCATION], sizeof *p->answers) ||
	    !make(&p->nodes, n[FATHOM_RECORD_NODE], sizeof *p->nodes) ||
	    !make(&r->going_on, n[FATHOM_RECORD_THREAD], sizeof *r->going_on))
		return fathom_fail_memory(reterr);
	p->nodes[0].location = UINT32_MAX;
	p->n_nodes = 1;
	return FATHOM_OK;
}

/* Reads all records into the arrays. */
static fathom_err read_records(struct reading *r, struct fathom_errinfo *reterr)
{
	struct pass pass = pass_init(r->p);
	uint64_t n[FATHOM_RECORD_TAGS] = { 0 };
	struct record record;

	for (;;) {
		const uint64_t off = pass_offset(&pass);

		if (take_record(&pass.c, &record) != NEXT_RECORD)
			return FATHOM_OK;
		/* The file may be written to meanwhile: what was counted bounds the arrays. */
		if (record.tag < FATHOM_RECORD_TAGS && n[record.tag]++ >= r->n[record.tag])
			return fail(r->p, FATHOM_E_CHANGED, off, "is being written", reterr);
		r->c = record.body;
		read_record(r, record.tag);
		if (r->no_memory)
			return fathom_fail_memory(reterr);
		if (r->wrong)
			return fail(r->p, FATHOM_E_CORRUPT, off, r->wrong, reterr);
		if (!goes_on(&pass))
			return fail_cancelled(reterr);
	}
}

/*
 * Names the processes: after their first threads as they were when each thread was named or, of
 * those that are not known yet, as they are first known.
 */
static bool name_processes(struct fathom_profile *p)
{
	struct fathom_key_map mains = { 0 }; /* thread by PID */
	bool is_done = true;

	for (size_t turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < p->n_threads && is_done; i++) {
			struct fathom_profile_thread *t = &p->threads[i];
			uint32_t *main_thread;

			if (turn && t->process)
				continue;
			main_thread = fathom_key_map_at(&mains, (uint32_t)t->pid);
			is_done = main_thread != NULL;
			if (is_done && !turn && t->pid == t->tid)
				*main_thread = (uint32_t)i;
			if (is_done && *main_thread != FATHOM_KEY_NEW)
				t->process = p->threads[*main_thread].name;
			else if (is_done && turn) {
				*main_thread = (uint32_t)i;
				t->process = t->name;
			}
		}
	fathom_key_map_deinit(&mains);
	return is_done;
}

static fathom_err check_magic(struct fathom_profile *p, struct fathom_errinfo *reterr)
{
	static const char magic[] = FATHOM_PROFILE_MAGIC;
	const struct fathom_bytes b = p->file->bytes;
	const size_t version = FATHOM_PROFILE_MAGIC_SIZE - 2;
	const char *what = "is no profile";

	p->records = bytes_from(b, FATHOM_PROFILE_MAGIC_SIZE);
	if (b.size >= FATHOM_PROFILE_MAGIC_SIZE && !memcmp(b.data, magic, version)) {
		if (!memcmp(b.data, magic, FATHOM_PROFILE_MAGIC_SIZE))
			return FATHOM_OK;
		what = "was written by a newer version of fathom";
	}
	(void)fail(p, FATHOM_E_FORMAT, 0, what, reterr);
	if (reterr)
		reterr->offset = 0;
	return FATHOM_E_FORMAT;
}

static fathom_err read_file(struct fathom_profile *p, struct fathom_errinfo *reterr)
{
	struct reading r = { .p = p };
	fathom_err err;

	FATHOM_TRY(check_magic(p, reterr));
	FATHOM_TRY(count(&r, reterr));
	err = make_arrays(&r, reterr);
	if (!err)
		err = read_records(&r, reterr);
	if (!err)
		end_waits(&r);
	free(r.going_on);
	fathom_memory_count(&p->session->memory, p->wakers.cap * sizeof *p->wakers.items);
	p->counted += p->wakers.cap * sizeof *p->wakers.items;
	FATHOM_TRY(err);
	if (!name_processes(p))
		return fathom_fail_memory(reterr);
	p->info.is_complete = r.is_ended;
	if (p->info.has_unknown_ends)
		p->info.n_whole = 0;
	if (!r.is_ended)
		p->info.duration_ns = r.most_ns;
	return FATHOM_OK;
}

fathom_err fathom_profile_read(struct fathom *session, struct fathom_file *file,
			       struct fathom_profile **ret, struct fathom_errinfo *reterr)
{
	struct fathom_profile *p = calloc(1, sizeof *p);
	fathom_err err;

	if (!p) {
		fathom_file_close(file);
		return fathom_fail_memory(reterr);
	}
	p->session = fathom_acquire(session);
	p->file = file;
	p->info = (struct fathom_profile_info){ .command = "",
						.event = "",
						.unit = "",
						.method = "",
						.machine = "",
						.kernel = "",
						.host = "" };
	err = read_file(p, reterr);
	if (fathom_file_is_cut(file))
		err = fathom_fail_cut(reterr, file->path);
	if (err)
		fathom_profile_free(p);
	else
		*ret = p;
	return err;
}

void fathom_profile_free(struct fathom_profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->batches.n; i++)
		fathom_answers_free(profile->batches.items[i]);
	fathom_array_free(&profile->batches);
	free(profile->cgroups);
	free(profile->threads);
	free(profile->modules);
	free(profile->module_infos);
	free(profile->symbols);
	free(profile->locations);
	free(profile->answers);
	free(profile->nodes);
	free(profile->shown);
	fathom_array_free(&profile->wakers);
	fathom_arena_deinit(&profile->texts);
	fathom_file_close(profile->file);
	fathom_memory_uncount(&profile->session->memory, profile->counted);
	fathom_destroy(profile->session);
	free(profile);
}

fathom_err fathom_profile_each_sample(const struct fathom_profile *profile,
				      fathom_profile_sample_fn fn, void *data,
				      struct fathom_errinfo *reterr)
{
	struct pass pass = pass_init(profile);
	struct record record;
	uint64_t ns = 0;
	size_t n_going_on = 0;

	while (take_record(&pass.c, &record) == NEXT_RECORD) {
		struct fathom_profile_sample s;
		uint64_t thread;
		uint64_t node;

		if (record.tag != FATHOM_RECORD_SAMPLE)
			continue;
		decode_sample(&record.body, &ns, &s, &thread, &node);
		/* All were right when the profile was opened. */
		if (!cur_ok(&record.body) || thread >= profile->n_threads ||
		    !is_thread(profile, s.waker) ||
		    node >= (profile->shown ? profile->n_read_nodes : profile->n_nodes))
			return fail(profile, FATHOM_E_CHANGED, pass_offset(&pass),
				    "was written to since it was opened", reterr);
		if (s.goes_on && n_going_on < profile->wakers.n)
			s.waker = profile->wakers.items[n_going_on++];
		if (profile->shown)
			s.node = profile->shown[s.node];
		if (fn(data, &s))
			break;
		(void)pass_give_back(&pass);
	}
	return fathom_file_is_cut(profile->file) ? fathom_fail_cut(reterr, profile->file->path)
						 : FATHOM_OK;
}

const struct fathom_profile_info *fathom_profile_get_info(const struct fathom_profile *profile)
{
	return &profile->info;
}

const struct fathom_profile_thread *fathom_profile_threads(const struct fathom_profile *profile,
							   size_t *ret_n)
{
	*ret_n = profile->n_threads;
	return profile->threads;
}

const struct fathom_profile_module *fathom_profile_modules(const struct fathom_profile *profile,
							   size_t *ret_n)
{
	*ret_n = profile->n_modules;
	return profile->modules;
}

const struct fathom_profile_location *fathom_profile_locations(const struct fathom_profile *profile,
							       size_t *ret_n)
{
	*ret_n = profile->n_locations;
	return profile->locations;
}

const struct fathom_profile_node *fathom_profile_nodes(const struct fathom_profile *profile,
						       size_t *ret_n)
{
	*ret_n = profile->n_nodes;
	return profile->nodes;
}

const char *fathom_profile_part_name(enum fathom_profile_part part)
{
	switch (part) {
	case FATHOM_PROFILE_SAMPLED:
		return "sampled";
	case FATHOM_PROFILE_KERNEL_HIDDEN:
		return "kernel-hidden";
	case FATHOM_PROFILE_UNSAMPLED:
		return "unsampled";
	case FATHOM_PROFILE_WAITING:
		return "waiting";
	case FATHOM_PROFILE_RUNNABLE:
		return "runnable";
	}
	return "";
}
