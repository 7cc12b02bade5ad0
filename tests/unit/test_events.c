/* SPDX-License-Identifier: MIT */
/* What writers make of events that are made by hand. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hostile/alloc.h"
#include "fathom/trace.h"
#include "host/events/open_calls.h"
#include "host/events/writer.h"

/* The functions of all tests; numbers are indexes. */
static const struct fathom_trace_function functions[] = {
	{ .name = "main", .module = "/bin/demo", .address = 0x1000, .number = 0 },
	{ .name = "a", .module = "/bin/demo", .address = 0x2000, .number = 1 },
	{ .name = "b", .module = "/bin/demo", .address = 0x3000, .number = 2 },
	{ .name = "b", .module = "/lib/other.so", .number = 3 },
	{ .name = "x;y\n\"\\&\xff\xe2\x80\xae", .module = "/bin/demo", .number = 4 },
};

enum { MAIN, A, B, OTHER_B, HOSTILE };

#define CALL_IN(time, level, which, how, above) \
	{ .type = FATHOM_TRACE_CALL,            \
	  .ns = (time),                         \
	  .depth = (level),                     \
	  .count = 1,                           \
	  .function = &functions[which],        \
	  .thread = "demo",                     \
	  .pid = 7,                             \
	  .tid = 7,                             \
	  .parent = (how),                      \
	  .parent_depth = (above) }
/* A call by the one that is one level above. */
#define CALL(time, level, which)                                                    \
	CALL_IN(time, level, which,                                                 \
		(level) ? FATHOM_TRACE_PARENT_DIRECT : FATHOM_TRACE_PARENT_UNKNOWN, \
		(level) ? (uint32_t)(level) - 1 : 0)
/* One within that at level @above, which does not make it. */
#define CALL_BELOW(time, level, which, above) \
	CALL_IN(time, level, which, FATHOM_TRACE_PARENT_GAP, above)
#define RETURN(time, level, which, duration) \
	{ .type = FATHOM_TRACE_RETURN,       \
	  .ns = (time),                      \
	  .depth = (level),                  \
	  .count = 1,                        \
	  .function = &functions[which],     \
	  .thread = "demo",                  \
	  .pid = 7,                          \
	  .tid = 7,                          \
	  .duration_ns = (duration) }
#define OTHER(time, what, says) \
	{ .type = (what),       \
	  .ns = (time),         \
	  .count = 1,           \
	  .text = (says),       \
	  .thread = "demo",     \
	  .pid = 7,             \
	  .tid = 7 }

/* What was written. */
struct written {
	char *bytes;
	size_t n;
	size_t writes;
	size_t most; /* writes that succeed; 0: all */
};

static int write_here(void *data, const void *bytes, size_t n)
{
	struct written *to = data;

	if (to->most && to->writes == to->most)
		return 0;
	to->writes++;
	fail_after = 0;
	to->bytes = realloc(to->bytes, to->n + n + 1);
	memcpy(to->bytes + to->n, bytes, n);
	to->n += n;
	to->bytes[to->n] = 0;
	return 1;
}

/* Writes @n events in @format; what comes of it is to be freed. */
static struct written write_all(enum fathom_trace_format format,
				const struct fathom_trace_event *events, size_t n)
{
	struct written to = { .bytes = calloc(1, 1) };
	struct fathom_trace_writer *w;

	assert_int_equal(fathom_trace_writer_create(format, write_here, &to, &w, NULL), FATHOM_OK);
	assert_int_equal(fathom_trace_writer_take(w, events, n), 1);
	assert_int_equal(fathom_trace_writer_finish(w, NULL, NULL), FATHOM_OK);
	fathom_trace_writer_free(w);
	return to;
}

/* Asserts that @n events in @format are @expected. */
static void check_text(enum fathom_trace_format format, const struct fathom_trace_event *events,
		       size_t n, const char *expected)
{
	struct written to = write_all(format, events, n);

	assert_string_equal(to.bytes, expected);
	free(to.bytes);
}

#define CHECK(format, events, expected) \
	check_text(format, events, sizeof(events) / sizeof *(events), expected)

/* main calls a, which calls b twice, and b, all with returns: 1'000 in all. */
static const struct fathom_trace_event nested[] = {
	CALL(100, 0, MAIN),          CALL(200, 1, A), CALL(250, 2, B),
	RETURN(300, 2, B, 50),       CALL(350, 2, B), RETURN(450, 2, B, 100),
	RETURN(500, 1, A, 300),      CALL(600, 1, B), RETURN(800, 1, B, 200),
	RETURN(1100, 0, MAIN, 1000),
};

