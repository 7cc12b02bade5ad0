/* SPDX-License-Identifier: MIT */
#include "cli/top_samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fathom/stack.h>

#include "cli/common.h"

/* Tables are forgotten when they have so many items. */
#define MAX_CELLS     ((size_t)1 << 16)
#define MAX_FRAMES    ((size_t)1 << 22)
#define MAX_PLACES    ((size_t)1 << 18)
#define MAX_FUNCTIONS ((size_t)1 << 17)
#define MAX_THREADS   ((size_t)1 << 15)

/* The most entries: the window is shorter if it has more. */
#define MAX_ENTRIES ((size_t)1 << 19)

/* Samples of one cell that are so near are one entry, in ns. */
#define ENTRY_NS 100000000

/* Entries are kept so long after the window, in ns: pictures are of a time that is over. */
#define SPARE_NS 2000000000

/* The deepest frames that are kept of a stack. */
#define MAX_DEPTH 4096

uint64_t top_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void top_grow(void **items, size_t *room, size_t n, size_t size)
{
	*room = n ? 2 * n : 16;
	*items = must(realloc(*items, *room * size));
}

/* Mixes @value into @hash (FNV-1a by words, with a last shift). */
static uint32_t mix(uint32_t hash, uint64_t value)
{
	uint64_t h = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32) ^ (uint32_t)h;
}

static uint32_t mix_text(uint32_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619;
	return mix(hash, 1);
}

static void index_put(struct top_index *x, uint32_t hash, uint32_t number)
{
	size_t at = hash & (x->n_slots - 1);

	while (x->slots[at].number)
		at = (at + 1) & (x->n_slots - 1);
	x->slots[at] = (struct top_slot){ hash, number + 1 };
	x->n++;
}

/* Adds item @number, which is not there yet. */
static void index_add(struct top_index *x, uint32_t hash, uint32_t number)
{
	if (2 * x->n >= x->n_slots) {
		struct top_index more = { .n_slots = x->n_slots ? 2 * x->n_slots : 64 };

		more.slots = must(calloc(more.n_slots, sizeof *more.slots));
		for (size_t i = 0; i < x->n_slots; i++)
			if (x->slots[i].number)
				index_put(&more, x->slots[i].hash, x->slots[i].number - 1);
		free(x->slots);
		*x = more;
	}
	index_put(x, hash, number);
}

/* Returns whether item @number is the one that @key describes. */
typedef bool (*is_same_fn)(const struct top_samples *s, uint32_t number, const void *key);

static uint32_t index_find(const struct top_samples *s, const struct top_index *x, uint32_t hash,
			   is_same_fn is_same, const void *key)
{
	if (!x->n_slots)
		return TOP_NONE;
	for (size_t at = hash & (x->n_slots - 1); x->slots[at].number;
	     at = (at + 1) & (x->n_slots - 1))
		if (x->slots[at].hash == hash && is_same(s, x->slots[at].number - 1, key))
			return x->slots[at].number - 1;
	return TOP_NONE;
}

static char *copy_text(const char *text)
{
	return text ? must(strdup(text)) : NULL;
}

static bool is_same_module(const struct top_samples *s, uint32_t number, const void *key)
{
	const struct fathom_profile_module *a = &s->modules.items[number].m;
	const struct fathom_profile_module *b = key;

	return strcmp(a->path, b->path) == 0 && a->kind == b->kind &&
	       a->build_id_size == b->build_id_size && a->file_size == b->file_size &&
	       a->changed == b->changed &&
	       (!a->build_id_size || memcmp(a->build_id, b->build_id, a->build_id_size) == 0);
}

/* Returns the number of @m, which process @pid has. */
static uint32_t module_number(struct top_samples *s, const struct fathom_profile_module *m,
			      int32_t pid)
{
	const uint32_t hash = mix_text(mix(m->kind, m->file_size), m->path);
	uint32_t number = index_find(s, &s->by_module, hash, is_same_module, m);
	struct top_module *to;
	uint8_t *id;

	if (number != TOP_NONE) {
		/* Where the file is seen by the process alone, it is to live as long as can be. */
		s->modules.items[number].pid = pid;
		return number;
	}
	number = (uint32_t)s->modules.n;
	to = TOP_PUSH(&s->modules);
	*to = (struct top_module){ .m = *m, .pid = pid };
	to->m.path = copy_text(m->path);
	id = must(malloc(m->build_id_size + 1));
	if (m->build_id_size)
		memcpy(id, m->build_id, m->build_id_size);
	to->m.build_id = id;
	index_add(&s->by_module, hash, number);
	return number;
}

