/* SPDX-License-Identifier: MIT */
/* The table of trace options (fathom/trace_options.h). */
#include "fathom/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Finds @word in @words, which end with NULL, and stores its index. */
static bool find_word(const char *const *words, const char *word, uint32_t *ret_i)
{
	for (uint32_t i = 0; words[i]; i++)
		if (!strcmp(words[i], word)) {
			*ret_i = i;
			return true;
		}
	return false;
}

/* Returns whether the name of a file says that it is a page. */
static bool is_page(const char *file)
{
	const char *end = strrchr(file, '.');

	return end && (strcasecmp(end, ".html") == 0 || strcasecmp(end, ".htm") == 0);
}

static fathom_err take_file(struct fathom_trace_settings *s, const char *word)
{
	if (!s->format)
		s->format = is_page(word) ? FATHOM_TRACE_PAGE : FATHOM_TRACE_FILE;
	s->log = word;
	return FATHOM_OK;
}

static fathom_err take_export(struct fathom_trace_settings *s, const char *word)
{
	uint32_t i;

	if (!find_word(WORDS("perfetto", "chrome", "collapsed", "dot", "page"), word, &i))
		return FATHOM_E_ARGUMENT;
	s->format = i < 4 ? FATHOM_TRACE_PERFETTO + i : FATHOM_TRACE_PAGE;
	return FATHOM_OK;
}

static fathom_err take_at(struct fathom_trace_settings *s, const char *word)
{
	struct fathom_trace_options *o = s->options;
	const char *colon = strrchr(word, ':');
	struct fathom_trace_at *grown;
	char *query;
	uint32_t i;

	if (!colon || colon == word ||
	    !find_word(WORDS("start", "stop", "stack", "dump"), colon + 1, &i))
		return FATHOM_E_ARGUMENT;
	grown = realloc((void *)o->at, (o->n_at + 1) * sizeof *grown);
	if (!grown)
		return FATHOM_E_MEMORY;
	o->at = grown;
	query = strndup(word, (size_t)(colon - word));
	if (!query)
		return FATHOM_E_MEMORY;
	grown[o->n_at++] = (struct fathom_trace_at){ .query = query, .actions = 1u << i };
	return FATHOM_OK;
}

static fathom_err take_calls(struct fathom_trace_settings *s, const char *word)
{
	static const uint32_t flags[] = { 0, FATHOM_TRACE_CALLS, FATHOM_TRACE_NO_CALLS };
	uint32_t i;

	if (!find_word(WORDS("auto", "always", "never"), word, &i))
		return FATHOM_E_ARGUMENT;
	s->options->flags |= flags[i];
	return FATHOM_OK;
}

static fathom_err take_method(struct fathom_trace_settings *s, const char *word)
{
	uint32_t i;

	if (!find_word(WORDS("ptrace", "rewrite", "dispatch"), word, &i))
		return FATHOM_E_ARGUMENT;
	/* In the order of enum fathom_syscall_method. */
	s->syscalls->method = FATHOM_SYSCALL_BY_PTRACE + i;
	return FATHOM_OK;
}

static fathom_err take_clock(struct fathom_trace_settings *s, const char *word)
{
	return find_word(WORDS("full", "sparse", "none"), word, &s->options->clock)
		       ? FATHOM_OK
		       : FATHOM_E_ARGUMENT;
}

/* The structs that arguments are stored in. */
enum place { IN_settings, IN_options, IN_syscalls };

/* How an argument is stored in its member. */
enum kind { KIND_NONE, KIND_WORD, KIND_NUMBER, KIND_LONG_NUMBER, KIND_LIST };

/* One option, and where it is stored. */
struct stored_option {
	struct fathom_trace_option shown; /* first */
	enum kind kind;
	enum place place;
	size_t member; /* offset of the member in the struct */
	size_t count;  /* of a list: offset of its number of words */
	fathom_err (*take)(struct fathom_trace_settings *s, const char *word); /* instead */
	uint32_t trace;    /* bits to set in options->flags */
	uint32_t syscalls; /* bits to set in syscalls->flags */
	uint32_t settings; /* bits to set in flags */
	uint32_t format;   /* to set; 0: none */
	bool wants_syscalls;
};

#define STORE(kind_, where, name) \
	.kind = (kind_), .place = IN_##where, .member = offsetof(struct fathom_trace_##where, name)
