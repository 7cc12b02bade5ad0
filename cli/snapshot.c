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

/* What is to be done: the target as it was called, and the file. */
struct snapshot {
	const char *what;
	const char *path;
};

static int write_snapshot(void *verb, struct fathom_target *target)
{
	const struct snapshot *v = verb;
	struct fathom_target_info target_info;
	struct fathom_errinfo info;

	fathom_target_get_info(target, &target_info);
	if (target_info.kind == FATHOM_TARGET_FILE)
		complain(v->what, "snapshots are taken of what runs or ran, not of a file",
			 "give the number of a process, or a core");
	else if (fathom_snapshot_write(target, v->path, &info))
		complain_error(&info);
	else
		return EXIT_ANSWERED;
	return EXIT_USAGE;
}

int verb_snapshot(int argc, char **argv)
{
	struct common common;
	struct snapshot v;
	int opt;

	common_init(&common);
	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1)
		common_take(&common, opt, optarg, "snapshot", usage);
	if (argc - optind != 2)
		complain_lacking("snapshot", "a TARGET and a FILE are wanted");
	v = (struct snapshot){ argv[optind], argv[optind + 1] };
	return common_run(&common, argc - optind, argv + optind, write_snapshot, &v);
}
