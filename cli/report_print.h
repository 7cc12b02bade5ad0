/* SPDX-License-Identifier: MIT */
/* Reports of profiles as text for people, and as JSON Lines. */
#ifndef FATHOM_CLI_REPORT_PRINT_H
#define FATHOM_CLI_REPORT_PRINT_H

#include <fathom/profile.h>

#include "cli/out.h"

/* A profile that is being printed. */
struct report_print {
	const struct fathom_profile *profile;
	const struct fathom_profile_info *info;
	const char *unit; /* of weights */
	uint32_t time;    /* enum fathom_report_time */
	uint32_t key;     /* enum fathom_report_key */
	size_t top;       /* rows; SIZE_MAX: all */
};

/* A module that names nothing, and why. */
struct report_nameless {
	const struct fathom_profile_module *module;
	uint8_t reason; /* enum fathom_reason; NONE: it names what is in it */
};

/* Returns the modules of the profile, each with its reason, to be freed. */
struct report_nameless *report_find_nameless(const struct fathom_profile *profile, size_t *ret_n);

/* Print as text: the profile, the first rows of @r, its tree under @title. */
void report_text_header(const struct report_print *p, struct out *o, const struct fathom_report *r);
void report_text_rows(const struct report_print *p, struct out *o, const struct fathom_report *r);
void report_text_tree(const struct report_print *p, struct out *o, const struct fathom_report *r,
		      const char *title);

/* Print the same as JSON Lines; @shape: enum fathom_report_shape. */
void report_json_header(const struct report_print *p, struct out *o, const struct fathom_report *r);
void report_json_rows(const struct report_print *p, struct out *o, const struct fathom_report *r);
void report_json_tree(const struct report_print *p, struct out *o, const struct fathom_report *r,
		      uint32_t shape);

/* Returns the enum fathom_profile_format of --export=@word; ends the command if there is none. */
int report_export_parse(const char *word);
/* Returns whether the name of the file @path is one of a page. */
bool report_export_is_page(const char *path);
/*
 * Writes the profile in @format to the file @path, or to standard output if it is NULL; compared
 * with @other unless that is NULL. Says on standard error what the format does not. Returns the
 * exit status.
 */
int report_export(const struct report_print *p, const struct fathom_profile *other, int format,
		  const struct fathom_report_options *filters, const char *path);

/* Two profiles that are compared. Arrays have A's first. */
struct report_diff {
	const struct report_print *print; /* top; the profile is A */
	const char *paths[2];
	const struct fathom_profile *profiles[2];
	struct fathom_diff_options options;
	bool json;
};

/* Reads --per=@text into @o; ends the command if it is wrong. */
void report_diff_parse_per(struct fathom_diff_options *o, const char *text);
/* Prints the comparison; returns the exit status. */
int report_diff(const struct report_diff *d, struct out *o);

/* Writes @value, of @unit, in four digits: "1.234 ms", "12.34 G". */
const char *report_weight_text(double value, const char *unit, char to[32]);
/* Prints a line of a header: @name with a colon, and what @format makes. */
void report_text_line(struct out *o, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Prints what a row is: its name, and @module unless that is NULL. */
void report_text_name(struct out *o, const char *name, const char *module);

/* The words of enum fathom_report_key. */
enum { REPORT_KEYS = FATHOM_REPORT_BY_WAKER + 1 };
extern const char *const report_key_words[REPORT_KEYS];

/* The words of enum fathom_report_time. */
extern const char *const report_time_words[3];

#endif
