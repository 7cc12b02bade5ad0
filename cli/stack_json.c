/* SPDX-License-Identifier: MIT */
/* Stacks as JSON Lines. */
#include "cli/json.h"
#include "cli/print.h"
#include "cli/stack.h"

static void json_registers(struct out *o, const struct fathom_thread *t)
{
	const struct fathom_thread_registers *r = &t->registers;
	bool any = false;

	json_key(o, "registers");
	out_char(o, '{');
	for (uint32_t i = 0; i < r->n; i++) {
		const char *name = fathom_register_name(r->machine, i);

		if (!(r->known >> i & 1) || !name)
			continue;
		if (any)
			out_char(o, ',');
		json_address(o, name, r->value[i]);
		any = true;
	}
	out_char(o, '}');
}

static void json_stack_frame(struct stack *v, const struct fathom_stack_frame *f, bool has_sp)
{
	static const char *const kinds[] = { [FATHOM_FRAME_NATIVE] = "native",
					     [FATHOM_FRAME_SCRIPT] = "script",
					     [FATHOM_FRAME_RUNTIME] = "runtime" };
	struct out *o = &v->out;

	out_char(o, '{');
	json_address(o, "pc", f->pc.address);
	out_char(o, ',');
	json_address_or_null(o, "sp", has_sp && f->sp != FATHOM_NO_ADDRESS, f->sp);
	out_char(o, ',');
	json_string(o, "trust", fathom_trust_name((enum fathom_trust)f->trust));
	out_char(o, ',');
	json_string(o, "kind", kinds[f->kind]);
	out_char(o, ',');
	json_string(o, "runtime", f->runtime);
	out_str(o, f->is_signal_return ? ",\"signal_handler_called\":true,"
				       : ",\"signal_handler_called\":false,");
	print_members(o, f->answer, &v->source);
	out_char(o, '}');
}

/* Writes the system call: its name, else its number. */
static void json_call(struct out *o, const struct fathom_thread *t)
{
	json_string(o, "syscall", t->syscall);
	out_char(o, ',');
	json_string(o, "waits_for", t->waits_for);
	out_char(o, ',');
	json_count(o, "owner", (uint64_t)t->owner);
}

/* Writes the frames in the kernel. A frame without an answer has the kernel's text only. */
static void json_kernel(struct out *o, const struct stack *v, const struct kernel_stack *k)
{
	out_str(o, "\"kernel_frames\":");
	if (!k || k->failed) {
		out_str(o, "null,");
		json_string(o, "kernel_why", k ? k->failed : "not read");
		out_char(o, ',');
		return;
	}
	out_char(o, '[');
	for (size_t i = 0; i < k->n; i++) {
		const struct fathom_answer *a =
			kernel_frame_answer(&v->kernel_stacks, &k->frames[i]);

		out_str(o, i ? ",{" : "{");
		json_text(o, "text", k->frames[i].text, k->frames[i].size);
		if (a) {
			out_char(o, ',');
			print_members(o, a, NULL);
		}
		out_char(o, '}');
	}
	out_str(o, "],\"kernel_why\":null,");
}

static void json_tids(struct out *o, const struct stack_block *b)
{
	out_str(o, "\"tids\":[");
	for (size_t i = 0; i < b->n; i++) {
		if (i)
			out_char(o, ',');
		out_dec(o, (uint64_t)b->tids[i]);
	}
	out_str(o, "],");
}

/* Writes the signal; null where there is none. */
static void json_signal(struct out *o, const struct fathom_thread *t)
{
	json_count(o, "signal", (uint64_t)t->signal);
	out_char(o, ',');
	json_string(o, "signal_name", fathom_signal_name(t->signal));
	out_char(o, ',');
	json_string(o, "signal_code",
		    t->signal ? fathom_signal_code_name(t->signal, t->signal_code) : NULL);
	out_char(o, ',');
	if (t->fault_address != FATHOM_NO_ADDRESS)
		json_address(o, "fault_address", t->fault_address);
	else
		out_str(o, "\"fault_address\":null");
}

/* Writes the frames that are wanted. */
static void json_frames(struct stack *v, const struct stack_block *b)
{
	const struct fathom_thread *t = &b->thread;
	bool any = false;

	for (size_t i = 0; i < t->n_frames; i++) {
		if (v->frames == FRAMES_SCRIPT && t->frames[i].kind != FATHOM_FRAME_SCRIPT)
			continue;
		if (any)
			out_char(&v->out, ',');
		any = true;
		json_stack_frame(v, &t->frames[i], b->n == 1);
	}
}

void stack_print_json(struct stack *v, const struct stack_block *b)
{
	const struct fathom_thread *t = &b->thread;
	const char state[2] = { t->state, '\0' };
	struct out *o = &v->out;

	out_char(o, '{');
	if (v->rank_is_given) {
		json_key(o, "rank");
		out_dec(o, v->rank);
		out_char(o, ',');
	}
	json_count(o, "pid", (uint64_t)t->pid);
	out_char(o, ',');
	json_count(o, "tid", (uint64_t)t->tid);
	out_char(o, ',');
	if (v->fold)
		json_tids(o, b);
	json_string(o, "name", t->name);
	out_char(o, ',');
	json_string(o, "state", state);
	out_char(o, ',');
	json_call(o, t);
	out_char(o, ',');
	json_signal(o, t);
	out_char(o, ',');
	stack_json_death(o, t->died);
	out_char(o, ',');
	json_registers(o, t);
	out_char(o, ',');
	if (v->kernel)
		json_kernel(o, v, b->kernel);
	out_str(o, "\"frames\":[");
	json_frames(v, b);
	out_str(o, "],");
	if (t->n_left_out) {
		out_str(o, "\"left_out\":{");
		json_count(o, "frames", t->n_left_out);
		out_char(o, ',');
		json_count(o, "before", t->left_out_at);
		out_char(o, ',');
		json_string(o, "trust",
			    t->left_out_trust
				    ? fathom_trust_name((enum fathom_trust)t->left_out_trust)
				    : NULL);
		out_str(o, "},");
	} else {
		out_str(o, "\"left_out\":null,");
	}
	json_string(o, "stop", fathom_stop_name((enum fathom_stop)t->stop));
	out_char(o, ',');
	json_string(o, "reason", fathom_reason_name((enum fathom_reason)t->reason));
	out_char(o, ',');
	json_string(o, "why", t->failed);
	out_char(o, ',');
	json_string(o, "script_why", t->script_failed);
	out_str(o, ",\"kernel_worker\":");
	out_str(o, t->is_kernel_worker ? "true" : "false");
	out_str(o, ",\"restarted\":");
	out_str(o, t->was_restarted ? "true" : "false");
	out_str(o, ",\"pause_us\":");
	out_dec(o, (t->pause_ns + 999) / 1000);
	out_str(o, "}\n");
}
