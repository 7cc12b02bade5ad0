/* SPDX-License-Identifier: MIT */
#include "host/filter/log_context.h"

#include <elf.h>
#include <stdlib.h>

#include "host/file/bias.h"
#include "host/filter/log_evidence.h"
#include "host/filter/log_heads.h"

/* Bytes before the first line that tells of modules whose addresses it may place. */
#define MAX_BEFORE ((size_t)256 << 10)

/* Lines of one map are as near to each other. They are true together. */
#define MAX_LISTING ((size_t)4 << 10)

/* Places of one process; of one with more, nothing is known. */
#define MAX_PLACES 4096

/* Places that lines of one report tell, which agree. */
struct set {
	struct fathom_log_places places;
	const char *first; /* the first line that has told; NULL: none has */
	const char *last;  /* the last one */
	size_t before;     /* bytes of earlier calls after that */
	uint64_t process;  /* of its lines; 0: they do not say */
	bool is_listing;   /* the last line is of a map */
	bool is_last;      /* of its report */
	bool is_full;      /* it was too much to keep */
	bool has_ended;    /* a new report of its process has begun */
};

struct walk {
	struct fathom_log_context *context;
	struct fathom_log_scan *scan;
	struct fathom_log_modules *modules;
	uint32_t *of_numbers;
	const char *text_end;
	const char *seen;              /* the end of the last line with a number or a fact */
	struct fathom_log_heads heads; /* of reports after that */
	struct {
		FATHOM_ARRAY_OF(struct set);
	} sets;
	uint32_t *set_of; /* each number */
	/* The last set of each process; that of the line that is passed is the last one. */
	uint32_t open[FATHOM_LOG_PROCESSES];
	size_t n_open;
	struct fathom_errinfo *reterr;
};

