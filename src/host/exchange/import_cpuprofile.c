/* SPDX-License-Identifier: MIT */
/*
 * Profiles of V8: .cpuprofile of Chrome and of node --cpu-prof (the type Profile of the DevTools
 * protocol, https://chromedevtools.github.io/devtools-protocol/tot/Profiler), and the older form
 * whose functions stand within each other from "head" on, with the times of samples.
 *
 * A sample counts for the time up to the next one, the last one up to the end. A profile without
 * samples has the hits of its functions. The function (root), which holds all others, is left out;
 * (idle), (program) and (garbage collector) are functions. Modules are the scripts. Lines are those
 * where functions begin: positionTicks are not read.
 */
#include <stdlib.h>
#include <string.h>

#include "host/base/key_map.h"
#include "host/exchange/importing.h"
#include "host/base/json_reader.h"
#include "host/profile/samples_format.h"
#include "safe/base/cursor.h"

/* The most functions within each other in the older form. */
#define MOST_WITHIN 512

/* Items of the file between looks at how much memory they take. */
#define PACE 65536

/* No number of a function. */
#define NONE UINT32_MAX

/* Other files have nodes, too: those of heaps, and of graphs. */
static const char other[] = "is no CPU profile: its nodes are no functions";

/* A function with what called it. */
struct call {
	int64_t id;
	int64_t hits;
	uint32_t parent;   /* index */
	uint32_t location; /* of the profile; FATHOM_TABLE_NONE: it is the root */
	uint32_t node;     /* of the profile; NONE: not made yet */
};

/* A function is called by another one: ids. */
struct edge {
	int64_t parent;
	int64_t child;
};

struct numbers {
	FATHOM_ARRAY_OF(int64_t);
};

/* A function as the file describes it. */
struct description {
	struct fathom_bytes_array name;
	struct fathom_bytes_array url;
	int64_t line;
	int64_t column;
	bool has_name;
};

struct cpuprofile {
	struct fathom_import *import;
	struct fathom_json json;
	struct {
		FATHOM_ARRAY_OF(struct call);
	} calls;
	struct {
		FATHOM_ARRAY_OF(struct edge);
	} edges;
	struct fathom_key_map by_id;
	struct numbers samples; /* ids */
	struct numbers deltas;  /* us since the sample before */
	struct numbers times;   /* us, of the older form */
	struct fathom_u32_array path;
	struct description function; /* that is being read */
	int64_t began;
	int64_t ended;
	uint64_t n_items; /* that were read */
	bool is_old;      /* lines are counted from 1 */
	bool has_names;   /* some function has one */
	bool no_memory;
};

bool fathom_is_cpuprofile(struct fathom_bytes file)
{
	struct fathom_json j;
	bool is_it = false;

	fathom_json_init(&j, file);
	if (fathom_json_enter(&j, '{'))
		while (!is_it && fathom_json_next(&j, '}')) {
			const struct fathom_str key = fathom_json_key(&j);

			is_it = !j.wrong && (str_is(key, "nodes") || str_is(key, "head"));
			if (!is_it)
				fathom_json_skip(&j);
		}
	fathom_json_deinit(&j);
	return is_it;
}

static void keep(struct cpuprofile *p, struct fathom_bytes_array *to, struct fathom_str s)
{
	to->n = 0;
	if (!fathom_array_room(to, (size_t)s.size + 1)) {
		p->no_memory = true;
		return;
	}
	memcpy(to->items, s.data, s.size);
	to->items[s.size] = '\0';
	/* A NUL ends the text. */
	to->n = strlen(to->items);
}

/* Returns how many bytes the tables have. */
static uint64_t size_of_tables(const struct cpuprofile *p)
{
	return p->calls.cap * (uint64_t)sizeof *p->calls.items +
	       p->edges.cap * (uint64_t)sizeof *p->edges.items +
	       p->by_id.cap * (uint64_t)sizeof *p->by_id.slots +
	       ((uint64_t)p->samples.cap + p->deltas.cap + p->times.cap) * sizeof(int64_t);
}

