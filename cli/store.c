/* SPDX-License-Identifier: MIT */
/* fathom store: indexes of builds, where all machines find them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/characters.h"
#include "cli/json.h"
#include "cli/out.h"

enum { OPT_TIMEOUT = OPT_VERB };

static const char usage[] =
	"Usage: fathom store [OPTION]... build STORE FILE...\n"
	"       fathom store [OPTION]... put STORE INDEX...\n"
	"       fathom store [OPTION]... get STORE BUILD-ID [INDEX]\n"
	"       fathom store [OPTION]... check STORE [BUILD-ID]...\n"
	"build: decode all debug information of each FILE and store its index. put:\n"
	"store what get has written. check: read indexes whole, of a directory all.\n"
	"STORE: a directory, http://..., https://..., or '!COMMAND'.\n";

static const struct verb_option options[] = {
	{ OPT_TIMEOUT, "store-timeout", "S", "for what is asked of STORE, for each index (30)" },
	{ 0, NULL, NULL, NULL },
};

static const struct verb_options store_options = {
	.verb = "store",
	.usage = usage,
	.options = options,
	.common = OPTIONS_JSON | OPTIONS_CACHE_DIR | OPTIONS_NO_CACHE | OPTIONS_DEBUG |
		  OPTIONS_MEMORY | OPTIONS_THREADS,
	.end = "Exit status: 0 done; 1 an index is missing or damaged; 2 usage, or STORE or a\n"
	       "FILE cannot be read or written.\n",
};

struct store_run {
	struct common common;
	struct fathom_store_options store_options;
	struct fathom *session;
	struct fathom_store *store;
	struct out out;
	int status;
};

static void set_status(struct store_run *v, int status)
{
	v->status = status > v->status ? status : v->status;
}

static void print_json(struct store_run *v, const char *name, const struct fathom_store_entry *e,
		       const char *reason)
{
	struct out *o = &v->out;

	out_char(o, '{');
	json_string(o, "name", name);
	out_str(o, ",\"build_id\":\"");
	out_hex_bytes(o, e->build_id, e->build_id_size, "");
	out_char(o, '"');
	json_member_truth(o, "stored", e->is_stored);
	json_member_truth(o, "file", e->level & FATHOM_STORE_HAS_FILE);
	json_member_truth(o, "symtab", e->level & FATHOM_STORE_HAS_SYMTAB);
	json_member_truth(o, "lines", e->level & FATHOM_STORE_HAS_LINES);
	json_member_number(o, "bytes", e->file_size);
	json_member_number(o, "index_bytes", e->index_size);
	json_member_number(o, "debug_bytes", e->debug_info_size);
	json_member_string(o, "reason", reason);
	out_str(o, "}\n");
}

/* Prints what happened to the index @e of @name; @what says it in a word or two. */
static void print_entry(struct store_run *v, const char *name, const struct fathom_store_entry *e,
			const char *what)
{
	struct out *o = &v->out;

	if (v->common.json) {
		print_json(v, name, e, NULL);
	} else {
		out_text(o, name, strlen(name));
		out_str(o, ": ");
		out_str(o, what);
		out_str(o, e->level & FATHOM_STORE_HAS_LINES    ? ", lines, "
			   : e->level & FATHOM_STORE_HAS_SYMTAB ? ", symbols, "
								: ", exported symbols, ");
		out_dec(o, e->file_size);
		out_str(o, " bytes\n");
	}
	out_flush(o);
}

/* Reads a build-id; exits with status 2 if @text is none. */
static void parse_build_id(const char *text, uint8_t id[FATHOM_BUILD_ID_MAX], size_t *ret_size)
{
	const size_t digits = strlen(text);
	bool is_wrong = digits < 4 || digits % 2 || digits > 2 * FATHOM_BUILD_ID_MAX;

	for (size_t i = 0; !is_wrong && i < digits; i += 2) {
		const unsigned high = digit_of(text[i]);
		const unsigned low = digit_of(text[i + 1]);

		is_wrong = (high | low) > 15;
		id[i / 2] = (uint8_t)(high << 4 | low);
	}
	if (is_wrong) {
		complain(text, "is no build-id", "it has 4 to 128 hexadecimal digits");
		exit(EXIT_USAGE);
	}
	*ret_size = digits / 2;
}

static void build(struct store_run *v, const char *path)
{
	struct fathom_target *target = common_open(&v->common, v->session, TARGET_FILE, path);
	struct fathom_store_entry e;
	struct fathom_errinfo info;
	size_t next = 0;
	fathom_err err;

	if (!target) {
		set_status(v, EXIT_USAGE);
		return;
	}
	err = fathom_store_build(v->store, target, &e, &info);
	common_print_notes(target, &next);
	fathom_target_release(target);
	if (err) {
		complain_error(&info);
		set_status(v, EXIT_USAGE);
		return;
	}
	print_entry(v, path, &e, e.is_stored ? "stored" : "there already");
}

