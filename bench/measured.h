// SPDX-License-Identifier: MIT
// What programs measure of themselves.
#ifndef MEASURED_H
#define MEASURED_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

inline double milliseconds(clockid_t clock)
{
	timespec now;
	(void)clock_gettime(clock, &now);
	return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Not by getrusage(), which begins with the peak of whoever started us.
inline double peak_mib()
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	double kib = 0;
	while (status && fgets(line, sizeof line, status))
		if (!strncmp(line, "VmHWM:", 6))
			kib = atof(line + 6);
	if (status)
		(void)fclose(status);
	return kib / 1024;
}

#endif
