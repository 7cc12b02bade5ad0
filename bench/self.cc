// SPDX-License-Identifier: MIT
// self TOOL ADDRESSES LOOKUPS LIBRARY: names random addresses of the code of a library in this process,
// ADDRESSES different ones, LOOKUPS times in all, and prints: milliseconds that the look-ups took, by the wall and of
// the processor, milliseconds that preparing took, MiB of peak memory, how many look-ups had a name.
//
// TOOL: fathom (as in a signal handler), fathom-now (outside: follows the loader), dladdr,
// backtrace_symbols_fd, absl.
#include <absl/debugging/symbolize.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fathom/fathom.h>
#include <fcntl.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "measured.h"

namespace {

struct Code {
	const char *name;
	uintptr_t low = 0;
	uintptr_t high = 0;
};

int find_code(dl_phdr_info *info, size_t, void *data)
{
	auto *code = static_cast<Code *>(data);
	if (!info->dlpi_name || !strstr(info->dlpi_name, code->name))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const auto &s = info->dlpi_phdr[i];
		if (s.p_type == PT_LOAD && s.p_flags & PF_X) {
			code->low = info->dlpi_addr + s.p_vaddr;
			code->high = code->low + s.p_memsz;
		}
	}
	return 1;
}

fathom *session;
fathom_self *self;
char buffer[FATHOM_SELF_BUFFER];
char text[4096];
int null_fd;

bool by_fathom(uintptr_t pc)
{
	return fathom_self_lookup(self, { pc, FATHOM_PC_EXACT, {} }, FATHOM_NAMES_ONLY, buffer,
				  sizeof buffer)
		->symbol;
}

bool by_fathom_now(uintptr_t pc)
{
	return fathom_self_lookup_now(self, { pc, FATHOM_PC_EXACT, {} }, FATHOM_NAMES_ONLY, buffer,
				      sizeof buffer)
		->symbol;
}

bool by_dladdr(uintptr_t pc)
{
	Dl_info info;
	return dladdr(reinterpret_cast<void *>(pc), &info) && info.dli_sname;
}

bool by_backtrace(uintptr_t pc)
{
	void *frame = reinterpret_cast<void *>(pc);
	backtrace_symbols_fd(&frame, 1, null_fd);
	return true;
}

bool by_absl(uintptr_t pc)
{
	return absl::Symbolize(reinterpret_cast<void *>(pc), text, sizeof text);
}

}  // namespace

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	const std::string tool = argv[1];
	const auto n = std::stoul(argv[2]);
	const auto lookups = std::stoul(argv[3]);
	Code code = { argv[4] };
	// Linked, or marked to stay, it stays; else it may be unloaded, which handlers have to look at.
	if (!dlopen(argv[4], RTLD_NOW) || !dl_iterate_phdr(find_code, &code) || !code.low)
		return 2;
	const double start = milliseconds(CLOCK_MONOTONIC);
	if (tool == "fathom" || tool == "fathom-now") {
		fathom_options options = {};
		options.size = sizeof options;
		options.flags = FATHOM_NO_CACHE;
		if (fathom_create(&options, &session, nullptr) || fathom_self_prepare(session, nullptr, &self, nullptr))
			return 2;
	} else if (tool == "absl") {
		absl::InitializeSymbolizer(argv[0]);
	}
	const double prepared = milliseconds(CLOCK_MONOTONIC) - start;
	null_fd = open("/dev/null", O_WRONLY);
	bool (*ask)(uintptr_t) = tool == "fathom"		? by_fathom
				 : tool == "fathom-now"		? by_fathom_now
				 : tool == "dladdr"		? by_dladdr
				 : tool == "backtrace_symbols_fd" ? by_backtrace
								  : by_absl;
	std::mt19937_64 dice(1);
	std::vector<uintptr_t> pcs(n);
	for (auto &pc : pcs)
		pc = code.low + dice() % (code.high - code.low);
	// Each address once before: what a tool keeps of it is kept.
	for (const auto pc : pcs)
		(void)ask(pc);
	size_t named = 0;
	const double begin = milliseconds(CLOCK_MONOTONIC);
	const double begin_cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < lookups; i++)
		named += ask(pcs[i % n]);
	const double cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID) - begin_cpu;
	const double wall = milliseconds(CLOCK_MONOTONIC) - begin;
	printf("%.3f %.3f %.3f %.1f %zu\n", wall, cpu, prepared, peak_mib(), named);
	return 0;
}
