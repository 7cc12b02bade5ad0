/* SPDX-License-Identifier: MIT */
/*
 * Logs that are any text, read in two parts, without a target and with this program as one. Each
 * address must lie in its line, in the order of the text, and be the number that stands there; how
 * the log is cut must not matter, but where a line is cut, or lines tell where modules were.
 */
#include "fuzz.h"

#include <fathom/fathom.h>
#include <stdlib.h>

static void fail(void)
{
	abort();
}

/* Checks an address of the @size bytes at @text, after @before, which may be NULL. */
static void check(const char *text, size_t size, const struct fathom_log_address *before,
		  const struct fathom_log_address *a)
{
	if (!a->size || a->line_end > size || a->line_start > a->at ||
	    a->at + a->size > a->line_end || !a->format || !*a->format ||
	    (a->line_start && text[a->line_start - 1] != '\n') ||
	    memchr(text + a->line_start, '\n', a->line_end - a->line_start))
		fail();
	if (before && (before->line > a->line || before->line_end > a->line_end))
		fail();
	if (!*fathom_log_kind_name((enum fathom_log_kind)a->kind) ||
	    !*fathom_log_base_name((enum fathom_log_base)a->base))
		fail();
	/* Either there is a name, or the reason why not. */
	if (!(a->answer && a->answer->symbol) && !a->reason)
		fail();
}

/* Checks what is to wait for more: whole lines, and not too many. */
static void check_ready(const struct fathom_log_filter *filter, const char *text, size_t size)
{
	const size_t ready = fathom_log_filter_ready(filter, text, size);

	if (ready > size || size - ready > 256 << 10 ||
	    (ready && ready < size && text[ready - 1] != '\n'))
		fail();
}

/* Reads @size bytes at @text; returns the number of addresses that other lines do not place. */
static size_t read_lines(struct fathom_log_filter *filter, const char *text, size_t size)
{
	const struct fathom_log_address *before = NULL;
	struct fathom_log_addresses *found;
	size_t counted = 0;
	size_t n;

	check_ready(filter, text, size);
	if (fathom_log_filter_read(filter, text, size, &found, NULL))
		return 0;
	n = fathom_log_addresses_count(found);
	for (size_t i = 0; i < n; i++) {
		const struct fathom_log_address *a = fathom_log_addresses_get(found, i);

		check(text, size, before, a);
		counted += a->base != FATHOM_LOG_LIVE && a->base != FATHOM_LOG_MAPPED;
		before = a;
	}
	fathom_log_addresses_free(found);
	return counted;
}

/* Reads @text whole, and cut after its first line; returns the numbers of addresses. */
static void read_twice(struct fathom *session, struct fathom_target *target, const char *text,
		       size_t size)
{
	const struct fathom_log_filter_options options = { .size = sizeof options,
							   .target = target };
	const char *cut = size ? memchr(text, '\n', size) : NULL;
	const size_t first = cut ? (size_t)(cut + 1 - text) : size;
	struct fathom_log_filter *whole;
	struct fathom_log_filter *parts;

	if (fathom_log_filter_create(session, &options, &whole, NULL))
		return;
	if (!fathom_log_filter_create(session, &options, &parts, NULL)) {
		const size_t n = read_lines(parts, text, first) +
				 read_lines(parts, text + first, size - first);

		if (read_lines(whole, text, size) != n)
			fail();
		fathom_log_filter_destroy(parts);
	}
	fathom_log_filter_destroy(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fathom_options options = { .size = sizeof options,
						       .flags = FATHOM_NO_CACHE };
	struct fathom_target *target = NULL;
	struct fathom *session;
	char *text = malloc(size + 1);

	if (!text || fathom_create(&options, &session, NULL)) {
		free(text);
		return 0;
	}
	if (size)
		memcpy(text, data, size);
	read_twice(session, NULL, text, size);
	if (!fathom_target_open_file(session, "/bin/true", NULL, &target, NULL))
		read_twice(session, target, text, size);
	fathom_target_release(target);
	fathom_destroy(session);
	free(text);
	return 0;
}
