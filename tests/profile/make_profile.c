/* SPDX-License-Identifier: MIT */
/*
 * make_profile >FILE: writes the profile that standard input describes, by lines:
 *
 *	about KEY TEXT
 *	cgroup PATH: of the threads that follow
 *	thread PID TID NAME
 *	file PATH [BUILD-ID]
 *	sample NS THREAD PART STOP WEIGHT [STACK]
 *	times N: as many of the last sample more, each a nanosecond later
 *	waker THREAD, "interrupt", "goes-on" or "unknown": how waits end from here on
 *	lost NS N
 *	throttled NS
 *	end NS
 *
 * made_profile.h says what a STACK is.
 */
#include <inttypes.h>
#include <unistd.h>

#include "../unit/made_profile.h"

static int put(void *data, const void *bytes, size_t n)
{
	(void)data;
	return write(STDOUT_FILENO, bytes, n) == (ssize_t)n;
}

static struct made_profile made;

/* The last sample. */
static struct fathom_profile_sample last;
static char stack[65536];

static int sample(const char *line)
{
	stack[0] = '\0';
	if (sscanf(line,
		   "sample %" SCNu64 " %" SCNu32 " %" SCNu8 " %" SCNu8 " %" SCNu64 " %65535[^\n]",
		   &last.ns, &last.thread, &last.part, &last.stop, &last.weight, stack) < 5)
		return 0;
	made_sample(&made, last.ns, last.thread, stack, last.weight, last.part, last.stop);
	return 1;
}

static void repeat(uint64_t n)
{
	while (n--)
		made_sample(&made, ++last.ns, last.thread, stack, last.weight, last.part,
			    last.stop);
}

static int waker(const char *text)
{
	made.goes_on = strcmp(text, "goes-on") == 0;
	made.waker = !strcmp(text, "interrupt")                 ? FATHOM_PROFILE_INTERRUPT
		     : made.goes_on || !strcmp(text, "unknown") ? 0
								: (uint32_t)atoi(text) + 1;
	return 1;
}

static int take(const char *line)
{
	char key[64];
	char text[1024];
	int32_t pid;
	int32_t tid;
	uint64_t ns;
	uint64_t n;

	if (sscanf(line, "about %63s %1023[^\n]", key, text) == 2)
		fathom_profile_write_about(&made.w, key, text);
	else if (sscanf(line, "file %1023s %63s", text, key) == 2)
		made_file(&made, text, key);
	else if (sscanf(line, "file %1023s", text) == 1)
		made_file(&made, text, "");
	else if (sscanf(line, "cgroup %1023[^\n]", text) == 1)
		(void)fathom_profile_write_cgroup(&made.w, text);
	else if (sscanf(line, "thread %" SCNd32 " %" SCNd32 " %1023[^\n]", &pid, &tid, text) == 3)
		(void)made_thread(&made, pid, tid, text);
	else if (sscanf(line, "waker %63s", key) == 1)
		return waker(key);
	else if (sscanf(line, "lost %" SCNu64 " %" SCNu64, &ns, &n) == 2)
		fathom_profile_write_lost(&made.w, ns, n);
	else if (sscanf(line, "throttled %" SCNu64, &ns) == 1)
		fathom_profile_write_throttled(&made.w, ns);
	else if (sscanf(line, "end %" SCNu64, &ns) == 1)
		fathom_profile_write_end(&made.w, ns);
	else if (sscanf(line, "times %" SCNu64, &n) == 1)
		repeat(n);
	else
		return sample(line);
	return 1;
}

int main(void)
{
	static char line[sizeof stack + 256];
	int status = 0;

	fathom_profile_writer_begin(&made.w, put, NULL);
	while (fgets(line, sizeof line, stdin))
		if (!take(line)) {
			fprintf(stderr, "make_profile: %s", line);
			status = 1;
		}
	status |= !fathom_profile_writer_flush(&made.w);
	fathom_profile_writer_deinit(&made.w);
	return status;
}