/* Returns whether reading goes on: to be asked before each item. */
static bool goes_on(struct cpuprofile *p)
{
	struct fathom_import *i = p->import;

	if (p->n_items++ % PACE == 0 && !i->err &&
	    !fathom_memory_fits(&i->session->memory, size_of_tables(p)))
		i->err = FATHOM_E_LIMIT;
	return !p->no_memory && !fathom_import_check(i, NULL);
}

static void read_numbers(struct cpuprofile *p, struct numbers *to)
{
	struct fathom_json *j = &p->json;

	if (!fathom_json_enter(j, '[')) {
		fathom_json_skip(j);
		return;
	}
	while (goes_on(p) && fathom_json_next(j, ']'))
		p->no_memory |= !fathom_array_push(to, fathom_json_number(j));
}

/* Reads member @key of what describes a function; returns false if it is none of these. */
static bool read_description(struct cpuprofile *p, struct fathom_str key)
{
	struct fathom_json *j = &p->json;

	if (str_is(key, "functionName")) {
		keep(p, &p->function.name, fathom_json_string(j));
		p->function.has_name = true;
	} else if (str_is(key, "url")) {
		keep(p, &p->function.url, fathom_json_string(j));
	} else if (str_is(key, "lineNumber")) {
		p->function.line = fathom_json_number(j);
	} else if (str_is(key, "columnNumber")) {
		p->function.column = fathom_json_number(j);
	} else {
		return false;
	}
	return true;
}

static void begin_description(struct cpuprofile *p)
{
	keep(p, &p->function.name, (struct fathom_str){ "", 0 });
	keep(p, &p->function.url, (struct fathom_str){ "", 0 });
	p->function.has_name = false;
	p->function.line = -1;
	p->function.column = -1;
}

/* Returns what a line or column is, counted from 1; 0: not known. */
static uint32_t place_of(const struct cpuprofile *p, int64_t number)
{
	const int64_t place = p->is_old ? number : number + 1;

	return place > 0 && place <= INT32_MAX ? (uint32_t)place : 0;
}

/* Returns the location of the function that was described; FATHOM_TABLE_NONE: it is the root. */
static uint32_t location_of(struct cpuprofile *p)
{
	static const char file[] = "file://";
	const struct description *f = &p->function;
	struct fathom_profile_module m = { .kind = FATHOM_PROFILE_MODULE_JIT,
					   .path = f->url.items };
	struct fathom_profile_location l = { .module = UINT32_MAX };
	struct fathom_profile_symbol s = { .line = place_of(p, f->line),
					   .column = place_of(p, f->column) };

	if (p->no_memory || strcmp(f->name.items, "(root)") == 0)
		return FATHOM_TABLE_NONE;
	if (strncmp(f->url.items, file, sizeof file - 1) == 0)
		m.path += sizeof file - 1;
	s.name = fathom_import_str(f->name.n ? f->name.items : "(anonymous)");
	s.file = fathom_import_str(m.path);
	if (*m.path)
		l.module = fathom_import_module(p->import, &m);
	return fathom_import_location(p->import, &l, fathom_import_symbol(p->import, &s));
}

/* Adds a function; returns its number. */
static uint32_t add_call(struct cpuprofile *p, struct call c)
{
	uint32_t *number;

	c.node = NONE;
	p->has_names |= p->function.has_name;
	p->no_memory |= !fathom_array_push(&p->calls, c);
	number = p->no_memory ? NULL : fathom_key_map_at(&p->by_id, (uint64_t)c.id);
	if (!number) {
		p->no_memory = true;
		return NONE;
	}
	if (*number == FATHOM_KEY_NEW)
		*number = (uint32_t)p->calls.n - 1;
	return (uint32_t)p->calls.n - 1;
}

static void read_frame(struct cpuprofile *p)
{
	struct fathom_json *j = &p->json;

	if (!fathom_json_enter(j, '{')) {
		fathom_json_skip(j);
		return;
	}
	while (fathom_json_next(j, '}'))
		if (!read_description(p, fathom_json_key(j)))
			fathom_json_skip(j);
}

