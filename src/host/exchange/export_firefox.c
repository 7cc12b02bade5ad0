/* SPDX-License-Identifier: MIT */
/*
 * Profiles of the Firefox Profiler: JSON, the "processed profile format" of version 47
 * (docs-developer/CHANGELOG-formats.md of https://github.com/firefox-devtools/profiler). Viewers
 * upgrade older versions, and refuse newer ones than theirs. A thread has tables of its own, in
 * which rows of one table refer to rows of others by their numbers; a table is written column by
 * column.
 *
 * Waits are intervals of the marker chart, with their stacks, whatever time is asked for; and
 * samples, if it is theirs. Addresses are those that files state. The format has no place for
 * cgroups.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/path.h"
#include "host/events/escape.h"
#include "host/exchange/timed_samples.h"
#include "safe/base/error.h"

#define VERSION 47
/* Of what Firefox itself writes, which says nothing here. */
#define GECKO_VERSION 27

/* ResourceTable.type */
enum { RESOURCE_UNKNOWN = 0, RESOURCE_LIBRARY = 1 };

/* meta.categories */
enum {
	CATEGORY_OTHER,
	CATEGORY_USER,
	CATEGORY_KERNEL,
	CATEGORY_JIT,
	CATEGORY_WAITING,
	CATEGORY_SCRIPT
};

static const char categories[] =
	"[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"JIT\",\"color\":\"green\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"Waiting\",\"color\":\"lightblue\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"Script\",\"color\":\"magenta\",\"subcategories\":[\"Other\"]}]";

static const char marker_schema[] =
	"[{\"name\":\"wait\",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],"
	"\"tooltipLabel\":\"{marker.name}\",\"tableLabel\":\"{marker.name}\","
	"\"chartLabel\":\"{marker.name}\",\"data\":[{\"key\":\"waited\",\"label\":\"Waited\","
	"\"format\":\"nanoseconds\"}]}]";

/* Rows of a table of the thread that is written, which stand for things with other numbers. */
struct numbering {
	struct fathom_key_map numbers;
	struct fathom_u32_array things; /* by number */
};

struct firefox {
	struct fathom_trace_writer w;
	struct fathom_report_rows rows;
	struct fathom_frame_stacks stacks;
	struct fathom_timed_samples samples;
	uint32_t *threads;             /* by row: the first thread of the profile that it is */
	uint32_t *libs;                /* by module: its number among libs; FATHOM_NONE: none */
	uint32_t *modules;             /* by row of a function: its module; FATHOM_NONE: none */
	uint32_t *symbols;             /* by row of a function: a location that its symbol names */
	const char **files;            /* by row of a function, or NULL */
	struct fathom_name_table text; /* strings of all threads */
	struct fathom_bytes_array name;
	struct fathom_u32_array walked;
	/* Of the thread that is written. */
	struct numbering stack_table; /* of stacks */
	struct numbering frames;      /* of frames */
	struct numbering functions;   /* of rows */
	struct numbering natives;     /* of rows */
	struct numbering resources;   /* of modules */
	struct numbering strings;     /* of text */
	bool is_time;                 /* weights are nanoseconds */
	bool has_cpu;                 /* so are those of samples on a processor */
};

static void put(struct firefox *p, const char *text)
{
	fathom_writer_str(&p->w, text);
}

static void put_text(struct firefox *p, const char *key, const char *text)
{
	put(p, key);
	fathom_writer_json(&p->w, text);
}

static void put_number(struct firefox *p, const char *key, uint64_t value)
{
	put(p, key);
	fathom_writer_dec(&p->w, value);
}

/* Writes @ns in milliseconds. */
static void put_ms(struct firefox *p, const char *key, uint64_t ns)
{
	char decimals[16];
	size_t n;

	put_number(p, key, ns / 1000000);
	n = (size_t)snprintf(decimals, sizeof decimals, ".%06" PRIu64, ns % 1000000);
	while (n && (decimals[n - 1] == '0' || decimals[n - 1] == '.'))
		n--;
	fathom_writer_bytes(&p->w, decimals, n);
}

