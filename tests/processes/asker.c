/* SPDX-License-Identifier: MIT */
/*
 * asker PID LOG COUNT [find]: asks the process of programs/changing.c so many times who is at an
 * address where it had code lately, or where a function is that it had lately. Each answer has to
 * be one that was true at some moment between question and answer, by what the process itself has
 * written.
 */
#include <fathom/fathom.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "programs/changing.h"

/* Addresses are those of one of the last so many records. */
#define RECENT 24
/* Answers that are older than so many records cannot be judged: they may have been written over. */
#define OLD (RECORDS / 2)

struct question {
	uint64_t address;
	uint64_t from;
	uint64_t to;
	const char *name; /* the answer; NULL for none */
	const char *reason;
};

static bool holds(const struct record *r, uint64_t address)
{
	return address - r->start < r->size;
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
		if (q->name && strcmp(r->name, q->name) == 0 && r->maybe_from <= q->to &&
		    atomic_load(&r->maybe_to) >= q->from)
			return true;
		if (!q->name && r->certain_from <= q->from && atomic_load(&r->certain_to) >= q->to)
			return false;
	}
	return !q->name;
}

/* What is being opened now is written when it is there: waits for that. */
static bool is_true(const struct log *log, const struct question *q)
{
	const uint64_t deadline = now() + 2000000000;

	while (!was_true(log, q))
		if (now() > deadline)
			return false;
	return true;
}

static void complain(const struct log *log, const struct question *q)
{
	printf("0x%llx was said to be %s (%s) between %llu and %llu\n",
	       (unsigned long long)q->address, q->name ? q->name : "nothing", q->reason,
	       (unsigned long long)q->from, (unsigned long long)q->to);
	for (int i = 0; i < RECORDS; i++) {
		const struct record *r = &log->record[i];

		if (holds(r, q->address) && r->maybe_to + 5000000 >= q->from &&
		    r->maybe_from <= q->to + 5000000)
			printf("  %s from %llu (%llu) to %llu (%llu)\n", r->name,
			       (unsigned long long)r->certain_from,
			       (unsigned long long)r->maybe_from, (unsigned long long)r->certain_to,
			       (unsigned long long)r->maybe_to);
	}
}

static uint64_t choose(const struct log *log)
{
	const uint64_t n = atomic_load(&log->n);
	const uint64_t back = 1 + (uint64_t)rand() % (n < RECENT ? n : RECENT);
	const struct record *r = &log->record[(n - back) % RECORDS];

	return r->start + (uint64_t)rand() % r->size;
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

/* The matches of one question; the number of those that have an address. */
static long judge(const struct log *log, const struct fathom_matches *matches, struct question *q,
		  bool *ret_true)
{
	const uint64_t deadline = now() + 2000000000;
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
		while (!was_there(log, q->name, m->address, q) && *ret_true)
			*ret_true = now() < deadline;
	}
	if (*ret_true && strcmp(q->reason, "changed") != 0 && is_missing(log, matches, q)) {
		q->reason = "is missing";
		*ret_true = false;
	}
	return n;
}

/* Asks where functions are; whether no answer was wrong. */
static bool ask_where(struct fathom_target *target, const struct log *log, long count)
{
	const struct fathom_find_options options = { .size = sizeof options };
	struct fathom_matches *matches;
	struct fathom_errinfo info;
	long found = 0;
	long asked = 0;
	long refused = 0;
	long late = 0;

	while (asked < count) {
		const uint64_t n = atomic_load(&log->n);
		const uint64_t back = 1 + (uint64_t)rand() % (n < RECENT ? n : RECENT);
		struct question q = { .name = log->record[(n - back) % RECORDS].name };
		char name[sizeof log->record[0].name];
		bool is_right;

		memcpy(name, q.name, sizeof name);
		q.name = name;
		/* Code that was made, whose names are of this form, is not looked for. */
		if (name[0] == 'f' && name[1] >= '0' && name[1] <= '9')
			continue;
		asked++;
		q.from = now();
		if (fathom_find(target, &options, &q.name, 1, &matches, &info)) {
			refused++;
			continue;
		}
		q.to = now();
		found += judge(log, matches, &q, &is_right) > 0;
		fathom_matches_free(matches);
		if (!is_right && atomic_load(&log->n) - n < OLD) {
			complain(log, &q);
			return false;
		}
		late += !is_right;
	}
	printf("%ld named, %ld not, %ld could not be judged\n", found, count - found, late);
	if (refused > count / 100)
		printf("%ld times: %s\n", refused, info.what);
	return true;
}

int main(int argc, char **argv)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const struct fathom_symbolize_options plain = { .size = sizeof plain,
							.flags = FATHOM_NAMES_ONLY };
	const int fd = open(argv[2], O_RDONLY);
	const struct log *log = mmap(NULL, sizeof *log, PROT_READ, MAP_SHARED, fd, 0);
	const long count = argc > 3 ? atol(argv[3]) : 1;
	struct fathom_target *target;
	struct fathom_errinfo info;
	struct fathom *session;
	long named = 0;
	long late = 0;
	long changed = 0;

	if (fathom_create(&options, &session, &info) ||
	    fathom_target_open_process(session, atoi(argv[1]), &target, &info)) {
		puts(info.what);
		return 2;
	}
	if (argc > 4) {
		const bool is_right = ask_where(target, log, count);

		fathom_target_release(target);
		fathom_destroy(session);
		return !is_right;
	}
	for (long i = 0; i < count; i++) {
		const uint64_t n = atomic_load(&log->n);
		struct question q = { .address = choose(log), .from = now() };
		struct fathom_answers *answers;
		const struct fathom_answer *a;

		if (fathom_symbolize(target, &plain, &q.address, 1, &answers, &info)) {
			printf("after %ld answers: %s\n", i, info.what);
			return 2;
		}
		q.to = now();
		a = fathom_answers_get(answers, 0);
		if (a->symbol != FATHOM_NONE)
			q.name = fathom_answers_function(answers, a->symbol)->name;
		q.reason = fathom_reason_name(a->reason);
		named += q.name != NULL;
		changed += strcmp(q.reason, "changed") == 0;
		if (!is_true(log, &q)) {
			if (atomic_load(&log->n) - n < OLD) {
				complain(log, &q);
				return 1;
			}
			late++;
		}
		fathom_answers_free(answers);
	}
	printf("%ld named, %ld not, %ld could not be judged\n", named, count - named, late);
	if (changed > count / 10)
		printf("%ld times it had changed\n", changed);
	fathom_target_release(target);
	fathom_destroy(session);
	return 0;
}
