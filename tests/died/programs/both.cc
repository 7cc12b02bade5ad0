// SPDX-License-Identifier: MIT
/*
 * both LIBRARY WAY: has a C++ library inside, and loads another one with deaths.cc. Dies within a handler: of an
 * exception of its own (own), of the other library (theirs), or of that while it handles one of its own (outer).
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>

using deaths_fn = int(int, char **);

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : nullptr;
	auto deaths = library ? reinterpret_cast<deaths_fn *>(dlsym(library, "deaths")) : nullptr;
	char name[] = "deaths";
	char way[] = "handler";
	char *arguments[] = { name, way, nullptr };

	if (!deaths) {
		std::puts(dlerror());
		return 97;
	}
	if (!std::strcmp(argv[2], "theirs"))
		return deaths(2, arguments);
	try {
		throw std::runtime_error("of the program");
	} catch (std::exception &) {
		if (!std::strcmp(argv[2], "own"))
			std::abort();
		return deaths(2, arguments);
	}
}