/* Returns the number of @thing in @n, a new one if it has none. */
static uint32_t number_of(struct firefox *p, struct numbering *n, uint32_t thing)
{
	uint32_t *number = fathom_key_map_at(&n->numbers, thing);

	if (!number) {
		p->w.no_memory = true;
		return 0;
	}
	if (*number == FATHOM_KEY_NEW) {
		*number = (uint32_t)n->things.n;
		p->w.no_memory |= !fathom_array_push(&n->things, thing);
	}
	return *number;
}

static void clear(struct numbering *n)
{
	fathom_key_map_deinit(&n->numbers);
	fathom_array_free(&n->things);
	*n = (struct numbering){ .things = { .n = 0 } };
}

static uint32_t string(struct firefox *p, const char *text)
{
	const uint32_t number = fathom_name_table_add(&p->text, text);

	if (number == FATHOM_KEY_NEW) {
		p->w.no_memory = true;
		return 0;
	}
	return number_of(p, &p->strings, number);
}

static bool goes_on(struct firefox *p)
{
	p->stacks.is_cancelled |= !fathom_keeps_pace(&p->stacks.pace);
	fathom_writer_pass_on(&p->w);
	return !p->stacks.is_cancelled && !p->w.no_memory && !p->w.has_failed;
}

/* Returns the number of @stack in the thread's table: callers come before what they call. */
static uint32_t stack_number(struct firefox *p, uint32_t stack)
{
	const uint32_t asked = stack;

	p->walked.n = 0;
	for (; stack && !p->w.no_memory; stack = p->stacks.items[stack].caller) {
		uint32_t *number = fathom_key_map_at(&p->stack_table.numbers, stack);

		if (number && *number != FATHOM_KEY_NEW)
			break;
		p->w.no_memory |= !number || !fathom_array_push(&p->walked, stack);
	}
	while (p->walked.n && !p->w.no_memory)
		(void)number_of(p, &p->stack_table, p->walked.items[--p->walked.n]);
	return number_of(p, &p->stack_table, asked);
}

/* Writes one cell of a column. */
typedef void put_cell(struct firefox *p, uint32_t thing);

static void put_column(struct firefox *p, const char *name, const struct numbering *n,
		       put_cell *cell)
{
	put(p, "\"");
	put(p, name);
	put(p, "\":[");
	for (size_t i = 0; i < n->things.n && goes_on(p); i++) {
		put(p, i ? "," : "");
		cell(p, n->things.items[i]);
	}
	put(p, "],\n");
}

static void put_null(struct firefox *p, uint32_t thing)
{
	(void)thing;
	put(p, "null");
}

static void put_false(struct firefox *p, uint32_t thing)
{
	(void)thing;
	put(p, "false");
}

static void put_zero(struct firefox *p, uint32_t thing)
{
	(void)thing;
	put(p, "0");
}

static void end_table(struct firefox *p, size_t n, const char *end)
{
	put_number(p, "\"length\":", n);
	put(p, end);
}

/* The table of stacks. */

static void put_stack_frame(struct firefox *p, uint32_t stack)
{
	put_number(p, "", number_of(p, &p->frames, p->stacks.items[stack].frame));
}

static void put_stack_prefix(struct firefox *p, uint32_t stack)
{
	const uint32_t caller = p->stacks.items[stack].caller;

	if (caller)
		put_number(p, "", number_of(p, &p->stack_table, caller));
	else
		put(p, "null");
}

static unsigned category_of(const struct firefox *p, const struct fathom_profile_location *l)
{
	if (!l || l->module == UINT32_MAX)
		return CATEGORY_OTHER;
	switch (p->rows.profile->modules[l->module].kind) {
	case FATHOM_PROFILE_MODULE_KERNEL:
		return CATEGORY_KERNEL;
	case FATHOM_PROFILE_MODULE_JIT:
		return CATEGORY_JIT;
	case FATHOM_PROFILE_MODULE_WAITS:
		return CATEGORY_WAITING;
	case FATHOM_PROFILE_MODULE_SCRIPT:
		return CATEGORY_SCRIPT;
	default:
		return CATEGORY_USER;
	}
}

static void put_frame_category(struct firefox *p, uint32_t frame)
{
	put_number(p, "", category_of(p, fathom_frame_facts_of(&p->rows, frame).location));
}

static void put_stack_category(struct firefox *p, uint32_t stack)
{
	put_frame_category(p, p->stacks.items[stack].frame);
}

