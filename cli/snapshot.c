/* SPDX-License-Identifier: MIT */
/* fathom snapshot: what names the addresses of a process when it is gone. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

static const char usage[] =
	"Usage: fathom snapshot [OPTION]... TARGET FILE\n"
	"Write to FILE what is mapped where in TARGET, the number of a process or the path of a\n"
	"core, and by what the files are known again. 'fathom addr FILE' then names its addresses\n"
	"also when the process is gone, as long as the files are there.\n"
	"\n" COMMON_HELP "\n"
	"Exit status: 0 done; 2 usage, or TARGET could not be read or FILE not be written.\n";

static const struct option options[] = {
	COMMON_OPTIONS,
	{ NULL, 0, NULL, 0 },
};

static int write_snapshot(const struct common *c, struct fathom *session, const char *what,
			  const char *path)
{
	struct fathom_target *target = common_open(c, session, what);
	struct fathom_target_info target_info;
	struct fathom_errinfo info;
	int status = EXIT_USAGE;

	if (!target)
		return EXIT_USAGE;
	fathom_target_get_info(target, &target_info);
	if (target_info.kind == FATHOM_TARGET_FILE)
		complain(what, "snapshots are taken of what runs or ran, not of a file",
			 "give the number of a process, or a core");
	else if (fathom_snapshot_write(target, path, &info))
		complain_error(&info);
	else
		status = EXIT_ANSWERED;
	fathom_target_release(target);
	return status;
}

int verb_snapshot(int argc, char **argv)
{
	struct common common;
	struct fathom *session;
	int opt;
	int status;

	common_init(&common);
	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt == OPT_HELP || opt == 'h') {
			fputs(usage, stdout);
			exit(EXIT_ANSWERED);
		}
		if (!common_take(&common, opt, optarg)) {
			fputs("Try 'fathom snapshot --help'.\n", stderr);
			exit(EXIT_USAGE);
		}
	}
	if (argc - optind != 2) {
		complain("snapshot", "a TARGET and a FILE are wanted",
			 "try 'fathom snapshot --help'");
		exit(EXIT_USAGE);
	}
	session = common_session(&common);
	status = write_snapshot(&common, session, argv[optind], argv[optind + 1]);
	fathom_destroy(session);
	common_deinit(&common);
	return status;
}
