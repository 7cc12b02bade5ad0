/* SPDX-License-Identifier: MIT */
/*
 * The file stat of processes and threads: fields that were written by hand, names that look like
 * fields, and our own.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fathom/stack.h"
#include "host/base/proc_stat_read.h"

/* A line of 52 fields, each of which has its number from the fourth on, but for the signal. */
#define FIELDS                                                                                     \
	" 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 " \
	"35 36 37 -1 39 40 41 42 43 44 45 46 47 48 49 50 51 52\n"

static void check(const char *text, const char *name, char state)
{
	struct fathom_proc_stat stat;

	assert_true(fathom_proc_stat_parse(text, strlen(text), &stat));
	assert_int_equal(stat.pid, 1234);
	assert_string_equal(stat.name, name);
	assert_int_equal(stat.state, state);
	assert_int_equal(stat.parent, 4);
	assert_int_equal(stat.flags, 9);
	assert_int_equal(stat.n_threads, 20);
	assert_int_equal(stat.start_ticks, 22);
	assert_int_equal(stat.first_stack, 28);
	assert_int_equal(stat.exit_signal, -1);
	assert_int_equal(stat.wait_status, 52);
}

static void names_that_look_like_fields(void **state)
{
	(void)state;
	check("1234 (sleep) S" FIELDS, "sleep", 'S');
	check("1234 (a) R 1 (b) Z" FIELDS, "a) R 1 (b", 'Z');
	check("1234 (() D" FIELDS, "(", 'D');
	check("1234 () t" FIELDS, "", 't');
	check("1234 (two\nlines) X" FIELDS, "two\nlines", 'X');
}

static void cut_at_each_byte(void **state)
{
	static const char text[] = "1234 (sleep) S" FIELDS;
	struct fathom_proc_stat stat;

	(void)state;
	for (size_t n = 0; n < sizeof text - 1; n++)
		/* The state is the fourteenth byte. */
		assert_int_equal(fathom_proc_stat_parse(text, n, &stat), n >= 14);
	assert_false(fathom_proc_stat_parse("1234 sleep S 1", 14, &stat));
}

static void our_own(void **state)
{
	struct fathom_proc_stat stat;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, ") Z 1 2 3"), 0);
	assert_true(fathom_proc_stat_of(getpid(), &stat));
	assert_int_equal(stat.pid, getpid());
	assert_string_equal(stat.name, ") Z 1 2 3");
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.n_threads, 1);
	assert_int_equal(stat.exit_signal, SIGCHLD);
	errno = 0;
	assert_false(fathom_proc_stat_read(AT_FDCWD, "/proc/0/stat", &stat));
	assert_int_equal(errno, ESRCH);
	assert_false(fathom_proc_stat_read(AT_FDCWD, "/proc/self/statm", &stat));
	assert_int_equal(errno, EPROTO);
}

static struct fathom_process_state state_of(pid_t pid)
{
	struct fathom_process_state ret = { .size = sizeof ret };

	assert_int_equal(fathom_process_state_read(pid, &ret, NULL), FATHOM_OK);
	assert_int_equal(ret.pid, pid);
	return ret;
}

static void *wait_long(void *data)
{
	while (pause())
		;
	return data;
}

/* A child whose first thread ends: at once with the others, or before another one. */
static pid_t start(bool has_other)
{
	const pid_t pid = fork();
	pthread_t other;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	(void)prctl(PR_SET_NAME, "a (child) Z");
	if (!has_other)
		_exit(0);
	if (pthread_create(&other, NULL, wait_long, NULL))
		_exit(1);
	pthread_exit(NULL);
}

static void states_of_processes(void **state)
{
	struct fathom_process_state s = { .size = sizeof s - 1 };
	struct fathom_errinfo info = { 0 };
	const pid_t zombie = start(false);
	const pid_t headless = start(true);
	siginfo_t ended;

	(void)state;
	assert_int_equal(fathom_process_state_read(getpid(), &s, NULL), FATHOM_E_ARGUMENT);
	s = state_of(getpid());
	assert_int_equal(s.parent, getppid());
	assert_int_equal(s.state, 'R');
	assert_int_equal(s.is_kernel_thread, 0);
	assert_int_equal(s.has_ended, 0);

	assert_int_equal(waitid(P_PID, (id_t)zombie, &ended, WEXITED | WNOWAIT), 0);
	s = state_of(zombie);
	assert_string_equal(s.name, "a (child) Z");
	assert_int_equal(s.parent, getpid());
	assert_int_equal(s.state, 'Z');
	assert_int_equal(s.has_ended, 1);
	assert_int_equal(waitpid(zombie, NULL, 0), zombie);
	s.size = sizeof s;
	assert_int_equal(fathom_process_state_read(zombie, &s, &info), FATHOM_E_NOT_FOUND);
	assert_string_equal(info.what, "no such process");

	while (s = state_of(headless), s.state != 'Z')
		(void)usleep(1000);
	assert_int_equal(s.has_ended, 0);
	assert_int_equal(kill(headless, SIGKILL), 0);
	assert_int_equal(waitpid(headless, NULL, 0), headless);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_look_like_fields),
		cmocka_unit_test(cut_at_each_byte),
		cmocka_unit_test(our_own),
		cmocka_unit_test(states_of_processes),
	};

	return cmocka_run_group_tests_name("proc_stat", tests, NULL, NULL);
}