static void put_stack_table(struct firefox *p)
{
	put(p, "\"stackTable\":{");
	put_column(p, "frame", &p->stack_table, put_stack_frame);
	put_column(p, "prefix", &p->stack_table, put_stack_prefix);
	put_column(p, "category", &p->stack_table, put_stack_category);
	put_column(p, "subcategory", &p->stack_table, put_zero);
	end_table(p, p->stack_table.things.n, "},\n");
}

/* The table of frames. */

/* Returns whether @l has an address that its file states. */
static bool has_address(const struct firefox *p, const struct fathom_profile_location *l)
{
	return l && l->module != UINT32_MAX && p->libs[l->module] != FATHOM_NONE &&
	       p->rows.profile->modules[l->module].kind != FATHOM_PROFILE_MODULE_KERNEL;
}

static void put_address(struct firefox *p, uint32_t frame)
{
	const struct fathom_frame_facts f = fathom_frame_facts_of(&p->rows, frame);

	if (has_address(p, f.location))
		put_number(p, "", fathom_pc_lookup(f.location->pc));
	else
		put(p, "-1");
}

static void put_inline_depth(struct firefox *p, uint32_t frame)
{
	put_number(p, "", fathom_frame_facts_of(&p->rows, frame).inline_depth);
}

/* Writes the function of @frame, of which it notes the module and the file. */
static void put_frame_function(struct firefox *p, uint32_t frame)
{
	const struct fathom_frame_facts f = fathom_frame_facts_of(&p->rows, frame);

	if (f.location && p->modules[f.row_number] == FATHOM_NONE)
		p->modules[f.row_number] = f.location->module;
	if (f.debug && f.debug->file && !p->files[f.row_number])
		p->files[f.row_number] = f.debug->file;
	put_number(p, "", number_of(p, &p->functions, f.row_number));
}

/* Writes the symbol that @frame is in: the row of the outermost function at its location. */
static void put_frame_symbol(struct firefox *p, uint32_t frame)
{
	const struct fathom_frame_facts f = fathom_frame_facts_of(&p->rows, frame);
	uint32_t row;

	if (!has_address(p, f.location) || !f.location->answer->symbol) {
		put(p, "null");
		return;
	}
	row = p->rows.frames.items[frame + f.inline_depth].row;
	if (p->symbols[row] == FATHOM_NONE)
		p->symbols[row] = (uint32_t)(f.location - p->rows.profile->locations);
	put_number(p, "", number_of(p, &p->natives, row));
}

static void put_count(struct firefox *p, uint64_t value)
{
	if (value)
		put_number(p, "", value);
	else
		put(p, "null");
}

static void put_line(struct firefox *p, uint32_t frame)
{
	const struct fathom_frame_facts f = fathom_frame_facts_of(&p->rows, frame);

	put_count(p, f.debug ? f.debug->line : 0);
}

static void put_frame_column(struct firefox *p, uint32_t frame)
{
	const struct fathom_frame_facts f = fathom_frame_facts_of(&p->rows, frame);

	put_count(p, f.debug ? f.debug->column : 0);
}

static void put_frame_table(struct firefox *p)
{
	put(p, "\"frameTable\":{");
	put_column(p, "address", &p->frames, put_address);
	put_column(p, "inlineDepth", &p->frames, put_inline_depth);
	put_column(p, "category", &p->frames, put_frame_category);
	put_column(p, "subcategory", &p->frames, put_zero);
	put_column(p, "func", &p->frames, put_frame_function);
	put_column(p, "nativeSymbol", &p->frames, put_frame_symbol);
	put_column(p, "innerWindowID", &p->frames, put_null);
	put_column(p, "implementation", &p->frames, put_null);
	put_column(p, "line", &p->frames, put_line);
	put_column(p, "column", &p->frames, put_frame_column);
	end_table(p, p->frames.things.n, "},\n");
}

/* The table of functions. */

static void put_name(struct firefox *p, uint32_t row)
{
	p->name.n = 0;
	p->w.no_memory |= !fathom_frame_spell(&p->name, &p->rows.items[row]);
	if (!p->w.no_memory)
		put_number(p, "", string(p, p->name.items));
}

