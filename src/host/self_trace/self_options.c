/* SPDX-License-Identifier: MIT */
#include "host/self_trace/self_options.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/context.h"

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

/*
 * Returns whether @given states option @o. *@ret_argument: what stands after its "=", else NULL.
 */
static bool is_option(const struct fathom_trace_option *o, char *given, char **ret_argument)
{
	const size_t n = o->name ? strlen(o->name) : 0;

	*ret_argument = NULL;
	if (given[0] == '-' && o->letter && given[1] == o->letter)
		return !given[2];
	if (!o->name || strncmp(given, "--", 2) != 0 || strncmp(given + 2, o->name, n) != 0)
		return false;
	if (given[2 + n] == '=' && o->argument)
		*ret_argument = given + 2 + n + 1;
	return !given[2 + n] || *ret_argument;
}

/* Takes option @given, whose argument is part of it or next in *@text; returns NULL or an error. */
static const char *take_option(struct fathom_self_trace_options *o, char *given, char **text)
{
	const struct fathom_trace_option *option;
	char *argument;

	for (size_t i = 0; (option = fathom_trace_option_get(i)); i++)
		if (option->flags & FATHOM_TRACE_OPTION_SELF && is_option(option, given, &argument))
			break;
	if (!option)
		return "no such option of a trace (fathom_trace(3))";
	if (option->argument && *option->argument != '[') {
		argument = argument ? argument : next_word(text);
		if (!argument)
			return "an option of a trace lacks its word";
	}
	return fathom_trace_option_take(option, argument, &o->settings)
		       ? "an option of a trace has a wrong word"
		       : NULL;
}

/* Takes the options of @rest; returns NULL, or what is wrong. */
static const char *take_all(struct fathom_self_trace_options *o, char *rest)
{
	const char *why = NULL;
	char *word;

	while (!why && (word = next_word(&rest)))
		why = take_option(o, word, &rest);
	if (!why && o->syscalls.flags & FATHOM_SYSCALLS_ONLY && !o->trace.syscalls)
		return "--no-functions leaves nothing without --syscalls";
	if (!why && o->settings.flags & FATHOM_TRACE_SETTINGS_COUNTS && o->settings.format)
		return "-c counts, and another option wants a file or a tree";
	return why;
}

fathom_err fathom_self_trace_options_read(const char *text, struct fathom_self_trace_options *o,
					  struct fathom_errinfo *reterr)
{
	const char *why;

	*o = (struct fathom_self_trace_options){
		.trace = { .size = sizeof o->trace, .flags = FATHOM_TRACE_HOLD_ENDS },
		.syscalls = { .size = sizeof o->syscalls,
			      .string_limit = FATHOM_SYSCALLS_STRING_LIMIT },
		.settings = { .size = sizeof o->settings,
			      .options = &o->trace,
			      .syscalls = &o->syscalls },
		.text = strdup(text ? text : ""),
	};
	if (!o->text)
		return fathom_fail_memory(reterr);
	why = take_all(o, o->text);
	if (why) {
		fathom_self_trace_options_deinit(o);
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, why);
	}
	fathom_trace_settings_complete(&o->settings);
	return FATHOM_OK;
}

void fathom_self_trace_options_deinit(struct fathom_self_trace_options *o)
{
	fathom_trace_settings_free(&o->settings);
	free(o->text);
}
