/* SPDX-License-Identifier: MIT */
/*
 * The file stat of processes and threads: fields that were written by hand, names that look like
 * fields, and our own.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_look_like_fields),
		cmocka_unit_test(cut_at_each_byte),
		cmocka_unit_test(our_own),
	};

	return cmocka_run_group_tests_name("proc_stat", tests, NULL, NULL);
}
