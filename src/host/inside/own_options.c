/* SPDX-License-Identifier: MIT */
#include "host/inside/own_options.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/context.h"

/* The most events that can be kept, as the command has it. */
#define MOST_KEPT (1u << 24)

/* Cuts the next word off *@text; NULL at its end. Between two ' spaces belong to it. */
static char *next_word(char **text)
{
	char *from = *text;
	char *word;
	char *to;
	bool is_quoted = false;

	while (*from == ' ')
		from++;
	if (!*from)
		return NULL;
	word = to = from;
	for (; *from && (is_quoted || *from != ' '); from++) {
		if (*from == '\'')
			is_quoted = !is_quoted;
		else
			*to++ = *from;
	}
	*text = *from ? from + 1 : from;
	*to = '\0';
	return word;
}

/* Returns the place of @word among @n @words; @n if it is none. */
static size_t find(const char *const *words, size_t n, const char *word)
{
	size_t i = 0;

	while (i < n && strcmp(words[i], word))
		i++;
	return i;
}

#define FIND(words, word) find(words, sizeof(words) / sizeof *(words), word)

static bool take_clock(struct fathom_own_options *o, const char *word)
{
	static const char *const words[] = { "full", "sparse", "none" };

	o->trace.clock = (uint32_t)FIND(words, word);
	return o->trace.clock <= FATHOM_TRACE_CLOCK_NONE;
}

static bool take_calls(struct fathom_own_options *o, const char *word)
{
	static const char *const words[] = { "auto", "always", "never" };
	static const uint32_t flags[] = { 0, FATHOM_TRACE_CALLS, FATHOM_TRACE_NO_CALLS };
	const size_t i = FIND(words, word);

	if (i < sizeof flags / sizeof *flags)
		o->trace.flags |= flags[i];
	return i < sizeof flags / sizeof *flags;
}

static bool take_export(struct fathom_own_options *o, const char *word)
{
	static const char *const words[] = { "perfetto", "chrome", "collapsed", "dot" };
	const size_t i = FIND(words, word);

	o->format = (enum fathom_trace_format)(FATHOM_TRACE_PERFETTO + i);
	return i < sizeof words / sizeof *words;
}

static bool take_number(const char *word, uint64_t *ret)
{
	char *end;

	*ret = strtoull(word, &end, 10);
	return *word >= '0' && *word <= '9' && !*end && *ret && *ret <= UINT32_MAX;
}

static bool take_depth(struct fathom_own_options *o, const char *word)
{
	uint64_t n;

	if (!take_number(word, &n))
		return false;
	o->trace.depth = (uint32_t)n;
	return true;
}

static bool take_max_rate(struct fathom_own_options *o, const char *word)
{
	return take_number(word, &o->trace.max_rate);
}

static bool take_last(struct fathom_own_options *o, const char *word)
{
	uint64_t n;

	if (!take_number(word, &n) || n > MOST_KEPT)
		return false;
	o->last = (uint32_t)n;
	return true;
}

static bool take_log(struct fathom_own_options *o, const char *word)
{
	o->log = word;
	return true;
}

static bool take_file(struct fathom_own_options *o, const char *word)
{
	o->log = word;
	if (!o->format)
		o->format = FATHOM_TRACE_FILE;
	return true;
}

static bool take_only(struct fathom_own_options *o, const char *word)
{
	return fathom_array_push(&o->only, word);
}

static bool take_under(struct fathom_own_options *o, const char *word)
{
	return fathom_array_push(&o->under, word);
}

static bool take_not(struct fathom_own_options *o, const char *word)
{
	return fathom_array_push(&o->except, word);
}

static bool take_inject(struct fathom_own_options *o, const char *word)
{
	o->has_syscalls = true;
	return fathom_array_push(&o->inject, word);
}

static bool take_strings(struct fathom_own_options *o, const char *word)
{
	uint64_t n;

	if (!take_number(word, &n))
		return false;
	o->syscalls.string_limit = (uint32_t)n;
	return true;
}

static bool take_way(struct fathom_own_options *o, const char *word)
{
	static const char *const words[] = { "ptrace", "dispatch", "rewrite" };
	static const uint32_t ways[] = { FATHOM_SYSCALL_BY_PTRACE, FATHOM_SYSCALL_BY_DISPATCH,
					 FATHOM_SYSCALL_BY_REWRITING };
	const size_t i = FIND(words, word);

	if (i < sizeof ways / sizeof *ways)
		o->syscalls.way = ways[i];
	return i < sizeof ways / sizeof *ways;
}

static bool take_at(struct fathom_own_options *o, const char *word)
{
	static const char *const words[] = { "start", "stop", "stack", "dump" };
	char *colon = strrchr(word, ':');
	const size_t i = colon ? FIND(words, colon + 1) : 0;
	struct fathom_trace_at at = { .query = word, .actions = 1u << i };

	if (!colon || colon == word || i == sizeof words / sizeof *words)
		return false;
	*colon = '\0';
	return fathom_array_push(&o->at, at);
}

/* Options with a word behind them. */
static const struct {
	const char *name;
	bool (*take)(struct fathom_own_options *o, const char *word);
} takers[] = {
	{ "--log", take_log },           { "-o", take_file },
	{ "--export", take_export },     { "--only", take_only },
	{ "--under", take_under },       { "--not", take_not },
	{ "--depth", take_depth },       { "--at", take_at },
	{ "--calls", take_calls },       { "--clock", take_clock },
	{ "--max-rate", take_max_rate }, { "--last", take_last },
	{ "--inject", take_inject },     { "--string-limit", take_strings },
	{ "--way", take_way },
};