static void nests_calls_with_returns(void **state)
{
	(void)state;
	CHECK(FATHOM_TRACE_COLLAPSED, nested,
	      "demo;main 500\n"
	      "demo;main;a 150\n"
	      "demo;main;a;b 150\n"
	      "demo;main;b 200\n");
	CHECK(FATHOM_TRACE_TREE, nested,
	      "#       calls         total ns          self ns  path\n"
	      "                         1'000                   demo\n"
	      "            1            1'000              500    main\n"
	      "            1              300              150      a\n"
	      "            2              150              150        b\n"
	      "            1              200              200      b\n");
	CHECK(FATHOM_TRACE_TREE_JSON, nested,
	      "{\"id\":0,\"parent\":null,\"thread\":\"demo\",\"depth\":0,\"function\":\"main\","
	      "\"calls\":1,\"total_ns\":1000,\"self_ns\":500}\n"
	      "{\"id\":1,\"parent\":0,\"thread\":\"demo\",\"depth\":1,\"function\":\"a\","
	      "\"calls\":1,\"total_ns\":300,\"self_ns\":150}\n"
	      "{\"id\":2,\"parent\":1,\"thread\":\"demo\",\"depth\":2,\"function\":\"b\","
	      "\"calls\":2,\"total_ns\":150,\"self_ns\":150}\n"
	      "{\"id\":3,\"parent\":0,\"thread\":\"demo\",\"depth\":1,\"function\":\"b\","
	      "\"calls\":1,\"total_ns\":200,\"self_ns\":200}\n");
	CHECK(FATHOM_TRACE_DOT, nested,
	      "digraph fathom {\n"
	      "\tnode [shape=box]\n"
	      "\tn0 [label=\"a\\n1 call\"]\n"
	      "\tn1 [label=\"b\\n3 calls\"]\n"
	      "\tn3 [label=\"main\\n1 call\"]\n"
	      "\tn0 -> n1 [label=\"2\"]\n"
	      "\tn3 -> n0 [label=\"1\"]\n"
	      "\tn3 -> n1 [label=\"1\"]\n"
	      "}\n");
}

/* Returns were not recorded; neither was what is between main and others, nor who calls b. */
static const struct fathom_trace_event jumps[] = {
	CALL(1000, 0, MAIN),       CALL_BELOW(2000, 4, A, 0), CALL(3000, 5, B),
	CALL_BELOW(4001, 4, B, 0), CALL_BELOW(5000, 2, A, 0), CALL(6000, UINT32_MAX, B),
	CALL(7000, 0, B),
};

static void counts_by_function(void **state)
{
	const struct fathom_trace_event events[] = {
		CALL(1, 0, B),
		{ .type = FATHOM_TRACE_CALL, .count = 1000, .function = &functions[OTHER_B] },
		CALL(2, 0, HOSTILE),
		CALL(3, 1, B),
		OTHER(4, FATHOM_TRACE_SIGNAL, "SIGUSR1"),
	};

	(void)state;
	/* b's 350 are its own; of a's 300, b has 150; of main's 1,000, a has 300 and b 200. */
	CHECK(FATHOM_TRACE_COUNTS, nested,
	      "#       calls      total ns       self ns        min ns       mean ns        p99 ns "
	      " "
	      "      max ns symbol (module)\n"
	      "            1         1'000           500         1'000         1'000         1'000 "
	      " "
	      "       1'000 &main (demo)\n"
	      "            3           350           350            50           116           200 "
	      " "
	      "         200 &b (demo)\n"
	      "            1           300           150           300           300           300 "
	      " "
	      "         300 &a (demo)\n");
	CHECK(FATHOM_TRACE_COUNTS_JSON, nested,
	      "{\"function\":\"main\",\"module\":\"/bin/demo\",\"calls\":1,\"returns\":1,"
	      "\"total_ns\":1000,\"self_ns\":500,\"min_ns\":1000,\"mean_ns\":1000,"
	      "\"p99_ns\":1000,\"max_ns\":1000}\n"
	      "{\"function\":\"b\",\"module\":\"/bin/demo\",\"calls\":3,\"returns\":3,"
	      "\"total_ns\":350,\"self_ns\":350,\"min_ns\":50,\"mean_ns\":116,"
	      "\"p99_ns\":200,\"max_ns\":200}\n"
	      "{\"function\":\"a\",\"module\":\"/bin/demo\",\"calls\":1,\"returns\":1,"
	      "\"total_ns\":300,\"self_ns\":150,\"min_ns\":300,\"mean_ns\":300,"
	      "\"p99_ns\":300,\"max_ns\":300}\n");
	CHECK(FATHOM_TRACE_COUNTS, events,
	      "#       calls symbol (module)\n"
	      "        1'000 &b (other.so)\n"
	      "            2 &b (demo)\n"
	      "            1 &x;y\\n\"\\&\\xff\\u202e (demo)\n");
	CHECK(FATHOM_TRACE_COUNTS_JSON, events,
	      "{\"function\":\"b\",\"module\":\"/lib/other.so\",\"calls\":1000}\n"
	      "{\"function\":\"b\",\"module\":\"/bin/demo\",\"calls\":2}\n"
	      "{\"function\":\"x;y\\n\\\"\\\\&\xef\xbf\xbd\\u202e\",\"module\":\"/bin/demo\","
	      "\"calls\":1}\n");
	check_text(FATHOM_TRACE_COUNTS, NULL, 0, "#       calls symbol (module)\n");
	check_text(FATHOM_TRACE_COUNTS_JSON, NULL, 0, "");
}

