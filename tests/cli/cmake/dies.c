/* SPDX-License-Identifier: MIT */
/* Dies of a signal, and installs no handler itself. */
int main(void)
{
	__builtin_trap();
}
