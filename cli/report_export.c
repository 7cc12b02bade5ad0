/* SPDX-License-Identifier: MIT */
/* Profiles in the formats of other programs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/launch.h"
#include "cli/report_print.h"

/* Words of --export, and whether the format is no text. */
static const struct {
	const char *word;
	bool is_binary;
} formats[] = {
	[FATHOM_PROFILE_COLLAPSED] = { "collapsed", false },
	[FATHOM_PROFILE_PPROF] = { "pprof", true },
	[FATHOM_PROFILE_SPEEDSCOPE] = { "speedscope", false },
	[FATHOM_PROFILE_FIREFOX] = { "firefox", false },
	[FATHOM_PROFILE_PERFETTO] = { "perfetto", true },
	[FATHOM_PROFILE_SVG] = { "svg", false },
	[FATHOM_PROFILE_SVG_BARS] = { "svg-bars", false },
	[FATHOM_PROFILE_PAGE] = { "page", true },
};

int report_export_parse(const char *word)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (formats[i].word && strcmp(word, formats[i].word) == 0)
			return (int)i;
	complain("--export",
		 "is collapsed, pprof, speedscope, firefox, perfetto, svg, svg-bars or page", NULL);
	exit(EXIT_USAGE);
}

bool report_export_is_page(const char *path)
{
	const char *end = strrchr(path, '.');

	return end && (strcasecmp(end, ".html") == 0 || strcasecmp(end, ".htm") == 0);
}

/* Says what is missing in the profile, as the header of a report does. */
static void say_missing(const struct report_print *p)
{
	if (p->info->lost)
		fprintf(stderr, "fathom: %" PRIu64 " samples were lost: they found no room\n",
			p->info->lost);
	if (!p->info->is_complete)
		fprintf(stderr, "fathom: the file ends before the recording did\n");
}

static bool has_samples(const struct report_print *p)
{
	return p->info->n_samples || p->info->n_waits;
}

static bool has_threads(const struct report_print *p)
{
	size_t n;

	(void)fathom_profile_threads(p->profile, &n);
	return n > 1;
}

static bool has_cgroups(const struct report_print *p)
{
	size_t n;
	const struct fathom_profile_thread *threads = fathom_profile_threads(p->profile, &n);

	while (n && !*threads[n - 1].cgroup)
		n--;
	return n != 0;
}

static bool has_modules(const struct report_print *p)
{
	size_t n;

	(void)fathom_profile_modules(p->profile, &n);
	return n != 0;
}

static bool has_build_ids(const struct report_print *p)
{
	size_t n;
	const struct fathom_profile_module *modules = fathom_profile_modules(p->profile, &n);

	while (n && !modules[n - 1].build_id_size)
		n--;
	return n != 0;
}

/* Returns whether a location has a line or, with @is_column, a column. */
static bool has_places(const struct report_print *p, bool is_column)
{
	size_t n;
	const struct fathom_profile_location *locations = fathom_profile_locations(p->profile, &n);

	for (size_t i = 0; i < n; i++) {
		const struct fathom_frame *f = locations[i].answer->frame;

		if (f && (is_column ? f->column : f->line))
			return true;
	}
	return false;
}

static bool has_lines(const struct report_print *p)
{
	return has_places(p, false);
}

static bool has_columns(const struct report_print *p)
{
	return has_places(p, true);
}

/* Facts that formats have no place for, and whether a profile has them. */
static const struct {
	enum fathom_profile_format format;
	const char *what;
	bool (*has)(const struct report_print *p);
} lacks[] = {
	{ FATHOM_PROFILE_COLLAPSED, "times", has_samples },
	{ FATHOM_PROFILE_COLLAPSED, "threads", has_threads },
	{ FATHOM_PROFILE_COLLAPSED, "lines", has_lines },
	{ FATHOM_PROFILE_COLLAPSED, "modules", has_modules },
	{ FATHOM_PROFILE_COLLAPSED, "build-ids", has_build_ids },
	{ FATHOM_PROFILE_COLLAPSED, "cgroups", has_cgroups },
	{ FATHOM_PROFILE_PPROF, "times", has_samples },
	{ FATHOM_PROFILE_SPEEDSCOPE, "times, but for the order of samples", has_samples },
	{ FATHOM_PROFILE_SPEEDSCOPE, "modules", has_modules },
	{ FATHOM_PROFILE_SPEEDSCOPE, "build-ids", has_build_ids },
	{ FATHOM_PROFILE_SPEEDSCOPE, "cgroups", has_cgroups },
	{ FATHOM_PROFILE_FIREFOX, "cgroups", has_cgroups },
	{ FATHOM_PROFILE_PERFETTO, "columns", has_columns },
	{ FATHOM_PROFILE_PERFETTO, "cgroups", has_cgroups },
};

/* Says what of the profile @format has no place for. A picture is no file of a profile. */
static void say_lacks(const struct report_print *p, int format)
{
	for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
		if ((int)lacks[i].format == format && lacks[i].has(p))
			fprintf(stderr, "fathom: %s has no place for %s\n", formats[format].word,
				lacks[i].what);
}

static int complain_write(const char *path)
{
	/* Nobody reads on: that is no failure. */
	if (errno == EPIPE && !path)
		return EXIT_ANSWERED;
	complain(path ? path : "standard output", strerror(errno), common_write_remedy(errno));
	return EXIT_USAGE;
}

int report_export(const struct report_print *p, const struct fathom_profile *other, int format,
		  const struct fathom_report_options *filters, const char *path)
{
	int fd = STDOUT_FILENO;
	struct fathom_errinfo info;
	fathom_err err;

	if (!path && formats[format].is_binary && isatty(fd)) {
		char what[64];

		(void)snprintf(what, sizeof what, "%s is not for terminals", formats[format].word);
		complain("--export", what, "name a file with -o");
		return EXIT_USAGE;
	}
	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return complain_write(path);
	err = other ? fathom_diff_export(p->profile, other, (enum fathom_profile_format)format,
					 filters, launch_write_piece, &fd, &info)
		    : fathom_profile_export(p->profile, (enum fathom_profile_format)format, filters,
					    launch_write_piece, &fd, &info);
	if (path && close(fd) && !err)
		return complain_write(path);
	if (err == FATHOM_E_OS) {
		errno = info.os_errno;
		return complain_write(path);
	}
	if (err) {
		complain("--export", info.what, common_cause_remedy(info.cause));
		return err == FATHOM_E_NOT_FOUND ? EXIT_UNANSWERED : EXIT_USAGE;
	}
	say_missing(p);
	say_lacks(p, format);
	return (p->time == FATHOM_REPORT_WAITING ? 0 : p->info->n_samples) ||
			       (p->time ? p->info->n_waits : 0)
		       ? EXIT_ANSWERED
		       : EXIT_UNANSWERED;
}