/* Of 1 to 200 nanoseconds 198 are not longer than 198, which is known to a sixteenth: 199. */
static void knows_the_99th_percentile_to_a_sixteenth(void **state)
{
	struct fathom_trace_event events[200];

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		events[i] = (struct fathom_trace_event)RETURN(i, 0, A, 200 - i);
	CHECK(FATHOM_TRACE_COUNTS_JSON, events,
	      "{\"function\":\"a\",\"module\":\"/bin/demo\",\"calls\":0,\"returns\":200,"
	      "\"total_ns\":20100,\"self_ns\":20100,\"min_ns\":1,\"mean_ns\":100,"
	      "\"p99_ns\":199,\"max_ns\":200}\n");
}

/* Asserts that @to has @expected, and forgets it. */
static void check_told(struct written *to, const char *expected)
{
	assert_string_equal(to->bytes, expected);
	to->n = 0;
	to->bytes[0] = 0;
}

static void keeps_the_newest_events(void **state)
{
	struct written to = { .bytes = calloc(1, 1) };
	struct fathom_trace_event dump = CALL(5, 0, OTHER_B);
	/* They are gone when they are told. */
	struct fathom_trace_function gone = { .name = "gone", .module = "m", .number = 9 };
	char thread[] = "one";
	char text[] = "SIGABRT";
	struct fathom_trace_event last[] = { CALL(6, 0, A), OTHER(7, FATHOM_TRACE_SIGNAL, text) };
	struct fathom_trace_writer *w;

	(void)state;
	assert_int_equal(
		fathom_trace_writer_create(FATHOM_TRACE_COLLAPSED, write_here, &to, &w, NULL),
		FATHOM_OK);
	assert_int_equal(fathom_trace_writer_keep(w, 0, NULL), FATHOM_E_ARGUMENT);
	fathom_trace_writer_free(w);

	assert_int_equal(fathom_trace_writer_create(FATHOM_TRACE_TEXT, write_here, &to, &w, NULL),
			 FATHOM_OK);
	assert_int_equal(fathom_trace_writer_keep(w, 2, NULL), FATHOM_OK);
	assert_int_equal(fathom_trace_writer_tell(w), 1);
	check_told(&to, "");
	assert_int_equal(fathom_trace_writer_take(w, nested, 4), 1);
	assert_int_equal(fathom_trace_writer_take(w, nested, 0), 1);
	check_told(&to, "");
	assert_int_equal(fathom_trace_writer_tell(w), 1);
	/* The last two calls, and what has followed them. */
	check_told(&to, "#     tid   nanoseconds   stack symbol\n"
			"FUN     7           200       0   &a\n"
			"FUN     7           250       0     &b\n"
			"RET     7           300       0     &b +50\n");
	/* One is not enough to fill it; it is told at a call, and once. */
	dump.actions = FATHOM_TRACE_AT_DUMP;
	assert_int_equal(fathom_trace_writer_take(w, &dump, 1), 1);
	check_told(&to, "FUN     7             5       0 &b\n");
	assert_int_equal(fathom_trace_writer_tell(w), 1);
	check_told(&to, "");
	last[0].function = &gone;
	last[0].thread = thread;
	assert_int_equal(fathom_trace_writer_take(w, last, 2), 1);
	memset(&gone, 0, sizeof gone);
	memset(thread, 'x', sizeof thread);
	memset(text, 'x', sizeof text);
	assert_int_equal(fathom_trace_writer_tell(w), 1);
	check_told(&to, "FUN     7             6       0 &gone\n"
			"SIG     7             7       0 SIGABRT\n");
	/* What is kept at the end is not written. */
	assert_int_equal(fathom_trace_writer_take(w, nested, 4), 1);
	assert_int_equal(fathom_trace_writer_finish(w, NULL, NULL), FATHOM_OK);
	check_told(&to, "");
	fathom_trace_writer_free(w);
	free(to.bytes);
}

