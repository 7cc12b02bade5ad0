/* SPDX-License-Identifier: MIT */
/* Whether programs of this kind run here. */
int main(void)
{
	return 0;
}
