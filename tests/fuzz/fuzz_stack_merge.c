/* SPDX-License-Identifier: MIT */
/*
 * Lines of merged stacks. The tree agrees with itself; and what is printed of it as lines, read
 * twice into another tree, has the same ranks and as many nodes, and twice as many threads.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/stack_merge.h"
#include "host/ranks/prefix_tree.h"

static void check_ranges(const struct fathom_stack_node *n)
{
	uint64_t n_ranks = 0;

	for (uint32_t i = 0; i < n->n_ranges; i++) {
		if (n->ranges[i].last < n->ranges[i].first ||
		    (i && n->ranges[i].first <= (uint64_t)n->ranges[i - 1].last + 1))
			abort();
		n_ranks += (uint64_t)n->ranges[i].last - n->ranges[i].first + 1;
	}
	if (n_ranks != n->n_ranks)
		abort();
}

static void check(const struct fathom_stack_node *nodes, size_t n)
{
	if (!n || nodes[0].depth)
		abort();
	for (size_t i = 0; i < n; i++) {
		check_ranges(&nodes[i]);
		fuzz_use(strlen(nodes[i].function) +
			 (nodes[i].module ? strlen(nodes[i].module) : 0));
		if (i &&
		    (nodes[i].parent >= i || nodes[i].depth != nodes[nodes[i].parent].depth + 1))
			abort();
	}
}

/* Prints a member with a string of JSON. */
static void print_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, ",\"%s\":\"", key);
	for (; *text; text++)
		fprintf(f,
			(unsigned char)*text < 32 || *text == '"' || *text == '\\' ? "\\u%04x"
										   : "%c",
			(unsigned char)*text);
	fputc('"', f);
}

/* Adds @nodes to @m as the lines that the command prints of them. */
static void add_again(struct fathom_stack_merge *m, const struct fathom_stack_node *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *line = NULL;
		size_t size = 0;
		FILE *f = open_memstream(&line, &size);

		if (!f)
			abort();
		fprintf(f, "{\"type\":\"%s\",\"depth\":%u", i ? "node" : "ranks", nodes[i].depth);
		print_text(f, "function", nodes[i].function);
		if (nodes[i].module)
			print_text(f, "module", nodes[i].module);
		fprintf(f, ",\"ranks\":[");
		for (uint32_t k = 0; k < nodes[i].n_ranges; k++)
			fprintf(f, "%s[%u,%u]", k ? "," : "", nodes[i].ranges[k].first,
				nodes[i].ranges[k].last);
		fprintf(f, "],\"threads\":%llu,\"ends\":%llu}\n",
			(unsigned long long)nodes[i].n_threads,
			(unsigned long long)nodes[i].n_ends);
		if (fclose(f) || fathom_stack_merge_add(m, line, size, NULL))
			abort();
		free(line);
	}
}

static void check_twice(const struct fathom_stack_node *all, size_t n_all,
			struct fathom_stack_merge *m)
{
	const struct fathom_stack_node *nodes;
	uint64_t twice = 2 * all->n_threads;
	size_t n;

	if (fathom_stack_merge_nodes(m, &nodes, &n, NULL))
		abort();
	check(nodes, n);
	if (twice > FATHOM_MERGE_MOST)
		twice = FATHOM_MERGE_MOST;
	if (nodes->n_ranks != all->n_ranks || nodes->n_threads != twice || n != n_all)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fathom *session = fuzz_session(NULL);
	const struct fathom_stack_node *nodes;
	struct fathom_stack_merge *m;
	struct fathom_stack_merge *again;
	const char *at = (const char *)data;
	const char *end = at + size;
	size_t n;

	if (fathom_stack_merge_create(session, &m, NULL) ||
	    fathom_stack_merge_create(session, &again, NULL))
		abort();
	while (at < end) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		struct fathom_errinfo info;

		if (fathom_stack_merge_add(m, at, (size_t)((next ? next : end) - at), &info) &&
		    !info.what)
			abort();
		at = next ? next + 1 : end;
	}
	if (fathom_stack_merge_nodes(m, &nodes, &n, NULL))
		abort();
	check(nodes, n);
	add_again(again, nodes, n);
	add_again(again, nodes, n);
	check_twice(nodes, n, again);
	fathom_stack_merge_free(m);
	fathom_stack_merge_free(again);
	fathom_destroy(session);
	return 0;
}