#define BEGINS(time, name) \
	"{\"ph\":\"B\",\"pid\":7,\"tid\":7,\"ts\":" time ",\"name\":\"" name "\"},\n"
#define ENDS(time) "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":" time "},\n"

static void marks_callers_that_are_not_known(void **state)
{
	(void)state;
	CHECK(FATHOM_TRACE_COLLAPSED, jumps,
	      "demo;[...];b 1\n"
	      "demo;b 1\n"
	      "demo;main 1\n"
	      "demo;main;[...];a 2\n"
	      "demo;main;[...];a;b 1\n"
	      "demo;main;[...];b 1\n");
	CHECK(FATHOM_TRACE_TREE, jumps,
	      "#       calls  path\n"
	      "               demo\n"
	      "            1    b\n"
	      "            1    main\n"
	      "                   [...]\n"
	      "            2        a\n"
	      "            1          b\n"
	      "            1        b\n"
	      "                 [...]\n"
	      "            1      b\n");
	CHECK(FATHOM_TRACE_DOT, jumps,
	      "digraph fathom {\n"
	      "\tnode [shape=box]\n"
	      "\tn0 [label=\"[...]\"]\n"
	      "\tn1 [label=\"a\\n2 calls\"]\n"
	      "\tn2 [label=\"b\\n4 calls\"]\n"
	      "\tn4 [label=\"main\\n1 call\"]\n"
	      "\tn0 -> n1 [label=\"2\"]\n"
	      "\tn0 -> n2 [label=\"2\"]\n"
	      "\tn1 -> n2 [label=\"1\"]\n"
	      "\tn4 -> n0 [label=\"3\"]\n"
	      "}\n");
	CHECK(FATHOM_TRACE_TEXT, jumps,
	      "#     tid   nanoseconds   stack symbol\n"
	      "FUN     7         1'000       0 &main\n"
	      "FUN     7         2'000       0         [...] &a\n"
	      "FUN     7         3'000       0           &b\n"
	      "FUN     7         4'001       0         [...] &b\n"
	      "FUN     7         5'000       0     [...] &a\n"
	      "FUN     7         6'000       0 "
	      "                                                            "
	      "                                                            &b\n"
	      "FUN     7         7'000       0 &b\n");
	CHECK(FATHOM_TRACE_CHROME, jumps,
	      "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
	      "{\"ph\":\"M\",\"pid\":7,\"tid\":7,\"name\":\"process_name\",\"args\":{\"name\":"
	      "\"demo\"}},\n"
	      "{\"ph\":\"M\",\"pid\":7,\"tid\":7,\"name\":\"thread_name\",\"args\":{\"name\":"
	      "\"demo\"}},\n"
	      "{\"ph\":\"B\",\"pid\":7,\"tid\":7,\"ts\":1.000,\"name\":\"main\"},\n" BEGINS(
		      "2.000",
		      "[...]") BEGINS("2.000",
				      "a") BEGINS("3.000",
						  "b") ENDS("4.001") ENDS("4.001") ENDS("4.001")
		      BEGINS("4.001", "[...]") BEGINS("4.001", "b") ENDS("5.000") ENDS(
			      "5.000") BEGINS("5.000",
					      "[...]") BEGINS("5.000",
							      "a") BEGINS("6.000",
									  "[?]") BEGINS("6.000",
											"b")
			      ENDS("7.000") ENDS("7.000") ENDS("7.000") ENDS("7.000") ENDS(
				      "7.000") "{\"ph\":\"B\",\"pid\":7,\"tid\":7,\"ts\":7.000,"
					       "\"name\":\"b\"},\n"
					       "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":7.000}\n"
					       "]}\n");
}

/*
 * A return without its call ends what is deeper; the rest ends with the next call, and the trace.
 */