static void put(struct store_run *v, const char *path)
{
	struct fathom_store_entry e;
	struct fathom_errinfo info;

	if (fathom_store_put(v->store, path, &e, &info)) {
		complain_error(&info);
		set_status(v, EXIT_USAGE);
		return;
	}
	print_entry(v, path, &e, e.is_stored ? "stored" : "there already");
}

/* Complains of an index that could not be got; returns the status. */
static int complain_missing(const struct fathom_errinfo *info)
{
	complain_error(info);
	return info->err == FATHOM_E_NOT_FOUND || info->err == FATHOM_E_CORRUPT ? EXIT_UNANSWERED
										: EXIT_USAGE;
}

static void get(struct store_run *v, int n, char **arguments)
{
	uint8_t id[FATHOM_BUILD_ID_MAX];
	struct fathom_store_entry e;
	struct fathom_errinfo info;
	char *name = NULL;
	size_t size;

	if (!n || n > 2) {
		complain("store get", "one BUILD-ID is wanted, and where to write it",
			 "try 'fathom store --help'");
		exit(EXIT_USAGE);
	}
	parse_build_id(arguments[0], id, &size);
	if (n == 1 && asprintf(&name, "%s.fathom", arguments[0]) < 0)
		name = must(NULL);
	if (fathom_store_get(v->store, id, size, name ? name : arguments[1], &e, &info))
		set_status(v, complain_missing(&info));
	else
		print_entry(v, name ? name : arguments[1], &e, "written");
	free(name);
}

/* Checks the index of a build-id. */
static int check(void *data, const uint8_t *id, size_t size)
{
	struct store_run *v = data;
	char name[2 * FATHOM_BUILD_ID_MAX + 1];
	struct fathom_store_entry e;
	struct fathom_errinfo info;

	for (size_t i = 0; i < size; i++)
		(void)snprintf(name + 2 * i, 3, "%02x", id[i]);
	if (!fathom_store_get(v->store, id, size, NULL, &e, &info)) {
		print_entry(v, name, &e, "sound");
		return v->out.failed;
	}
	set_status(v, complain_missing(&info));
	if (v->common.json) {
		e = (struct fathom_store_entry){ .build_id_size = (uint32_t)size };
		memcpy(e.build_id, id, size);
		print_json(v, name, &e, info.what);
		out_flush(&v->out);
	}
	return v->out.failed;
}

static void check_all(struct store_run *v, int n, char **arguments)
{
	uint8_t id[FATHOM_BUILD_ID_MAX];
	struct fathom_errinfo info;
	size_t size;

	for (int i = 0; i < n; i++) {
		parse_build_id(arguments[i], id, &size);
		(void)check(v, id, size);
	}
	if (!n && fathom_store_each(v->store, check, v, &info)) {
		complain_error(&info);
		set_status(v, EXIT_USAGE);
	}
}

static void run(struct store_run *v, const char *what, int n, char **arguments)
{
	static const char *const names[] = { "build", "check", "get", "put" };
	const bool is_build = strcmp(what, "build") == 0;
	char remedy[64];
	const char *near;

	if (is_build || strcmp(what, "put") == 0) {
		if (!n)
			complain_lacking("store", "no FILE is given");
		for (int i = 0; i < n; i++)
			(is_build ? build : put)(v, arguments[i]);
	} else if (strcmp(what, "get") == 0) {
		get(v, n, arguments);
	} else if (strcmp(what, "check") == 0) {
		check_all(v, n, arguments);
	} else {
		near = fathom_near_text(what, names, sizeof names / sizeof *names);
		(void)snprintf(remedy, sizeof remedy, "did you mean %s?", near ? near : "");
		complain(what, "is not something that 'fathom store' does",
			 near ? remedy : "try 'fathom store --help'");
		exit(EXIT_USAGE);
	}
}

static void parse_options(struct store_run *v, int argc, char **argv)
{
	struct option_reader reader;

	v->store_options.size = sizeof v->store_options;
	option_reader_init(&reader, &store_options);
	while (option_reader_next(&reader, &v->common, argc, argv) != -1)
		v->store_options.timeout_ms =
			(uint32_t)(parse_seconds("--store-timeout", optarg) * 1e3);
	if (argc - optind < 2)
		complain_lacking("store", "build, put, get or check is wanted, and a STORE");
}

int verb_store(int argc, char **argv)
{
	struct store_run v = { .status = EXIT_ANSWERED };
	struct fathom_errinfo info;

	common_init(&v.common);
	v.common.shows_progress = true;
	parse_options(&v, argc, argv);
	v.session = common_session(&v.common);
	out_init(&v.out);
	if (fathom_store_open(v.session, argv[optind + 1], &v.store_options, &v.store, &info)) {
		complain_error(&info);
		set_status(&v, EXIT_USAGE);
	} else {
		run(&v, argv[optind], argc - optind - 2, argv + optind + 2);
		fathom_store_close(v.store);
	}
	set_status(&v, common_status(&v.out, false));
	out_deinit(&v.out);
	fault_destroy(v.session);
	common_deinit(&v.common);
	return v.status;
}
