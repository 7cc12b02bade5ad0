/* SPDX-License-Identifier: MIT */
/* Reports of profiles that are made by hand, whose sums can be seen. */
#include "unit.h"

#include "made_profile.h"
#include "profile_in_memory.h"

#define WHOLE FATHOM_STOP_ENTRY
enum { SAMPLED = FATHOM_PROFILE_SAMPLED, HIDDEN = FATHOM_PROFILE_KERNEL_HIDDEN };

static void begin(struct made_profile *m)
{
	memset(m, 0, sizeof *m);
	begin_file(&m->w);
	(void)made_thread(m, 70, 70, "demo");
}

static struct fathom_profile *end(struct made_profile *m)
{
	struct fathom_profile *p;

	fathom_profile_write_end(&m->w, 1000);
	end_file(&m->w);
	assert_int_equal(fathom_profile_open(session, path, &p, NULL), FATHOM_OK);
	return p;
}

/* Writes the rows of @r as "NAME SELF/SELF_SAMPLES TOTAL/TOTAL_SAMPLES", a line each. */
static const char *rows_of(const struct fathom_report *r)
{
	static char text[4096];
	size_t n;
	const struct fathom_report_row *rows = fathom_report_rows(r, &n);
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s %d/%d %d/%d\n",
					 rows[i].name, (int)rows[i].self, (int)rows[i].self_samples,
					 (int)rows[i].total, (int)rows[i].total_samples);
	return text;
}

/* Writes the nodes of @r, as "NAME TOTAL(SELF)" behind a dot for each level. */
static const char *tree_of(const struct fathom_report *r)
{
	static char text[4096];
	size_t n;
	const struct fathom_report_node *nodes = fathom_report_nodes(r, &n);
	size_t used = 0;

	text[0] = '\0';
	assert_null(nodes[0].row);
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || nodes[i].parent < i);
		assert_int_equal(nodes[i].depth, i ? nodes[nodes[i].parent].depth + 1 : 0);
		for (uint32_t k = 1; k < nodes[i].depth; k++)
			used += (size_t)snprintf(text + used, sizeof text - used, ".");
		if (i)
			used += (size_t)snprintf(text + used, sizeof text - used, "%s %d(%d)",
						 nodes[i].row->name, (int)nodes[i].total,
						 (int)nodes[i].self);
		if (nodes[i].n_left_out)
			used += (size_t)snprintf(text + used, sizeof text - used, " +%u: %d",
						 nodes[i].n_left_out, (int)nodes[i].left_out);
		if (i || nodes[i].n_left_out)
			used += (size_t)snprintf(text + used, sizeof text - used, "\n");
	}
	return text;
}

static struct fathom_report *report(const struct fathom_profile *p, struct fathom_report_options o)
{
	struct fathom_report *r = NULL;
	struct fathom_errinfo info;

	o.size = sizeof o;
	if (fathom_report_create(p, &o, &r, &info))
		fail_msg("%s", info.what);
	return r;
}

static void assert_rows(const struct fathom_profile *p, struct fathom_report_options o,
			const char *rows)
{
	struct fathom_report *r = report(p, o);

	assert_string_equal(rows_of(r), rows);
	fathom_report_free(r);
}

static void assert_tree(const struct fathom_profile *p, struct fathom_report_options o,
			const char *tree)
{
	struct fathom_report *r = report(p, o);

	assert_string_equal(tree_of(r), tree);
	fathom_report_free(r);
}

#define OPTIONS(...) ((struct fathom_report_options){ .size = 0, __VA_ARGS__ })

/* main calls a and b, which both call c; b calls itself through c. */
static struct fathom_profile *calls(void)
{
	static struct made_profile m;

	begin(&m);
	made_sample(&m, 10, 0, "main;a;c", 100, SAMPLED, WHOLE);
	made_sample(&m, 20, 0, "main;b;c", 30, SAMPLED, WHOLE);
	made_sample(&m, 30, 0, "main;b;c;b;c", 4, SAMPLED, WHOLE);
	made_sample(&m, 40, 0, "main;a", 20, SAMPLED, WHOLE);
	made_sample(&m, 50, 0, "main;a;c", 1, SAMPLED, WHOLE);
	return end(&m);
}

