/* SPDX-License-Identifier: MIT */
/* fathom doctor: what limits answers here, and what helps. */
#include "cli/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/json.h"

static const char usage[] =
	"Usage: fathom doctor [OPTION]... [TARGET]\n"
	"Print one line for each thing that limits answers here, with what helps:\n"
	"rights, settings of the kernel, the cache, debug files, servers, libraries.\n"
	"With TARGET also its modules without lines, files that cannot be read, and\n"
	"whether a process may be attached to.\n";

static const struct verb_option options[] = {
	{ 0, NULL, NULL, NULL },
};

static const struct verb_options doctor_options = {
	.verb = "doctor",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR |
		  OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY | OPTIONS_COLOR,
	.end = "Exit status: 0 nothing is wrong; 1 something is; 2 usage, or TARGET could not\n"
	       "be opened.\n",
};

static const char *const states[] = { "ok", "limited", "off" };

static void print_json(struct out *o, const struct doctor_line *line)
{
	out_char(o, '{');
	json_string(o, "check", line->check);
	out_char(o, ',');
	json_string(o, "state", states[line->state]);
	out_char(o, ',');
	json_string(o, "detail", line->detail);
	out_char(o, ',');
	json_string(o, "remedy", line->remedy);
	out_char(o, ',');
	json_string(o, "module", line->module ? line->module->path : NULL);
	out_char(o, ',');
	json_key(o, "build_id");
	if (line->module && line->module->build_id) {
		out_char(o, '"');
		out_hex_bytes(o, line->module->build_id, line->module->build_id_size, "");
		out_char(o, '"');
	} else {
		out_str(o, "null");
	}
	out_str(o, "}\n");
}

/* Writes @s and blanks up to @width columns. */
static void print_column(struct out *o, const char *s, size_t width)
{
	out_str(o, s);
	for (size_t n = strlen(s); n < width; n++)
		out_char(o, ' ');
}

static void print_line(struct out *o, const struct doctor_line *line)
{
	const char *state = states[line->state];

	if (line->state == DOCTOR_LIMITED) {
		out_begin_part(o, OUT_REASON);
		out_str(o, state);
		out_end_part(o);
	} else {
		out_str(o, state);
	}
	print_column(o, "", 8 - strlen(state));
	print_column(o, line->check, 14);
	out_text(o, line->detail, strlen(line->detail));
	if (line->remedy) {
		out_str(o, " (");
		out_text(o, line->remedy, strlen(line->remedy));
		out_char(o, ')');
	}
	out_char(o, '\n');
}

void doctor_print(struct doctor *d, const struct doctor_line *line)
{
	if (d->common->json)
		print_json(&d->out, line);
	else
		print_line(&d->out, line);
	/* A later check may have to wait for a server. */
	out_flush(&d->out);
	if (line->state == DOCTOR_LIMITED)
		d->is_limited = true;
}

static void print_formatted(struct doctor *d, struct doctor_line *line, const char *format,
			    va_list arguments)
{
	char *detail = NULL;

	if (vasprintf(&detail, format, arguments) < 0)
		must(NULL);
	line->detail = detail;
	doctor_print(d, line);
	free(detail);
}

void doctor_ok(struct doctor *d, const char *check, const char *format, ...)
{
	struct doctor_line line = { .check = check, .state = DOCTOR_OK };
	va_list arguments;

	va_start(arguments, format);
	print_formatted(d, &line, format, arguments);
	va_end(arguments);
}

void doctor_limited(struct doctor *d, const char *check, const char *remedy, const char *format,
		    ...)
{
	struct doctor_line line = { .check = check, .state = DOCTOR_LIMITED, .remedy = remedy };
	va_list arguments;

	va_start(arguments, format);
	print_formatted(d, &line, format, arguments);
	va_end(arguments);
}

/* Checks the TARGET. Returns false if it cannot be opened. */
static bool check_target(struct doctor *d, const struct common *common)
{
	struct fathom_target *target =
		common_open(common, d->session, common->target_kind, common->target);

	if (!target)
		return false;
	doctor_check_target(d, target);
	common_check(target);
	fathom_target_release(target);
	return true;
}

int verb_doctor(int argc, char **argv)
{
	struct option_reader reader;
	struct common common;
	struct doctor d = { .common = &common };
	bool is_open = true;
	int status;

	common_init(&common);
	common.shows_progress = true;
	option_reader_init(&reader, &doctor_options);
	while (option_reader_next(&reader, &common, argc, argv) != -1)
		;
	if (optind < argc || common.target)
		common_take_arguments(&common, "doctor", argc - optind, argv + optind);
	if (common.n_arguments)
		complain_lacking("doctor", "one TARGET is wanted, or none");
	d.session = common_session(&common);
	common_out_init(&common, &d.out);
	doctor_check_machine(&d);
	if (common.target)
		is_open = check_target(&d, &common);
	out_flush(&d.out);
	status = is_open ? common_status(&d.out, d.is_limited) : EXIT_USAGE;
	out_deinit(&d.out);
	fault_destroy(d.session);
	common_deinit(&common);
	return status;
}