static void ends_calls_that_have_no_return(void **state)
{
	static const struct fathom_trace_event events[] = {
		CALL(100, 0, MAIN),
		CALL(200, 1, A),
		CALL_BELOW(300, 5, B, 1),
		RETURN(400, 3, OTHER_B, 0), /* b took 100 */
		CALL(600, 1, B),            /* a took 400 */
		RETURN(600, 1, B, 0),       /* in no time */
		CALL(700, 1, B),
		RETURN(760, 1, B, 60),
		OTHER(1000, FATHOM_TRACE_SIGNAL, "SIGUSR1"), /* main took 900 */
	};

	(void)state;
	CHECK(FATHOM_TRACE_TREE, events,
	      "#       calls         total ns          self ns  path\n"
	      "                           900                   demo\n"
	      "            1              900              440    main\n"
	      "            1              400              300      a\n"
	      "                           100                         [...]\n"
	      "            1              100              100          b\n"
	      "            2               60               60      b\n");
}

static void counts_folded_calls(void **state)
{
	struct fathom_trace_event events[] = { CALL(0, 0, MAIN), CALL(10, 1, A), CALL(20, 2, B),
					       CALL(30, 2, OTHER_B) };

	(void)state;
	events[1].count = 1234567;
	CHECK(FATHOM_TRACE_COLLAPSED, events,
	      "demo;main 1\ndemo;main;a 1234567\ndemo;main;a;b 2\n");
	CHECK(FATHOM_TRACE_TREE, events,
	      "#       calls  path\n"
	      "               demo\n"
	      "            1    main\n"
	      "    1'234'567      a\n"
	      "            2        b\n");
	CHECK(FATHOM_TRACE_DOT, events,
	      "digraph fathom {\n"
	      "\tnode [shape=box]\n"
	      "\tn0 [label=\"a\\n1'234'567 calls\"]\n"
	      "\tn1 [label=\"b\\n2 calls\"]\n"
	      "\tn3 [label=\"main\\n1 call\"]\n"
	      "\tn0 -> n1 [label=\"2\"]\n"
	      "\tn3 -> n0 [label=\"1'234'567\"]\n"
	      "}\n");
	CHECK(FATHOM_TRACE_CHROME, events,
	      "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
	      "{\"ph\":\"M\",\"pid\":7,\"tid\":7,\"name\":\"process_name\",\"args\":{\"name\":"
	      "\"demo\"}},\n"
	      "{\"ph\":\"M\",\"pid\":7,\"tid\":7,\"name\":\"thread_name\",\"args\":{\"name\":"
	      "\"demo\"}},\n"
	      "{\"ph\":\"B\",\"pid\":7,\"tid\":7,\"ts\":0.000,\"name\":\"main\"},\n"
	      "{\"ph\":\"B\",\"pid\":7,\"tid\":7,\"ts\":0.010,\"name\":\"a\",\"args\":{\"count\":"
	      "1234567}},\n"
	      "{\"ph\":\"B\",\"pid\":7,\"tid\":7,\"ts\":0.020,\"name\":\"b\"},\n"
	      "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":0.030},\n"
	      "{\"ph\":\"B\",\"pid\":7,\"tid\":7,\"ts\":0.030,\"name\":\"b\"},\n"
	      "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":0.030},\n"
	      "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":0.030},\n"
	      "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":0.030}\n"
	      "]}\n");
}

/* Thread 7 ends and its number is another thread's; a program replaces that one. */
static void keeps_threads_with_the_same_number_apart(void **state)
{
	struct fathom_trace_event events[] = {
		CALL(100, 0, MAIN),
		OTHER(300, FATHOM_TRACE_EXIT, "ended"),
		OTHER(300, FATHOM_TRACE_LOST, "events"), /* of the first one */
		CALL(500, 2, A),
		OTHER(600, FATHOM_TRACE_START, "program /bin/third"),
		CALL(700, 1, B),
		RETURN(750, 1, B, 50),
	};

	(void)state;
	for (size_t i = 3; i < 7; i++)
		events[i].thread = i < 4 ? "second" : "third";
	CHECK(FATHOM_TRACE_TREE, events,
	      "#       calls         total ns          self ns  path\n"
	      "                           200                   demo\n"
	      "            1              200              200    main\n"
	      "                           100                   second\n"
	      "                           100                     [...]\n"
	      "            1              100              100      a\n"
	      "                            50                   third\n"
	      "                            50                     [...]\n"
	      "            1               50               50      b\n"
	      "# lost: 1 event, which is in no number above\n");
	CHECK(FATHOM_TRACE_COLLAPSED, events,
	      "demo;main 200\nsecond;[...];a 100\nthird;[...];b 50\n[lost] 1\n");
}

