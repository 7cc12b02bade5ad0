/* SPDX-License-Identifier: MIT */
/* Whether debuginfod servers answer. */
#include <stdlib.h>
#include <sys/random.h>

#include "fathom/limits.h"
#include "host/base/progress.h"
#include "host/file/debuginfod.h"

/* Bytes of a build-id that no file has: as many as a linker's, and random. */
#define ID_SIZE 20

static fathom_err ask(struct fathom *session, struct fathom_errinfo *reterr)
{
	uint8_t id[ID_SIZE];
	char *path = NULL;
	fathom_err err;

	/* libdebuginfod would answer for the servers if it had asked for this before. */
	if (getrandom(id, sizeof id, 0) != sizeof id)
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "there are no random numbers");
	err = fathom_debuginfod_find(session, (struct fathom_bytes){ id, sizeof id }, &path,
				     reterr);
	free(path);
	return err == FATHOM_E_NOT_FOUND ? FATHOM_OK : err;
}

fathom_err fathom_debuginfod_check(struct fathom *session, struct fathom_errinfo *reterr)
{
	const char *urls = fathom_secure_getenv("DEBUGINFOD_URLS");
	struct fathom_call call;

	if (!urls || !*urls)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "DEBUGINFOD_URLS names no server");
	fathom_call_begin(&call, session);
	return fathom_call_end(&call, ask(session, reterr), reterr);
}
