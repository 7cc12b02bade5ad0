/* SPDX-License-Identifier: MIT */
/*
 * The graph of who calls whom, in the DOT language (https://graphviz.org/doc/info/lang.html): a
 * node for each name of functions, with the number of its calls; an edge from each caller to what
 * it calls directly, with the number of these calls. Callers that are not known are one node,
 * "[...]". Nodes and edges are sorted by name.
 */
#include <stdlib.h>

#include "host/events/call_paths.h"
#include "host/events/escape.h"

/* A function. */
struct node {
	const char *text;
	uint64_t calls;
	uint32_t name; /* index in names */
	bool is_gap;
};

/* Calls by their key: (number of the caller's node) << 32 | number of the callee's. */
struct edges {
	struct fathom_keyed_array of;
	struct fathom_key_map by_key;
};

/*
 * Escapes what has a meaning in a label of the DOT language (escString): also `&`, of HTML
 * entities.
 */
static const char *instead(const char *s, size_t n)
{
	(void)n;
	return *s == '"' ? "\\\"" : *s == '\\' ? "\\\\" : *s == '&' ? "&amp;" : NULL;
}

static const struct fathom_escape escape = { "\\\\", instead };

static int compare_nodes(const void *a, const void *b)
{
	const struct node *x = a;
	const struct node *y = b;

	return strcmp(x->text, y->text);
}

/*
 * Makes the nodes, sorted by name; those of threads' names have no calls. Returns NULL without
 * memory.
 */
static struct node *make_nodes(const struct fathom_call_paths *p)
{
	struct node *nodes = calloc(p->names.n + 1, sizeof *nodes);

	if (!nodes)
		return NULL;
	for (size_t i = 0; i < p->names.n; i++)
		nodes[i] = (struct node){ .text = p->names.items[i].text, .name = (uint32_t)i };
	for (size_t i = 0; i < p->paths.n; i++) {
		nodes[p->paths.items[i].name].calls += p->paths.items[i].calls;
		nodes[p->paths.items[i].name].is_gap |= p->paths.items[i].is_gap;
	}
	qsort(nodes, p->names.n, sizeof *nodes, compare_nodes);
	return nodes;
}

static void put_nodes(struct fathom_trace_writer *w, const struct node *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!nodes[i].calls && !nodes[i].is_gap)
			continue;
		fathom_writer_str(w, "\tn");
		fathom_writer_dec(w, i);
		fathom_writer_str(w, " [label=\"");
		fathom_escape_name(w, &escape, nodes[i].text);
		if (!nodes[i].calls) {
			fathom_writer_str(w, "\"]\n");
			continue;
		}
		fathom_writer_str(w, "\\n");
		fathom_escape_number(w, nodes[i].calls, 0);
		fathom_writer_str(w, nodes[i].calls == 1 ? " call\"]\n" : " calls\"]\n");
	}
}

/* Adds @calls to the edge of @key; returns false without memory. */
static bool add_edge(struct edges *edges, uint64_t key, uint64_t calls)
{
	uint32_t *number = fathom_key_map_at(&edges->by_key, key);
	const struct fathom_keyed edge = { .key = key, .value = calls };

	if (!number)
		return false;
	if (*number != FATHOM_KEY_NEW) {
		edges->of.items[*number].value += calls;
		return true;
	}
	if (!fathom_array_push(&edges->of, edge))
		return false;
	*number = (uint32_t)edges->of.n - 1;
	return true;
}

/* Returns the key of the edge from @parent to @path. */
static uint64_t edge_of(const uint32_t *node_of, const struct fathom_call_path *parent,
			const struct fathom_call_path *path)
{
	return (uint64_t)node_of[parent->name] << 32 | node_of[path->name];
}

/* Collects the edges of all paths; @node_of are the numbers of nodes by index of names. */
static bool collect(const struct fathom_call_paths *p, const uint32_t *node_of, struct edges *edges)
{
	for (size_t i = 0; i < p->paths.n; i++) {
		const struct fathom_call_path *path = &p->paths.items[i];
		const struct fathom_call_path *parent;

		if (path->depth < 2 || path->is_gap)
			continue;
		parent = &p->paths.items[path->parent];
		if (!add_edge(edges, edge_of(node_of, parent, path), path->calls))
			return false;
		if (parent->is_gap && parent->depth > 1 &&
		    !add_edge(edges, edge_of(node_of, &p->paths.items[parent->parent], parent),
			      path->calls))
			return false;
	}
	return true;
}

static bool sort_edges(struct fathom_keyed_array *edges)
{
	/* The sort needs as much room again, after the edges. */
	if (!fathom_array_room(edges, edges->n))
		return false;
	fathom_sort_keyed(edges->items, edges->items + edges->n, edges->n);
	return true;
}

static void put_edge(struct fathom_trace_writer *w, const struct fathom_keyed *edge)
{
	fathom_writer_str(w, "\tn");
	fathom_writer_dec(w, edge->key >> 32);
	fathom_writer_str(w, " -> n");
	fathom_writer_dec(w, (uint32_t)edge->key);
	fathom_writer_str(w, " [label=\"");
	fathom_escape_number(w, edge->value, 0);
	fathom_writer_str(w, "\"]\n");
}

/* Appends the edges between @nodes. */
static void put_edges(struct fathom_trace_writer *w, const struct fathom_call_paths *p,
		      const struct node *nodes)
{
	uint32_t *node_of = calloc(p->names.n + 1, sizeof *node_of);
	struct edges edges = { .of = { .n = 0 } };

	for (size_t i = 0; node_of && i < p->names.n; i++)
		node_of[nodes[i].name] = (uint32_t)i;
	if (!node_of || !collect(p, node_of, &edges) || !sort_edges(&edges.of))
		w->no_memory = true;
	for (size_t i = 0; i < edges.of.n && !w->no_memory; i++)
		put_edge(w, &edges.of.items[i]);
	fathom_array_free(&edges.of);
	fathom_key_map_deinit(&edges.by_key);
	free(node_of);
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	const struct fathom_call_paths *p = fathom_call_paths_finish(w, FATHOM_PATHS_BY_NAME);
	struct node *nodes = p ? make_nodes(p) : NULL;

	(void)result;
	w->no_memory |= !nodes;
	if (!nodes)
		return;
	fathom_writer_str(w, "digraph fathom {\n\tnode [shape=box]\n");
	if (w->lost) {
		fathom_writer_str(w, "\tlabel=\"lost: ");
		fathom_writer_dec(w, w->lost);
		fathom_writer_str(w, w->lost == 1 ? " event\"\n" : " events\"\n");
	}
	put_nodes(w, nodes, p->names.n);
	put_edges(w, p, nodes);
	fathom_writer_str(w, "}\n");
	free(nodes);
}

const struct fathom_writer_format fathom_writer_dot = {
	fathom_call_paths_begin, fathom_call_paths_event, end, fathom_call_paths_free, false,
};
