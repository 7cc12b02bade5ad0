/* SPDX-License-Identifier: MIT */
/* fathom cache: the index cache on disk. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/out.h"

static const char usage[] =
	"Usage: fathom cache [OPTION]... build FILE...\n"
	"       fathom cache [OPTION]... clear\n"
	"       fathom cache [OPTION]... path\n"
	"build: decode all debug information of each FILE and store it, for every run to\n"
	"come. clear: remove every stored index. path: print the directory.\n";

static const struct verb_option options[] = {
	{ 0, NULL, NULL, NULL },
};

static const struct verb_options cache_options = {
	.verb = "cache",
	.usage = usage,
	.options = options,
	.common =
		OPTIONS_JSON | OPTIONS_CACHE_DIR | OPTIONS_DEBUG | OPTIONS_MEMORY | OPTIONS_THREADS,
	.end = "Exit status: 0 done; 2 usage, or a FILE could not be read or stored.\n",
};

/* Prints @s as a JSON string, or as text. */
static void print_string(const struct common *common, const char *s)
{
	struct out o;

	/* Flush stdio's output first, to keep the order. */
	(void)fflush(stdout);
	out_init(&o);
	if (common->json)
		out_json(&o, s, strlen(s));
	else
		out_text(&o, s, strlen(s));
	out_deinit(&o);
}

static int build_one(struct fathom *session, const struct common *common, const char *path)
{
	struct fathom_target *target = common_open(common, session, TARGET_ANY, path);
	struct fathom_cache_result result;
	struct fathom_target_info target_info;
	struct fathom_errinfo info;
	size_t next = 0;
	fathom_err err;

	if (!target)
		return EXIT_USAGE;
	fathom_target_get_info(target, &target_info);
	if (target_info.kind != FATHOM_TARGET_FILE) {
		complain(path, "indexes are made of files",
			 target_info.kind == FATHOM_TARGET_KERNEL
				 ? "give its vmlinux"
				 : "give the files that the process runs");
		fathom_target_release(target);
		return EXIT_USAGE;
	}
	err = fathom_cache_store(target, true, 0, &result, &info);
	common_print_notes(target, &next);
	fathom_target_release(target);
	if (err) {
		complain_store(&info);
		return EXIT_USAGE;
	}
	if (common->json) {
		printf("{\"module\":");
		print_string(common, path);
		printf(",\"bytes\":%" PRIu64 ",\"functions\":%" PRIu64 ",\"complete\":%s}\n",
		       result.file_size, result.functions, result.complete ? "true" : "false");
		return EXIT_ANSWERED;
	}
	print_string(common, path);
	if (!result.file_size)
		puts(": already stored");
	else
		printf(": %" PRIu64 " functions, %" PRIu64 " bytes%s\n", result.functions,
		       result.file_size,
		       result.complete ? "" : " (incomplete: parts could not be decoded)");
	return EXIT_ANSWERED;
}

static int build_all(struct fathom *session, const struct common *common, int n, char **paths)
{
	int status = EXIT_ANSWERED;

	if (!n) {
		complain("cache build", "no FILE is given", "try 'fathom cache --help'");
		return EXIT_USAGE;
	}
	for (int i = 0; i < n; i++)
		if (build_one(session, common, paths[i]) != EXIT_ANSWERED)
			status = EXIT_USAGE;
	return status;
}

static int clear(struct fathom *session, const struct common *common)
{
	struct fathom_errinfo info;
	uint64_t removed;

	if (fathom_cache_clear(session, &removed, &info)) {
		complain_store(&info);
		return EXIT_USAGE;
	}
	printf(common->json ? "{\"removed\":%" PRIu64 "}\n" : "%" PRIu64 " indexes removed\n",
	       removed);
	return EXIT_ANSWERED;
}

static int print_path(const struct fathom *session, const struct common *common)
{
	const char *dir = fathom_cache_dir(session);

	if (common->json) {
		printf("{\"path\":");
		print_string(common, dir);
		puts("}");
	} else {
		puts(dir);
	}
	return EXIT_ANSWERED;
}

static int run(struct fathom *session, const struct common *common, const char *what, int n,
	       char **arguments)
{
	static const char *const names[] = { "build", "clear", "path" };
	char remedy[64];
	const char *near;

	if (!fathom_cache_dir(session)) {
		complain("cache", "there is no directory for it", common_cache_remedy(common));
		return EXIT_USAGE;
	}
	if (strcmp(what, "build") == 0)
		return build_all(session, common, n, arguments);
	if (strcmp(what, "clear") == 0 && !n)
		return clear(session, common);
	if (strcmp(what, "path") == 0 && !n)
		return print_path(session, common);
	near = fathom_near_text(what, names, sizeof names / sizeof *names);
	(void)snprintf(remedy, sizeof remedy, "did you mean %s?", near ? near : "");
	complain(what, "is not something that 'fathom cache' does",
		 near && strcmp(near, what) != 0 ? remedy : "try 'fathom cache --help'");
	return EXIT_USAGE;
}

int verb_cache(int argc, char **argv)
{
	struct option_reader reader;
	struct common common;
	struct fathom *session;
	int status;

	common_init(&common);
	common.shows_progress = true;
	option_reader_init(&reader, &cache_options);
	while (option_reader_next(&reader, &common, argc, argv) != -1)
		;
	if (optind == argc)
		complain_lacking("cache", "build, clear or path is wanted");
	session = common_session(&common);
	status = run(session, &common, argv[optind], argc - optind - 1, argv + optind + 1);
	fault_destroy(session);
	common_deinit(&common);
	return status;
}