struct function_key {
	uint32_t module;
	const char *text;
};

static const char *key_of(const struct top_function *f)
{
	return f->linkage_name ? f->linkage_name : f->name;
}

static bool is_same_function(const struct top_samples *s, uint32_t number, const void *key)
{
	const struct top_function *f = &s->functions.items[number];
	const struct function_key *k = key;

	return f->module == k->module && strcmp(key_of(f), k->text) == 0;
}

uint32_t top_function_number(struct top_samples *s, uint32_t module, const char *name,
			     const char *linkage_name)
{
	const struct function_key key = { module, linkage_name ? linkage_name : name };
	const uint32_t hash = mix_text(module, key.text);
	uint32_t number = index_find(s, &s->by_function, hash, is_same_function, &key);

	if (number != TOP_NONE)
		return number;
	number = (uint32_t)s->functions.n;
	*TOP_PUSH(&s->functions) = (struct top_function){ .name = copy_text(name),
							  .linkage_name = copy_text(linkage_name),
							  .module = module };
	index_add(&s->by_function, hash, number);
	return number;
}

const char *top_module_path(const struct top_samples *s, const struct top_function *f)
{
	return f->module == TOP_NONE ? "" : s->modules.items[f->module].m.path;
}

uint8_t top_module_kind(const struct top_samples *s, const struct top_function *f)
{
	return f->module == TOP_NONE ? 0 : s->modules.items[f->module].m.kind;
}

uint32_t top_function_find(const struct top_samples *s, const char *module, const char *key)
{
	/* Of a file that was made anew, the last one is of what runs now. */
	for (size_t i = s->functions.n; i > 0; i--) {
		const struct top_function *f = &s->functions.items[i - 1];

		if (strcmp(key_of(f), key) == 0 && strcmp(top_module_path(s, f), module) == 0)
			return (uint32_t)(i - 1);
	}
	return TOP_NONE;
}

/* Takes that place @p, which had none, gets the functions that are added next. */
static void begin_functions(struct top_samples *s, struct top_place *p)
{
	s->n_to_name--;
	p->naming = TOP_NAMED;
	p->first = (uint32_t)s->place_functions.n;
	p->n_functions = 0;
}

static void add_function(struct top_samples *s, struct top_place *p, uint32_t number)
{
	*TOP_PUSH(&s->place_functions) = number;
	p->n_functions++;
}

void top_place_name(struct top_samples *s, uint32_t number, const struct fathom_answer *answer)
{
	struct top_place *p = &s->places.items[number];
	const struct fathom_frame *f = answer ? answer->frame : NULL;

	begin_functions(s, p);
	if (!answer || !answer->symbol)
		add_function(s, p, top_function_number(s, p->module, "??", NULL));
	else if (!f)
		add_function(
			s, p,
			top_function_number(s, p->module, answer->symbol, answer->linkage_name));
	for (; f && p->n_functions < MAX_DEPTH; f = f->outer)
		add_function(s, p,
			     top_function_number(s, p->module, f->function ? f->function : "??",
						 f->linkage_name));
}

/* Places are the same by their names, or without one by their addresses. */
struct place_key {
	uint32_t module;
	uint32_t function; /* TOP_NONE: it has no name yet */
	struct fathom_pc pc;
};

static uint32_t hash_of_place(const struct place_key *k)
{
	const uint32_t hash = mix(k->module, k->function);

	return k->function == TOP_NONE ? mix(mix(hash, k->pc.address), k->pc.kind) : hash;
}

static bool is_same_place(const struct top_samples *s, uint32_t number, const void *key)
{
	const struct top_place *p = &s->places.items[number];
	const struct place_key *k = key;

	if (p->module != k->module)
		return false;
	if (k->function != TOP_NONE)
		return p->pc.address == FATHOM_NO_ADDRESS &&
		       s->place_functions.items[p->first] == k->function;
	return p->pc.address == k->pc.address && p->pc.kind == k->pc.kind;
}