static void put_resource(struct firefox *p, uint32_t row)
{
	if (p->modules[row] == FATHOM_NONE)
		put(p, "-1");
	else
		put_number(p, "", number_of(p, &p->resources, p->modules[row]));
}

static void put_file(struct firefox *p, uint32_t row)
{
	if (p->files[row])
		put_number(p, "", string(p, p->files[row]));
	else
		put(p, "null");
}

static void put_function_table(struct firefox *p)
{
	put(p, "\"funcTable\":{");
	put_column(p, "name", &p->functions, put_name);
	put_column(p, "isJS", &p->functions, put_false);
	put_column(p, "relevantForJS", &p->functions, put_false);
	put_column(p, "resource", &p->functions, put_resource);
	put_column(p, "fileName", &p->functions, put_file);
	put_column(p, "lineNumber", &p->functions, put_null);
	put_column(p, "columnNumber", &p->functions, put_null);
	end_table(p, p->functions.things.n, "},\n");
}

/* The tables of modules and their symbols. */

static void put_module_name(struct firefox *p, uint32_t module)
{
	const char *path = p->rows.profile->modules[module].path;

	put_number(p, "", string(p, fathom_path_last_part(path)));
}

static void put_module_lib(struct firefox *p, uint32_t module)
{
	if (p->libs[module] == FATHOM_NONE)
		put(p, "null");
	else
		put_number(p, "", p->libs[module]);
}

static void put_module_type(struct firefox *p, uint32_t module)
{
	put_number(p, "", p->libs[module] == FATHOM_NONE ? RESOURCE_UNKNOWN : RESOURCE_LIBRARY);
}

static void put_symbol_lib(struct firefox *p, uint32_t row)
{
	put_number(p, "", p->libs[p->rows.profile->locations[p->symbols[row]].module]);
}

static void put_symbol_address(struct firefox *p, uint32_t row)
{
	const struct fathom_profile_location *l = &p->rows.profile->locations[p->symbols[row]];

	put_number(p, "", l->pc.address - l->answer->offset);
}

static void put_symbol_size(struct firefox *p, uint32_t row)
{
	put_count(p, p->rows.profile->locations[p->symbols[row]].answer->size);
}

static void put_modules(struct firefox *p)
{
	put(p, "\"resourceTable\":{");
	put_column(p, "lib", &p->resources, put_module_lib);
	put_column(p, "name", &p->resources, put_module_name);
	put_column(p, "host", &p->resources, put_null);
	put_column(p, "type", &p->resources, put_module_type);
	end_table(p, p->resources.things.n, "},\n");
	put(p, "\"nativeSymbols\":{");
	put_column(p, "libIndex", &p->natives, put_symbol_lib);
	put_column(p, "address", &p->natives, put_symbol_address);
	put_column(p, "name", &p->natives, put_name);
	put_column(p, "functionSize", &p->natives, put_symbol_size);
	end_table(p, p->natives.things.n, "},\n");
}

/* Samples and markers. */

/* Writes one cell of a column of samples. */
typedef void put_sample_cell(struct firefox *p, const struct fathom_timed_sample *s);

/* Writes a column of the samples from @begin to @end that are asked for, or of the waits. */
static size_t put_samples(struct firefox *p, const char *name, size_t begin, size_t end,
			  bool of_waits, put_sample_cell *cell)
{
	size_t n = 0;

	put(p, "\"");
	put(p, name);
	put(p, "\":[");
	for (size_t i = begin; i < end && goes_on(p); i++) {
		const struct fathom_timed_sample *s = &p->samples.items[i];

		if (of_waits ? !fathom_profile_is_wait(s->part) : !s->is_asked)
			continue;
		put(p, n++ ? "," : "");
		cell(p, s);
	}
	put(p, "],\n");
	return n;
}

static void put_sample_stack(struct firefox *p, const struct fathom_timed_sample *s)
{
	put_number(p, "", stack_number(p, s->stack));
}

static void put_sample_time(struct firefox *p, const struct fathom_timed_sample *s)
{
	put_ms(p, "", s->ns);
}

static void put_sample_weight(struct firefox *p, const struct fathom_timed_sample *s)
{
	if (p->is_time)
		put_ms(p, "", s->weight);
	else
		put_number(p, "", s->weight);
}