static void adds_up_threads_of_the_same_name(void **state)
{
	struct fathom_trace_event events[] = { CALL(0, 0, A), CALL(0, 0, A), CALL(0, 0, A),
					       OTHER(0, FATHOM_TRACE_SIGNAL, "SIGUSR1") };

	(void)state;
	events[1].tid = 8;
	events[2].tid = 9;
	events[2].thread = NULL;
	events[3].tid = 10;
	events[3].thread = "idle";
	CHECK(FATHOM_TRACE_COLLAPSED, events, "??;a 1\ndemo;a 2\n");
	CHECK(FATHOM_TRACE_TREE, events,
	      "#       calls  path\n"
	      "               ??\n"
	      "            1    a\n"
	      "               demo\n"
	      "            2    a\n");
}

static void escapes_hostile_names(void **state)
{
	struct fathom_trace_event events[] = { CALL(0, 0, HOSTILE) };

	(void)state;
	events[0].thread = "t;\x1b[";
	CHECK(FATHOM_TRACE_COLLAPSED, events, "t\\x3b\\x1b[;x\\x3by\\n\"\\&\\xff\\u202e 1\n");
	CHECK(FATHOM_TRACE_TREE, events,
	      "#       calls  path\n"
	      "               t;\\x1b[\n"
	      "            1    x;y\\n\"\\&\\xff\\u202e\n");
	CHECK(FATHOM_TRACE_DOT, events,
	      "digraph fathom {\n"
	      "\tnode [shape=box]\n"
	      "\tn1 [label=\"x;y\\\\n\\\"\\\\&amp;\\\\xff\\\\u202e\\n1 call\"]\n"
	      "}\n");
	CHECK(FATHOM_TRACE_TREE_JSON, events,
	      "{\"id\":0,\"parent\":null,\"thread\":\"t;\\u001b[\",\"depth\":0,"
	      "\"function\":\"x;y\\n\\\"\\\\&\xef\xbf\xbd\\u202e\",\"calls\":1,"
	      "\"total_ns\":null,\"self_ns\":null}\n");
}

/* All tags and lengths are worked out by hand: tag = field << 3 | wire type. */
static void encodes_packets(void **state)
{
	static const struct fathom_trace_event events[] = { CALL(1000, 0, MAIN) };
	static const char expected[] =
		/* Process: uuid 1, pid 7. */
		"\x0a\x16\x40\xe8\x07\x50\x01\x68\x01\xe2\x03\x0c\x08\x01\x1a\x08\x08\x07\x32\x04"
		"demo"
		/* Thread: uuid 2, parent 1, pid 7, tid 7. */
		"\x0a\x1a\x40\xe8\x07\x50\x01\x68\x02\xe2\x03\x10\x08\x02\x28\x01\x22\x0a\x08\x07"
		"\x10\x07\x2a\x04"
		"demo"
		/* Name 1 is main; a slice of track 2 with this name begins. */
		"\x0a\x1b\x40\xe8\x07\x50\x01\x68\x02\x62\x0a\x12\x08\x08\x01\x12\x04"
		"main"
		"\x5a\x06\x48\x01\x58\x02\x50\x01"
		/* It ends. */
		"\x0a\x0d\x40\xe8\x07\x50\x01\x68\x02\x5a\x04\x48\x02\x58\x02";
	struct fathom_trace_writer *w;
	struct written to;

	(void)state;
	if (!fathom_writer_perfetto.begin) {
		assert_int_equal(fathom_trace_writer_create(FATHOM_TRACE_PERFETTO, write_here, &to,
							    &w, NULL),
				 FATHOM_E_UNSUPPORTED);
		return;
	}
	to = write_all(FATHOM_TRACE_PERFETTO, events, 1);
	assert_int_equal(to.n, sizeof expected - 1);
	assert_memory_equal(to.bytes, expected, to.n);
	free(to.bytes);
}

/* Asserts that @command, a program that reads @format, accepts @n events in it. */
static void check_reader(enum fathom_trace_format format, const char *program, const char *options,
			 const struct fathom_trace_event *events, size_t n)
{
	char command[256];
	struct written to;
	FILE *f;

	(void)snprintf(command, sizeof command, "command -v %s >/dev/null", program);
	if (system(command))
		return;
	to = write_all(format, events, n);
	(void)snprintf(command, sizeof command, "%s %s >/dev/null", program, options);
	f = popen(command, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(to.bytes, 1, to.n, f), to.n);
	assert_int_equal(pclose(f), 0);
	free(to.bytes);
}

