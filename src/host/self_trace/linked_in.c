/* SPDX-License-Identifier: MIT */
/*
 * libfathom-trace: a program that is linked with it understands --ftrace, --strace, FATHOM_TRACE
 * and STRACE. As an archive it has an entry point of its own, which has taken the flags; as a
 * shared object it runs before the program's entry point reads the stack, and takes them there. A
 * program that has more rights than its user understands none of these.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fathom/session.h"
#include "fathom/trace.h"
#include "trace/ftrace_flags.h"

/* Bytes of the longest options. */
#define LONGEST_OPTIONS 8192

/*
 * Moves the environment after the arguments, of which @n are gone, where the kernel would have it.
 */
static void move_environment(char **argv, long argc, long n)
{
	char **from = argv + argc + 1;
	long size = 0;

	/* Somebody has given it another place. */
	if (environ != from)
		return;
	while (from[size])
		size++;
	memmove(from - n, from, (size_t)(size + 1) * sizeof *from);
	environ = from - n;
}

/* Takes the flags out of @argv, below which their number stands. */
static void take_flags(int argc, char **argv)
{
	long *count = (long *)(void *)argv - 1;
	long n;

	if (fathom_trace_requested.has_entered || !argv || *count != argc)
		return;
	n = fathom_trace_take_flags(argc, argv, &fathom_trace_requested);
	*count -= n;
	if (n)
		move_environment(argv, argc, n);
}

/* Returns the process that traces this one; 0: none does. */
static long find_tracer(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long tracer = 0;

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, "TracerPid:", 10))
			tracer = strtol(line + 10, NULL, 10);
	if (f)
		(void)fclose(f);
	return tracer;
}

/*
 * Returns whether the last part of the path that the link @name of process @pid leads to is @word.
 */
static bool leads_to(long pid, const char *name, const char *word)
{
	char path[64], target[4096];
	const char *slash;
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
	n = readlink(path, target, sizeof target - 1);
	target[n < 0 ? 0 : n] = '\0';
	slash = strrchr(target, '/');
	return slash && !strcmp(slash + 1, word);
}

/* Returns whether process @pid is a reader of programs that have the tracer inside. */
static bool is_reader(long pid)
{
	char path[64], name[32] = "";
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%ld/comm", pid);
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof name, f))
		*name = '\0';
	if (f)
		(void)fclose(f);
	return !strcmp(name, FATHOM_READER_NAME "\n");
}

/* Returns whether fathom traces this process, and so reports it. */
static bool is_traced(void)
{
	const long tracer = find_tracer();

	return tracer && (leads_to(tracer, "exe", "fathom") || is_reader(tracer));
}

/*
 * Returns whether the variable @name asks for a trace: it is there, and not 0. Its options are
 * *@options if it has some, and nothing else has.
 */
static bool is_asked(const char *name, const char **options)
{
	const char *text = fathom_secure_getenv(name);

	if (!text || !*text || !strcmp(text, "0"))
		return false;
	if (!*options && strcmp(text, "1"))
		*options = text;
	return true;
}

/* The entry point refers to this, which brings this file out of the archive. */
extern const unsigned char fathom_trace_baked_in_here;
const unsigned char fathom_trace_baked_in_here = 1;

void fathom_trace_baked_in(int argc, char **argv);

/* Runs before the program's own constructors, or after those of its libraries. */
__attribute__((constructor(101), visibility("default"))) void fathom_trace_baked_in(int argc,
										    char **argv)
{
	struct fathom_trace_request *r = &fathom_trace_requested;
	char options[LONGEST_OPTIONS];
	struct fathom_errinfo info;
	char line[512];

	/* Flags are the program's own then. */
	if (fathom_is_secure())
		return;
	take_flags(argc, argv);
	r->wants_functions |= is_asked("FATHOM_TRACE", &r->options);
	r->wants_syscalls |= is_asked("STRACE", &r->options);
	(void)snprintf(options, sizeof options, "%s%s%s", r->wants_syscalls ? "--syscalls " : "",
		       r->wants_functions ? "" : "--no-functions ", r->options ? r->options : "");
	/* A tracer of the parent reports this process, too. */
	if ((!r->wants_functions && !r->wants_syscalls) || is_traced() ||
	    !fathom_trace_start(options, &info))
		return;
	(void)fathom_errinfo_format(&info, line, sizeof line);
	(void)fprintf(stderr, "fathom: not traced: %s\n", line);
}