static void recursion_counts_once(void **state)
{
	struct fathom_profile *p = calls();

	(void)state;
	assert_rows(p, OPTIONS(0),
		    "c 135/4 135/4\n"
		    "a 20/1 121/3\n"
		    "main 0/0 155/5\n"
		    "b 0/0 34/2\n");
	fathom_profile_free(p);
}

static void trees_join_what_stacks_share(void **state)
{
	struct fathom_profile *p = calls();

	(void)state;
	assert_tree(p, OPTIONS(0),
		    "main 155(0)\n"
		    ".a 121(20)\n"
		    "..c 101(101)\n"
		    ".b 34(0)\n"
		    "..c 34(30)\n"
		    "...b 4(0)\n"
		    "....c 4(4)\n");
	assert_tree(p, OPTIONS(.shape = FATHOM_REPORT_BOTTOM_UP),
		    "c 135(0)\n"
		    ".a 101(0)\n"
		    "..main 101(101)\n"
		    ".b 34(0)\n"
		    "..main 30(30)\n"
		    "..c 4(0)\n"
		    "...b 4(0)\n"
		    "....main 4(4)\n"
		    "a 20(0)\n"
		    ".main 20(20)\n");
	assert_tree(p, OPTIONS(.shape = FATHOM_REPORT_CALLERS, .of = "c"),
		    "c 135(0)\n"
		    ".a 101(0)\n"
		    "..main 101(101)\n"
		    ".b 34(0)\n"
		    "..main 34(34)\n");
	assert_tree(p, OPTIONS(.shape = FATHOM_REPORT_CALLEES, .of = "b"),
		    "b 34(0)\n"
		    ".c 34(30)\n"
		    "..b 4(0)\n"
		    "...c 4(4)\n");
	fathom_profile_free(p);
}

static void light_branches_are_left_out(void **state)
{
	struct fathom_profile *p = calls();

	(void)state;
	/* 20 % of 155 are 31. */
	assert_tree(p, OPTIONS(.least_share = 200000),
		    "main 155(0)\n"
		    ".a 121(20)\n"
		    "..c 101(101)\n"
		    ".b 34(0)\n"
		    "..c 34(30) +1: 4\n");
	assert_tree(p, OPTIONS(.shape = FATHOM_REPORT_BOTTOM_UP, .least_share = 200000),
		    " +1: 20\n"
		    "c 135(0)\n"
		    ".a 101(0)\n"
		    "..main 101(101)\n"
		    ".b 34(0) +2: 34\n");
	fathom_profile_free(p);
}

static void functions_can_be_chosen(void **state)
{
	static const char *const a[] = { "a" };
	static const char *const b[] = { "b" };
	static const char *const ac[] = { "a", "c" };
	static const char *const all[] = { "*" };
	struct fathom_profile *p = calls();
	struct fathom_report *r;

	(void)state;
	assert_rows(p, OPTIONS(.only = ac, .n_only = 2), "c 135/4 135/4\na 20/1 121/3\n");
	assert_tree(p, OPTIONS(.only = ac, .n_only = 2),
		    "a 121(20)\n"
		    ".c 101(101)\n"
		    "c 34(30)\n"
		    ".c 4(4)\n");
	/* The time of its callees becomes its own; time in none of them is left out. */
	assert_rows(p, OPTIONS(.only = a, .n_only = 1), "a 121/3 121/3\n");
	assert_tree(p, OPTIONS(.only = a, .n_only = 1, .shape = FATHOM_REPORT_BOTTOM_UP),
		    "a 121(121)\n");
	assert_rows(p, OPTIONS(.except = ac, .n_except = 2), "main 121/3 155/5\nb 34/2 34/2\n");
	assert_tree(p, OPTIONS(.under = b, .n_under = 1),
		    "b 34(0)\n"
		    ".c 34(30)\n"
		    "..b 4(0)\n"
		    "...c 4(4)\n");
	assert_tree(p, OPTIONS(.under = b, .n_under = 1, .shape = FATHOM_REPORT_BOTTOM_UP),
		    "c 34(0)\n"
		    ".b 34(30)\n"
		    "..c 4(0)\n"
		    "...b 4(4)\n");
	assert_tree(p, OPTIONS(.under = a, .n_under = 1, .of = "c", .shape = FATHOM_REPORT_CALLERS),
		    "c 101(0)\n"
		    ".a 101(101)\n");
	assert_tree(p, OPTIONS(.under = a, .n_under = 1, .of = "c", .shape = FATHOM_REPORT_CALLEES),
		    "c 101(101)\n");
	assert_rows(p, OPTIONS(.except = all, .n_except = 1), "");
	r = report(p, OPTIONS(.only = a, .n_only = 1));
	assert_int_equal(fathom_report_get_sums(r)->weight, 155);
	assert_int_equal(fathom_report_get_sums(r)->shown, 121);
	fathom_report_free(r);
	fathom_profile_free(p);
}

