/* SPDX-License-Identifier: MIT */
/* Reports of profiles as JSON Lines. */
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/report_print.h"
#include "fathom/stack.h"

static void member_string(struct out *o, const char *key, const char *s)
{
	out_char(o, ',');
	json_string(o, key, s);
}

static void member_number(struct out *o, const char *key, uint64_t value)
{
	out_char(o, ',');
	json_key(o, key);
	out_dec(o, value);
}

/* Writes a member with a number, null for 0. */
static void member_count(struct out *o, const char *key, uint64_t value)
{
	out_char(o, ',');
	json_count(o, key, value);
}

static void member_truth(struct out *o, const char *key, bool is_true)
{
	out_char(o, ',');
	json_key(o, key);
	out_str(o, is_true ? "true" : "false");
}

static void begin(struct out *o, const char *type)
{
	out_char(o, '{');
	json_string(o, "type", type);
}

static void print_nameless(const struct report_print *p, struct out *o)
{
	size_t n;
	struct report_nameless *all = report_find_nameless(p->profile, &n);

	for (size_t i = 0; i < n; i++) {
		if (!all[i].reason)
			continue;
		begin(o, "nameless");
		member_string(o, "module", all[i].module->path);
		out_char(o, ',');
		json_key(o, "build_id");
		if (all[i].module->build_id_size) {
			out_char(o, '"');
			out_hex_bytes(o, all[i].module->build_id, all[i].module->build_id_size, "");
			out_char(o, '"');
		} else {
			out_str(o, "null");
		}
		member_string(o, "reason", fathom_reason_name((enum fathom_reason)all[i].reason));
		out_str(o, "}\n");
	}
	free(all);
}

void report_json_header(const struct report_print *p, struct out *o, const struct fathom_report *r)
{
	const struct fathom_profile_info *info = p->info;
	const struct fathom_report_sums *s = fathom_report_get_sums(r);

	begin(o, "profile");
	member_string(o, "command", info->command);
	member_string(o, "event", info->event);
	member_string(o, "time", report_time_words[p->time]);
	member_string(o, "unit", p->unit);
	member_string(o, "method", info->method);
	member_string(o, "machine", info->machine);
	member_string(o, "kernel", info->kernel);
	member_string(o, "host", info->host);
	member_count(o, "frequency", info->frequency);
	member_count(o, "started", info->started);
	member_number(o, "duration_ns", info->duration_ns);
	member_number(o, "weight", s->weight);
	member_number(o, "shown", s->shown);
	member_number(o, "hidden", s->hidden);
	member_number(o, "unsampled", s->unsampled);
	member_number(o, "samples", s->n_samples);
	member_number(o, "stacks", s->n_stacks);
	member_number(o, "whole", s->n_whole);
	member_number(o, "waiting_ns", info->waiting_ns);
	member_number(o, "runnable_ns", info->runnable_ns);
	member_number(o, "lost", info->lost);
	member_number(o, "throttled", info->throttled);
	member_truth(o, "kernel_hidden", info->is_kernel_hidden);
	member_truth(o, "complete", info->is_complete);
	out_str(o, "}\n");
	print_nameless(p, o);
}

/* Returns the word for what @row is. */
static const char *kind_of(const struct report_print *p, const struct fathom_report_row *row)
{
	switch (row->kind) {
	case FATHOM_REPORT_ROW_THREAD:
		return "thread";
	case FATHOM_REPORT_ROW_PROCESS:
		return "process";
	case FATHOM_REPORT_ROW_REASON:
		return "reason";
	case FATHOM_REPORT_ROW_CGROUP:
		return "cgroup";
	case FATHOM_REPORT_ROW_KERNEL_HIDDEN:
		return "kernel-hidden";
	case FATHOM_REPORT_ROW_UNSAMPLED:
		return "unsampled";
	case FATHOM_REPORT_ROW_INCOMPLETE:
		return "incomplete";
	}
	return p->key == FATHOM_REPORT_BY_LINE     ? "line"
	       : p->key == FATHOM_REPORT_BY_MODULE ? "module"
						   : "function";
}

/* Writes the members that say what @row is. */
static void print_row(const struct report_print *p, struct out *o,
		      const struct fathom_report_row *row)
{
	const bool is_unknown = row->kind == FATHOM_REPORT_ROW_CODE && !strcmp(row->name, "??");

	member_string(o, "kind", kind_of(p, row));
	member_string(o, "name", is_unknown ? NULL : row->name);
	member_string(o, "linkage_name", row->linkage_name);
	member_string(o, "module", row->module);
	member_string(o, "file", row->file);
	member_count(o, "line", row->line);
	member_count(o, "pid", (uint32_t)row->pid);
	member_count(o, "tid", (uint32_t)row->tid);
	member_string(o, "cgroup", row->cgroup);
	member_string(o, "stop",
		      row->kind == FATHOM_REPORT_ROW_INCOMPLETE
			      ? fathom_stop_name((enum fathom_stop)row->stop)
			      : NULL);
}

void report_json_rows(const struct report_print *p, struct out *o, const struct fathom_report *r)
{
	size_t n;
	const struct fathom_report_row *rows = fathom_report_rows(r, &n);

	for (size_t i = 0; i < n && i < p->top; i++) {
		begin(o, "row");
		print_row(p, o, &rows[i]);
		member_number(o, "self", rows[i].self);
		member_number(o, "total", rows[i].total);
		member_number(o, "self_samples", rows[i].self_samples);
		member_number(o, "total_samples", rows[i].total_samples);
		out_str(o, "}\n");
	}
}

void report_json_tree(const struct report_print *p, struct out *o, const struct fathom_report *r,
		      uint32_t shape)
{
	static const char *const words[] = {
		[FATHOM_REPORT_TOP_DOWN] = "top-down",
		[FATHOM_REPORT_BOTTOM_UP] = "bottom-up",
		[FATHOM_REPORT_CALLERS] = "callers",
		[FATHOM_REPORT_CALLEES] = "callees",
	};
	size_t n;
	const struct fathom_report_node *nodes = fathom_report_nodes(r, &n);

	for (size_t i = 0; i < n; i++) {
		begin(o, i ? "node" : "root");
		member_string(o, "tree", words[shape]);
		if (i) {
			member_number(o, "node", i);
			member_number(o, "parent", nodes[i].parent);
			member_number(o, "depth", nodes[i].depth);
			print_row(p, o, nodes[i].row);
			member_number(o, "self", nodes[i].self);
		}
		member_number(o, "total", nodes[i].total);
		member_number(o, "left_out", nodes[i].left_out);
		member_number(o, "branches_left_out", nodes[i].n_left_out);
		out_str(o, "}\n");
	}
}
