/* SPDX-License-Identifier: MIT */
/* Comparisons of profiles that are made by hand, whose intervals can be computed, or by lot. */
#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fathom/fathom.h"
#include "host/profile/compared_reasons.h"
#include "host/profile/diff_chance.h"
#include "made_profile.h"

static struct fathom *session;
static int files[2] = { -1, -1 };
static char paths[2][64];

static int set_up(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };

	(void)state;
	for (int i = 0; i < 2; i++) {
		files[i] = memfd_create("profile", MFD_CLOEXEC);
		(void)snprintf(paths[i], sizeof paths[i], "/proc/self/fd/%d", files[i]);
	}
	return files[0] < 0 || files[1] < 0 || fathom_create(&options, &session, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	fathom_destroy(session);
	return close(files[0]) | close(files[1]);
}

static int append(void *data, const void *bytes, size_t n)
{
	return write(*(const int *)data, bytes, n) == (ssize_t)n;
}

static struct made_profile made;

/* Begins the profile of a side: 0 for A. */
static void begin(int side)
{
	memset(&made, 0, sizeof made);
	assert_int_equal(ftruncate(files[side], 0), 0);
	assert_int_equal(lseek(files[side], 0, SEEK_SET), 0);
	fathom_profile_writer_begin(&made.w, append, &files[side]);
	(void)made_thread(&made, 70, 70, "demo");
	fathom_profile_write_about(&made.w, "unit", "ns");
}

static void add(const char *stack, unsigned n, uint64_t weight)
{
	while (n--)
		made_sample(&made, 1, 0, stack, weight, FATHOM_PROFILE_SAMPLED, FATHOM_STOP_ENTRY);
}

static void end(uint64_t ns)
{
	fathom_profile_write_end(&made.w, ns);
	assert_true(fathom_profile_writer_flush(&made.w));
	fathom_profile_writer_deinit(&made.w);
}

static struct fathom_diff *diff(struct fathom_diff_options o)
{
	struct fathom_profile *profiles[2];
	struct fathom_diff *d = NULL;
	struct fathom_errinfo info;

	o.size = sizeof o;
	for (int i = 0; i < 2; i++)
		assert_int_equal(fathom_profile_open(session, paths[i], &profiles[i], NULL),
				 FATHOM_OK);
	if (fathom_diff_create(profiles[0], profiles[1], &o, &d, &info))
		fail_msg("%s", info.what);
	fathom_profile_free(profiles[0]);
	fathom_profile_free(profiles[1]);
	return d;
}

#define OPTIONS(...) ((struct fathom_diff_options){ .size = 0, __VA_ARGS__ })

