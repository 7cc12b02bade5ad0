/* SPDX-License-Identifier: MIT */
#include "trace/ftrace_flags.h"

struct fathom_trace_request fathom_trace_requested;

/* Returns what is after @begin in @s; NULL: it does not begin so. */
static const char *behind(const char *s, const char *begin)
{
	for (; *begin; begin++, s++)
		if (*s != *begin)
			return NULL;
	return s;
}

/* Returns the number of dashes at the begin of @s if a flag of ours stands there; else 0. */
static size_t dashes_of(const char *s, const char **ret_options, bool *ret_is_strace)
{
	const char *rest = NULL;
	size_t n = 0;

	while (s[n] == '-')
		n++;
	if (n >= 2 && n % 2 == 0 && (s[n] == 'f' || s[n] == 's'))
		rest = behind(s + n + 1, "trace");
	*ret_is_strace = s[n] == 's';
	if (!rest || (*rest && *rest != '='))
		return 0;
	*ret_options = *rest ? rest + 1 : NULL;
	return n;
}

long fathom_trace_take_flags(long argc, char **argv, struct fathom_trace_request *ret)
{
	long n = 0;
	long i;

	for (i = 0; i < argc; i++) {
		const char *options = NULL;
		bool is_strace = false;
		const size_t dashes = i ? dashes_of(argv[i], &options, &is_strace) : 0;

		if (i && argv[i][0] == '-' && argv[i][1] == '-' && !argv[i][2])
			break;
		if (dashes == 2) {
			ret->wants_functions |= !is_strace;
			ret->wants_syscalls |= is_strace;
			if (options)
				ret->options = options;
		} else {
			argv[n++] = argv[i] + (dashes ? 2 : 0);
		}
	}
	for (; i < argc; i++)
		argv[n++] = argv[i];
	argv[n] = NULL;
	return argc - n;
}

/*
 * Moves the environment and the auxiliary vector after it, which begin at @from, down by a word.
 */
static void move_down(long *from)
{
	long *end = from;

	while (*end++)
		;
	/* Pairs, of which the last one begins with 0 (AT_NULL). */
	while (*end)
		end += 2;
	for (end += 2; from < end; from++)
		from[-1] = *from;
}

/* Entries of the auxiliary vector (getauxval(3)). */
enum { AT_UID = 11, AT_EUID = 12, AT_GID = 13, AT_EGID = 14, AT_SECURE = 23 };

/*
 * Returns whether the program has more rights than its user, as fathom_is_secure() will, by the
 * auxiliary vector after the environment at @from.
 */
static bool is_secure(const long *from)
{
	long users = 0;
	long groups = 0;
	long secure = 0;

	while (*from++)
		;
	for (; *from; from += 2) {
		if (*from == AT_UID || *from == AT_EUID)
			users ^= from[1];
		else if (*from == AT_GID || *from == AT_EGID)
			groups ^= from[1];
		else if (*from == AT_SECURE)
			secure = from[1];
	}
	return users || groups || secure;
}

long *fathom_trace_take_from_stack(long *stack)
{
	const long argc = stack[0];
	long left = argc;
	long n;

	fathom_trace_requested.has_entered = true;
	if (is_secure(stack + 1 + argc + 1))
		return stack;
	n = fathom_trace_take_flags(argc, (char **)(stack + 1), &fathom_trace_requested);
	left -= n;
	/* The stack begins at a multiple of 16 bytes, which aarch64 insists on. */
	if (n % 2) {
		move_down(stack + 1 + argc + 1);
		n--;
	}
	/* The other arguments move up to the environment. */
	for (long i = left; n && i >= 0; i--)
		stack[1 + n + i] = stack[1 + i];
	stack[n] = left;
	return stack + n;
}
