/* SPDX-License-Identifier: MIT */
/*
 * sframe_rows FILE: reads addresses from standard input, in hexadecimal, and prints for each what
 * the file's SFrame section says of it, as readelf writes it: "LOW HIGH CFA FP RA", with sp and fp
 * for the CFA's register, c+OFFSET for what is saved, u for what is not said; or the error.
 */
#include <inttypes.h>

#include "each_module.h"
#include "safe/unwind/sframe.h"

static void print_saved(const struct fathom_row *row, uint8_t number)
{
	const struct fathom_rule rule = fathom_row_rule(row, number);

	if (rule.kind == FATHOM_RULE_AT_OFFSET)
		printf(" c%+" PRId64, rule.offset);
	else
		printf(" u");
}

static void print_rows(struct fathom_module *m)
{
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(m->main->image.machine);
	struct fathom_sframe s;
	uint64_t svma = 0;
	const struct fathom_bytes section = fathom_module_sframe(m, &svma);
	fathom_err err = fathom_sframe_init(&s, section, svma, m->main->image.swap, arch);
	struct fathom_row row;
	uint64_t at;

	while (scanf("%" SCNx64, &at) == 1) {
		const fathom_err found = err ? err : fathom_sframe_find(&s, at, arch, &row);

		if (found) {
			printf("error %d\n", found);
			continue;
		}
		printf("%" PRIx64 " %" PRIx64 " %s%+" PRId64, row.low, row.high,
		       row.cfa.number == arch->sp ? "sp" : "fp", row.cfa.offset);
		print_saved(&row, arch->fp);
		print_saved(&row, row.return_register);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	return each_module(argc - 1, argv + 1, print_rows);
}
