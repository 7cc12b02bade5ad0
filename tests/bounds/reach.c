/* SPDX-License-Identifier: MIT */
/*
 * reach MS PID ADDRESS...: names the addresses from a session that waits for file systems for MS
 * milliseconds, in a program with children, threads and handlers of its own, which must not notice.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fathom/fathom.h"

static _Atomic int noticed;
static _Atomic bool over;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&noticed, 1);
}

static void on_fork(void)
{
	atomic_fetch_add(&noticed, 1);
}

/* Waits for any child, as programs do that have some. */
static void *wait_for_children(void *nothing)
{
	while (!atomic_load(&over)) {
		if (wait(NULL) != -1 || errno != ECHILD)
			atomic_fetch_add(&noticed, 1);
		(void)usleep(1000);
	}
	return nothing;
}

static int count_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int main(int argc, char **argv)
{
	struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	struct fathom_symbolize_options asked = { .size = sizeof asked };
	struct fathom *session;
	struct fathom_target *target;
	struct fathom_answers *answers;
	struct sigaction action = { .sa_handler = on_signal };
	uint64_t addresses[16];
	pthread_t thread;
	int before;
	int n = 0;

	if (argc < 4)
		return 2;
	(void)sigaction(SIGCHLD, &action, NULL);
	(void)pthread_atfork(on_fork, on_fork, on_fork);
	(void)pthread_create(&thread, NULL, wait_for_children, NULL);
	before = count_descriptors();
	options.file_timeout_ms = (uint32_t)atoi(argv[1]);
	for (; n + 3 < argc && n < 16; n++)
		addresses[n] = strtoull(argv[n + 3], NULL, 16);
	if (fathom_create(&options, &session, NULL) ||
	    fathom_target_open_process(session, atoi(argv[2]), NULL, &target, NULL) ||
	    fathom_symbolize(target, &asked, addresses, NULL, (size_t)n, &answers, NULL))
		return 1;
	for (int i = 0; i < n; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, (size_t)i);

		(void)printf("%s%s", i ? " " : "",
			     a->symbol ? a->symbol
				       : fathom_reason_name((enum fathom_reason)a->reason));
	}
	(void)puts("");
	fathom_answers_free(answers);
	fathom_target_release(target);
	fathom_destroy(session);
	atomic_store(&over, true);
	(void)pthread_join(thread, NULL);
	if (count_descriptors() != before)
		(void)puts("descriptors are left open");
	return atomic_load(&noticed) ? 3 : 0;
}
