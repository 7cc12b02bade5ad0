/* SPDX-License-Identifier: MIT */
/* The report of fathom doctor: one line for each check, as text or JSON. */
#ifndef FATHOM_CLI_DOCTOR_H
#define FATHOM_CLI_DOCTOR_H

#include "cli/common.h"
#include "cli/out.h"

/* Results of a check. */
enum doctor_state {
	DOCTOR_OK,
	DOCTOR_LIMITED,
	DOCTOR_OFF /* it could give more answers, and nothing is wrong */
};

struct doctor {
	const struct common *common;
	struct fathom *session;
	struct out out;
	bool is_limited; /* some check was */
};

/* One line. Texts may be anybody's. */
struct doctor_line {
	const char *check;
	enum doctor_state state;
	const char *detail;
	const char *remedy;                      /* NULL: none */
	const struct fathom_module_info *module; /* that it is about; NULL: none */
};

void doctor_print(struct doctor *d, const struct doctor_line *line);

/* Print a line; the rest is its detail, as printf(3) formats it. */
__attribute__((format(printf, 3, 4))) void doctor_ok(struct doctor *d, const char *check,
						     const char *format, ...);
__attribute__((format(printf, 4, 5))) void doctor_limited(struct doctor *d, const char *check,
							  const char *remedy, const char *format,
							  ...);

/* Check this machine, and what this user may do. */
void doctor_check_machine(struct doctor *d);
/* Checks the modules of @target, and whether it may be attached to. */
void doctor_check_target(struct doctor *d, struct fathom_target *target);

/* Returns what helps against @info, an error of fathom_attach_check(); NULL: nothing. */
const char *doctor_attach_remedy(const struct fathom_errinfo *info);

#endif