/* Notes that the calls from @first on of the edges are those of @id. */
static void set_parent(struct cpuprofile *p, size_t first, int64_t id)
{
	for (size_t i = first; i < p->edges.n; i++)
		p->edges.items[i].parent = id;
}

/* Reads one of the nodes. */
static void read_node(struct cpuprofile *p)
{
	struct fathom_json *j = &p->json;
	struct call c = { .parent = NONE };
	const size_t first = p->edges.n;
	int64_t parent = 0;
	bool has_parent = false;

	begin_description(p);
	if (!fathom_json_enter(j, '{')) {
		fathom_json_refuse(j, other);
		return;
	}
	while (fathom_json_next(j, '}') && !p->no_memory) {
		const struct fathom_str key = fathom_json_key(j);

		if (str_is(key, "id")) {
			c.id = fathom_json_number(j);
		} else if (str_is(key, "hitCount")) {
			c.hits = fathom_json_number(j);
		} else if (str_is(key, "parent")) {
			parent = fathom_json_number(j);
			has_parent = true;
		} else if (str_is(key, "callFrame")) {
			read_frame(p);
		} else if (str_is(key, "children") && fathom_json_enter(j, '[')) {
			while (goes_on(p) && fathom_json_next(j, ']')) {
				const struct edge e = { 0, fathom_json_number(j) };

				p->no_memory |= !fathom_array_push(&p->edges, e);
			}
		} else if (!read_description(p, key)) {
			fathom_json_skip(j);
		}
	}
	set_parent(p, first, c.id);
	if (has_parent) {
		const struct edge e = { parent, c.id };

		p->no_memory |= !fathom_array_push(&p->edges, e);
	}
	c.location = location_of(p);
	(void)add_call(p, c);
}

static void read_nodes(struct cpuprofile *p)
{
	struct fathom_json *j = &p->json;

	if (!fathom_json_enter(j, '[')) {
		fathom_json_refuse(j, "has no nodes");
		return;
	}
	while (goes_on(p) && fathom_json_next(j, ']'))
		read_node(p);
}

/*
 * Reads a function of the older form with those that it calls, which stand within it, maybe before
 * what describes it. These have no parent until it is known.
 */
static void read_head(struct cpuprofile *p, unsigned depth)
{
	struct fathom_json *j = &p->json;
	struct call c = { .parent = NONE };
	struct description own = { .line = -1 };
	struct description outer;
	const size_t first = p->calls.n;
	uint32_t number;

	if (depth >= MOST_WITHIN) {
		fathom_json_refuse(j, "has too many functions within each other");
		return;
	}
	if (!fathom_json_enter(j, '{')) {
		fathom_json_skip(j);
		return;
	}
	outer = p->function;
	p->function = own;
	begin_description(p);
	while (fathom_json_next(j, '}') && !p->no_memory && !p->import->err) {
		const struct fathom_str key = fathom_json_key(j);

		if (str_is(key, "id"))
			c.id = fathom_json_number(j);
		else if (str_is(key, "hitCount"))
			c.hits = fathom_json_number(j);
		else if (str_is(key, "children") && fathom_json_enter(j, '['))
			while (goes_on(p) && fathom_json_next(j, ']'))
				read_head(p, depth + 1);
		else if (!read_description(p, key))
			fathom_json_skip(j);
	}
	c.location = location_of(p);
	number = add_call(p, c);
	for (size_t i = first; i + 1 < p->calls.n; i++)
		if (p->calls.items[i].parent == NONE)
			p->calls.items[i].parent = number;
	fathom_array_free(&p->function.name);
	fathom_array_free(&p->function.url);
	p->function = outer;
}

