/* SPDX-License-Identifier: MIT */
/*
 * asker PID LOG COUNT addr|find [KIND]: asks the process of programs/changing.c or
 * ../jit/programs/racing.c COUNT times who is at an address where it had code lately, or where a
 * function is that it had lately; of code of KIND only, a number of enum kind. Each answer has to
 * be one that was true at some moment between question and answer, by what the process itself has
 * written. What was there all that time must be found, unless the answer is "changed".
 */
#include <fathom/fathom.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../lib/programs/changing.h"

/* Addresses are those of one of the last so many records. */
#define RECENT 24
/* Answers that are older than so many records cannot be judged: they may have been written over. */
#define OLD (RECORDS / 2)

/* Where names of each kind come from; NULL: from several places. */
static const char *const sources[N_KINDS] = { NULL, "gdb-jit", "perf-map", "jitdump" };

struct question {
	uint64_t address;
	uint64_t start; /* of the function that the answer names */
	uint64_t from;
	uint64_t to;
	const char *name; /* the answer; NULL for none */
	const char *reason;
	const char *source;
};

/* What the answers were. */
struct counts {
	long named;
	long unnamed;
	long late; /* could not be judged */
	long changed;
	long refused; /* the process could not be asked: it was becoming another program */
};

static bool holds(const struct record *r, uint64_t address)
{
	return address - r->start < r->size;
}

static bool is_named(const struct record *r, const struct question *q)
{
	return r->start == q->start && strcmp(r->name, q->name) == 0 &&
	       (!sources[r->kind] || strcmp(sources[r->kind], q->source) == 0);
}

/* Whether the log has a moment at which the answer was true. */
static bool was_true(const struct log *log, const struct question *q)
{
	if (!q->name && strcmp(q->reason, "changed") == 0)
		return true;
	for (int i = 0; i < RECORDS; i++) {
		const struct record *r = &log->record[i];

		if (!holds(r, q->address))
			continue;
		if (q->name && is_named(r, q) && r->maybe_from <= q->to &&
		    atomic_load(&r->maybe_to) >= q->from)
			return true;
		if (!q->name && r->certain_from <= q->from && atomic_load(&r->certain_to) >= q->to)
			return false;
	}
	return !q->name;
}

/*
 * What is new is logged once it is there, which may be after the answer: whether the log is to be
 * looked at again. @n: its records when the answer came, @deadline: when to give up.
 */
static bool may_be_logged_yet(const struct log *log, uint64_t n, uint64_t deadline)
{
	return atomic_load(&log->n) < n + 2 && now() < deadline;
}

static bool is_true(const struct log *log, const struct question *q)
{
	const uint64_t n = atomic_load(&log->n);
	const uint64_t deadline = now() + 2000000000;

	while (may_be_logged_yet(log, n, deadline))
		if (was_true(log, q))
			return true;
	return was_true(log, q);
}

static void complain(const struct log *log, const struct question *q)
{
	printf("0x%llx was said to be %s (%s) between %llu and %llu\n",
	       (unsigned long long)q->address, q->name ? q->name : "nothing", q->reason,
	       (unsigned long long)q->from, (unsigned long long)q->to);
	for (int i = 0; i < RECORDS; i++) {
		const struct record *r = &log->record[i];

		if ((holds(r, q->address) || (q->name && strcmp(r->name, q->name) == 0)) &&
		    r->maybe_to >= q->from - 5000000 && r->maybe_from <= q->to + 5000000)
			printf("  %s from %llu (%llu) to %llu (%llu)\n", r->name,
			       (unsigned long long)r->certain_from,
			       (unsigned long long)r->maybe_from, (unsigned long long)r->certain_to,
			       (unsigned long long)r->maybe_to);
	}
}