static void queries_are_checked(void **state)
{
	static const char *const none[] = { "nothing" };
	static const char *const line[] = { "a.c:7" };
	static const char *const whole_file[] = { "a.c:" };
	static const char *const bad[] = { "/(/" };
	const struct {
		struct fathom_report_options o;
		fathom_err err;
	} cases[] = {
		{ OPTIONS(.only = none, .n_only = 1), FATHOM_E_NOT_FOUND },
		{ OPTIONS(.under = none, .n_under = 1), FATHOM_E_NOT_FOUND },
		{ OPTIONS(.of = "nothing", .shape = FATHOM_REPORT_CALLERS), FATHOM_E_NOT_FOUND },
		{ OPTIONS(.except = none, .n_except = 1), FATHOM_OK },
		{ OPTIONS(.only = line, .n_only = 1), FATHOM_E_UNSUPPORTED },
		{ OPTIONS(.only = whole_file, .n_only = 1), FATHOM_E_UNSUPPORTED },
		{ OPTIONS(.under = bad, .n_under = 1), FATHOM_E_ARGUMENT },
		{ OPTIONS(.of = "a"), FATHOM_E_ARGUMENT },
		{ OPTIONS(.shape = FATHOM_REPORT_CALLEES), FATHOM_E_ARGUMENT },
		{ OPTIONS(.shape = 9), FATHOM_E_ARGUMENT },
		{ OPTIONS(.key = 9), FATHOM_E_ARGUMENT },
		{ OPTIONS(.least_share = 1000001), FATHOM_E_ARGUMENT },
	};
	struct fathom_profile *p = calls();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fathom_report_options o = cases[i].o;
		struct fathom_report *r = NULL;

		o.size = sizeof o;
		if (fathom_report_create(p, &o, &r, NULL) != cases[i].err)
			fail_msg("case %zu", i);
		fathom_report_free(r);
	}
	fathom_profile_free(p);
}

static void a_time_can_be_chosen(void **state)
{
	struct fathom_profile *p = calls();

	(void)state;
	assert_rows(p, OPTIONS(.from_ns = 20, .to_ns = 40),
		    "c 34/2 34/2\n"
		    "b 0/0 34/2\n"
		    "main 0/0 34/2\n");
	assert_rows(p, OPTIONS(.from_ns = 50),
		    "c 1/1 1/1\n"
		    "a 0/0 1/1\n"
		    "main 0/0 1/1\n");
	assert_rows(p, OPTIONS(.from_ns = 51), "");
	fathom_profile_free(p);
}

/* Weights without a place. */
static struct fathom_profile *places(void)
{
	static struct made_profile m;

	begin(&m);
	made_sample(&m, 1, 0, "main;read", 10, HIDDEN, WHOLE);
	made_sample(&m, 2, 0, "", 20, HIDDEN, FATHOM_STOP_NONE);
	made_sample(&m, 3, 0, "", 40, FATHOM_PROFILE_UNSAMPLED, FATHOM_STOP_NONE);
	made_sample(&m, 4, 0, "x", 80, SAMPLED, FATHOM_STOP_NO_RULE);
	made_sample(&m, 5, 0, "", 160, SAMPLED, FATHOM_STOP_UNREADABLE);
	made_sample(&m, 6, 0, "x", 320, SAMPLED, 200);
	return end(&m);
}

