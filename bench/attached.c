/* SPDX-License-Identifier: MIT */
/*
 * attached PROGRAM: starts PROGRAM, which runs for ever, attaches to it as `fathom trace -p` does,
 * and leaves it as soon as its calls are recorded. Prints the nanoseconds for which its threads
 * were stopped at most, those from the call to the first moment that is recorded, and how many
 * sites were.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fathom/fathom.h>

static long long begin_ns, ready_ns;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int take(void *data, const struct fathom_trace_event *events, size_t n)
{
	(void)data;
	(void)events;
	(void)n;
	return 1;
}

static void ready(void *data)
{
	(void)data;
	ready_ns = now();
}

static int control(void *data)
{
	(void)data;
	return ready_ns ? FATHOM_TRACE_LEAVE : FATHOM_TRACE_GO_ON;
}

int main(int argc, char **argv)
{
	struct fathom_trace_options o = {
		.size = sizeof o, .events = take, .ready = ready, .control = control
	};
	struct fathom_trace_result result = { .size = sizeof result };
	struct fathom *session;
	const pid_t pid = argc > 1 ? fork() : -1;
	const int32_t pids[] = { pid };
	fathom_err err;

	if (!pid) {
		(void)execv(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || fathom_create(NULL, &session, NULL))
		return 1;
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	begin_ns = now();
	err = fathom_trace_attach(session, pids, 1, &o, &result, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fathom_destroy(session);
	printf("%llu %lld %llu\n", (unsigned long long)result.stop_ns, ready_ns - begin_ns,
	       (unsigned long long)result.n_sites);
	return err != FATHOM_OK;
}