static void readers_of_the_formats_accept_them(void **state)
{
	struct fathom_trace_event events[] = { CALL(0, 0, HOSTILE),
					       CALL(10, 1, A),
					       CALL(20, 2, B),
					       OTHER(30, FATHOM_TRACE_SIGNAL, "SIG\"\xc3"),
					       RETURN(40, 2, B, 20),
					       OTHER(50, FATHOM_TRACE_LOST, "events"),
					       OTHER(60, FATHOM_TRACE_EXIT, "ended"),
					       CALL(70, 3, A) };
	const size_t n = sizeof events / sizeof *events;

	(void)state;
	events[1].count = 17;
	events[5].tid = 0;
	for (size_t i = 0; i <= n; i += n) {
		check_reader(FATHOM_TRACE_CHROME, "python3", "-m json.tool", events, i);
		check_reader(FATHOM_TRACE_TREE_JSON, "python3", "-m json.tool --json-lines", events,
			     i);
		check_reader(FATHOM_TRACE_DOT, "dot", "-Tsvg", events, i);
		if (fathom_writer_perfetto.begin)
			check_reader(FATHOM_TRACE_PERFETTO, "protoc", "--decode_raw", events, i);
	}
}

/* A recursion of @n calls, with returns. */
static struct fathom_trace_event *recursion(size_t n)
{
	struct fathom_trace_event *events = malloc(2 * n * sizeof *events);

	for (size_t i = 0; i < n; i++) {
		events[i] = (struct fathom_trace_event)CALL(i, (uint32_t)i, A);
		events[2 * n - 1 - i] =
			(struct fathom_trace_event)RETURN(2 * n - i, (uint32_t)i, A, 2 * (n - i));
	}
	return events;
}

#ifndef SANITIZED
static size_t count_lines(const char *s, size_t n)
{
	size_t lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += s[i] == '\n';
	return lines;
}

static void follows_a_recursion_of_a_million(void **state)
{
	const size_t n = 1000000;
	struct fathom_trace_event *events = recursion(n);
	struct written to;

	(void)state;
	to = write_all(FATHOM_TRACE_TREE, events, 2 * n);
	assert_int_equal(count_lines(to.bytes, to.n), n + 2);
	assert_non_null(strstr(to.bytes, "(999'999) a\n"));
	free(to.bytes);
	to = write_all(FATHOM_TRACE_TREE_JSON, events, 2 * n);
	assert_int_equal(count_lines(to.bytes, to.n), n);
	assert_non_null(strstr(to.bytes, "{\"id\":999999,\"parent\":999998,\"thread\":\"demo\","
					 "\"depth\":999999,\"function\":\"a\",\"calls\":1,"
					 "\"total_ns\":2,\"self_ns\":2}\n"));
	free(to.bytes);
	/* The 1,024th stands for all that it calls: 2 * (1,000,000 - 1,023) nanoseconds. */
	to = write_all(FATHOM_TRACE_COLLAPSED, events, 2 * n);
	assert_int_equal(count_lines(to.bytes, to.n), 1024);
	assert_non_null(strstr(to.bytes, ";a 1997954\n"));
	free(to.bytes);
	CHECK(FATHOM_TRACE_DOT, ((struct fathom_trace_event[]){ CALL(0, 0, A), CALL(0, 1, A) }),
	      "digraph fathom {\n\tnode [shape=box]\n\tn0 [label=\"a\\n2 calls\"]\n"
	      "\tn0 -> n0 [label=\"1\"]\n}\n");
	to = write_all(FATHOM_TRACE_CHROME, events, 2 * n);
	assert_int_equal(count_lines(to.bytes, to.n), 2 * n + 4);
	free(to.bytes);
	free(events);
}

/* Deeper calls are siblings. */
static void bounds_open_calls(void **state)
{
	const size_t n = FATHOM_OPEN_CALLS_MAX + 10;
	struct fathom_trace_event *events = recursion(n);
	struct written to;

	(void)state;
	to = write_all(FATHOM_TRACE_TREE_JSON, events, n);
	assert_int_equal(count_lines(to.bytes, to.n), FATHOM_OPEN_CALLS_MAX);
	assert_non_null(strstr(to.bytes, "\"depth\":1048575,\"function\":\"a\",\"calls\":11,"));
	free(to.bytes);
	free(events);
}
#endif