/* Reads the file. */
static void read_members(struct cpuprofile *p)
{
	struct fathom_json *j = &p->json;

	if (!fathom_json_enter(j, '{'))
		fathom_json_refuse(j, "is no object");
	while (fathom_json_next(j, '}') && !p->no_memory && !p->import->err) {
		const struct fathom_str key = fathom_json_key(j);

		if (str_is(key, "nodes")) {
			read_nodes(p);
		} else if (str_is(key, "head")) {
			p->is_old = true;
			read_head(p, 0);
		} else if (str_is(key, "startTime")) {
			p->began = fathom_json_number(j);
		} else if (str_is(key, "endTime")) {
			p->ended = fathom_json_number(j);
		} else if (str_is(key, "samples")) {
			read_numbers(p, &p->samples);
		} else if (str_is(key, "timeDeltas")) {
			read_numbers(p, &p->deltas);
		} else if (str_is(key, "timestamps")) {
			read_numbers(p, &p->times);
		} else {
			fathom_json_skip(j);
		}
	}
}

/* Returns the number of the function with @id; NONE: there is none. */
static uint32_t call_with(const struct cpuprofile *p, int64_t id)
{
	return fathom_key_map_find(&p->by_id, (uint64_t)id);
}

/* Gives functions their parents. */
static void link_calls(struct cpuprofile *p)
{
	for (size_t i = 0; i < p->edges.n; i++) {
		const uint32_t child = call_with(p, p->edges.items[i].child);
		const uint32_t parent = call_with(p, p->edges.items[i].parent);

		if (child != NONE && parent != child && p->calls.items[child].parent == NONE)
			p->calls.items[child].parent = parent;
	}
}

/* Makes the node of function number @i, and those of its callers. False if they are a loop. */
static bool make_node(struct cpuprofile *p, uint32_t i, uint32_t *ret)
{
	uint32_t node = 0;

	p->path.n = 0;
	for (; i != NONE && p->calls.items[i].node == NONE; i = p->calls.items[i].parent) {
		if (p->path.n > p->calls.n)
			return false;
		p->no_memory |= !fathom_array_push(&p->path, i);
		if (p->no_memory)
			return true;
	}
	if (i != NONE)
		node = p->calls.items[i].node;
	while (p->path.n && !p->import->err) {
		struct call *c = &p->calls.items[p->path.items[--p->path.n]];

		if (c->location != FATHOM_TABLE_NONE)
			node = fathom_import_node(p->import, node, c->location);
		c->node = node;
	}
	*ret = node;
	return true;
}

static fathom_err fail(const struct cpuprofile *p, const char *what, struct fathom_errinfo *reterr)
{
	const struct fathom_cursor *c = &p->json.c;
	const uint8_t *at = cur_ok(c) ? c->p : c->bad;

	return fathom_import_fail(p->import, FATHOM_E_CORRUPT,
				  (uint64_t)(at - p->import->file->bytes.data), what, reterr);
}

/* Writes a sample of function number @i. */
static fathom_err write_sample(struct cpuprofile *p, uint32_t i, uint64_t ns, uint64_t weight,
			       struct fathom_errinfo *reterr)
{
	struct fathom_profile_sample s = { .ns = ns, .weight = weight, .stop = FATHOM_STOP_ENTRY };

	if (!weight)
		return FATHOM_OK;
	if (i != NONE && !make_node(p, i, &s.node))
		return fail(p, "has functions that call each other in a circle", reterr);
	if (p->no_memory)
		return fathom_fail_memory(reterr);
	FATHOM_TRY(fathom_import_check(p->import, reterr));
	fathom_profile_write_sample(&p->import->writer, &s);
	return FATHOM_OK;
}

/* Returns @number, at most @most above or below 0. */
static int64_t limited(int64_t number, int64_t most)
{
	return number > most ? most : number < -most ? -most : number;
}

/* Makes times of the deltas: below 0, they are of samples that V8 has taken before others. */
static void make_times(struct cpuprofile *p)
{
	const int64_t most = INT64_MAX >> 2;
	int64_t time = limited(p->began, most);
	int64_t latest = time;

	for (size_t i = 0; i < p->deltas.n && !p->no_memory; i++) {
		time = limited(time + limited(p->deltas.items[i], most), most);
		latest = time > latest ? time : latest;
		p->no_memory |= !fathom_array_push(&p->times, latest);
	}
}