static uint32_t place_number(struct top_samples *s, const struct place_key *k)
{
	const uint32_t hash = hash_of_place(k);
	uint32_t number = index_find(s, &s->by_place, hash, is_same_place, k);
	struct top_place *p;
	uint8_t kind;

	if (number != TOP_NONE)
		return number;
	number = (uint32_t)s->places.n;
	p = TOP_PUSH(&s->places);
	*p = (struct top_place){ .pc = k->pc, .module = k->module };
	s->n_to_name++;
	kind = k->module == TOP_NONE ? 0 : s->modules.items[k->module].m.kind;
	if (k->function != TOP_NONE) {
		p->pc.address = FATHOM_NO_ADDRESS;
		begin_functions(s, p);
		add_function(s, p, k->function);
	} else if (kind != FATHOM_PROFILE_MODULE_FILE && kind != FATHOM_PROFILE_MODULE_VDSO) {
		top_place_name(s, number, NULL);
	}
	index_add(&s->by_place, hash, number);
	return number;
}

static bool is_same_raw(const struct top_samples *s, uint32_t number, const void *key)
{
	const struct top_raw *a = &s->raws.items[number];
	const struct top_raw *b = key;

	return a->module == b->module && a->name == b->name && a->pc.address == b->pc.address &&
	       a->pc.kind == b->pc.kind;
}

/* Returns the number of the place of @f, a frame of process @pid. */
static uint32_t frame_number(struct top_samples *s, const struct fathom_record_frame *f,
			     int32_t pid)
{
	struct top_raw raw = { .module = f->module, .name = f->name, .pc = f->pc };
	const uint32_t hash = mix(mix((uint32_t)(uintptr_t)f->module, f->pc.address),
				  (uintptr_t)f->name + f->pc.kind);
	const uint32_t known = index_find(s, &s->by_raw, hash, is_same_raw, &raw);
	struct place_key key = { .function = TOP_NONE, .pc = f->pc };

	if (known != TOP_NONE)
		return s->raws.items[known].place;
	key.module = f->module ? module_number(s, f->module, pid) : TOP_NONE;
	if (f->name)
		key.function = top_function_number(s, key.module, f->name, f->linkage_name);
	raw.place = place_number(s, &key);
	index_add(&s->by_raw, hash, (uint32_t)s->raws.n);
	*TOP_PUSH(&s->raws) = raw;
	return raw.place;
}

struct stack_key {
	const uint32_t *places;
	size_t n;
};

static bool is_same_stack(const struct top_samples *s, uint32_t number, const void *key)
{
	const struct top_stack *t = &s->stacks.items[number];
	const struct stack_key *k = key;

	return t->n == k->n && (!k->n || memcmp(s->frames.items + t->first, k->places,
						k->n * sizeof *k->places) == 0);
}

static uint32_t stack_number(struct top_samples *s, const uint32_t *places, size_t n)
{
	const struct stack_key key = { places, n };
	uint32_t hash = (uint32_t)n;
	uint32_t number;

	for (size_t i = 0; i < n; i++)
		hash = mix(hash, places[i]);
	number = index_find(s, &s->by_stack, hash, is_same_stack, &key);
	if (number != TOP_NONE)
		return number;
	number = (uint32_t)s->stacks.n;
	*TOP_PUSH(&s->stacks) = (struct top_stack){ (uint32_t)s->frames.n, (uint32_t)n };
	for (size_t i = 0; i < n; i++)
		*TOP_PUSH(&s->frames) = places[i];
	index_add(&s->by_stack, hash, number);
	return number;
}

static bool is_same_thread(const struct top_samples *s, uint32_t number, const void *key)
{
	const struct top_thread *a = &s->threads.items[number];
	const struct top_thread *b = key;

	return a->pid == b->pid && a->tid == b->tid;
}

/* Makes *@text a copy of @to, unless it is the same. */
static void rename_to(char **text, const char *to)
{
	if (*text && strcmp(*text, to) == 0)
		return;
	free(*text);
	*text = copy_text(to);
}

/*
 * Returns the name of process @pid, which has @name as far as the recorder knows: that may be of
 * another thread than the first, which it has not seen yet.
 */
