/* SPDX-License-Identifier: MIT */
#include "cli/jit_check_run.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/json.h"
#include "cli/launch.h"

/* Printer of findings, while the program runs. */
struct printer {
	const struct common *common;
	const struct jit_check_run *run;
	struct out out;
	int fd;
};

/* Writes what was printed: the program may end this command at any time. */
static void flush(struct printer *p)
{
	(void)launch_write(p->fd, p->out.buf, p->out.n);
	p->out.n = 0;
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = {
		"",          "cfa",       "return-address", "register",
		"return-pc", "return-sp", "unreadable",     "no-rule"
	};

	return kind < sizeof names / sizeof *names ? names[kind] : "other";
}

static const char *register_of(const struct fathom_jit_finding *f)
{
	return f->kind == FATHOM_JIT_FINDING_REGISTER ? fathom_register_name(EM_X86_64, f->reg)
						      : NULL;
}

/* Prints both values: what is, and what was @said. */
static void print_values(struct out *o, const struct fathom_jit_finding *f, const char *said)
{
	out_hex(o, f->actual);
	out_str(o, said);
	out_hex(o, f->described);
}

/* Prints what differs, in words. */
static void print_difference(struct out *o, const struct fathom_jit_finding *f)
{
	switch (f->kind) {
	case FATHOM_JIT_FINDING_NO_RULE:
		out_str(o, "nothing describes it");
		return;
	case FATHOM_JIT_FINDING_RETURN_PC:
		out_str(o, "it returns to ");
		print_values(o, f, ", not to ");
		return;
	case FATHOM_JIT_FINDING_RETURN_SP:
		out_str(o, "it leaves the stack pointer at ");
		print_values(o, f, ", not at the CFA, ");
		return;
	default:
		break;
	}
	out_str(o, f->flags & FATHOM_JIT_FINDING_BEHIND ? "after it " : "before it ");
	if (f->kind == FATHOM_JIT_FINDING_UNREADABLE) {
		out_str(o, "the description leads nowhere");
		return;
	}
	if (f->kind == FATHOM_JIT_FINDING_REGISTER) {
		out_str(o, "the caller's ");
		out_str(o, register_of(f));
	} else {
		out_str(o, f->kind == FATHOM_JIT_FINDING_CFA ? "the CFA" : "the return address");
	}
	out_str(o, " is ");
	print_values(o, f, ", described as ");
}

static void print_text_of(struct out *o, const struct fathom_jit_finding *f)
{
	out_hex(o, f->address);
	out_char(o, ' ');
	out_text(o, f->function, strlen(f->function));
	out_char(o, '+');
	out_hex(o, f->offset);
	out_char(o, ' ');
	if (f->text)
		out_text(o, f->text, strlen(f->text));
	else
		out_hex_bytes(o, f->bytes, f->n_bytes, " ");
	out_str(o, " (");
	print_difference(o, f);
	out_str(o, ")\n");
}

static void json_number(struct out *o, const char *key, uint64_t value)
{
	out_char(o, ',');
	json_key(o, key);
	out_dec(o, value);
}

static void print_json_of(struct out *o, const struct fathom_jit_finding *f)
{
	const bool has_values =
		f->kind != FATHOM_JIT_FINDING_NO_RULE && f->kind != FATHOM_JIT_FINDING_UNREADABLE;

	out_str(o, "{\"type\":\"finding\",");
	json_address(o, "address", f->address);
	out_char(o, ',');
	json_string(o, "function", f->function);
	out_char(o, ',');
	json_address(o, "offset", f->offset);
	out_str(o, ",\"bytes\":\"");
	out_hex_bytes(o, f->bytes, f->n_bytes, "");
	out_str(o, "\",");
	json_string(o, "text", f->text);
	out_char(o, ',');
	json_string(o, "kind", kind_name(f->kind));
	out_char(o, ',');
	json_string(o, "register", register_of(f));
	out_char(o, ',');
	json_address(o, "pc", f->pc);
	out_char(o, ',');
	json_address_or_null(o, "actual", has_values, f->actual);
	out_char(o, ',');
	json_address_or_null(o, "described", has_values, f->described);
	json_number(o, "tid", (uint64_t)f->tid);
	out_str(o, "}\n");
}

static void print_finding(void *data, const struct fathom_jit_finding *f)
{
	struct printer *p = data;

	if (p->common->json)
		print_json_of(&p->out, f);
	else
		print_text_of(&p->out, f);
	flush(p);
}

/* Prints "N THING", in the plural if it is. */
static void print_count(struct out *o, uint64_t n, const char *thing)
{
	out_dec(o, n);
	out_char(o, ' ');
	out_str(o, thing);
	if (n != 1)
		out_char(o, 's');
}

static void print_text_end(struct out *o, const struct fathom_jit_check_result *r)
{
	out_str(o, "fathom: ");
	print_count(o, r->instructions, "instruction");
	out_str(o, " checked in ");
	print_count(o, r->frames, "frame");
	out_str(o, " of ");
	print_count(o, r->functions, "function");
	out_str(o, "; broken: ");
	out_dec(o, r->found);
	out_str(o, "; without rules: ");
	out_dec(o, r->undescribed);
	out_str(o, "; frames not judged: ");
	out_dec(o, r->unjudged);
	out_str(o, WIFSIGNALED(r->status) ? "; the program died of signal "
					  : "; the program's status: ");
	out_dec(o,
		(uint64_t)(WIFSIGNALED(r->status) ? WTERMSIG(r->status) : WEXITSTATUS(r->status)));
	out_char(o, '\n');
}

static void print_json_end(struct out *o, const struct fathom_jit_check_result *r)
{
	out_str(o, "{\"type\":\"end\"");
	json_number(o, "instructions", r->instructions);
	json_number(o, "frames", r->frames);
	json_number(o, "functions", r->functions);
	json_number(o, "found", r->found);
	json_number(o, "undescribed", r->undescribed);
	json_number(o, "unjudged", r->unjudged);
	if (WIFSIGNALED(r->status))
		json_number(o, "signal", (uint64_t)WTERMSIG(r->status));
	else
		json_number(o, "status", (uint64_t)WEXITSTATUS(r->status));
	out_str(o, "}\n");
}

int jit_check_run(struct common *c, struct jit_check_run *run)
{
	struct printer p = { .common = c, .run = run, .fd = launch_open_log(run->log) };
	struct fathom_jit_check_result r = { .size = sizeof r };
	struct fathom_errinfo info;

	out_init_kept(&p.out);
	run->options.size = sizeof run->options;
	run->options.finding = print_finding;
	run->options.data = &p;
	launch_leave_signals();
	if (fathom_jit_check_run(common_session(c), run->argv, &run->options, &r, &info)) {
		complain(run->argv[0], info.what, info.os_errno ? strerror(info.os_errno) : NULL);
		exit(EXIT_USAGE);
	}
	if (c->json)
		print_json_end(&p.out, &r);
	else
		print_text_end(&p.out, &r);
	flush(&p);
	out_deinit(&p.out);
	common_deinit(c);
	if (r.found || (run->needs_rules && r.undescribed))
		return EXIT_UNANSWERED;
	return launch_end_as(r.status);
}