static void put_sample_cpu(struct firefox *p, const struct fathom_timed_sample *s)
{
	put_number(p, "", fathom_profile_is_wait(s->part) ? 0 : s->weight);
}

static void put_sample_table(struct firefox *p, size_t begin, size_t end)
{
	size_t n;

	put(p, "\"samples\":{");
	n = put_samples(p, "stack", begin, end, false, put_sample_stack);
	(void)put_samples(p, "time", begin, end, false, put_sample_time);
	(void)put_samples(p, "weight", begin, end, false, put_sample_weight);
	if (p->has_cpu)
		(void)put_samples(p, "threadCPUDelta", begin, end, false, put_sample_cpu);
	put(p, p->is_time ? "\"weightType\":\"tracing-ms\"," : "\"weightType\":\"samples\",");
	end_table(p, n, "},\n");
}

static uint64_t start_of(const struct fathom_timed_sample *s)
{
	return s->ns > s->weight ? s->ns - s->weight : 0;
}

static void put_wait_name(struct firefox *p, const struct fathom_timed_sample *s)
{
	const struct fathom_profile_sample sample = { .node = s->node, .part = s->part };

	put_number(p, "", string(p, fathom_export_reason(p->rows.profile, &sample)));
}

static void put_wait_start(struct firefox *p, const struct fathom_timed_sample *s)
{
	put_ms(p, "", start_of(s));
}

static void put_wait_phase(struct firefox *p, const struct fathom_timed_sample *s)
{
	(void)s;
	put(p, "1");
}

static void put_wait_category(struct firefox *p, const struct fathom_timed_sample *s)
{
	(void)s;
	put_number(p, "", CATEGORY_WAITING);
}

static void put_wait_data(struct firefox *p, const struct fathom_timed_sample *s)
{
	put_number(p, "{\"type\":\"wait\",\"waited\":", s->weight);
	put_ms(p, ",\"cause\":{\"time\":", start_of(s));
	put_number(p, ",\"stack\":", stack_number(p, s->stack));
	put(p, "}}");
}

static void put_markers(struct firefox *p, size_t begin, size_t end)
{
	size_t n;

	put(p, "\"markers\":{");
	n = put_samples(p, "name", begin, end, true, put_wait_name);
	(void)put_samples(p, "startTime", begin, end, true, put_wait_start);
	(void)put_samples(p, "endTime", begin, end, true, put_sample_time);
	(void)put_samples(p, "phase", begin, end, true, put_wait_phase);
	(void)put_samples(p, "category", begin, end, true, put_wait_category);
	(void)put_samples(p, "data", begin, end, true, put_wait_data);
	end_table(p, n, "},\n");
}

/* Writes the strings that the thread has. */
static void put_strings(struct firefox *p)
{
	put(p, "\"stringArray\":[");
	for (size_t i = 0; i < p->strings.things.n && goes_on(p); i++)
		put_text(p, i ? "," : "", p->text.items[p->strings.things.items[i]].text);
	put(p, "]}");
}

static void put_thread_head(struct firefox *p, const struct fathom_report_row *row,
			    const struct fathom_profile_thread *t)
{
	char numbers[64];

	put_text(p, "{\"name\":", row->name);
	put_text(p, ",\"processName\":", t->process);
	(void)snprintf(numbers, sizeof numbers, ",\"pid\":\"%" PRId32 "\",\"tid\":\"%" PRId32 "\"",
		       t->pid, t->tid);
	put(p, numbers);
	put(p, t->pid == t->tid ? ",\"isMainThread\":true" : ",\"isMainThread\":false");
	put_ms(p, ",\"registerTime\":", t->ns);
	put_ms(p, ",\"processStartupTime\":", t->ns);
	put(p, ",\"processType\":\"default\",\"processShutdownTime\":null,"
	       "\"unregisterTime\":null,\"pausedRanges\":[],\n");
}

/* Writes the thread whose samples are those from @begin to @end. */
static void put_thread(struct firefox *p, size_t begin, size_t end)
{
	const uint32_t row = p->samples.items[begin].thread;

	put_thread_head(p, &p->rows.items[row], &p->rows.profile->threads[p->threads[row]]);
	put_sample_table(p, begin, end);
	put_markers(p, begin, end);
	put_stack_table(p);
	put_frame_table(p);
	put_function_table(p);
	put_modules(p);
	put_strings(p);
	clear(&p->stack_table);
	clear(&p->frames);
	clear(&p->functions);
	clear(&p->natives);
	clear(&p->resources);
	clear(&p->strings);
}