/* Returns the index of the first place that ends after @address. */
static size_t place_after(const struct fathom_log_places *places, uint64_t address)
{
	size_t low = 0;
	size_t high = places->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (places->items[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static const struct fathom_log_place *place_at(const struct fathom_log_places *places,
					       uint64_t address)
{
	const size_t i = place_after(places, address);

	return i < places->n && places->items[i].start <= address ? &places->items[i] : NULL;
}

static bool have_one_file_name(struct fathom_str a, struct fathom_str b)
{
	return str_equal(fathom_log_last_part(a), fathom_log_last_part(b));
}

/* Returns @path without /usr: in most systems /lib leads to /usr/lib. */
static struct fathom_str without_usr(struct fathom_str path)
{
	struct fathom_log_line l = { path.data, path.data + path.size };

	return fathom_line_take(&l, "/usr/") ? fathom_log_text(l.at - 1, l.end) : path;
}

/* Returns whether @a and @b can be names of one module: a path and the last part of it are. */
static bool can_be_one(struct fathom_str a, struct fathom_str b)
{
	const bool have_paths = a.size && b.size && *a.data == '/' && *b.data == '/';

	return have_paths ? str_equal(without_usr(a), without_usr(b)) : have_one_file_name(a, b);
}

/* Returns whether @a and @b, which overlap, can be of one process. */
static bool agree(const struct fathom_log_place *a, const struct fathom_log_place *b)
{
	return can_be_one(a->module, b->module) &&
	       (a->is_file_offset != b->is_file_offset || a->raised == b->raised);
}

/* Returns whether @a and @b have one part of one module at two addresses. */
static bool is_elsewhere(const struct fathom_log_place *a, const struct fathom_log_place *b)
{
	return a->is_file_offset == b->is_file_offset && a->raised != b->raised &&
	       (!a->is_file_offset || a->start + a->raised == b->start + b->raised) &&
	       str_equal(a->module, b->module) && str_equal(a->build_id, b->build_id);
}

/*
 * Adds @place to @places; false in *@ret_agrees if it contradicts one that is there. The map that
 * has it, @is_listed, may have a file at several addresses.
 */
static bool insert(struct fathom_log_places *places, const struct fathom_log_place *place,
		   bool is_listed, bool *ret_agrees)
{
	const size_t at = place_after(places, place->start);

	*ret_agrees = true;
	if (at < places->n && places->items[at].start < place->end) {
		*ret_agrees = agree(&places->items[at], place);
		return true;
	}
	for (size_t i = 0; i < places->n && !is_listed; i++)
		if (is_elsewhere(&places->items[i], place)) {
			*ret_agrees = false;
			return true;
		}
	if (!fathom_array_push(places, *place))
		return false;
	memmove(places->items + at + 1, places->items + at,
		(places->n - 1 - at) * sizeof *places->items);
	places->items[at] = *place;
	return true;
}

static struct set *current(struct walk *w)
{
	return &w->sets.items[w->open[w->n_open - 1]];
}

/* Begins a set, and has it be the last of its process in place of the current one. */
static fathom_err replace_set(struct walk *w, struct set set)
{
	set.is_last = true;
	if (!fathom_array_push(&w->sets, set))
		return fathom_fail_memory(w->reterr);
	w->open[w->n_open - 1] = (uint32_t)(w->sets.n - 1);
	return FATHOM_OK;
}

/* Begins a set of another process, which is @set's. The oldest one may be forgotten for it. */
static fathom_err open_set(struct walk *w, struct set set)
{
	if (w->n_open == FATHOM_LOG_PROCESSES)
		memmove(w->open, w->open + 1, --w->n_open * sizeof *w->open);
	w->n_open++;
	return replace_set(w, set);
}

/* Returns the index in w->open of the last set of @process; w->n_open: there is none. */
static size_t find_open(const struct walk *w, uint64_t process)
{
	for (size_t i = w->n_open; i > 0; i--)
		if (w->sets.items[w->open[i - 1]].process == process)
			return i - 1;
	return w->n_open;
}

/* Goes on with the last set of @process, or begins one. */
static fathom_err change_process(struct walk *w, uint64_t process)
{
	const size_t i = find_open(w, process);
	uint32_t set;

	if (i == w->n_open)
		return open_set(w, (struct set){ .process = process });
	set = w->open[i];
	memmove(w->open + i, w->open + i + 1, (w->n_open - 1 - i) * sizeof *w->open);
	w->open[w->n_open - 1] = set;
	return FATHOM_OK;
}

/* Adds what the line at @line tells. */
static fathom_err add_fact(struct walk *w, const struct fathom_log_place *place, const char *line)
{
	struct set *set = current(w);
	const bool is_listed = place->is_file_offset && set->is_listing && set->last &&
			       (size_t)(line - set->last) + set->before < MAX_LISTING;
	bool agrees;

	if (set->is_full)
		return FATHOM_OK;
	if (!insert(&set->places, place, is_listed, &agrees))
		return fathom_fail_memory(w->reterr);
	if (!agrees) {
		set->is_last = false;
		FATHOM_TRY(replace_set(w, (struct set){ .process = set->process }));
		set = current(w);
		if (!insert(&set->places, place, false, &agrees))
			return fathom_fail_memory(w->reterr);
	}
	set->is_listing = place->is_file_offset;
	if (set->places.n > MAX_PLACES) {
		set->places.n = 0;
		set->is_full = true;
	}
	if (!set->first)
		set->first = line;
	set->last = line;
	set->before = 0;
	return FATHOM_OK;
}

/* Ends the reports that words between the last line that was seen and @to end. */
static void pass_heads(struct walk *w, const char *to)
{
	fathom_log_heads_pass(&w->heads, w->seen);
	while (w->heads.next < to) {
		const char *const head = w->heads.next;
		const char *line = memrchr(w->seen, '\n', (size_t)(head - w->seen));
		const char *end = memchr(head, '\n', (size_t)(to - head));
		uint64_t process;
		size_t i;

		line = line ? line + 1 : w->seen;
		end = end ? end : to;
		process = fathom_line_process(line, end);
		i = process ? find_open(w, process) : w->n_open - 1;
		/* The current report may not say of which process it is. */
		if (i == w->n_open && !current(w)->process)
			i = w->n_open - 1;
		if (i < w->n_open)
			w->sets.items[w->open[i]].has_ended = true;
		fathom_log_heads_pass(&w->heads, end);
	}
}

/* Returns whether the report of @set is over at @line: it is too far away. */
static bool is_over(const struct walk *w, const struct set *set, const char *line)
{
	const char *known = set->last ? set->last : w->seen;

	return set->has_ended || (size_t)(line - known) + set->before >
					 (set->last ? FATHOM_LOG_REPORT_SPAN : MAX_BEFORE);
}

/*
 * Finds the report that the line [@from, @to) of @process, with a number or a fact, is of, or
 * begins one.
 */
static fathom_err pass_line(struct walk *w, const char *from, const char *to, uint64_t process)
{
	const struct set *set = current(w);

	if (to <= w->seen)
		return FATHOM_OK;
	pass_heads(w, to);
	if (process && process != set->process && (set->process || set->last))
		FATHOM_TRY(change_process(w, process));
	if (is_over(w, current(w), from))
		FATHOM_TRY(replace_set(w, (struct set){ .process = process }));
	w->seen = to;
	if (process)
		current(w)->process = process;
	return FATHOM_OK;
}

/* Makes @ret the memory of the code of @n's module, if its line has @n in memory, too. */
static bool place_of_pair(const struct walk *w, size_t i, struct fathom_log_place *ret)
{
	const struct fathom_log_number *n = &w->scan->numbers.items[i];
	const struct fathom_log_module *m = &w->modules->modules.items[w->of_numbers[i]];
	const struct fathom_image *image = fathom_log_image_of(m);
	uint64_t address;

	if (!n->live || !image || image->type != ET_DYN || fathom_log_address_of(n, m, &address))
		return false;
	for (uint32_t k = 0; k < image->phnum; k++) {
		struct fathom_segment s;

		if (!fathom_image_segment(image, k, &s) || s.type != PT_LOAD || !(s.flags & PF_X) ||
		    address - s.vaddr >= s.memsz)
			continue;
		*ret = (struct fathom_log_place){
			.start = n->live - (address - s.vaddr),
			.end = n->live - (address - s.vaddr) + s.memsz,
			.raised = address - n->live,
			.module = n->module,
			.build_id = n->build_id,
		};
		return ret->start < ret->end;
	}
	return false;
}

/* Takes what number @i tells, and notes its set. */
static fathom_err pass_number(struct walk *w, size_t i)
{
	const struct fathom_log_number *n = &w->scan->numbers.items[i];
	struct fathom_log_place place;

	FATHOM_TRY(pass_line(w, n->line_start, n->line_end, n->process));
	if (n->live) {
		const struct fathom_log_place *known = place_at(&current(w)->places, n->live);

		/* Most numbers of a stack tell what the one before has told. */
		if (known && !known->is_file_offset && str_equal(known->module, n->module) &&
		    n->base == FATHOM_LOG_STATED && n->live + known->raised == n->value) {
			current(w)->last = n->line_start;
			current(w)->before = 0;
		} else if (place_of_pair(w, i, &place)) {
			FATHOM_TRY(add_fact(w, &place, n->line_start));
		}
	}
	current(w)->is_listing = false;
	w->set_of[i] = w->open[w->n_open - 1];
	return FATHOM_OK;
}

/* Passes all lines with numbers and facts, in the order of the text. */
static fathom_err pass_all(struct walk *w)
{
	const struct fathom_log_scan *s = w->scan;
	size_t number = 0;
	size_t fact = 0;

	while (number < s->numbers.n || fact < s->facts.n) {
		const struct fathom_log_fact *f = fact < s->facts.n ? &s->facts.items[fact] : NULL;

		if (!f || (number < s->numbers.n &&
			   s->numbers.items[number].line_start < f->line_start)) {
			FATHOM_TRY(pass_number(w, number++));
			continue;
		}
		FATHOM_TRY(pass_line(w, f->line_start, f->line_end, f->process));
		FATHOM_TRY(add_fact(w, &f->place, f->line_start));
		fact++;
	}
	return FATHOM_OK;
}

/* Returns the places that number @i is among; NULL: nobody knows. */
static const struct fathom_log_places *places_for(const struct walk *w, size_t i)
{
	const struct fathom_log_number *n = &w->scan->numbers.items[i];
	const struct set *set = &w->sets.items[w->set_of[i]];

	if (!set->last || (n->line_start > set->last && !set->is_last) ||
	    (set->first > n->line_start && (size_t)(set->first - n->line_start) > MAX_BEFORE))
		return NULL;
	return &set->places;
}

/* Returns whether number @i is an address in memory of which the log may tell the module. */
static bool is_unplaced(const struct walk *w, size_t i)
{
	const struct fathom_log_number *n = &w->scan->numbers.items[i];
	const struct fathom_log_module *m = &w->modules->modules.items[w->of_numbers[i]];
	const struct fathom_image *image = fathom_log_image_of(m);
	uint64_t address;

	if (n->base != FATHOM_LOG_LIVE)
		return false;
	if (n->module.size)
		return !image || fathom_log_address_of(n, m, &address) != FATHOM_REASON_NONE;
	return !m->target || (image && !fathom_bias_covers(image, 0, n->value));
}

/* Makes number @i one of the place that it is in, if there is one. */
static fathom_err place_number(struct walk *w, size_t i)
{
	struct fathom_log_number *n = &w->scan->numbers.items[i];
	const struct fathom_log_places *places = places_for(w, i);
	const struct fathom_log_place *place;
	size_t module;

	if (!places || !places->n)
		return FATHOM_OK;
	place = place_at(places, n->value - (n->kind == FATHOM_LOG_RETURN));
	if (!place || (n->module.size && !can_be_one(n->module, place->module)) ||
	    (n->from.size && !can_be_one(n->from, place->module)))
		return FATHOM_OK;
	n->module = place->module;
	n->build_id = place->build_id;
	n->raised = place->raised;
	n->is_file_offset = place->is_file_offset;
	n->is_placed = true;
	n->base = FATHOM_LOG_MAPPED;
	FATHOM_TRY(fathom_log_modules_find(w->modules, n, &module, w->reterr));
	w->of_numbers[i] = (uint32_t)module;
	return FATHOM_OK;
}

/* Returns @path as it was before the kernel said that it was deleted. */
static struct fathom_str without_deleted(struct fathom_str path)
{
	static const char word[] = " (deleted)";
	const size_t n = sizeof word - 1;

	if (path.size > n && !memcmp(path.data + path.size - n, word, n))
		path.size -= (uint32_t)n;
	return path;
}

/*
 * Returns the only module of @places with a path that has the file name @name, and was not deleted;
 * NULL: none.
 */
static const struct fathom_log_place *path_of(const struct fathom_log_places *places,
					      struct fathom_str name)
{
	const struct fathom_log_place *found = NULL;

	for (size_t i = 0; i < places->n; i++) {
		const struct fathom_log_place *p = &places->items[i];
		const struct fathom_str path = without_deleted(p->module);

		if (!path.size || *path.data != '/' || !have_one_file_name(path, name))
			continue;
		if (path.size != p->module.size || (found && !str_equal(found->module, path)))
			return NULL;
		found = p;
	}
	return found;
}

/* Answers of path_of() that are kept, by the module's number. */
#define KEPT_PATHS 64

struct asked_path {
	const struct fathom_log_places *places;
	uint32_t module;
	const struct fathom_log_place *found;
};

/* Gives the module of number @i, which has no path, that which the report tells. */
static fathom_err find_path(struct walk *w, size_t i, struct asked_path *asked)
{
	struct fathom_log_number *n = &w->scan->numbers.items[i];
	const struct fathom_log_places *places = places_for(w, i);
	size_t module;

	asked += w->of_numbers[i] % KEPT_PATHS;
	if (!places || !places->n || !n->module.size || n->build_id.size || n->symbol_size ||
	    memchr(n->module.data, '/', n->module.size))
		return FATHOM_OK;
	if (asked->places != places || asked->module != w->of_numbers[i])
		*asked =
			(struct asked_path){ places, w->of_numbers[i], path_of(places, n->module) };
	if (!asked->found)
		return FATHOM_OK;
	n->module = asked->found->module;
	FATHOM_TRY(fathom_log_modules_find(w->modules, n, &module, w->reterr));
	w->of_numbers[i] = (uint32_t)module;
	return FATHOM_OK;
}

/* Places all numbers that can be. */
static fathom_err place_all(struct walk *w)
{
	struct asked_path asked[KEPT_PATHS] = { { NULL, 0, NULL } };

	for (size_t i = 0; i < w->scan->numbers.n; i++) {
		if (is_unplaced(w, i))
			FATHOM_TRY(place_number(w, i));
		else
			FATHOM_TRY(find_path(w, i, asked));
	}
	return FATHOM_OK;
}

/* Returns whether any line of @s, or an earlier one, has told where a module is. */
static bool is_told(const struct fathom_log_context *c, const struct fathom_log_scan *s)
{
	for (size_t i = 0; i < s->numbers.n; i++)
		if (s->numbers.items[i].live)
			return true;
	return c->n || s->facts.n;
}

/* Returns whether @w has a number that what the log tells may help. */
static bool needs_places(const struct walk *w)
{
	for (size_t i = 0; i < w->scan->numbers.n; i++) {
		const struct fathom_log_number *n = &w->scan->numbers.items[i];

		if (is_unplaced(w, i) ||
		    (n->module.size && !memchr(n->module.data, '/', n->module.size)))
			return true;
	}
	return false;
}

/* Keeps what @set has told. */
static fathom_err keep_set(struct walk *w, struct set *set)
{
	struct fathom_log_context *c = w->context;
	struct fathom_log_report *r = &c->reports[c->n];

	if (!set->last || is_over(w, set, w->text_end))
		return FATHOM_OK;
	*r = (struct fathom_log_report){
		.places = set->places,
		.process = set->process,
		.distance = (size_t)(w->text_end - set->last) + set->before,
		.is_listing = set->is_listing,
		.is_full = set->is_full,
	};
	set->places = (struct fathom_log_places){ NULL, 0, 0 };
	c->n++;
	for (size_t i = 0; i < r->places.n; i++) {
		struct fathom_log_place *p = &r->places.items[i];

		p->module.data = fathom_arena_strdup(&c->texts, p->module);
		p->build_id.data = fathom_arena_strdup(&c->texts, p->build_id);
		if (!p->module.data || !p->build_id.data)
			return fathom_fail_memory(w->reterr);
	}
	return FATHOM_OK;
}

/* Keeps what the reports that may go on have told, for the lines of the next call. */
static fathom_err keep(struct walk *w)
{
	pass_heads(w, w->text_end);
	for (size_t i = 0; i < w->n_open; i++)
		FATHOM_TRY(keep_set(w, &w->sets.items[w->open[i]]));
	return FATHOM_OK;
}

/* Begins with what earlier calls have told. */
static fathom_err take_context(struct walk *w, const char *text)
{
	struct fathom_log_context *c = w->context;

	for (size_t i = 0; i < c->n; i++) {
		struct fathom_log_report *r = &c->reports[i];

		FATHOM_TRY(open_set(w, (struct set){
					       .places = r->places,
					       .first = text,
					       .last = text,
					       .before = r->distance,
					       .process = r->process,
					       .is_listing = r->is_listing,
					       .is_full = r->is_full,
				       }));
		r->places = (struct fathom_log_places){ NULL, 0, 0 };
	}
	if (!c->n)
		FATHOM_TRY(open_set(w, (struct set){ .first = NULL }));
	c->n = 0;
	return FATHOM_OK;
}

fathom_err fathom_log_context_apply(struct fathom_log_context *c, struct fathom_log_scan *s,
				    struct fathom_log_modules *modules, uint32_t *of_numbers,
				    const char *text, size_t size, struct fathom_errinfo *reterr)
{
	struct walk w = {
		.context = c,
		.scan = s,
		.modules = modules,
		.of_numbers = of_numbers,
		.text_end = text + size,
		.seen = text,
		.reterr = reterr,
	};
	struct fathom_arena former = c->texts;
	bool needs;
	fathom_err err;

	if (!is_told(c, s))
		return FATHOM_OK;
	c->texts = (struct fathom_arena){ NULL, 0 };
	fathom_log_heads_begin(&w.heads, text, text + size, false);
	needs = needs_places(&w);
	w.set_of = calloc(s->numbers.n ? s->numbers.n : 1, sizeof *w.set_of);
	err = w.set_of ? take_context(&w, text) : fathom_fail_memory(reterr);
	if (!err)
		err = pass_all(&w);
	if (!err && needs)
		err = place_all(&w);
	if (!err)
		err = keep(&w);
	for (size_t i = 0; i < w.sets.n; i++)
		fathom_array_free(&w.sets.items[i].places);
	fathom_array_free(&w.sets);
	free(w.set_of);
	fathom_arena_deinit(&c->former_texts);
	c->former_texts = former;
	return err;
}

void fathom_log_context_deinit(struct fathom_log_context *c)
{
	for (size_t i = 0; i < c->n; i++)
		fathom_array_free(&c->reports[i].places);
	fathom_arena_deinit(&c->texts);
	fathom_arena_deinit(&c->former_texts);
}