static const struct fathom_diff_row *row(const struct fathom_diff *d, const char *name)
{
	size_t n;
	const struct fathom_diff_row *rows = fathom_diff_rows(d, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	fail_msg("no %s", name);
	return NULL;
}

/* cmocka compares floats only. */
static void assert_within(double a, double b, double most)
{
	if (!(a - b <= most && b - a <= most))
		fail_msg("%.12g is not %.12g", a, b);
}

#define assert_near(a, b) assert_within(a, b, 1e-6)

static void intervals_are_those_of_two_proportions(void **state)
{
	struct fathom_diff *d;
	const struct fathom_diff_row *f;

	(void)state;
	begin(0);
	add("f", 20, 5);
	add("g", 80, 5);
	end(1000);
	begin(1);
	add("f", 60, 3);
	add("g", 140, 3);
	end(1000);
	d = diff(OPTIONS(0));
	f = row(d, "f");
	assert_near(f->values[0], 0.2);
	assert_near(f->values[1], 0.3);
	assert_near(f->change, 0.1);
	/* 1.959964 * sqrt(0.2 * 0.8 / 100 + 0.3 * 0.7 / 200) = 0.1008953 */
	assert_near(f->low, 0.1 - 0.1008953);
	assert_near(f->high, 0.1 + 0.1008953);
	/* Fisher: twice the probability of at most 20 of 80 in 100 of 300, for two rows. */
	assert_near(f->chance, 2 * 0.08455003);
	assert_int_equal(f->verdict, FATHOM_DIFF_NOT_SIGNIFICANT);
	assert_near(fathom_diff_get_sums(d)->effective[0], 100);
	assert_near(fathom_diff_get_sums(d)->effective[1], 200);
	fathom_diff_free(d);
}

static void heavy_samples_are_fewer(void **state)
{
	struct fathom_diff *d;
	const struct fathom_diff_row *h;

	(void)state;
	begin(0);
	add("f", 1900, 1);
	add("heavy", 1, 100);
	end(1000);
	begin(1);
	add("f", 2000, 1);
	end(1000);
	d = diff(OPTIONS(0));
	h = row(d, "heavy");
	/* 2000^2 / (1900 + 100^2) */
	assert_near(fathom_diff_get_sums(d)->effective[0], 336.134454);
	assert_near(h->change, -0.05);
	/*
	 * In mean weights the heavy sample of 3901 has p = 95.05 / 3901, and all squares are 9034.5
	 * + 3716.6. ((1 - p)^2 9034.5 + p^2 3716.6) / (3901 p (1 - p)) = 92.7578: as many samples
	 * are one. 1.959964 * sqrt(0.05 * 0.95 / (1901 / 92.7578)) = 0.0943581
	 */
	assert_near(h->low, -0.05 - 0.0943581);
	/* One of 20 is not more than none of 22, nor 19 of 20 less than 22 of 22. */
	assert_near(row(d, "f")->chance, 1);
	assert_near(h->chance, 1);
	assert_int_equal(h->verdict, FATHOM_DIFF_NOT_SIGNIFICANT);
	fathom_diff_free(d);
}

static void functions_match_between_builds(void **state)
{
	struct fathom_diff *d;
	size_t n;
	const struct fathom_diff_row *rows;

	(void)state;
	begin(0);
	add("main@/old/bin/x;work@/old/lib/liby.so", 600, 1);
	add("main@/old/bin/x;work@/old/bin/x", 400, 1);
	end(1000);
	begin(1);
	add("main@/new/x;work@/new/liby.so", 800, 1);
	add("main@/new/x;work@/new/x", 150, 1);
	add("main@/new/x;more@/new/x", 50, 1);
	end(1000);
	d = diff(OPTIONS(0));
	rows = fathom_diff_rows(d, &n);
	assert_int_equal(n, 3);
	assert_string_equal(rows[0].name, "work");
	assert_string_equal(rows[0].module, "x");
	assert_int_equal(rows[0].self[0], 400);
	assert_int_equal(rows[0].self[1], 150);
	assert_int_equal(rows[0].verdict, FATHOM_DIFF_FASTER);
	assert_string_equal(rows[1].module, "liby.so");
	assert_int_equal(rows[1].self_samples[1], 800);
	assert_int_equal(rows[1].verdict, FATHOM_DIFF_SLOWER);
	assert_string_equal(rows[2].name, "more");
	assert_int_equal(rows[2].verdict, FATHOM_DIFF_SLOWER);
	assert_int_equal(fathom_diff_get_sums(d)->n_slower, 2);
	assert_int_equal(fathom_diff_get_sums(d)->n_faster, 1);
	fathom_diff_free(d);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

/*
 * Compares f in module @a with f in @b, beside the stacks of @others. Returns "MODULE SELF_A
 * SELF_B" of all functions that are called f, by module.
 */
static const char *matched(const char *a, const char *b, const char *const others[2])
{
	static char text[512];
	char lines[4][128];
	struct fathom_diff *d;
	const struct fathom_diff_row *rows;
	size_t n;
	size_t n_lines = 0;

	for (int side = 0; side < 2; side++) {
		begin(side);
		if (others && others[side])
			add(others[side], 1, 1);
		(void)snprintf(text, sizeof text, "f@%s", side ? b : a);
		add(text, 1, 10);
		end(1000);
	}
	d = diff(OPTIONS(0));
	rows = fathom_diff_rows(d, &n);
	for (size_t i = 0; i < n && n_lines < 4; i++)
		if (!strcmp(rows[i].name, "f"))
			(void)snprintf(lines[n_lines++], sizeof *lines, "%s %d %d;", rows[i].module,
				       (int)rows[i].self[0], (int)rows[i].self[1]);
	fathom_diff_free(d);
	qsort(lines, n_lines, sizeof *lines, compare_lines);
	text[0] = '\0';
	for (size_t i = 0; i < n_lines; i++)
		strcat(text, lines[i]);
	return text;
}

static void modules_match_between_versions(void **state)
{
	static const char *const two_in_a[2] = { "f@/lib/liby.so.1.1", NULL };
	static const char *const two_in_b[2] = { NULL, "g@/lib/liby.so.1.1" };
	static const char *const same_in_both[2] = { "g@/lib/liby.so.2", "g@/lib/liby.so.2" };
	static const char *const folders_in_b[2] = { NULL, "f@/d/x" };

	(void)state;
	assert_string_equal(matched("/a/liby.so.1.2", "/b/liby.so.1.3", NULL),
			    "liby.so.1.2 10 10;");
	assert_string_equal(matched("/a/liby.so", "/a/liby.so.1.3", NULL), "liby.so 10 10;");
	assert_string_equal(matched("/a/liby2.so.1", "/a/liby3.so.1", NULL),
			    "liby2.so.1 10 0;liby3.so.1 0 10;");
	/* Only what follows .so is a version. */
	assert_string_equal(matched("/a/y-1.2", "/a/y-1.3", NULL), "y-1.2 10 0;y-1.3 0 10;");
	assert_string_equal(matched("/a/y.so.x1", "/a/y.so.x2", NULL),
			    "y.so.x1 10 0;y.so.x2 0 10;");
	/* Two versions in one profile stay apart, and match their equals only. */
	assert_string_equal(matched("/lib/liby.so.1.2", "/lib/liby.so.1.3", two_in_a),
			    "liby.so.1.1 1 0;liby.so.1.2 10 0;liby.so.1.3 0 10;");
	assert_string_equal(matched("/lib/liby.so.1.2", "/lib/liby.so.1.3", two_in_b),
			    "liby.so.1.2 10 0;liby.so.1.3 0 10;");
	assert_string_equal(matched("/lib/liby.so.1", "/lib/liby.so.3", same_in_both),
			    "liby.so.1 10 0;liby.so.3 0 10;");
	/* So do two of one name, which are told by their paths. */
	assert_string_equal(matched("/a/x", "/b/x", folders_in_b), "/a/x 10 0;/b/x 0 10;/d/x 0 1;");
	assert_string_equal(matched("/d/x", "/b/x", folders_in_b), "/b/x 0 10;/d/x 10 1;");
}

static void waits_are_compared_without_a_test(void **state)
{
	const struct fathom_report_options waiting = { .size = sizeof waiting,
						       .time = FATHOM_REPORT_WAITING };
	const struct fathom_report_options wall = { .size = sizeof wall,
						    .time = FATHOM_REPORT_WALL };
	static const char *const stacks[2][2] = {
		{ "f;[futex: mutex 0x10 owned by 7]@[waits]", "f;[wait4: any child]@[waits]" },
		{ "f;[futex: mutex 0x20 owned by 9]@[waits]", "f;[wait4: any child]@[waits]" },
	};
	struct fathom_diff *d;
	const struct fathom_diff_row *f;
	size_t n;

	(void)state;
	for (int side = 0; side < 2; side++) {
		begin(side);
		add("f", 1000, side ? 1 : 1000);
		for (uint64_t i = 0; i < 200; i++)
			made_sample(&made, 1, 0, stacks[side][i & 1],
				    side && i & 1 ? 5000000 : 1000000, FATHOM_PROFILE_WAITING,
				    FATHOM_STOP_ENTRY);
		end(side ? 2000000000 : 1000000000);
	}
	d = diff(OPTIONS(.filters = &waiting, .per = FATHOM_DIFF_PER_WALL));
	(void)fathom_diff_rows(d, &n);
	assert_int_equal(n, 2);
	f = row(d, "[futex: mutex * owned by *]");
	assert_int_equal(f->self[0], 100000000);
	assert_int_equal(f->self[1], 100000000);
	assert_near(f->values[0], 100000000);
	assert_near(f->change, -50000000);
	assert_near(f->low, f->change);
	assert_near(f->high, f->change);
	assert_int_equal(f->verdict, FATHOM_DIFF_NOT_TESTED);
	assert_near(f->chance, 1);
	f = fathom_diff_rows(d, &n);
	assert_string_equal(f->name, "[wait4: any child]");
	assert_near(f->change, 150000000);
	assert_int_equal(fathom_diff_get_sums(d)->n_slower, 0);
	assert_int_equal(fathom_diff_get_sums(d)->n_faster, 0);
	fathom_diff_free(d);
	d = diff(OPTIONS(.filters = &wall, .per = FATHOM_DIFF_PER_WALL));
	assert_int_equal(row(d, "f")->verdict, FATHOM_DIFF_NOT_TESTED);
	assert_int_equal(row(d, "f")->self[0], 1000000);
	fathom_diff_free(d);
}

static void reasons_lose_what_runs_have_anew(void **state)
{
	static const char *const cases[][2] = {
		{ "[futex: mutex 0x55db3af2f060 owned by 5046]", "[futex: mutex * owned by *]" },
		{ "[futex: futex 0xffff]", "[futex: futex *]" },
		{ "[futex: rwlock 0x1 to write, held by 2 readers, of which glibc keeps no names]",
		  "[futex: rwlock * to write, held by * readers, of which glibc keeps no names]" },
		{ "[read: pipe:[1234] (fd 3)]", "[read: pipe:[*] (fd *)]" },
		{ "[read: /tmp/run-12/0x10.log (fd 3)]", "[read: /tmp/run-12/0x10.log (fd *)]" },
		{ "[read: tcp 127.0.0.1:5432 <- 10.0.0.12:40312 (fd 9)]",
		  "[read: tcp 127.0.0.1:5432 <- 10.0.0.12:* (fd *)]" },
		{ "[write: tcp [::1]:32768 -> [fe80::1]:32767 (fd 9)]",
		  "[write: tcp [::1]:* -> [fe80::1]:32767 (fd *)]" },
		{ "[poll: 2 descriptors: fd 5 socket:[17], fd 6 /dev/x1]",
		  "[poll: * descriptors: fd * socket:[*], fd * /dev/x1]" },
		{ "[clock_nanosleep]", "[clock_nanosleep]" },
		{ "[pwrite64: x]", "[pwrite64: x]" },
		{ "0x", "0x" },
		{ " 0x", " 0x" },
		{ " 17", " *" },
		{ "", "" },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fathom_reason_generalize(cases[i][0], text, sizeof text);
		assert_string_equal(text, cases[i][1]);
	}
	fathom_reason_generalize("[futex: mutex 0x10 owned by 7]", text, 16);
	assert_string_equal(text, "[futex: mutex *");
	fathom_reason_generalize("[futex]", text, 1);
	assert_string_equal(text, "");
}

static void weights_are_divided(void **state)
{
	static const char *const only[] = { "g" };
	const struct fathom_report_options filters = { .size = sizeof filters,
						       .only = only,
						       .n_only = 1 };
	struct fathom_diff *d;
	const struct fathom_diff_row *f;

	(void)state;
	begin(0);
	add("f", 1000, 1000);
	end(2000000000);
	begin(1);
	add("f", 3000, 1000);
	add("g", 1000, 1000);
	end(4000000000);
	d = diff(OPTIONS(.per = FATHOM_DIFF_PER_WALL));
	f = row(d, "f");
	assert_near(f->values[0], 500000);
	assert_near(f->values[1], 750000);
	/* The whole weight of A is known: 1.959964 * 1000000 * sqrt(0.75 * 0.25 / 4000) */
	assert_within(f->high - f->change, 13419.0, 0.1);
	assert_int_equal(f->verdict, FATHOM_DIFF_SLOWER);
	fathom_diff_free(d);
	d = diff(OPTIONS(.per = FATHOM_DIFF_PER_COUNT, .counts = { 100, 300 }));
	f = row(d, "f");
	assert_near(f->values[0], 10000);
	assert_near(f->values[1], 10000);
	assert_int_equal(f->verdict, FATHOM_DIFF_NOT_SIGNIFICANT);
	assert_near(f->chance, 1);
	fathom_diff_free(d);
	/* A has none of the functions: its weight counts all the same. */
	d = diff(OPTIONS(.filters = &filters));
	assert_near(row(d, "g")->values[1], 0.25);
	assert_int_equal(fathom_diff_get_sums(d)->weight[0], 1000000);
	fathom_diff_free(d);
}

static void chances_are_exact(void **state)
{
	(void)state;
	/* 2 / C(10, 5), 2 / 2^12 */
	assert_within(fathom_chance_of_shares(0, 5, 5, 5), 2. / 252, 1e-12);
	assert_within(fathom_chance_of_rates(0, 1, 12, 1), 2. / 4096, 1e-12);
	/* 2 of 12 where each has a chance of 1 / 101: 2 (1 - q^12 - 12 q^11 / 101) */
	assert_within(fathom_chance_of_rates(2, 1, 10, 100), 0.01211374, 1e-7);
	assert_within(fathom_chance_of_shares(0, 0, 3, 9), 1, 0);
	assert_within(fathom_chance_of_shares(50, 100, 500, 1000), 1, 0);
	assert_true(fathom_chance_of_shares(1000000, 2000000, 1100000, 2000000) < 1e-99);
	assert_within(fathom_chance_of_shares(500000, 1000000, 500000, 1000000), 1, 0);
	assert_within(fathom_chance_of_shares(500000, 1000000, 501386, 1000000), 0.05, 3e-4);
}

static uint64_t lot_state;

/* Returns a number from 0 to 1: xorshift64*, Vigna 2016. */
static double lot(void)
{
	lot_state ^= lot_state >> 12;
	lot_state ^= lot_state << 25;
	lot_state ^= lot_state >> 27;
	return (double)(lot_state * 0x2545f4914f6cdd1d >> 11) / 9007199254740992.;
}

#define FUNCTIONS 30

/* Draws @n samples: function i has a share as 0.8^i, function 3 @more times as much. */
static void draw(int side, unsigned n, double more)
{
	double shares[FUNCTIONS];
	double all = 0;

	for (int i = 0; i < FUNCTIONS; i++) {
		shares[i] = i ? shares[i - 1] * 0.8 : 1;
		all += shares[i] * (i == 3 ? more : 1);
	}
	begin(side);
	while (n--) {
		double left = lot() * all;
		char name[16];
		int i = 0;

		for (; i < FUNCTIONS - 1; i++) {
			left -= shares[i] * (i == 3 ? more : 1);
			if (left < 0)
				break;
		}
		(void)snprintf(name, sizeof name, "f%d", i);
		add(name, 1, 1000);
	}
	end(1000);
}

static void chance_alone_is_rarely_significant(void **state)
{
	static const uint32_t per[] = { FATHOM_DIFF_PER_CPU, FATHOM_DIFF_PER_WALL };
	unsigned wrong[2] = { 0, 0 };
	unsigned found = 0;

	(void)state;
	lot_state = 20261129;
	for (int pair = 0; pair < 200; pair++) {
		const unsigned n = pair % 2 ? 1000 : 300;

		draw(0, n, 1);
		draw(1, 1000, 1);
		for (int i = 0; i < 2; i++) {
			/* Weights are those of all samples, in seconds that have as many. */
			struct fathom_diff *d =
				diff(OPTIONS(.per = per[i] ? FATHOM_DIFF_PER_COUNT : 0,
					     .counts = { n, 1000 }));
			const struct fathom_diff_sums *sums = fathom_diff_get_sums(d);

			wrong[i] += sums->n_slower || sums->n_faster;
			fathom_diff_free(d);
		}
	}
	assert_in_range(wrong[0], 0, 10);
	assert_in_range(wrong[1], 0, 10);
	/* A function with 10 % of the time that becomes twice as slow is found, and first. */
	for (int pair = 0; pair < 50; pair++) {
		struct fathom_diff *d;
		size_t rows;

		draw(0, 1000, 1);
		draw(1, 1000, 2);
		d = diff(OPTIONS(0));
		found += fathom_diff_rows(d, &rows)->verdict == FATHOM_DIFF_SLOWER &&
			 !strcmp(fathom_diff_rows(d, &rows)->name, "f3");
		fathom_diff_free(d);
	}
	assert_in_range(found, 48, 50);
}

static void options_are_checked(void **state)
{
	const struct fathom_report_options lines = { .size = sizeof lines,
						     .key = FATHOM_REPORT_BY_LINE };
	const struct fathom_diff_options wrong[] = {
		{ .size = sizeof *wrong, .per = 9 },
		{ .size = sizeof *wrong, .per = FATHOM_DIFF_PER_COUNT, .counts = { 1, 0 } },
		{ .size = sizeof *wrong, .filters = &lines },
		{ .size = sizeof *wrong, .reserved1 = 1 },
	};
	struct fathom_profile *profiles[2];
	struct fathom_diff *d;
	struct fathom_errinfo info;

	(void)state;
	begin(0);
	add("f", 1, 1);
	end(5);
	begin(1);
	end(5);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fathom_profile_open(session, paths[i], &profiles[i], NULL),
				 FATHOM_OK);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(fathom_diff_create(profiles[0], profiles[1], &wrong[i], &d, NULL),
				 FATHOM_E_ARGUMENT);
	/* An empty profile is no reason to call anything significant. */
	assert_int_equal(fathom_diff_create(profiles[0], profiles[1], NULL, &d, NULL), FATHOM_OK);
	assert_int_equal(row(d, "f")->verdict, FATHOM_DIFF_NOT_SIGNIFICANT);
	fathom_diff_free(d);
	fathom_profile_free(profiles[1]);
	begin(1);
	fathom_profile_write_about(&made.w, "unit", "cycles");
	end(5);
	assert_int_equal(fathom_profile_open(session, paths[1], &profiles[1], NULL), FATHOM_OK);
	assert_int_equal(fathom_diff_create(profiles[0], profiles[1], NULL, &d, &info),
			 FATHOM_E_ARGUMENT);
	assert_non_null(strstr(info.what, "different events"));
	fathom_profile_free(profiles[0]);
	fathom_profile_free(profiles[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_are_those_of_two_proportions),
		cmocka_unit_test(heavy_samples_are_fewer),
		cmocka_unit_test(functions_match_between_builds),
		cmocka_unit_test(modules_match_between_versions),
		cmocka_unit_test(waits_are_compared_without_a_test),
		cmocka_unit_test(reasons_lose_what_runs_have_anew),
		cmocka_unit_test(weights_are_divided),
		cmocka_unit_test(chances_are_exact),
		cmocka_unit_test(chance_alone_is_rarely_significant),
		cmocka_unit_test(options_are_checked),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