#define WORD(where, name)   STORE(KIND_WORD, where, name)
#define NUMBER(where, name) STORE(KIND_NUMBER, where, name)
#define LIST(where, name) \
	STORE(KIND_LIST, where, name), .count = offsetof(struct fathom_trace_##where, n_##name)

#define COMMAND FATHOM_TRACE_OPTION_COMMAND
#define SELF    FATHOM_TRACE_OPTION_SELF
#define BOTH    (COMMAND | SELF)

/* In the order of help. */
static const struct stored_option table[] = {
	{ { "log", "FILE", "write to FILE, not to stderr", NULL, 0, 0, BOTH },
	  WORD(settings, log) },
	{ { NULL, "FILE", "write a trace file for --read; FILE.html: a page", NULL, 0, 'o', BOTH },
	  .take = take_file },
	{ { "export", "WORD", "as perfetto, chrome, collapsed, dot or page",
	    "is not perfetto, chrome, collapsed, dot or page", 0, 0, BOTH },
	  .take = take_export },
	{ { "count", NULL, "print how often each function was called", NULL, 0, 'c', BOTH },
	  .settings = FATHOM_TRACE_SETTINGS_COUNTS },
	{ { "tree", NULL, "print how often each path of calls was taken", NULL, 0, 0, BOTH },
	  .format = FATHOM_TRACE_TREE },
	{ { "json", NULL, "print JSON Lines", NULL, 0, 0, SELF },
	  .settings = FATHOM_TRACE_SETTINGS_JSON },
	{ { "last", "N", "the last N calls, if it fails or on SIGUSR1", NULL, 1u << 24, 0, BOTH },
	  NUMBER(settings, last) },
	{ { "at", "QUERY:WORD", "at calls of QUERY: start, stop, stack or dump",
	    "takes QUERY:start, :stop, :stack or :dump", 0, 0, BOTH },
	  .take = take_at },
	{ { "only", "QUERY", "these functions only", NULL, 0, 0, BOTH }, LIST(options, only) },
	{ { "under", "QUERY", "these functions and all that they call", NULL, 0, 0, BOTH },
	  LIST(options, under) },
	{ { "not", "QUERY", "not these functions", NULL, 0, 0, BOTH }, LIST(options, except) },
	{ { "depth", "N", "so many levels of calls only", NULL, UINT32_MAX, 0, BOTH },
	  NUMBER(options, depth) },
	{ { "thread", "TID|NAME", "this thread only, or those of this name", NULL, 0, 0, COMMAND },
	  LIST(settings, threads) },
	{ { "exits", NULL, "returns, too, where they are recorded", NULL, 0, 0, BOTH },
	  .trace = FATHOM_TRACE_EXITS },
	{ { "calls", "WORD", "of libraries: auto, always or never (auto)",
	    "is not auto, always or never", 0, 0, BOTH },
	  .take = take_calls },
	{ { "syscalls", "[=SET]", "system calls, too: all, or open,%network,/^get", NULL, 0, 0,
	    BOTH },
	  WORD(syscalls, set),
	  .wants_syscalls = true },
	{ { "no-functions", NULL, "with --syscalls: these alone", NULL, 0, 0, BOTH },
	  .syscalls = FATHOM_SYSCALLS_ONLY },
	{ { "stacks", NULL, "the stack of each system call, too", NULL, 0, 0, BOTH },
	  .syscalls = FATHOM_SYSCALLS_STACKS,
	  .wants_syscalls = true },
	{ { "inject", "SET:...", "system calls get error=, retval=, delay...", NULL, 0, 0, BOTH },
	  LIST(syscalls, inject),
	  .wants_syscalls = true },
	{ { "path", "PATH", "system calls only that refer to PATH (repeatable)", NULL, 0, 0,
	    COMMAND },
	  LIST(syscalls, paths),
	  .wants_syscalls = true },
	{ { "durations", NULL, "how many nanoseconds system calls took", NULL, 0, 0, COMMAND },
	  .settings = FATHOM_TRACE_SETTINGS_DURATIONS },
	{ { "string-limit", "N", "show N bytes of strings, of system calls (32)", NULL, 1u << 20, 0,
	    BOTH },
	  NUMBER(syscalls, string_limit) },
	{ { "method", "WORD", "capture system calls by ptrace, rewrite, dispatch",
	    "is not ptrace, rewrite or dispatch", 0, 0, BOTH },
	  .take = take_method },
	{ { "way", "WORD", NULL, "is not ptrace, rewrite or dispatch", 0, 0, BOTH },
	  .take = take_method },
	{ { "clock", "WORD", "full, sparse or none (full)", "is not full, sparse or none", 0, 0,
	    BOTH },
	  .take = take_clock },
	{ { "max-rate", "N", "not functions called oftener in a second", NULL, UINT32_MAX, 0,
	    BOTH },
	  STORE(KIND_LONG_NUMBER, options, max_rate) },
	{ { "lossy", NULL, "lose events, but never wait for the log", NULL, 0, 0, BOTH },
	  .trace = FATHOM_TRACE_LOSSY },
	{ { "no-children", NULL, "not what child processes do", NULL, 0, 0, BOTH },
	  .trace = FATHOM_TRACE_NO_CHILDREN },
	{ { "no-fold", NULL, "a line for each call, however often repeated", NULL, 0, 0, BOTH },
	  .trace = FATHOM_TRACE_NO_FOLD },
	{ { "scopes", NULL, "threads in scopes only", NULL, 0, 0, SELF },
	  .trace = FATHOM_TRACE_SCOPES },
};

const struct fathom_trace_option *fathom_trace_option_get(size_t i)
{
	return i < sizeof table / sizeof *table ? &table[i].shown : NULL;
}

/* Reads a number from 1 to @limit. */
static bool read_number(const char *word, uint32_t limit, uint32_t *ret)
{
	char *end;
	const unsigned long long value = strtoull(word, &end, 10);

	*ret = (uint32_t)value;
	return *word >= '0' && *word <= '9' && !*end && value && value <= limit;
}

static fathom_err add_word(const char *const **words, size_t *n, const char *word)
{
	const char **grown = realloc((void *)*words, (*n + 1) * sizeof *grown);

	if (!grown)
		return FATHOM_E_MEMORY;
	grown[(*n)++] = word;
	*words = grown;
	return FATHOM_OK;
}

/* Stores the argument @word of @o in its member. */
static fathom_err store(const struct stored_option *o, const char *word,
			struct fathom_trace_settings *s)
{
	char *const places[] = { (char *)s, (char *)s->options, (char *)s->syscalls };
	void *member = places[o->place] + o->member;
	uint32_t number = 0;

	if (o->shown.limit && !read_number(word, o->shown.limit, &number))
		return FATHOM_E_ARGUMENT;
	switch (o->kind) {
	case KIND_WORD:
		*(const char **)member = word;
		return FATHOM_OK;
	case KIND_NUMBER:
		*(uint32_t *)member = number;
		return FATHOM_OK;
	case KIND_LONG_NUMBER:
		*(uint64_t *)member = number;
		return FATHOM_OK;
	case KIND_LIST:
		return add_word(member, (size_t *)(void *)(places[o->place] + o->count), word);
	default:
		return o->take ? o->take(s, word) : FATHOM_OK;
	}
}

fathom_err fathom_trace_option_take(const struct fathom_trace_option *option, const char *argument,
				    struct fathom_trace_settings *s)
{
	const struct stored_option *o = (const struct stored_option *)option;

	s->options->flags |= o->trace;
	s->syscalls->flags |= o->syscalls;
	s->flags |= o->settings;
	if (o->format)
		s->format = o->format;
	if (o->wants_syscalls)
		s->options->syscalls = s->syscalls;
	return store(o, argument, s);
}

/* Returns the format of @s, which no option has named. */
static enum fathom_trace_format default_format(const struct fathom_trace_settings *s)
{
	const bool is_json = s->flags & FATHOM_TRACE_SETTINGS_JSON;

	if (s->flags & FATHOM_TRACE_SETTINGS_COUNTS)
		return is_json ? FATHOM_TRACE_COUNTS_JSON : FATHOM_TRACE_COUNTS;
	if (is_json)
		return FATHOM_TRACE_JSON;
	return s->flags & FATHOM_TRACE_SETTINGS_DURATIONS ? FATHOM_TRACE_TEXT_DURATIONS
							  : FATHOM_TRACE_TEXT;
}

/* Returns whether the rings keep the last events: nothing else is done at calls. */
static bool is_kept_by_rings(const struct fathom_trace_settings *s)
{
	const struct fathom_trace_options *o = s->options;

	return s->last <= FATHOM_TRACE_KEPT && !o->n_at && !s->n_threads && !o->n_under &&
	       !o->max_rate;
}

void fathom_trace_settings_complete(struct fathom_trace_settings *s)
{
	if (s->last)
		s->options->flags |=
			FATHOM_TRACE_LOSSY | (is_kept_by_rings(s) ? FATHOM_TRACE_LATEST : 0);
	/* Files show each call with its time; lines show how many there were. */
	if (s->format)
		s->options->flags |= FATHOM_TRACE_NO_FOLD;
	else
		s->format = default_format(s);
	if (s->format == FATHOM_TRACE_TREE && s->flags & FATHOM_TRACE_SETTINGS_JSON)
		s->format = FATHOM_TRACE_TREE_JSON;
}

void fathom_trace_settings_free(struct fathom_trace_settings *s)
{
	struct fathom_trace_options *o = s->options;

	for (size_t i = 0; i < o->n_at; i++)
		free((void *)o->at[i].query);
	free((void *)o->at);
	free((void *)o->only);
	free((void *)o->under);
	free((void *)o->except);
	free((void *)s->threads);
	free((void *)s->syscalls->inject);
	free((void *)s->syscalls->paths);
}