static void what_has_no_place_has_a_row(void **state)
{
	struct fathom_profile *p = places();
	struct fathom_report *r;
	const struct fathom_report_sums *sums;

	(void)state;
	assert_rows(p, OPTIONS(0),
		    "x 400/2 400/2\n"
		    "[stack not complete: unreadable] 160/1 160/1\n"
		    "[not sampled] 40/1 40/1\n"
		    "[kernel, stack not permitted] 30/2 30/2\n"
		    "[stack not complete] 0/0 320/1\n"
		    "[stack not complete: no-rule] 0/0 80/1\n"
		    "main 0/0 10/1\n"
		    "read 0/0 10/1\n");
	assert_tree(p, OPTIONS(0),
		    "[stack not complete] 320(0)\n"
		    ".x 320(320)\n"
		    "[stack not complete: unreadable] 160(160)\n"
		    "[stack not complete: no-rule] 80(0)\n"
		    ".x 80(80)\n"
		    "[not sampled] 40(40)\n"
		    "[kernel, stack not permitted] 20(20)\n"
		    "main 10(0)\n"
		    ".read 10(0)\n"
		    "..[kernel, stack not permitted] 10(10)\n");
	assert_tree(p, OPTIONS(.shape = FATHOM_REPORT_BOTTOM_UP),
		    "x 400(0)\n"
		    ".[stack not complete] 320(320)\n"
		    ".[stack not complete: no-rule] 80(80)\n"
		    "[stack not complete: unreadable] 160(160)\n"
		    "[not sampled] 40(40)\n"
		    "[kernel, stack not permitted] 30(20)\n"
		    ".read 10(0)\n"
		    "..main 10(10)\n");
	r = report(p, OPTIONS(0));
	sums = fathom_report_get_sums(r);
	assert_int_equal(sums->weight, 630);
	assert_int_equal(sums->shown, 630);
	assert_int_equal(sums->hidden, 30);
	assert_int_equal(sums->unsampled, 40);
	assert_int_equal(sums->n_samples, 6);
	assert_int_equal(sums->n_stacks, 3);
	assert_int_equal(sums->n_whole, 1);
	fathom_report_free(r);
	fathom_profile_free(p);
}

/* Threads, one of which is renamed; modules; lines. */
static struct fathom_profile *keys(void)
{
	static struct made_profile m;
	uint32_t second;
	uint32_t child;

	begin(&m);
	second = made_thread(&m, 70, 71, "worker");
	(void)fathom_profile_write_cgroup(&m.w, "/service");
	child = made_thread(&m, 80, 80, "child");
	made_sample(&m, 1, 0, "main@/bin/x!x.c:3;f@/bin/x!x.c:7;g@/lib/y!y.c:7", 1, SAMPLED, WHOLE);
	made_sample(&m, 2, second, "main@/bin/x!x.c:4;f@/bin/x!x.c:8", 10, SAMPLED, WHOLE);
	made_sample(&m, 3, child, "f@/lib/y;??@/bin/x;??", 100, SAMPLED, WHOLE);
	made_sample(&m, 4, second, "f@/lib/y", 1000, SAMPLED, FATHOM_STOP_LOOP);
	return end(&m);
}