/* Returns how many ns are between the times @from and @to. */
static uint64_t between(int64_t from, int64_t to)
{
	/* Years of it are none of a profile. */
	return to > from && (uint64_t)to - (uint64_t)from < INT64_MAX / 100000
		       ? ((uint64_t)to - (uint64_t)from) * 1000
		       : 0;
}

static fathom_err write_samples(struct cpuprofile *p, struct fathom_errinfo *reterr)
{
	size_t n;

	if (!p->times.n)
		make_times(p);
	if (p->no_memory)
		return fathom_fail_memory(reterr);
	if (p->times.n < p->samples.n)
		return fail(p, "has samples without a time: fewer timeDeltas or timestamps",
			    reterr);
	n = p->samples.n;
	/* The older form has them in seconds. */
	if (n && (p->is_old || p->began > p->times.items[0]))
		p->began = p->times.items[0];
	if (n && p->is_old)
		p->ended = p->times.items[n - 1];
	for (size_t i = 0; i < n; i++) {
		const int64_t time = p->times.items[i];
		const int64_t next = i + 1 < n ? p->times.items[i + 1] : p->ended;

		FATHOM_TRY(write_sample(p, call_with(p, p->samples.items[i]),
					between(p->began, time), between(time, next), reterr));
	}
	return FATHOM_OK;
}

/* Writes the hits of the functions, of a profile without samples. */
static fathom_err write_hits(struct cpuprofile *p, struct fathom_errinfo *reterr)
{
	for (size_t i = 0; i < p->calls.n; i++)
		if (p->calls.items[i].hits > 0)
			FATHOM_TRY(write_sample(p, (uint32_t)i, 0, (uint64_t)p->calls.items[i].hits,
						reterr));
	return FATHOM_OK;
}

static fathom_err write_profile(struct cpuprofile *p, struct fathom_errinfo *reterr)
{
	const struct fathom_profile_thread t = { .pid = 1, .tid = 1, .name = "javascript" };
	const bool has_times = p->samples.n && (p->deltas.n || p->times.n);
	fathom_err err;

	fathom_import_about(p->import, FATHOM_ABOUT_METHOD, fathom_import_str("cpuprofile"));
	fathom_import_about(p->import, FATHOM_ABOUT_UNIT,
			    fathom_import_str(has_times ? "ns" : "samples"));
	(void)fathom_profile_write_thread(&p->import->writer, &t, UINT32_MAX);
	link_calls(p);
	err = has_times ? write_samples(p, reterr) : write_hits(p, reterr);
	if (!err)
		fathom_import_end(p->import, between(p->began, p->ended));
	return err;
}

static void deinit(struct cpuprofile *p)
{
	fathom_json_deinit(&p->json);
	fathom_array_free(&p->calls);
	fathom_array_free(&p->edges);
	fathom_key_map_deinit(&p->by_id);
	fathom_array_free(&p->samples);
	fathom_array_free(&p->deltas);
	fathom_array_free(&p->times);
	fathom_array_free(&p->path);
	fathom_array_free(&p->function.name);
	fathom_array_free(&p->function.url);
}

fathom_err fathom_import_cpuprofile(struct fathom_import *i, struct fathom_errinfo *reterr)
{
	struct cpuprofile p = { .import = i };
	fathom_err err;

	fathom_json_init(&p.json, i->file->bytes);
	read_members(&p);
	if (p.no_memory || p.json.no_memory)
		err = fathom_fail_memory(reterr);
	else if (p.json.wrong)
		err = fail(&p, p.json.wrong, reterr);
	else
		err = fathom_import_check(i, reterr);
	if (!err && !p.has_names)
		err = fail(&p, other, reterr);
	if (!err)
		err = write_profile(&p, reterr);
	deinit(&p);
	return err;
}