/* A record of @kind, or of any, among the last ones. */
static const struct record *choose(const struct log *log, uint32_t kind)
{
	const struct record *r;

	do {
		const uint64_t n = atomic_load(&log->n);
		const uint64_t recent = kind == N_KINDS ? RECENT : RECENT * N_KINDS;
		const uint64_t back = 1 + (uint64_t)rand() % (n < recent ? n : recent);

		r = &log->record[(n - back) % RECORDS];
	} while (kind != N_KINDS && r->kind != kind);
	return r;
}

/* Whether @address was where @name is, at a moment of the question. */
static bool was_there(const struct log *log, const char *name, uint64_t address,
		      const struct question *q)
{
	for (int i = 0; i < RECORDS; i++) {
		const struct record *r = &log->record[i];

		if (r->start == address && strcmp(r->name, name) == 0 && r->maybe_from <= q->to &&
		    atomic_load(&r->maybe_to) >= q->from)
			return true;
	}
	return false;
}

/* As is_true(), of a place. */
static bool is_true_place(const struct log *log, uint64_t address, const struct question *q)
{
	const uint64_t n = atomic_load(&log->n);
	const uint64_t deadline = now() + 2000000000;

	while (may_be_logged_yet(log, n, deadline))
		if (was_there(log, q->name, address, q))
			return true;
	return was_there(log, q->name, address, q);
}

static bool is_among(const struct fathom_matches *matches, uint64_t address)
{
	for (size_t i = 0; i < fathom_matches_count(matches); i++) {
		const struct fathom_match *m = fathom_matches_get(matches, i);

		if (m->flags & FATHOM_MATCH_ADDRESS && m->address == address)
			return true;
	}
	return false;
}

/* Whether a place where the function was all the time is none of the matches. */
static bool is_missing(const struct log *log, const struct fathom_matches *matches,
		       const struct question *q)
{
	for (int i = 0; i < RECORDS; i++) {
		const struct record *r = &log->record[i];
		/* Before all else: what is written over the record from now on is newer than @q. */
		const uint64_t to = atomic_load(&r->certain_to);
		const uint64_t start = r->start;
		char name[sizeof r->name];

		memcpy(name, r->name, sizeof name);
		if (to >= q->to && r->certain_from <= q->from &&
		    strncmp(name, q->name, sizeof name) == 0 && !is_among(matches, start) &&
		    atomic_load(&r->certain_to) == to)
			return true;
	}
	return false;
}

/* Judges the matches of one question; returns the number of those that have an address. */
static long judge_places(const struct log *log, const struct fathom_matches *matches,
			 struct question *q, bool *ret_true)
{
	long n = 0;

	*ret_true = true;
	q->reason = "";
	for (size_t i = 0; i < fathom_matches_count(matches); i++) {
		const struct fathom_match *m = fathom_matches_get(matches, i);

		if (m->reason)
			q->reason = fathom_reason_name(m->reason);
		if (!(m->flags & FATHOM_MATCH_ADDRESS))
			continue;
		n++;
		q->address = m->address;
		*ret_true &= is_true_place(log, m->address, q);
	}
	if (*ret_true && strcmp(q->reason, "changed") != 0 && is_missing(log, matches, q)) {
		q->reason = "is missing";
		*ret_true = false;
	}
	return n;
}

/* Counts an answer; whether it is not known to be wrong. @n: records when it was asked. */
static bool count_answer(const struct log *log, const struct question *q, uint64_t n, bool is_found,
			 bool is_right, struct counts *counts)
{
	counts->named += is_found;
	counts->unnamed += !is_found;
	counts->changed += strcmp(q->reason, "changed") == 0;
	counts->late += !is_right;
	if (is_right || atomic_load(&log->n) - n >= OLD)
		return true;
	complain(log, q);
	return false;
}

/* Asks where a function is; whether the answer was not wrong. */
static bool ask_where(struct fathom_target *target, const struct log *log, uint32_t kind,
		      struct counts *counts)
{
	const struct fathom_find_options options = { .size = sizeof options };
	const uint64_t n = atomic_load(&log->n);
	struct fathom_matches *matches;
	struct fathom_errinfo info;
	char name[sizeof log->record[0].name];
	struct question q = { .name = name };
	bool is_found;
	bool is_right;

