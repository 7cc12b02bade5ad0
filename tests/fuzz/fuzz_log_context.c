/* SPDX-License-Identifier: MIT */
/*
 * Logs of four processes, each of which tells where modules are, has addresses, and begins new
 * reports, in any order. The lines of one process must have the same answers if no other process
 * writes any.
 */
#include "fuzz.h"

#include <fathom/fathom.h>
#include <stdarg.h>
#include <stdlib.h>

#define PROCESSES 4
#define MAX_LINES 200
#define MAX_TEXT  (MAX_LINES * 120)

struct log {
	char text[MAX_TEXT];
	size_t n;
	uint8_t process_of[MAX_LINES]; /* each line */
	size_t n_lines;
};

/* The answers of a log: a line's address in its module; 0: it has none. */
struct answers {
	uint64_t of_line[MAX_LINES];
};

static void fail(void)
{
	abort();
}

__attribute__((format(printf, 2, 3))) static void put(struct log *log, const char *format, ...)
{
	va_list words;

	va_start(words, format);
	log->n += (size_t)vsnprintf(log->text + log->n, MAX_TEXT - log->n, format, words);
	va_end(words);
}

/* Writes the line that @what and @where choose, of process @process. */
static void put_line(struct log *log, unsigned process, uint8_t what, uint8_t where)
{
	static const char *const files[] = { "/bin/true", "/bin/cat", "/gone/lib.so" };
	const uint64_t base = UINT64_C(0x7f0000000000) + (uint64_t)(where >> 6) * 0x4000;

	put(log, "web[%u]: ", process + 1);
	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		put(log, "%llx-%llx r-xp 00002000 fe:00 1   %s\n",
		    (unsigned long long)base + 0x2000, (unsigned long long)base + 0x6000,
		    files[where % 3]);
		break;
	case 3:
		put(log, "==ERROR: AddressSanitizer: x\n");
		break;
	case 4:
		put(log, "nothing\n");
		break;
	default:
		put(log, "rip 0x%llx\n",
		    (unsigned long long)base + 0x2000 + (uint64_t)(where & 63) * 64);
		break;
	}
	log->process_of[log->n_lines++] = (uint8_t)process;
}

/* Makes @ret the log @log without the words of other processes than @process. */
static void keep_process(const struct log *log, unsigned process, struct log *ret)
{
	size_t line = 0;

	*ret = *log;
	for (size_t i = 0; i < ret->n; i++) {
		if (ret->text[i] == '\n')
			line++;
		else if (ret->process_of[line] != process)
			ret->text[i] = '-';
	}
}

/* Reads @log, and fills @ret. */
static void read_log(struct fathom *session, const struct log *log, struct answers *ret)
{
	struct fathom_log_addresses *found;
	struct fathom_log_filter *filter;

	memset(ret, 0, sizeof *ret);
	if (fathom_log_filter_create(session, NULL, &filter, NULL))
		return;
	if (fathom_log_filter_read(filter, log->text, log->n, &found, NULL))
		fail();
	for (size_t i = 0; i < fathom_log_addresses_count(found); i++) {
		const struct fathom_log_address *a = fathom_log_addresses_get(found, i);

		if (a->line > log->n_lines)
			fail();
		if (a->answer)
			ret->of_line[a->line - 1] = a->answer->module_address;
	}
	fathom_log_addresses_free(found);
	fathom_log_filter_destroy(filter);
}

/* Checks that process @process has the same answers in @all as alone. */
static void check_alone(struct fathom *session, const struct log *log, const struct answers *all,
			unsigned process)
{
	static struct log alone;
	static struct answers own;

	keep_process(log, process, &alone);
	read_log(session, &alone, &own);
	for (size_t i = 0; i < log->n_lines; i++)
		if (log->process_of[i] == process && own.of_line[i] != all->of_line[i])
			fail();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fathom_options options = { .size = sizeof options,
						       .flags = FATHOM_NO_CACHE };
	static struct log log;
	static struct answers all;
	struct fuzz f = fuzz_init(data, size);
	struct fathom *session;

	log.n = log.n_lines = 0;
	while (f.p < f.end && log.n_lines < MAX_LINES) {
		const uint8_t what = fuzz_byte(&f);

		put_line(&log, what >> 6, what, fuzz_byte(&f));
	}
	if (fathom_create(&options, &session, NULL))
		return 0;
	read_log(session, &log, &all);
	for (unsigned process = 0; process < PROCESSES; process++)
		check_alone(session, &log, &all, process);
	fathom_destroy(session);
	return 0;
}
