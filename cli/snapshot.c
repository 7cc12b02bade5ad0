/* SPDX-License-Identifier: MIT */
/* fathom snapshot: stores what names the addresses of a process after it has ended. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/common.h"

enum { OPT_STACKS = OPT_VERB, OPT_STOP, OPT_STOP_TIMEOUT };

static const struct verb_option options[] = {
	{ OPT_STACKS, "stacks", NULL, "keep registers and stacks, too" },
	{ OPT_STOP, "stop", "=auto|never|all", "with --stacks: as of 'fathom stack'" },
	{ OPT_STOP_TIMEOUT, "stop-timeout", "SECONDS", "the same" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom snapshot [OPTION]... TARGET FILE\n"
	"Write to FILE what is mapped where in TARGET, the number of a process or the\n"
	"path of a core, and by what the files are known again. 'fathom addr FILE' then\n"
	"names its addresses also when the process is gone, as long as the files are\n"
	"there.\n";

static const struct verb_options snapshot_options = {
	.verb = "snapshot",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY,
	.end = "Exit status: 0 done; 2 usage, or TARGET could not be read or FILE not be\n"
	       "written.\n",
};

/* The arguments: the target as given, and the file. */
struct snapshot {
	const char *what;
	const char *path;
	struct fathom_stack_options stacks;
	bool with_stacks;
};

static int write_snapshot(void *verb, struct fathom_target *target)
{
	const struct snapshot *v = verb;
	struct fathom_target_info target_info;
	struct fathom_errinfo info;
	size_t next = 0;
	fathom_err err;

	fathom_target_get_info(target, &target_info);
	if (target_info.kind == FATHOM_TARGET_FILE) {
		complain(v->what, "snapshots are taken of what runs or ran, not of a file",
			 "give the number of a process, or a core");
		return EXIT_USAGE;
	}
	err = v->with_stacks ? fathom_snapshot_write_stacks(target, &v->stacks, v->path, &info)
			     : fathom_snapshot_write(target, v->path, &info);
	/* The notes say what the snapshot lacks. */
	common_print_notes(target, &next);
	if (err)
		complain_error(&info);
	return err ? EXIT_USAGE : EXIT_ANSWERED;
}

int verb_snapshot(int argc, char **argv)
{
	struct option_reader reader;
	struct common common;
	struct snapshot v = { .stacks = { .size = sizeof v.stacks,
					  .waiting = common_tell_waiting,
					  .waiting_data = &common } };
	int opt;

	common_init(&common);
	common.shows_progress = true;
	option_reader_init(&reader, &snapshot_options);
	while ((opt = option_reader_next(&reader, &common, argc, argv)) != -1) {
		if (opt == OPT_STACKS)
			v.with_stacks = true;
		else if (opt == OPT_STOP)
			v.stacks.stop = parse_stop(optarg);
		else if (opt == OPT_STOP_TIMEOUT)
			v.stacks.deadline_ms =
				(uint32_t)(1000 * parse_seconds("--stop-timeout", optarg));
	}
	common_take_arguments(&common, "snapshot", argc - optind, argv + optind);
	if (common.n_arguments != 1)
		complain_lacking("snapshot", "a TARGET and a FILE are wanted");
	v.what = common.target;
	v.path = common.arguments[0];
	return common_run(&common, write_snapshot, &v);
}