static void it_can_be_by_other_keys(void **state)
{
	struct fathom_profile *p = keys();

	(void)state;
	/* Two functions are called f. */
	assert_rows(p, OPTIONS(0),
		    "f 1000/1 1100/2\n"
		    "?? 100/1 100/1\n"
		    "f 10/1 11/2\n"
		    "g 1/1 1/1\n"
		    "[stack not complete: loop] 0/0 1000/1\n"
		    "?? 0/0 100/1\n"
		    "main 0/0 11/2\n");
	assert_rows(p, OPTIONS(.key = FATHOM_REPORT_BY_LINE),
		    "f 1000/1 1100/2\n"
		    "?? 100/1 100/1\n"
		    "f 10/1 10/1\n"
		    "g 1/1 1/1\n"
		    "[stack not complete: loop] 0/0 1000/1\n"
		    "?? 0/0 100/1\n"
		    "main 0/0 10/1\n"
		    "f 0/0 1/1\n"
		    "main 0/0 1/1\n");
	assert_rows(p, OPTIONS(.key = FATHOM_REPORT_BY_MODULE),
		    "/lib/y 1001/2 1101/3\n"
		    "?? 100/1 100/1\n"
		    "/bin/x 10/1 111/3\n"
		    "[stack not complete: loop] 0/0 1000/1\n");
	assert_tree(p, OPTIONS(.key = FATHOM_REPORT_BY_MODULE),
		    "[stack not complete: loop] 1000(0)\n"
		    "./lib/y 1000(1000)\n"
		    "/lib/y 100(0)\n"
		    "./bin/x 100(0)\n"
		    "..?? 100(100)\n"
		    "/bin/x 11(10)\n"
		    "./lib/y 1(1)\n");
	assert_tree(p, OPTIONS(.key = FATHOM_REPORT_BY_MODULE, .shape = FATHOM_REPORT_BOTTOM_UP),
		    "/lib/y 1001(0)\n"
		    ".[stack not complete: loop] 1000(1000)\n"
		    "./bin/x 1(1)\n"
		    "?? 100(0)\n"
		    "./bin/x 100(0)\n"
		    "../lib/y 100(100)\n"
		    "/bin/x 10(10)\n");
	assert_rows(p, OPTIONS(.key = FATHOM_REPORT_BY_THREAD),
		    "worker 1010/2 1010/2\n"
		    "child 100/1 100/1\n"
		    "demo 1/1 1/1\n");
	assert_rows(p, OPTIONS(.key = FATHOM_REPORT_BY_PROCESS),
		    "demo 1011/3 1011/3\n"
		    "child 100/1 100/1\n");
	assert_tree(p, OPTIONS(.key = FATHOM_REPORT_BY_PROCESS),
		    "demo 1011(0)\n"
		    ".[stack not complete: loop] 1000(0)\n"
		    "..f 1000(1000)\n"
		    ".main 11(0)\n"
		    "..f 11(10)\n"
		    "...g 1(1)\n"
		    "child 100(0)\n"
		    ".f 100(0)\n"
		    "..?? 100(0)\n"
		    "...?? 100(100)\n");
	assert_rows(p, OPTIONS(.key = FATHOM_REPORT_BY_CGROUP),
		    "[cgroup not known] 1011/3 1011/3\n"
		    "/service 100/1 100/1\n");
	assert_tree(
		p,
		OPTIONS(.key = FATHOM_REPORT_BY_PROCESS, .of = "g", .shape = FATHOM_REPORT_CALLERS),
		"g 1(0)\n"
		".f 1(0)\n"
		"..main 1(0)\n"
		"...demo 1(1)\n");
	fathom_profile_free(p);
}

/* Waits for two reasons, and for none that is known, beside samples on a processor. */
static struct fathom_profile *waits(void)
{
	static struct made_profile m;
	const uint8_t wait = FATHOM_PROFILE_WAITING;
	uint32_t second;

	begin(&m);
	fathom_profile_write_about(&m.w, "unit", "ns");
	second = made_thread(&m, 70, 71, "worker");
	made_sample(&m, 1, 0, "main;lock;[futex: mutex 0x10]@[waits]", 1, wait, WHOLE);
	made_sample(&m, 2, second, "work;lock;[futex: mutex 0x10]@[waits]", 10, wait, WHOLE);
	made_sample(&m, 3, second, "work;lock;[futex: mutex 0x20]@[waits]", 100, wait, WHOLE);
	/* A function of that name is no reason. */
	made_sample(&m, 4, second, "work;[futex: mutex 0x20]@/bin/x", 1000, wait, WHOLE);
	made_sample(&m, 5, second, "", 10000, FATHOM_PROFILE_RUNNABLE, FATHOM_STOP_NONE);
	made_sample(&m, 6, second, "[waits for a processor]@[waits]", 20000,
		    FATHOM_PROFILE_RUNNABLE, FATHOM_STOP_NONE);
	made_sample(&m, 7, 0, "main;work", 100000, SAMPLED, WHOLE);
	made_sample(&m, 8, 0, "main", 200000, HIDDEN, WHOLE);
	made_sample(&m, 9, 0, "", 400000, FATHOM_PROFILE_UNSAMPLED, FATHOM_STOP_NONE);
	return end(&m);
}