/*
 * Writes the ids of @m: the build-id, and the one of Breakpad, its first 16 bytes as a GUID (three
 * numbers of 4, 2 and 2 bytes, the lowest byte first, and 8 bytes) with an age of 0.
 */
static void put_ids(struct firefox *p, const struct fathom_profile_module *m)
{
	static const uint8_t places[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	char digits[3];

	put(p, ",\"breakpadId\":\"");
	for (size_t i = 0; i < sizeof places; i++) {
		(void)snprintf(digits, sizeof digits, "%02X",
			       places[i] < m->build_id_size ? m->build_id[places[i]] : 0);
		put(p, digits);
	}
	put(p, m->build_id_size ? "0\",\"codeId\":\"" : "0\",\"codeId\":null}");
	for (uint32_t i = 0; i < m->build_id_size; i++) {
		(void)snprintf(digits, sizeof digits, "%02x", m->build_id[i]);
		put(p, digits);
	}
	put(p, m->build_id_size ? "\"}" : "");
}

static void put_libs(struct firefox *p)
{
	const struct fathom_profile *profile = p->rows.profile;

	put(p, ",\n\"libs\":[");
	for (size_t i = 0; i < profile->n_modules && goes_on(p); i++) {
		const struct fathom_profile_module *m = &profile->modules[i];
		const char *name = fathom_path_last_part(m->path);

		if (p->libs[i] == FATHOM_NONE)
			continue;
		put(p, p->libs[i] ? ",\n" : "");
		put_text(p, "{\"arch\":", profile->info.machine);
		put_text(p, ",\"name\":", name);
		put_text(p, ",\"debugName\":", name);
		put_text(p, ",\"path\":", m->path);
		put_text(p, ",\"debugPath\":", m->path);
		put_ids(p, m);
	}
	put(p, "]");
}

/* Begins a fact about the recording. */
static void put_fact(struct firefox *p, bool *has_facts, const char *label, const char *format)
{
	put_text(p, *has_facts ? ",{\"label\":" : "{\"label\":", label);
	put_text(p, ",\"format\":", format);
	put(p, ",\"value\":");
	*has_facts = true;
}

static void put_fact_text(struct firefox *p, bool *has_facts, const char *label, const char *text)
{
	if (!*text)
		return;
	put_fact(p, has_facts, label, "string");
	put_text(p, "", text);
	put(p, "}");
}

static void put_fact_number(struct firefox *p, bool *has_facts, const char *label, uint64_t value)
{
	if (!value)
		return;
	put_fact(p, has_facts, label, "integer");
	put_number(p, "", value);
	put(p, "}");
}

/* Writes how samples were taken, and what is missing, as the header of a report says it. */
static void put_facts(struct firefox *p)
{
	const struct fathom_profile_info *info = &p->rows.profile->info;
	bool has_facts = false;

	put(p, ",\"extra\":[{\"label\":\"Recording\",\"entries\":[");
	put_fact_text(p, &has_facts, "event", info->event);
	put_fact_text(p, &has_facts, "method", info->method);
	put_fact_number(p, &has_facts, "samples that were lost", info->lost);
	put_fact_number(p, &has_facts, "times that the kernel has held samples back",
			info->throttled);
	if (info->is_kernel_hidden)
		put_fact_text(p, &has_facts, "kernel", "its stacks were not permitted");
	if (!info->is_complete)
		put_fact_text(p, &has_facts, "file", "it ends before the recording did");
	put(p, "]}]");
}

static void put_meta(struct firefox *p)
{
	const struct fathom_profile_info *info = &p->rows.profile->info;

	put_text(p, "{\"meta\":{\"product\":", *info->command ? info->command : "fathom");
	put_number(p, ",\"preprocessedProfileVersion\":", VERSION);
	put_number(p, ",\"version\":", GECKO_VERSION);
	put_ms(p, ",\"interval\":", info->frequency ? 1000000000 / info->frequency : 1000000);
	put_ms(p, ",\"startTime\":", info->started);
	put_text(p, ",\"abi\":", info->machine);
	put(p, ",\"platform\":\"Linux\"");
	p->name.n = 0;
	p->w.no_memory |= !fathom_frame_spell_text(&p->name, "Linux ") ||
			  !fathom_frame_spell_text(&p->name, info->kernel);
	put_text(p, ",\"oscpu\":", p->w.no_memory ? "" : p->name.items);
	put(p, ",\"misc\":\"\",\"toolkit\":\"\",\"debug\":false,\"stackwalk\":1,\"processType\":0,"
	       "\"extensions\":{\"id\":[],\"name\":[],\"baseURL\":[],\"length\":0},"
	       "\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
	       "\"doesNotUseFrameImplementation\":true,\"sourceCodeIsNotOnSearchfox\":true,"
	       "\"importedFrom\":\"fathom\"");
	if (p->has_cpu)
		put(p, ",\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		       "\"threadCPUDelta\":\"ns\"}");
	put_facts(p);
	put(p, ",\n\"categories\":");
	put(p, categories);
	put(p, ",\n\"markerSchema\":");
	put(p, marker_schema);
	put(p, "}");
}

static void put_all(struct firefox *p)
{
	put_meta(p);
	put_libs(p);
	put(p, ",\n\"pages\":[],\n\"threads\":[");
	for (size_t i = 0, end; i < p->samples.n && goes_on(p); i = end) {
		end = fathom_timed_samples_end(&p->samples, i);
		put(p, i ? ",\n" : "\n");
		put_thread(p, i, end);
	}
	put(p, "]}\n");
}

/* Numbers the modules that are files, which have build-ids. */
static void number_libs(struct firefox *p)
{
	const struct fathom_profile *profile = p->rows.profile;
	uint32_t n = 0;

	for (size_t i = 0; i < profile->n_modules; i++) {
		const uint8_t kind = profile->modules[i].kind;

		p->libs[i] = kind == FATHOM_PROFILE_MODULE_FILE ||
					     kind == FATHOM_PROFILE_MODULE_VDSO ||
					     kind == FATHOM_PROFILE_MODULE_KERNEL
				     ? n++
				     : FATHOM_NONE;
	}
}

/* Makes all tables by numbers of the profile and of rows. */
static bool init_tables(struct firefox *p)
{
	const struct fathom_profile *profile = p->rows.profile;
	const size_t n = p->rows.n + 1;

	p->threads = calloc(n, sizeof *p->threads);
	p->modules = malloc(n * sizeof *p->modules);
	p->symbols = malloc(n * sizeof *p->symbols);
	p->files = calloc(n, sizeof *p->files);
	p->libs = calloc(profile->n_modules + 1, sizeof *p->libs);
	if (!p->threads || !p->modules || !p->symbols || !p->files || !p->libs)
		return false;
	for (size_t i = 0; i < n; i++)
		p->modules[i] = p->symbols[i] = FATHOM_NONE;
	for (size_t i = profile->n_threads; i--;)
		p->threads[p->rows.groups[i]] = (uint32_t)i;
	number_libs(p);
	return true;
}

static void deinit(struct firefox *p)
{
	fathom_timed_samples_deinit(&p->samples);
	fathom_name_table_deinit(&p->text);
	fathom_array_free(&p->name);
	fathom_array_free(&p->walked);
	free(p->threads);
	free(p->modules);
	free(p->symbols);
	free(p->files);
	free(p->libs);
}

/* Writes the file from the rows, which are made. */
static fathom_err write_file(void *data, struct fathom_errinfo *reterr)
{
	struct firefox *p = data;
	if (!init_tables(p))
		return fathom_fail_memory(reterr);
	FATHOM_TRY(fathom_timed_samples_init(&p->samples, &p->stacks, true, reterr));
	put_all(p);
	return fathom_frame_stacks_end(&p->stacks, reterr);
}

fathom_err fathom_export_firefox(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	struct firefox p = { .has_cpu = strcmp(e->profile->info.unit, "ns") == 0 };
	fathom_err err;

	p.is_time = e->options->time || p.has_cpu;
	err = fathom_export_threads(e, &p.w, &p.rows, &p.stacks, write_file, &p, reterr);
	deinit(&p);
	return err;
}
