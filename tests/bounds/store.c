/* SPDX-License-Identifier: MIT */
/* store DIR LIMIT FILE...: stores an index of each FILE in DIR, which may take LIMIT bytes. */
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fathom/fathom.h"

static int fail(const struct fathom_errinfo *info)
{
	char text[512];

	(void)fathom_errinfo_format(info, text, sizeof text);
	(void)fprintf(stderr, "store: %s\n", text);
	return 1;
}

static int store(struct fathom *session, const char *path)
{
	struct fathom_target *target;
	struct fathom_errinfo info;
	int status = 0;

	if (fathom_target_open_file(session, path, NULL, &target, &info))
		return fail(&info);
	if (fathom_cache_store(target, true, 0, NULL, &info))
		status = fail(&info);
	fathom_target_release(target);
	return status;
}

int main(int argc, char **argv)
{
	struct fathom_options options = { .size = sizeof options };
	struct fathom *session;
	struct fathom_errinfo info;
	int status = 0;

	if (argc < 3)
		return 2;
	options.cache_dir = argv[1];
	options.cache_limit = strtoull(argv[2], NULL, 10);
	if (fathom_create(&options, &session, &info))
		return fail(&info);
	for (int i = 3; i < argc && !status; i++)
		status = store(session, argv[i]);
	fathom_destroy(session);
	return status;
}