static char *process_name(int32_t pid, const char *name)
{
	char path[32];
	char text[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof text) : -1;
	if (fd >= 0)
		close(fd);
	if (n < 2)
		return copy_text(name);
	/* In place of the end of the line. */
	text[n - 1] = '\0';
	return copy_text(text);
}

/* Returns the number of a thread, which has the name of @key now. */
static uint32_t thread_number(struct top_samples *s, const struct top_thread *key)
{
	const uint32_t hash = mix((uint32_t)key->pid, (uint32_t)key->tid);
	uint32_t number = index_find(s, &s->by_thread, hash, is_same_thread, key);

	if (number == TOP_NONE) {
		number = (uint32_t)s->threads.n;
		*TOP_PUSH(&s->threads) = (struct top_thread){
			.pid = key->pid,
			.tid = key->tid,
			.process = process_name(key->pid, key->process),
		};
		index_add(&s->by_thread, hash, number);
	}
	rename_to(&s->threads.items[number].name, key->name);
	/* The first thread's name is that of the process: another one after exec(). */
	if (key->tid == key->pid)
		rename_to(&s->threads.items[number].process, key->name);
	return number;
}

static bool is_same_cell(const struct top_samples *s, uint32_t number, const void *key)
{
	const struct top_cell *a = &s->cells.items[number];
	const struct top_cell *b = key;

	return a->thread == b->thread && a->stack == b->stack && a->part == b->part;
}

static uint32_t cell_number(struct top_samples *s, const struct top_cell *key)
{
	const uint32_t hash = mix(mix(key->thread, key->stack), key->part);
	uint32_t number = index_find(s, &s->by_cell, hash, is_same_cell, key);

	if (number != TOP_NONE)
		return number;
	number = (uint32_t)s->cells.n;
	*TOP_PUSH(&s->cells) = *key;
	index_add(&s->by_cell, hash, number);
	return number;
}

/* Drops the @n oldest entries, and notes that nothing is whole before the last of them ended. */
static void cut_entries(struct top_samples *s, size_t n)
{
	for (; n; n--) {
		const struct top_entry *e = top_entry_at(s, 0);

		s->whole_from = s->whole_from > e->to ? s->whole_from : e->to;
		s->first_entry++;
		s->n_entries--;
	}
}

/* Makes room for one more entry: in a larger ring, or in place of the oldest. */
static void make_room(struct top_samples *s)
{
	const size_t room = s->entries_room ? 2 * s->entries_room : 1024;
	struct top_entry *more;

	if (s->n_entries < s->entries_room)
		return;
	if (s->entries_room >= MAX_ENTRIES) {
		cut_entries(s, 1);
		return;
	}
	more = must(malloc(room * sizeof *more));
	for (size_t i = 0; i < s->n_entries; i++)
		more[(s->first_entry + i) & (room - 1)] = *top_entry_at(s, i);
	free(s->entries);
	s->entries = more;
	s->entries_room = room;
}

static void add_entry(struct top_samples *s, const struct top_entry *e)
{
	struct top_cell *c = &s->cells.items[e->cell];
	/* Numbers of entries wrap around, after those that they are compared with are gone. */
	const size_t back = (uint32_t)(s->first_entry + s->n_entries) - c->entry;
	struct top_entry *last;

	if (c->entry != TOP_NONE && back && back <= s->n_entries) {
		last = top_entry_at(s, s->n_entries - back);
		if (last->cell == e->cell && e->from <= last->to + ENTRY_NS / 2 &&
		    e->to < last->from + ENTRY_NS) {
			last->from = last->from < e->from ? last->from : e->from;
			last->to = last->to > e->to ? last->to : e->to;
			last->weight += e->weight;
			return;
		}
	}
	make_room(s);
	c->entry = (uint32_t)(s->first_entry + s->n_entries);
	*top_entry_at(s, s->n_entries++) = *e;
}