static void waits_can_be_by_reason(void **state)
{
	static const char *const only[] = { "lock" };
	struct fathom_profile *p = waits();

	(void)state;
	assert_rows(p, OPTIONS(.key = FATHOM_REPORT_BY_REASON, .time = FATHOM_REPORT_WALL),
		    "[on a processor] 700000/3 700000/3\n"
		    "[waits for a processor] 30000/2 30000/2\n"
		    "[reason not known] 1000/1 1000/1\n"
		    "[futex: mutex 0x20] 100/1 100/1\n"
		    "[futex: mutex 0x10] 11/2 11/2\n");
	assert_rows(p, OPTIONS(.key = FATHOM_REPORT_BY_REASON),
		    "[on a processor] 700000/3 700000/3\n");
	assert_tree(p,
		    OPTIONS(.key = FATHOM_REPORT_BY_REASON, .time = FATHOM_REPORT_WAITING,
			    .only = only, .n_only = 1),
		    "[futex: mutex 0x20] 100(0)\n"
		    ".lock 100(100)\n"
		    "[futex: mutex 0x10] 11(0)\n"
		    ".lock 11(11)\n");
	assert_tree(p,
		    OPTIONS(.key = FATHOM_REPORT_BY_REASON, .time = FATHOM_REPORT_WAITING,
			    .of = "lock", .shape = FATHOM_REPORT_CALLERS),
		    "lock 111(0)\n"
		    ".work 110(0)\n"
		    "..[futex: mutex 0x20] 100(100)\n"
		    "..[futex: mutex 0x10] 10(10)\n"
		    ".main 1(0)\n"
		    "..[futex: mutex 0x10] 1(1)\n");
	fathom_profile_free(p);
}

static void rows_tell_where_they_are(void **state)
{
	struct fathom_profile *p = keys();
	struct fathom_report *r = report(p, OPTIONS(.key = FATHOM_REPORT_BY_LINE));
	const struct fathom_report_row *rows;
	size_t n;

	(void)state;
	/* A report does not need its profile. */
	fathom_profile_free(p);
	rows = fathom_report_rows(r, &n);
	assert_int_equal(n, 9);
	assert_string_equal(rows[3].name, "g");
	assert_string_equal(rows[3].module, "/lib/y");
	assert_string_equal(rows[3].file, "y.c");
	assert_int_equal(rows[3].line, 7);
	assert_null(rows[3].linkage_name);
	assert_null(rows[1].module);
	assert_int_equal(rows[4].kind, FATHOM_REPORT_ROW_INCOMPLETE);
	assert_int_equal(rows[4].stop, FATHOM_STOP_LOOP);
	fathom_report_free(r);
}

/* A stack of a million frames, each of which was sampled, is no reason to be slow. */
static void deep_stacks_are_summed_up(void **state)
{
	enum { DEPTH = 1000000 };
	static struct made_profile m;
	struct fathom_profile *p;
	struct fathom_report *r;
	const struct fathom_report_row *rows;
	size_t n;

	(void)state;
	begin(&m);
	made_sample(&m, 1, 0, "f", 1, SAMPLED, WHOLE);
	for (uint32_t i = 1; i < DEPTH; i++) {
		const struct fathom_profile_node node = { .caller = i };
		const struct fathom_profile_sample s = { .ns = i,
							 .weight = 1,
							 .node = fathom_profile_write_node(&m.w,
											   &node),
							 .stop = WHOLE };

		fathom_profile_write_sample(&m.w, &s);
	}
	p = end(&m);
	r = report(p, OPTIONS(0));
	rows = fathom_report_rows(r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].self, DEPTH);
	assert_int_equal(rows[0].total, DEPTH);
	(void)fathom_report_nodes(r, &n);
	assert_int_equal(n, DEPTH + 1);
	fathom_report_free(r);
	fathom_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(trees_join_what_stacks_share),
		cmocka_unit_test(light_branches_are_left_out),
		cmocka_unit_test(functions_can_be_chosen),
		cmocka_unit_test(queries_are_checked),
		cmocka_unit_test(a_time_can_be_chosen),
		cmocka_unit_test(what_has_no_place_has_a_row),
		cmocka_unit_test(it_can_be_by_other_keys),
		cmocka_unit_test(waits_can_be_by_reason),
		cmocka_unit_test(rows_tell_where_they_are),
		cmocka_unit_test(deep_stacks_are_summed_up),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
