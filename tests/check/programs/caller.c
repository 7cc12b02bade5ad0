// SPDX-License-Identifier: MIT
// caller run PROGRAM [ARGUMENT]... | caller scan FILE START END REGISTER [once]: the calls of <fathom/jit_check.h>. Prints what
// they find and count. Has a child meanwhile, whose status must stay its own to take.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fathom/fathom.h>

static void finding(void *data, const struct fathom_jit_finding *f)
{
	(void)data;
	printf("finding %" PRIx64 " %" PRIx64 " %s+%" PRIx64 " kind %u register %u behind %u size %u\n", f->address,
	       f->pc, f->function, f->offset, f->kind, f->reg, f->flags, f->n_bytes);
}

static int found(void *data, const struct fathom_instruction *i)
{
	printf("found %" PRIx64 " %s\n", i->address, i->frame ? i->frame->function : "?");
	return *(const int *)data;
}

static int run(struct fathom *session, char **argv)
{
	const struct fathom_jit_check_options o = { .size = sizeof o, .finding = finding };
	struct fathom_jit_check_result r = { .size = sizeof r };
	struct fathom_errinfo info = { .what = "" };
	const pid_t other = fork();
	fathom_err err;
	int status;

	if (!other)
		_exit(42);
	fflush(stdout);
	err = fathom_jit_check_run(session, argv, &o, &r, &info);
	printf("err %d errno %d\n", err, info.os_errno);
	if (!err)
		printf("instructions %" PRIu64 " functions %" PRIu64 " frames %" PRIu64 " found %" PRIu64 " status %d\n",
		       r.instructions, r.functions, r.frames, r.found, WEXITSTATUS(r.status));
	if (waitpid(other, &status, 0) != other || WEXITSTATUS(status) != 42)
		printf("the child is lost\n");
	return 0;
}

static int scan(struct fathom *session, char **argv)
{
	int is_enough = argv[4] != NULL;
	struct fathom_jit_scan_options o = { .size = sizeof o, .found = found, .data = &is_enough };
	struct fathom_jit_scan_result r = { .size = sizeof r };
	struct fathom_target *target;
	fathom_err err;

	if (fathom_target_open_file(session, argv[0], NULL, &target, NULL))
		return 3;
	o.reg = (uint32_t)atoi(argv[3]);
	err = fathom_jit_check_scan(target, &o, strtoull(argv[1], NULL, 16), strtoull(argv[2], NULL, 16), &r, NULL);
	printf("err %d\n", err);
	if (!err)
		printf("instructions %" PRIu64 " found %" PRIu64 " next %" PRIx64 "\n", r.instructions, r.found, r.next);
	fathom_target_release(target);
	return 0;
}

int main(int argc, char **argv)
{
	struct fathom *session;
	int status;

	if (argc < 3 || fathom_create(NULL, &session, NULL))
		return 2;
	status = strcmp(argv[1], "run") ? scan(session, argv + 2) : run(session, argv + 2);
	fathom_destroy(session);
	return status;
}
