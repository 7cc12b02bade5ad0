/* SPDX-License-Identifier: MIT */
/* Profiles in the formats of other programs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
};

int report_export_parse(const char *word)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (formats[i].word && strcmp(word, formats[i].word) == 0)
			return (int)i;
	complain("--export", "is collapsed or pprof", NULL);
	exit(EXIT_USAGE);
}

/* fathom_profile_write_fn: writes to the descriptor at @data. */
static int write_all(void *data, const void *bytes, size_t n)
{
	return launch_write(*(const int *)data, bytes, n);
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

static int complain_write(const char *path)
{
	/* Nobody reads on: that is no failure. */
	if (errno == EPIPE && !path)
		return EXIT_ANSWERED;
	complain(path ? path : "standard output", strerror(errno), common_write_remedy(errno));
	return EXIT_USAGE;
}

int report_export(const struct report_print *p, int format,
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
	err = fathom_profile_export(p->profile, (enum fathom_profile_format)format, filters,
				    write_all, &fd, &info);
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
	return (p->time == FATHOM_REPORT_WAITING ? 0 : p->info->n_samples) ||
			       (p->time ? p->info->n_waits : 0)
		       ? EXIT_ANSWERED
		       : EXIT_UNANSWERED;
}
