// SPDX-License-Identifier: MIT
namespace library {
void enter(int size);
}

int main(int argc, char **)
{
	library::enter(argc + 7);
	return 0;
}
