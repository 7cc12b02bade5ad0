/* SPDX-License-Identifier: MIT */
/* Reports of profiles as JSON Lines. */
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/report_print.h"
#include "fathom/stack.h"

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
		json_member_string(o, "module", all[i].module->path);
		out_char(o, ',');
		json_key(o, "build_id");
		if (all[i].module->build_id_size) {
			out_char(o, '"');
			out_hex_bytes(o, all[i].module->build_id, all[i].module->build_id_size, "");
			out_char(o, '"');
		} else {
			out_str(o, "null");
		}
		json_member_string(o, "reason",
				   fathom_reason_name((enum fathom_reason)all[i].reason));
		out_str(o, "}\n");
	}
	free(all);
}

void report_json_header(const struct report_print *p, struct out *o, const struct fathom_report *r)
{
	const struct fathom_profile_info *info = p->info;
	const struct fathom_report_sums *s = fathom_report_get_sums(r);

	begin(o, "profile");
	json_member_string(o, "command", info->command);
	json_member_string(o, "event", info->event);
	json_member_string(o, "time", report_time_words[p->time]);
	json_member_string(o, "unit", p->unit);
	json_member_string(o, "method", info->method);
	json_member_string(o, "machine", info->machine);
	json_member_string(o, "kernel", info->kernel);
	json_member_string(o, "host", info->host);
	json_member_count(o, "frequency", info->frequency);
	json_member_count(o, "started", info->started);
	json_member_number(o, "duration_ns", info->duration_ns);
	json_member_number(o, "weight", s->weight);
	json_member_number(o, "shown", s->shown);
	json_member_number(o, "hidden", s->hidden);
	json_member_number(o, "unsampled", s->unsampled);
	json_member_number(o, "samples", s->n_samples);
	json_member_number(o, "stacks", s->n_stacks);
	/* null: it is not told. */
	if (info->has_unknown_ends)
		json_member_count(o, "whole", 0);
	else
		json_member_number(o, "whole", s->n_whole);
	json_member_number(o, "waiting_ns", info->waiting_ns);
	json_member_number(o, "runnable_ns", info->runnable_ns);
	json_member_number(o, "lost", info->lost);
	json_member_number(o, "throttled", info->throttled);
	json_member_truth(o, "kernel_hidden", info->is_kernel_hidden);
	json_member_truth(o, "complete", info->is_complete);
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
	case FATHOM_REPORT_ROW_WAKER:
		return "waker";
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

	json_member_string(o, "kind", kind_of(p, row));
	json_member_string(o, "name", is_unknown ? NULL : row->name);
	json_member_string(o, "linkage_name", row->linkage_name);
	json_member_string(o, "module", row->module);
	json_member_string(o, "file", row->file);
	json_member_count(o, "line", row->line);
	json_member_count(o, "pid", (uint32_t)row->pid);
	json_member_count(o, "tid", (uint32_t)row->tid);
	json_member_string(o, "cgroup", row->cgroup);
	json_member_string(o, "stop",
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
		json_member_number(o, "self", rows[i].self);
		json_member_number(o, "total", rows[i].total);
		json_member_number(o, "self_samples", rows[i].self_samples);
		json_member_number(o, "total_samples", rows[i].total_samples);
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
		json_member_string(o, "tree", words[shape]);
		if (i) {
			json_member_number(o, "node", i);
			json_member_number(o, "parent", nodes[i].parent);
			json_member_number(o, "depth", nodes[i].depth);
			print_row(p, o, nodes[i].row);
			json_member_number(o, "self", nodes[i].self);
		}
		json_member_number(o, "total", nodes[i].total);
		json_member_number(o, "left_out", nodes[i].left_out);
		json_member_number(o, "branches_left_out", nodes[i].n_left_out);
		out_str(o, "}\n");
	}
}
