/* SPDX-License-Identifier: MIT */
/*
 * rows [--time] FILE...: lists all rows of the call frame information of each file. A line is, with
 * addresses and offsets in hexadecimal:
 *
 *   file PATH ERROR
 *   section NAME
 *   F OFFSET LOW HIGH RETURN-REGISTER ERROR
 *   R LOW CFA NUMBER:RULE...
 *
 * ERROR is that of the FDE, or that ended its rows. Rules are written as readelf does, with numbers
 * of registers: rN+OFFSET, c+OFFSET, v+OFFSET, rN, exp, vexp, u, s; "?" is a CFA without a rule.
 * "signed" stands behind a row whose return address is signed.
 *
 * With --time prints how many rows each file has, and how long reading them took, instead:
 *
 *   time ROWS NANOSECONDS
 */
#include <inttypes.h>
#include <time.h>

#include "each_module.h"
#include "safe/unwind/row.h"

static void print_rule(const struct fathom_rule *rule)
{
	switch (rule->kind) {
	case FATHOM_RULE_UNSPECIFIED:
		printf("?");
		break;
	case FATHOM_RULE_UNDEFINED:
		printf("u");
		break;
	case FATHOM_RULE_SAME:
		printf("s");
		break;
	case FATHOM_RULE_AT_OFFSET:
		printf("c%+" PRId64, rule->offset);
		break;
	case FATHOM_RULE_OFFSET:
		printf("v%+" PRId64, rule->offset);
		break;
	case FATHOM_RULE_REGISTER:
		printf("r%u", rule->number);
		break;
	case FATHOM_RULE_AT_EXPRESSION:
		printf("exp");
		break;
	default:
		printf("vexp");
	}
}

static void print_row(const struct fathom_row *row)
{
	printf("R %" PRIx64 " ", row->low);
	if (row->cfa.kind == FATHOM_RULE_REGISTER)
		printf("r%u%+" PRId64, row->cfa.number, row->cfa.offset);
	else
		printf("%s", row->cfa.kind == FATHOM_RULE_EXPRESSION ? "exp" : "?");
	for (uint8_t i = 0; i < FATHOM_REGISTERS; i++) {
		const struct fathom_rule rule = fathom_row_rule(row, i);

		if (!rule.kind)
			continue;
		printf(" %u:", i);
		print_rule(&rule);
	}
	printf("%s\n", row->is_ra_signed ? " signed" : "");
}

static void print_fde(const struct fathom_fde *fde, const struct fathom_unwind_arch *arch)
{
	struct fathom_row_reader r;
	struct fathom_row_reader again;
	fathom_err err = fathom_row_reader_init(&r, fde, arch);

	/* Errors are known only at the end: rows come first. */
	if (!err)
		while ((err = fathom_row_next(&r)) == FATHOM_OK)
			print_row(&r.now);
	printf("F %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIu64 " %d\n", fde->off, fde->low,
	       fde->high, fde->cie->return_register, err == FATHOM_END ? 0 : err);
	/* The last row is found by the FDE's last address. */
	if (err == FATHOM_END && fde->low < fde->high &&
	    (fathom_row_reader_init(&again, fde, arch) || fathom_row_find(&again, fde->high - 1) ||
	     again.now.low != r.now.low))
		printf("lost %" PRIx64 "\n", fde->off);
}

static uint64_t n_rows;

static void count_rows(const struct fathom_fde *fde, const struct fathom_unwind_arch *arch)
{
	struct fathom_row_reader r;

	if (!fathom_row_reader_init(&r, fde, arch))
		while (!fathom_row_next(&r))
			n_rows++;
}

static void walk(struct fathom_module *m, const struct fathom_cfi *cfi,
		 void (*fn)(const struct fathom_fde *fde, const struct fathom_unwind_arch *arch))
{
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(m->main->image.machine);
	struct fathom_cie cie = { .off = UINT64_MAX };
	struct fathom_cfi_reader r;
	struct fathom_cfi_entry e;
	struct fathom_fde fde;

	fathom_cfi_reader_init(&r, cfi);
	while (arch && fathom_cfi_next(&r, &e, NULL) == FATHOM_OK) {
		if (e.is_cie)
			continue;
		if (cie.off != e.cie_off && fathom_cie_read(cfi, e.cie_off, &cie))
			cie.off = UINT64_MAX;
		else if (!fathom_fde_read(&e, &cie, &fde))
			fn(&fde, arch);
	}
}

static void print_module(struct fathom_module *m)
{
	for (uint32_t i = 0; i < m->unwind.n_sections; i++) {
		const struct fathom_cfi cfi = fathom_unwind_tables_section(&m->unwind, i);

		printf("section %s\n", cfi.is_eh ? ".eh_frame" : ".debug_frame");
		walk(m, &cfi, print_fde);
	}
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void time_module(struct fathom_module *m)
{
	/* The first round brings the pages in. */
	for (int round = 0; round < 2; round++) {
		const uint64_t start = now_ns();

		n_rows = 0;
		for (uint32_t i = 0; i < m->unwind.n_sections; i++) {
			const struct fathom_cfi cfi = fathom_unwind_tables_section(&m->unwind, i);

			walk(m, &cfi, count_rows);
		}
		if (round)
			printf("time %" PRIu64 " %" PRIu64 "\n", n_rows, now_ns() - start);
	}
}

int main(int argc, char **argv)
{
	const bool timed = argc > 1 && strcmp(argv[1], "--time") == 0;

	return timed ? each_module(argc - 2, argv + 2, time_module)
		     : each_module(argc - 1, argv + 1, print_module);
}