/* Adds the functions that stand for what has none: texts as those of reports. */
static void add_fixed(struct top_samples *s)
{
	s->hidden = top_function_number(s, TOP_NONE, "[kernel, stack not permitted]", NULL);
	s->unsampled = top_function_number(s, TOP_NONE, "[not sampled]", NULL);
	s->unnamed = top_function_number(s, TOP_NONE, "[not named yet]", NULL);
	s->no_reason = top_function_number(s, TOP_NONE, "[wait not sampled]", NULL);
	s->no_processor = top_function_number(s, TOP_NONE, "[waits for a processor]", NULL);
}

void top_samples_init(struct top_samples *s, uint64_t window_ns)
{
	*s = (struct top_samples){ .window_ns = window_ns };
	add_fixed(s);
}

static void clear_index(struct top_index *x)
{
	free(x->slots);
	*x = (struct top_index){ 0 };
}

void top_samples_deinit(struct top_samples *s)
{
	for (size_t i = 0; i < s->modules.n; i++) {
		free((char *)(uintptr_t)s->modules.items[i].m.path);
		free((uint8_t *)(uintptr_t)s->modules.items[i].m.build_id);
	}
	for (size_t i = 0; i < s->functions.n; i++) {
		free(s->functions.items[i].name);
		free(s->functions.items[i].linkage_name);
	}
	for (size_t i = 0; i < s->threads.n; i++) {
		free(s->threads.items[i].name);
		free(s->threads.items[i].process);
	}
	free(s->modules.items);
	free(s->functions.items);
	free(s->places.items);
	free(s->place_functions.items);
	free(s->stacks.items);
	free(s->frames.items);
	free(s->threads.items);
	free(s->cells.items);
	free(s->raws.items);
	free(s->scratch.items);
	free(s->entries);
	clear_index(&s->by_module);
	clear_index(&s->by_function);
	clear_index(&s->by_place);
	clear_index(&s->by_stack);
	clear_index(&s->by_thread);
	clear_index(&s->by_cell);
	clear_index(&s->by_raw);
}

void top_samples_begin(struct top_samples *s)
{
	s->base = 0;
	s->began = top_now();
	if (!s->first_ns)
		s->first_ns = s->began;
	s->raws.n = 0;
	clear_index(&s->by_raw);
}

/* Returns whether a script has frames in the stack of @sample. */
static bool has_script(const struct fathom_record_sample *sample)
{
	for (size_t i = 0; i < sample->n_frames; i++)
		if (sample->frames[i].kind == FATHOM_FRAME_SCRIPT)
			return true;
	return false;
}

/* Returns whether @f is shown, of a stack in which a script has frames. */
static bool is_shown(const struct top_samples *s, const struct fathom_record_frame *f)
{
	switch (s->shown) {
	case FRAMES_MERGED:
		return f->kind != FATHOM_FRAME_RUNTIME;
	case FRAMES_SCRIPT:
		return f->kind == FATHOM_FRAME_SCRIPT ||
		       (f->module && f->module->kind == FATHOM_PROFILE_MODULE_WAITS);
	case FRAMES_NATIVE:
		return f->kind != FATHOM_FRAME_SCRIPT;
	default:
		return true;
	}
}

void top_samples_add(struct top_samples *s, const struct fathom_record_sample *sample)
{
	const struct fathom_profile_thread *t = sample->thread;
	const struct top_thread thread = { t->pid, t->tid, (char *)(uintptr_t)t->name,
					   (char *)(uintptr_t)t->process };
	const size_t n = sample->n_frames < MAX_DEPTH ? sample->n_frames : MAX_DEPTH;
	const uint64_t now = top_now();
	const bool is_scripted = has_script(sample);
	struct top_cell cell = { .part = sample->part, .entry = TOP_NONE };
	struct top_entry e;

	/* Samples come some milliseconds late, none comes early. */
	if (!s->base || now - sample->ns < s->base)
		s->base = now - sample->ns;
	s->scratch.n = 0;
	for (size_t i = 0; i < n; i++)
		if (!is_scripted || is_shown(s, &sample->frames[i]))
			*TOP_PUSH(&s->scratch) = frame_number(s, &sample->frames[i], t->pid);
	cell.thread = thread_number(s, &thread);
	cell.stack = stack_number(s, s->scratch.items, s->scratch.n);
	e.cell = cell_number(s, &cell);
	e.to = s->base + sample->ns;
	e.weight = sample->weight < e.to ? sample->weight : e.to;
	e.from = e.to - e.weight;
	s->cells.items[e.cell].weight += e.weight;
	add_entry(s, &e);
	top_samples_drop_before(s, (s->frozen ? s->frozen : now) - s->window_ns - SPARE_NS);
}