static const enum fathom_trace_format formats[] = {
	FATHOM_TRACE_PERFETTO, FATHOM_TRACE_CHROME,      FATHOM_TRACE_COLLAPSED,
	FATHOM_TRACE_DOT,      FATHOM_TRACE_TREE,        FATHOM_TRACE_TREE_JSON,
	FATHOM_TRACE_COUNTS,   FATHOM_TRACE_COUNTS_JSON, FATHOM_TRACE_PAGE
};

/* Formats that are written at once, as here they are short. */
static bool is_one_write(enum fathom_trace_format format)
{
	return format == FATHOM_TRACE_DOT || format == FATHOM_TRACE_COUNTS ||
	       format == FATHOM_TRACE_COUNTS_JSON;
}

/* The second write fails, where there is one. */
static void says_that_a_write_has_failed(void **state)
{
	struct fathom_trace_event *events = recursion(10000);

	(void)state;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		struct written to = { .most = is_one_write(formats[i]) ? 0 : 1 };
		struct fathom_trace_writer *w;

		if (fathom_trace_writer_create(formats[i], write_here, &to, &w, NULL))
			continue;
		for (size_t e = 0; e < 20000; e++)
			if (!fathom_trace_writer_take(w, &events[e], 1))
				break;
		assert_int_equal(fathom_trace_writer_finish(w, NULL, NULL),
				 to.most ? FATHOM_E_OS : FATHOM_OK);
		fathom_trace_writer_free(w);
		free(to.bytes);
	}
	free(events);
}

/*
 * Writes @events in @format, or the last @kept of them if that is not 0, while an allocation fails;
 * returns the first error.
 */
static fathom_err write_without_memory(enum fathom_trace_format format,
				       const struct fathom_trace_event *events, size_t n,
				       uint32_t kept, long nth)
{
	struct written to = { .bytes = NULL };
	struct fathom_trace_writer *w = NULL;
	fathom_err err;
	int is_taken;

	allocations = 0;
	fail_after = nth;
	err = fathom_trace_writer_create(format, write_here, &to, &w, NULL);
	if (!err && kept)
		err = fathom_trace_writer_keep(w, kept, NULL);
	if (!err) {
		is_taken = fathom_trace_writer_take(w, events, n) && fathom_trace_writer_tell(w);
		err = fathom_trace_writer_finish(w, NULL, NULL);
		assert_true(is_taken || err == FATHOM_E_MEMORY);
	}
	fathom_trace_writer_free(w);
	fail_after = 0;
	free(to.bytes);
	return err;
}

static void check_without_memory(enum fathom_trace_format format, uint32_t kept)
{
	fathom_err err = FATHOM_E_MEMORY;
	long nth = 1;

	for (; alloc_is_ours && err == FATHOM_E_MEMORY && nth < 100; nth++)
		err = write_without_memory(format, nested, sizeof nested / sizeof *nested, kept,
					   nth);
	assert_true(!alloc_is_ours || err == FATHOM_OK || err == FATHOM_E_UNSUPPORTED);
	assert_true(!alloc_is_ours || nth > 5 || err == FATHOM_E_UNSUPPORTED);
}

static void says_that_memory_is_missing(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		for (uint32_t kept = 0; kept < 2; kept++)
			check_without_memory(formats[i], kept * 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nests_calls_with_returns),
		cmocka_unit_test(counts_by_function),
		cmocka_unit_test(knows_the_99th_percentile_to_a_sixteenth),
		cmocka_unit_test(keeps_the_newest_events),
		cmocka_unit_test(marks_callers_that_are_not_known),
		cmocka_unit_test(ends_calls_that_have_no_return),
		cmocka_unit_test(counts_folded_calls),
		cmocka_unit_test(keeps_threads_with_the_same_number_apart),
		cmocka_unit_test(adds_up_threads_of_the_same_name),
		cmocka_unit_test(escapes_hostile_names),
		cmocka_unit_test(encodes_packets),
		cmocka_unit_test(readers_of_the_formats_accept_them),
#ifndef SANITIZED /* millions of events, which take minutes there */
		cmocka_unit_test(follows_a_recursion_of_a_million),
		cmocka_unit_test(bounds_open_calls),
#endif
		cmocka_unit_test(says_that_a_write_has_failed),
		cmocka_unit_test(says_that_memory_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