/* Options that stand alone. */
static const struct {
	const char *name;
	uint32_t flags;
	uint32_t syscalls;               /* FATHOM_SYSCALLS_ */
	enum fathom_trace_format format; /* 0: none */
	bool is_json;
	bool counts;
} flags[] = {
	{ .name = "--exits", .flags = FATHOM_TRACE_EXITS },
	{ .name = "--lossy", .flags = FATHOM_TRACE_LOSSY },
	{ .name = "--no-children", .flags = FATHOM_TRACE_NO_CHILDREN },
	{ .name = "--no-fold", .flags = FATHOM_TRACE_NO_FOLD },
	{ .name = "--scopes", .flags = FATHOM_TRACE_SCOPES },
	{ .name = "--no-functions", .syscalls = FATHOM_SYSCALLS_ONLY },
	{ .name = "--stacks", .syscalls = FATHOM_SYSCALLS_STACKS },
	{ .name = "--json", .is_json = true },
	{ .name = "--tree", .format = FATHOM_TRACE_TREE },
	{ .name = "--count", .counts = true },
	{ .name = "-c", .counts = true },
};

/* Returns whether @given is @name, alone or with =. *@ret_word: what stands behind =, else NULL. */
static bool is_option(const char *name, char *given, char **ret_word)
{
	const size_t length = strlen(name);

	if (strncmp(given, name, length))
		return false;
	*ret_word = given[length] == '=' && given[1] == '-' ? given + length + 1 : NULL;
	return !given[length] || *ret_word;
}

/* Takes option @name, whose word is behind = or next in *@text; returns NULL, or what is wrong. */
static const char *take(struct fathom_own_options *o, char *name, char **text)
{
	char *word;

	if (is_option("--syscalls", name, &word)) {
		o->has_syscalls = true;
		o->syscalls.set = word;
		return NULL;
	}
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (strcmp(flags[i].name, name))
			continue;
		o->trace.flags |= flags[i].flags;
		o->syscalls.flags |= flags[i].syscalls;
		o->has_syscalls |= flags[i].syscalls == FATHOM_SYSCALLS_STACKS;
		o->is_json |= flags[i].is_json;
		o->counts |= flags[i].counts;
		if (flags[i].format)
			o->format = flags[i].format;
		return NULL;
	}
	for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
		if (!is_option(takers[i].name, name, &word))
			continue;
		if (!word)
			word = next_word(text);
		if (!word)
			return "an option of a trace lacks its word";
		return takers[i].take(o, word) ? NULL : "an option of a trace has a wrong word";
	}
	return "no such option of a trace (fathom_trace(3))";
}

/* Returns the format, which no option has named. */
static enum fathom_trace_format default_format(const struct fathom_own_options *o)
{
	if (o->counts)
		return o->is_json ? FATHOM_TRACE_COUNTS_JSON : FATHOM_TRACE_COUNTS;
	return o->is_json ? FATHOM_TRACE_JSON : FATHOM_TRACE_TEXT;
}

/* Returns how events are kept: by the rings, where nothing else is to be done at calls. */
static uint32_t kept_flags(const struct fathom_own_options *o)
{
	if (o->last > FATHOM_TRACE_KEPT || o->at.n || o->under.n || o->trace.max_rate)
		return FATHOM_TRACE_LOSSY;
	return FATHOM_TRACE_LOSSY | FATHOM_TRACE_LATEST;
}

static void complete(struct fathom_own_options *o)
{
	struct fathom_trace_options *t = &o->trace;

	t->size = sizeof *t;
	t->flags |= FATHOM_TRACE_HOLD_ENDS;
	if (o->last)
		t->flags |= kept_flags(o);
	/* Each with its time, where lines do not say how many there were. */
	if (o->format)
		t->flags |= FATHOM_TRACE_NO_FOLD;
	else
		o->format = default_format(o);
	if (o->format == FATHOM_TRACE_TREE && o->is_json)
		o->format = FATHOM_TRACE_TREE_JSON;
	t->only = o->only.items;
	t->n_only = o->only.n;
	t->under = o->under.items;
	t->n_under = o->under.n;
	t->except = o->except.items;
	t->n_except = o->except.n;
	t->at = o->at.items;
	t->n_at = o->at.n;
	o->syscalls.inject = o->inject.items;
	o->syscalls.n_inject = o->inject.n;
	t->syscalls = o->has_syscalls ? &o->syscalls : NULL;
}

/* Takes the options of @rest; returns NULL, or what is wrong. */
static const char *take_all(struct fathom_own_options *o, char *rest)
{
	const char *why = NULL;
	char *word;

	while (!why && (word = next_word(&rest)))
		why = take(o, word, &rest);
	if (!why && o->syscalls.flags & FATHOM_SYSCALLS_ONLY && !o->has_syscalls)
		return "--no-functions leaves nothing without --syscalls";
	if (!why && o->counts && o->format)
		return "-c counts, and another option wants a file or a tree";
	return why;
}

fathom_err fathom_own_options_read(const char *text, struct fathom_own_options *o,
				   struct fathom_errinfo *reterr)
{
	const char *why;

	*o = (struct fathom_own_options){
		.text = strdup(text ? text : ""),
		.syscalls = { .size = sizeof o->syscalls,
			      .string_limit = FATHOM_SYSCALLS_STRING_LIMIT },
	};
	if (!o->text)
		return fathom_fail_memory(reterr);
	why = take_all(o, o->text);
	if (why) {
		fathom_own_options_deinit(o);
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, why);
	}
	complete(o);
	return FATHOM_OK;
}

void fathom_own_options_deinit(struct fathom_own_options *o)
{
	fathom_array_free(&o->only);
	fathom_array_free(&o->under);
	fathom_array_free(&o->except);
	fathom_array_free(&o->inject);
	fathom_array_free(&o->at);
	free(o->text);
	*o = (struct fathom_own_options){ .text = NULL };
}
