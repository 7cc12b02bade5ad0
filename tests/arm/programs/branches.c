/* SPDX-License-Identifier: MIT */
/* Reads lines: "AVMA TO", and prints the instructions that lead there, or -; or one number, and
 * prints whether it may change. */
#include <inttypes.h>
#include <stdio.h>

#include "host/code/aarch64/arm_instructions.h"

int main(void)
{
	uint64_t a, b;
	char line[64];

	while (fgets(line, sizeof line, stdin)) {
		uint32_t op;

		if (sscanf(line, "%" SCNx64 " %" SCNx64, &a, &b) < 2) {
			printf("%d\n", fathom_arm_may_change((uint32_t)a));
			continue;
		}
		if (fathom_arm_jump(a, b, &op))
			printf("%08" PRIx32, op);
		else
			printf("-");
		if (fathom_arm_call(a, b, &op))
			printf(" %08" PRIx32 "\n", op);
		else
			printf(" -\n");
	}
	return 0;
}
