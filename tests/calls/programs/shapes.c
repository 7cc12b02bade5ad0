/* SPDX-License-Identifier: MIT */
/* The same few calls in each shape of a site. */
#include <stdio.h>

#include "../../lib/three_calls.h"

int main(void)
{
	printf("%d\n", top(3) + leaf(4));
	return 0;
}
