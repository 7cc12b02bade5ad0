/* SPDX-License-Identifier: MIT */
int exported_data = 5;

int exported_code(int x)
{
	return x * exported_data;
}
