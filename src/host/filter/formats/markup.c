/* SPDX-License-Identifier: MIT */
/*
 * LLVM's symbolizer markup (llvm/docs/SymbolizerMarkupFormat.rst), as sanitizers and Fuchsia print
 * it:
 *
 *	{{{reset}}}
 *	{{{module:2:libfoo.so:elf:17edc67776b6fc50b0e4a2adfd9d8f14a350f027}}}
 *	{{{mmap:0x7f036ed84000:0x1821:load:2:rx:0x1000}}}
 *	{{{bt:0:0x7f036ed847db}}}  {{{bt:1:0x7f036ed84800:ra}}}  {{{pc:0x7f036ed847db}}}
 *
 * Numbers are live; the mapping tells the stated address. Where neither ":ra" nor ":pc" says what a
 * frame's number is, the first one is exact; others are return addresses, but lowered already in
 * reports of sanitizers: the file's code tells. Not handled: symbol, and colours.
 */
#include "host/filter/formats.h"

/* Modules and mappings of one process that are kept; with more, it has no names until a reset. */
#define MAX_MODULES 4096
#define MAX_MMAPS   1024

/* Index of no module. */
#define NO_MODULE SIZE_MAX

/* Takes a decimal number, or one with 0x. */
static bool take_number(struct fathom_log_line *l, uint64_t *ret)
{
	uint32_t decimal;

	if (fathom_line_take_0x(l, ret))
		return true;
	if (!fathom_line_take_decimal(l, &decimal))
		return false;
	*ret = decimal;
	return true;
}

/* Takes the field up to the next colon, or to the end of the element, and that colon. */
static struct fathom_str take_field(struct fathom_log_line *l)
{
	const char *start = l->at;

	while (l->at < l->end && *l->at != ':')
		l->at++;
	if (l->at == l->end)
		return fathom_log_text(start, l->end);
	return fathom_log_text(start, l->at++);
}

/* Forgets the process before; what numbers point to stays until the next lines. */
static void reset(struct fathom_log_markup *m)
{
	m->modules.n = 0;
	m->mmaps.n = 0;
	m->is_full = false;
}

/* Reads "ID:NAME:elf:BUILD-ID". */
static void read_module(struct fathom_log_scan *s, struct fathom_log_markup *m,
			struct fathom_log_line l)
{
	struct fathom_log_markup_module module;
	struct fathom_str name;
	struct fathom_str type;
	char *own;
	char *own_id;

	if (!take_number(&l, &module.id) || !fathom_line_take(&l, ":"))
		return;
	name = take_field(&l);
	type = take_field(&l);
	module.build_id = take_field(&l);
	m->is_full |= m->modules.n == MAX_MODULES;
	if (type.size != 3 || memcmp(type.data, "elf", 3) != 0 || m->is_full)
		return;
	own = fathom_arena_strdup(&m->texts, name);
	own_id = fathom_arena_strdup(&m->texts, module.build_id);
	m->n_texts++;
	module.name = (struct fathom_str){ own, name.size };
	module.build_id.data = own_id;
	if (!own || !own_id || !fathom_array_push(&m->modules, module))
		s->failed = true;
}

/* Reads "START:SIZE:load:MODULE:FLAGS:STATED". */
static void read_mmap(struct fathom_log_scan *s, struct fathom_log_markup *m,
		      struct fathom_log_line l)
{
	struct fathom_log_markup_mmap map;
	uint64_t id;

	if (!take_number(&l, &map.start) || !fathom_line_take(&l, ":") ||
	    !take_number(&l, &map.size) || !fathom_line_take(&l, ":load:") ||
	    !take_number(&l, &id) || !fathom_line_take(&l, ":"))
		return;
	(void)take_field(&l);
	m->is_full |= m->mmaps.n == MAX_MMAPS;
	if (!take_number(&l, &map.stated) || m->is_full)
		return;
	for (map.module = m->modules.n; map.module > 0; map.module--)
		if (m->modules.items[map.module - 1].id == id)
			break;
	/* One of no module that is known still stands in the place of those before. */
	map.module--;
	if (!fathom_array_push(&m->mmaps, map))
		s->failed = true;
}

/* Adds the number at @l->at, which "ra" or "pc" may follow. */
static void add_number(struct fathom_log_scan *s, const struct fathom_log_markup *m,
		       struct fathom_log_line l, bool is_first)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_MAPPED, .at = l.at };

	if (!fathom_line_take_0x(&l, &n.value))
		return;
	n.size = (size_t)(l.at - n.at);
	n.kind = is_first ? FATHOM_LOG_EXACT : FATHOM_LOG_RETURN;
	if (fathom_line_take(&l, ":ra"))
		n.kind = FATHOM_LOG_RETURN;
	else if (fathom_line_take(&l, ":pc"))
		n.kind = FATHOM_LOG_EXACT;
	else
		n.is_doubtful = !is_first;
	for (size_t i = m->is_full ? 0 : m->mmaps.n; i > 0; i--) {
		const struct fathom_log_markup_mmap *map = &m->mmaps.items[i - 1];

		if (n.value - map->start >= map->size)
			continue;
		if (map->module == NO_MODULE)
			return;
		n.raised = map->stated - map->start;
		n.module = m->modules.items[map->module].name;
		n.build_id = m->modules.items[map->module].build_id;
		fathom_log_add(s, &n);
		return;
	}
}

/* Returns the line's process; of too many, the one that was begun first is forgotten for it. */
static struct fathom_log_markup *find_process(struct fathom_log_scan *s)
{
	const uint64_t process = fathom_log_process(s);

	for (size_t i = 0; i < s->n_markups; i++)
		if (s->markups[i].process == process)
			return &s->markups[i];
	if (s->n_markups < FATHOM_LOG_PROCESSES)
		s->last_markup = s->n_markups++;
	else
		s->last_markup = (s->last_markup + 1) % FATHOM_LOG_PROCESSES;
	reset(&s->markups[s->last_markup]);
	s->markups[s->last_markup].process = process;
	return &s->markups[s->last_markup];
}

/* Reads an element of @m, without its braces. */
static void read_element(struct fathom_log_scan *s, struct fathom_log_markup *m,
			 struct fathom_log_line l)
{
	uint32_t number;

	if (fathom_line_take(&l, "module:"))
		read_module(s, m, l);
	else if (fathom_line_take(&l, "mmap:"))
		read_mmap(s, m, l);
	else if (fathom_line_take(&l, "pc:") || fathom_line_take(&l, "data:"))
		add_number(s, m, l, true);
	else if (fathom_line_take(&l, "bt:") && fathom_line_take_decimal(&l, &number) &&
		 fathom_line_take(&l, ":"))
		add_number(s, m, l, number == 0);
	else if (fathom_line_take(&l, "reset") && l.at == l.end)
		reset(m);
}

bool fathom_log_read_markup(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_markup *m = NULL;

	while (fathom_line_find(&line, "{{{")) {
		struct fathom_log_line element;

		if (!m)
			m = find_process(s);
		line.at += strlen("{{{");
		element = line;
		if (!fathom_line_find(&line, "}}}"))
			break;
		element.end = line.at;
		read_element(s, m, element);
	}
	return m != NULL;
}