	memcpy(name, choose(log, kind)->name, sizeof name);
	q.from = now();
	if (fathom_find(target, &options, &q.name, 1, &matches, &info)) {
		counts->refused++;
		return true;
	}
	q.to = now();
	is_found = judge_places(log, matches, &q, &is_right) > 0;
	fathom_matches_free(matches);
	return count_answer(log, &q, n, is_found, is_right, counts);
}

/* Asks who is at an address; whether the answer was not wrong. */
static bool ask_who(struct fathom_target *target, const struct log *log, uint32_t kind,
		    struct counts *counts)
{
	const struct fathom_symbolize_options plain = { .size = sizeof plain,
							.flags = FATHOM_NAMES_ONLY };
	const uint64_t n = atomic_load(&log->n);
	const struct record *r = choose(log, kind);
	struct question q = { .address = r->start + (uint64_t)rand() % r->size, .from = now() };
	struct fathom_answers *answers;
	const struct fathom_answer *a;
	struct fathom_errinfo info;
	bool is_right;

	if (fathom_symbolize(target, &plain, &q.address, NULL, 1, &answers, &info)) {
		printf("addr: %s\n", info.what);
		return false;
	}
	q.to = now();
	a = fathom_answers_get(answers, 0);
	if (a->symbol)
		q.name = a->symbol;
	q.start = q.address - a->offset;
	q.reason = fathom_reason_name(a->reason);
	q.source = fathom_source_name(a->source);
	is_right = count_answer(log, &q, n, q.name != NULL, is_true(log, &q), counts);
	fathom_answers_free(answers);
	return is_right;
}

static struct fathom *session;

/* Files of the process are cut while they are read. */
static void handle_sigbus(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (fathom_handle_sigbus(session, info->si_addr))
		return;
	(void)sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

/* Waits until the process has done enough to be asked about; false if it does not begin. */
static bool wait_for_records(const struct log *log)
{
	const struct timespec t = { 0, 1000000 };
	const uint64_t deadline = now() + 10000000000;

	while (atomic_load(&log->n) < RECENT && now() < deadline)
		nanosleep(&t, NULL);
	return atomic_load(&log->n) >= RECENT;
}

int main(int argc, char **argv)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const int fd = argc > 4 ? open(argv[2], O_RDONLY) : -1;
	const struct log *log = mmap(NULL, sizeof *log, PROT_READ, MAP_SHARED, fd, 0);
	const long count = argc > 4 ? atol(argv[3]) : 0;
	const bool by_name = argc > 4 && strcmp(argv[4], "find") == 0;
	const uint32_t kind = argc > 5 ? (uint32_t)atoi(argv[5]) : N_KINDS;
	struct counts counts = { 0 };
	struct fathom_target *target;
	struct fathom_errinfo info;
	bool is_right = true;

	if (log == MAP_FAILED || !wait_for_records(log)) {
		puts("the process writes no log");
		return 2;
	}
	if (fathom_create(&options, &session, &info) ||
	    fathom_target_open_process(session, atoi(argv[1]), NULL, &target, &info)) {
		puts(info.what);
		return 2;
	}
	(void)sigaction(
		SIGBUS,
		&(struct sigaction){ .sa_sigaction = handle_sigbus, .sa_flags = SA_SIGINFO }, NULL);
	for (long i = 0; i < count && is_right; i++)
		is_right = by_name ? ask_where(target, log, kind, &counts)
				   : ask_who(target, log, kind, &counts);
	if (is_right)
		printf("%ld named, %ld not, %ld could not be judged, %ld changed, %ld refused\n",
		       counts.named, counts.unnamed, counts.late, counts.changed, counts.refused);
	fathom_target_release(target);
	fathom_destroy(session);
	return !is_right;
}