void top_samples_drop_before(struct top_samples *s, uint64_t ns)
{
	while (s->n_entries && top_entry_at(s, 0)->to < ns) {
		s->first_entry++;
		s->n_entries--;
	}
}

/* Returns whether a table has more than one part of @parts of what it may have. */
static bool has_more_than(const struct top_samples *s, size_t parts)
{
	return s->cells.n > MAX_CELLS / parts || s->frames.n > MAX_FRAMES / parts ||
	       s->places.n > MAX_PLACES / parts || s->functions.n > MAX_FUNCTIONS / parts ||
	       s->threads.n > MAX_THREADS / parts;
}

bool top_samples_is_full(const struct top_samples *s)
{
	return has_more_than(s, 1);
}

/* Returns the number in @to of what @from has as module @number. */
static uint32_t move_module(struct top_samples *to, const struct top_samples *from, uint32_t number)
{
	const struct top_module *m;

	if (number == TOP_NONE)
		return number;
	m = &from->modules.items[number];
	return module_number(to, &m->m, m->pid);
}

static uint32_t move_function(struct top_samples *to, const struct top_samples *from,
			      uint32_t number)
{
	const struct top_function *f = &from->functions.items[number];

	return top_function_number(to, move_module(to, from, f->module), f->name, f->linkage_name);
}

static uint32_t move_place(struct top_samples *to, const struct top_samples *from, uint32_t number)
{
	const struct top_place *p = &from->places.items[number];
	struct place_key key = { .function = TOP_NONE, .pc = p->pc };
	struct top_place *moved;
	uint32_t place;

	key.module = move_module(to, from, p->module);
	if (p->pc.address == FATHOM_NO_ADDRESS)
		key.function = move_function(to, from, from->place_functions.items[p->first]);
	place = place_number(to, &key);
	if (to->places.items[place].naming == TOP_NAMED || p->naming != TOP_NAMED)
		return place;
	moved = &to->places.items[place];
	begin_functions(to, moved);
	for (uint32_t i = 0; i < p->n_functions; i++)
		add_function(to, moved,
			     move_function(to, from, from->place_functions.items[p->first + i]));
	return place;
}

static uint32_t move_cell(struct top_samples *to, const struct top_samples *from, uint32_t number)
{
	const struct top_cell *c = &from->cells.items[number];
	const struct top_stack *stack = &from->stacks.items[c->stack];
	struct top_cell moved = { .part = c->part, .entry = TOP_NONE };

	to->scratch.n = 0;
	for (uint32_t i = 0; i < stack->n; i++) {
		const uint32_t place = move_place(to, from, from->frames.items[stack->first + i]);

		*TOP_PUSH(&to->scratch) = place;
	}
	moved.stack = stack_number(to, to->scratch.items, to->scratch.n);
	moved.thread = thread_number(to, &from->threads.items[c->thread]);
	return cell_number(to, &moved);
}

/* Makes numbers anew, of what the entries need alone. */
static void number_anew(struct top_samples *s)
{
	struct top_samples to = { .shown = s->shown,
				  .window_ns = s->window_ns,
				  .base = s->base,
				  .began = top_now(),
				  .first_ns = s->first_ns,
				  .frozen = s->frozen,
				  .whole_from = s->whole_from,
				  .generation = s->generation + 1 };

	add_fixed(&to);
	for (size_t i = 0; i < s->n_entries; i++) {
		struct top_entry e = *top_entry_at(s, i);

		e.cell = move_cell(&to, s, e.cell);
		add_entry(&to, &e);
	}
	top_samples_deinit(s);
	*s = to;
}

void top_samples_forget(struct top_samples *s)
{
	top_samples_drop_before(s, (s->frozen ? s->frozen : top_now()) - s->window_ns - SPARE_NS);
	number_anew(s);
	/* Else the window alone could fill the tables, and each recording end at once. */
	while (s->n_entries && has_more_than(s, 2)) {
		cut_entries(s, (s->n_entries + 1) / 2);
		number_anew(s);
	}
}
